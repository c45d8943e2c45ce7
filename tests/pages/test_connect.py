"""An operator connects an agent: from the key to its first call, a new key, and no key."""

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright._impl._driver import compute_driver_executable
from playwright.sync_api import expect

from tests.pages.conftest import on_both_engines
from tests.pages.site import manage
from tests.pages.steps import AXE, settle, toast

AGENT = "小河"
PROGRAMS = {
    "curl-1": ("call.sh", ["bash"]),
    "curl-2": ("call.sh", ["bash"]),
    "curl-3": ("call.sh", ["bash"]),
    "python-1": ("call.py", [sys.executable]),
    "typescript-1": ("call.mts", [compute_driver_executable()[0]]),  # a node that reads types
}


@pytest.fixture
def run(tmp_path):
    """Run what can be copied from a box, as somebody would: run(page, "curl-1")."""

    def run_copied(page, box, **variables):
        name, command = PROGRAMS[box]
        (tmp_path / name).write_text(page.locator(f"#{box}").text_content())
        return subprocess.run(
            [*command, tmp_path / name],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout

    return run_copied


def works(site, key, agent="atlas"):
    """Return whether a key opens its agent's tools."""
    address = f"{site.url}/api/v1/agents/{agent}/tools/?format=openai"
    asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {key}"})
    try:
        urllib.request.urlopen(asked).close()
    except urllib.error.HTTPError as error:
        return error.code != 401
    return True


def make_key(page, site, name, agent="atlas"):
    page.goto(f"{site.url}/agents/{agent}/connect/")
    page.fill("#id_name", name)
    page.click("#key-new button.btn-primary")
    expect(page.locator("#issued h2").first).to_be_focused()
    return page.locator("#new-key").text_content()


def row_of(page, name, number=0):
    return page.locator("#list tbody tr", has_text=name).nth(number)


@on_both_engines
def test_a_key_leads_to_the_first_call(browse, site, run, request):
    engine = request.node.callspec.params["site"]
    manage(site, "create_agent", AGENT, "--language", "zh-hans", "--backend", engine)
    page = browse("olga", permissions=["clipboard-read", "clipboard-write"])

    key = make_key(page, site, "laptop", AGENT)
    expect(page.locator("#first-call")).to_contain_text("Waiting for the first call")
    page.click("#curl-1 + div button")
    expect(page.locator("#curl-1 + div .saved")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#curl-1").text_content()
    assert '"id"' in run(page, "curl-1")
    expect(page.locator("#first-call")).to_contain_text("First call received")
    expect(page.locator("#first-call")).to_contain_text("laptop")
    with_key = {box: run(page, box) for box in PROGRAMS}

    page.reload()
    assert key not in page.content()
    expect(page.locator("#first-call")).to_contain_text("Last call")
    with_variable = {box: run(page, box, HIPPO_KEY=key) for box in PROGRAMS}
    content = "I like short answers: the conclusion first, then the reasons."
    for printed in (with_key, with_variable):
        for box in ("curl-2", "curl-3", "python-1", "typescript-1"):
            assert content in printed[box], box
    make_key(page, site, "server", AGENT)
    page.goto(f"{site.url}/keys/")
    page.go_back()
    expect(page.locator("#key-new")).to_be_visible()
    assert not re.search(r"hippo_[\w-]{40}", page.content())


def test_a_key_is_rotated_and_revoked_and_that_is_undone(browse, site):
    page = browse("olga")
    old = make_key(page, site, "workshop")
    page.goto(f"{site.url}/keys/")
    with page.expect_response(re.compile("q=workshop")):
        page.fill("#q", "workshop")
    settle(page)
    expect(page).to_have_url(re.compile(r"/keys/\?q=workshop"))

    row_of(page, "workshop").locator("summary").click()
    page.locator(".h-rotate[open] select").select_option("3600")
    page.click(".h-rotate[open] button")
    expect(page.locator("#issued h2").first).to_be_focused()
    new = page.locator("#new-key").text_content()
    expect(page.locator("#list tbody tr")).to_have_count(2)
    expect(row_of(page, "workshop", 1)).to_contain_text("Ends in 60 min")
    assert works(site, old)
    assert works(site, new)

    row_of(page, "workshop").locator("form[action*=revoke] button").click()
    expect(toast(page)).to_contain_text("is revoked")
    expect(row_of(page, "workshop").locator("th")).to_be_focused()
    expect(page.locator("#new-key")).to_have_text(new)  # what is shown once stays
    assert works(site, old)
    assert not works(site, new)
    page.keyboard.press("z")
    expect(toast(page)).to_contain_text("works again")
    expect(row_of(page, "workshop")).to_contain_text("Live")
    assert works(site, new)

    tom = browse("tom")
    expect(tom.locator("#nav a", has_text="Connect & keys")).to_have_count(0)
    for path in ("/keys/", "/agents/atlas/connect/"):
        assert tom.goto(site.url + path).status == 403


def test_all_of_it_works_without_scripts(browse, site):
    page = browse("olga", java_script_enabled=False)
    page.goto(f"{site.url}/keys/")
    page.click("#key-new summary")
    page.select_option("#id_agent", "atlas")
    page.fill("#id_name", "scriptless")
    page.click("#key-new button.btn-primary")
    key = page.locator("#new-key").text_content()
    assert works(site, key)
    page.reload()  # which sends the form again
    expect(page.locator("#key-new [role=alert]")).to_contain_text("cannot be shown again")
    expect(page.locator("#list tr", has_text="scriptless")).to_have_count(1)

    row_of(page, "scriptless").locator("summary").click()
    row_of(page, "scriptless").locator("select").select_option("0")
    row_of(page, "scriptless").locator(".h-rotate button").click()
    new = page.locator("#new-key").text_content()
    assert (works(site, key), works(site, new)) == (False, True)
    page.goto(f"{site.url}/keys/?q=scriptless")
    row_of(page, "scriptless").locator("form[action*=revoke] button").click()
    assert not works(site, new)
    toast(page).locator("button").click()
    assert works(site, new)
    expect(page).to_have_url(f"{site.url}/keys/?q=scriptless")


@pytest.mark.parametrize(("locale", "theme"), [("en-US", "light"), ("zh-CN", "dark")])
def test_no_page_keeps_anybody_out(browse, site, locale, theme):
    page = browse("olga", locale=locale, color_scheme=theme)
    found = {}

    def look(state):
        violations = Axe().run(page, options=AXE).response["violations"]
        found[state] = [(each["id"], each["nodes"][0]["html"][:200]) for each in violations]
        page.set_viewport_size({"width": 360, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, state
        page.set_viewport_size({"width": 1280, "height": 800})

    page.goto(f"{site.url}/agents/xiaoman/connect/")
    look("connect")
    make_key(page, site, "N" * 100)
    for each in page.locator(".h-snippet").all():
        each.evaluate("each => { each.removeAttribute('name'); each.open = true; }")
    look("made")
    page.fill("#id_days", "1")
    page.locator("#id_days").evaluate("each => { each.form.noValidate = true; each.value = '0'; }")
    page.click("#key-new button.btn-primary")
    expect(page.locator("#key-new [aria-invalid=true]")).to_be_visible()
    look("refused")
    page.goto(f"{site.url}/keys/")
    row_of(page, "NNNN").locator("summary").click()
    look("keys")
    row_of(page, "NNNN").locator("form[action*=revoke] button").click()
    expect(toast(page)).to_be_visible()
    look("revoked")
    page.goto(f"{site.url}/keys/?q=xyzzy")
    look("none")

    assert {state: faults for state, faults in found.items() if faults} == {}
