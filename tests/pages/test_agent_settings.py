"""Operators set an agent's memory in a browser, see what it does, and move it under load."""

import json
import re
import threading
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

from tests.pages.conftest import on_both_engines
from tests.pages.steps import faults_in_both_themes, settle

MESSAGE = "Which tea does Olga drink in the morning?"


def open_settings(page, site, name="atlas"):
    page.goto(f"{site.url}/agents/{name}/settings/")
    expect(page.locator(".h-trial .pill.ok")).to_have_count(
        page.locator(".opt input:enabled").count()
    )


def give_reason(page, user_id):
    """Be let try on somebody; the demo's people need none until a test has changed something."""
    page.click("#preview details summary")
    form = page.locator("#preview details form")
    form.locator("[name=user_id]").fill(user_id)
    form.locator("[name=reason]").fill("To see what the preview shows of it")
    form.locator("button").click()
    expect(page.locator("#try-user")).to_have_value(user_id)


def new_agent(page, site, name, backend="sqlite"):
    """Make an agent as an operator does, and a key; return how the agent calls."""
    page.goto(f"{site.url}/agents/")
    page.click("main a[href='/agents/+new/']")
    page.fill("input[name=name]", name)
    page.select_option("select[name=language]", "en")
    page.select_option("select[name=backend]", backend)
    page.click("main form.h-form button.btn-primary")
    page.wait_for_url(re.compile(f"/agents/{name}/"))
    address = f"{site.url}/api/v1/agents/{name}/"
    token = page.locator("[name=csrfmiddlewaretoken]").first.input_value()
    made = page.request.post(f"{address}keys/", data={}, headers={"X-CSRFToken": token})
    key = made.json()["key"]

    def call(path, body=None):
        data = json.dumps(body).encode() if body else None
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        with urlopen(Request(address + path, data, headers), timeout=30) as answer:
            return json.load(answer)

    return call


def memory(number, user_id="olga"):
    content = f"Olga drinks tea number {number} in the morning, with milk."
    return {"user_id": user_id, "type": "user", "name": f"Tea {number}", "content": content}


def said(page, name):
    return page.locator(f"#said-{name}")


@on_both_engines
def test_a_switch_and_a_limit_are_obeyed_and_the_preview_shows_what_they_do(browse, site, request):
    engine = request.node.callspec.params["site"]
    page = browse("olga")
    call = new_agent(page, site, f"steward-{engine}", engine)
    for number in range(6):
        call("memories/", memory(number))
    asked = {"user_id": "olga", "message": MESSAGE}
    open_settings(page, site, f"steward-{engine}")

    page.click("#id_enabled")
    expect(said(page, "enabled")).to_contain_text("Saved")
    expect(page.locator("#agent-pill")).to_have_text("Memory off")
    assert call("prefetch/", asked) == {"enabled": False}
    page.click("#id_enabled")
    expect(page.locator("#agent-pill")).to_have_text("Memory on")
    assert len(call("prefetch/", asked)["memories"]) == 5

    elapsed = []
    for message in ("Which tea?", "Does Olga take milk?", MESSAGE):
        with page.expect_response(re.compile("/settings/preview/")) as shown:
            page.fill("#try-message", message)
        timing = (shown.value.finished(), shown.value.request.timing)[1]
        elapsed.append(timing["responseEnd"] - timing["requestStart"])
    settle(page)
    assert min(elapsed) < 300
    expect(page.locator("#preview .hit")).to_have_count(5)
    expect(page.locator("#preview .hit").first).to_contain_text("matched")
    expect(page.locator("#preview .h-more-details summary").first).to_contain_text("1 by the limit")
    assert (
        page.locator("#preview-block").text_content() == call("prefetch/", asked)["memory_context"]
    )

    page.click("[data-copy=preview-block]")
    expect(page.locator(".h-copies .saved")).to_have_text(re.compile("Copied|Selected"))

    page.locator("[data-twin=id_prefetch_limit]").evaluate(
        "each => { each.value = 2; each.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    expect(page.locator("#preview .hit")).to_have_count(2)  # before it is saved
    expect(page.locator("#id_prefetch_limit")).to_have_value("2")
    assert len(call("prefetch/", asked)["memories"]) == 5
    page.locator("[data-twin=id_prefetch_limit]").dispatch_event("change")
    expect(said(page, "prefetch_limit")).to_contain_text("Saved")
    assert len(call("prefetch/", asked)["memories"]) == 2

    page.fill("#id_budget_tokens", "7")
    page.locator("#id_budget_tokens").blur()
    expect(said(page, "budget_tokens").locator(".h-wrong")).to_be_visible()
    expect(page.locator("#id_budget_tokens")).to_have_attribute("aria-invalid", "true")
    page.fill("#id_budget_tokens", "90")
    page.locator("#id_budget_tokens").blur()
    expect(said(page, "budget_tokens")).to_contain_text("Saved")
    expect(page.locator("#id_budget_tokens")).not_to_have_attribute("aria-invalid", "true")
    page.reload()
    expect(page.locator("#id_budget_tokens")).to_have_value("90")


def test_a_switch_that_fails_goes_back(browse, site):
    page = browse("olga")
    open_settings(page, site)

    page.route("**/agents/atlas/settings/", lambda route: route.fulfill(status=403, body="no"))
    page.click("#id_enabled")
    expect(page.locator("#toasts .toastx")).to_be_visible()

    expect(page.locator("#id_enabled")).to_be_checked()


class Writer(threading.Thread):
    """An agent that saves all the while; what takes no changes is tried again."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self.call, self.ended, self.saved, self.refused = call, threading.Event(), [], set()

    def run(self):
        while not self.ended.wait(0.02):
            body = memory(len(self.saved), f"user{len(self.saved) % 3}")
            try:
                self.saved.append(self.call("memories/", body)["id"])
            except HTTPError as refused:
                self.refused.add(refused.code)
                time.sleep(0.2)


def listed(call, user_id):
    """Return the ids of all that the agent remembers of a user."""
    ids, cursor = [], ""
    while cursor is not None:
        page = call(f"memories/?user_id={user_id}&limit=200&cursor={cursor}")
        ids += [each["id"] for each in page["results"]]
        cursor = page["next"]
    return ids


@pytest.mark.parametrize("site", ["mysql"], indirect=True)
def test_memories_move_there_and_back_while_they_are_written(browse, site):
    page = browse("olga")
    call = new_agent(page, site, "mover", "mysql")
    for number in range(30):
        call("memories/", memory(number))
    open_settings(page, site, "mover")
    writer = Writer(call)
    writer.start()

    page.check("#backend-sqlite")
    plan = page.locator(".h-plan", has=page.locator("#plan-title"))
    expect(plan).to_contain_text(re.compile(r"3\d|[4-9]\d memories"))
    expect(plan).to_contain_text("nothing of this agent")
    plan.locator("button[value=move]").click()
    done = page.locator("#store .h-good")
    expect(done).to_contain_text("moved to memory.db and verified", timeout=60_000)
    expect(page.locator("label", has=page.locator("#backend-sqlite"))).to_contain_text("in use")
    expect(page.locator("#agent-backend")).to_have_text("local SQLite")
    page.click("#store button:has-text('Move back to MySQL')")
    expect(done).to_contain_text("moved to MySQL and verified", timeout=60_000)
    writer.ended.set()
    writer.join()

    found = {each for user in ("user0", "user1", "user2") for each in listed(call, user)}
    assert found == set(writer.saved)
    assert writer.refused <= {503}
    assert len(listed(call, "olga")) == 30
    page.click("summary:has-text('Erase what they hold')")
    page.fill("#confirm-erase", "mover")
    page.click("#store .btn-danger")
    expect(page.locator("#store")).to_contain_text("memories in former stores")
    expect(page.locator("#former-title")).to_have_count(0)


def test_all_of_it_works_without_scripts(browse, site):
    page = browse("olga", java_script_enabled=False)
    page.goto(f"{site.url}/agents/mentor/settings/")

    form = page.locator("form", has=page.locator("#id_prefetch_limit"))
    form.locator("input[name=prefetch_limit]").fill("60")
    form.locator("button").click()
    expect(page.locator("#said-prefetch_limit .h-wrong")).to_be_visible()
    expect(page.locator("#id_prefetch_limit")).to_have_value("60")
    page.fill("#id_prefetch_limit", "7")
    form.locator("button").click()
    expect(page.locator("#toasts .toastx")).to_contain_text("Saved")
    expect(page.locator("#id_prefetch_limit")).to_have_value("7")
    give_reason(page, "meilin")
    page.fill("#try-message", "雅思考试的目标是多少？")
    page.click("#try button")
    expect(page.locator("#preview .hit").first).to_be_visible()
    page.click("#store a:has-text('Test the connections')")
    expect(page.locator("#store .h-trial .pill.ok")).to_have_count(1)
    page.click("summary:has-text('Advanced')")
    page.fill("#sqlite-path", "elsewhere.db")
    page.click("#store button:has-text('Change the store')")
    expect(page.locator("#plan-title")).to_have_text("Change to elsewhere.db?")
    page.click("#store a:has-text('Cancel')")
    expect(page.locator("#plan-title")).to_have_count(0)


def states(page, site):
    """Yield the states of the pages by name."""
    open_settings(page, site)
    give_reason(page, "tom")
    page.fill("#try-message", "How should I format commit messages?")
    expect(page.locator("#preview .hit").first).to_be_visible()
    settle(page)
    yield "preview"
    page.click("#preview summary:visible >> nth=-1")
    page.fill("#id_prefetch_limit", "99")
    page.locator("#id_prefetch_limit").blur()
    expect(page.locator("#said-prefetch_limit .h-wrong")).to_be_visible()
    page.click("#store summary")
    page.fill("#sqlite-path", "elsewhere.db")
    page.locator("#sqlite-path").blur()
    expect(page.locator("#plan-title")).to_be_visible()
    settle(page)
    yield "plan"
    page.fill("#sqlite-path", "a/b")
    page.locator("#sqlite-path").blur()
    expect(page.locator("#sqlite-path.is-invalid")).to_be_visible()
    yield "refused"
    page.goto(f"{site.url}/agents/+new/")
    page.click("main form.h-form button.btn-primary")
    expect(page.locator("[aria-invalid=true]").first).to_be_visible()
    yield "new"


@pytest.mark.parametrize(("locale", "width"), [("en-US", 1280), ("zh-CN", 360)])
def test_no_page_keeps_anybody_out_or_is_too_wide(browse, site, locale, width):
    page = browse("olga", locale=locale, width=width, reduced_motion="reduce")
    found = {}

    for name in states(page, site):
        found[name] = faults_in_both_themes(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name

    assert {name: faults for name, faults in found.items() if faults} == {}
