"""An operator sees what agents do, narrows it, and switches one off: its next call obeys."""

import json
import re
import urllib.request

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.pages.conftest import on_both_engines
from tests.pages.site import manage
from tests.pages.steps import AXE, settle

_ISSUE = """
from agents.auth import issue_key
key = issue_key(Agent.objects.named("atlas"), name="overview")[1]
open({path!r}, "w").write(key)
"""
PATHS = ["/", "/?of=mine", "/?days=90", "/agents/", "/agents/atlas/", "/agents/atlas/activity/"]


def client(site):
    """Call the API as Atlas does: client(site)("search/", query="…")."""
    path = site.folder / "overview-key"
    manage(site, "shell", "-c", _ISSUE.format(path=str(path)))
    headers = {"Authorization": f"Bearer {path.read_text()}", "Content-Type": "application/json"}

    def call(address, **body):
        data = json.dumps({"user_id": "tom", **body}).encode()
        url = f"{site.url}/api/v1/agents/atlas/{address}"
        with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
            return json.load(answer)

    return call


def violations(page):
    found = Axe().run(page, options=AXE).response["violations"]
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found]


@on_both_engines
def test_an_operator_looks_narrows_and_switches_off(browse, site):
    call = client(site)
    page = browse("olga")
    for _ in range(3):
        assert call("search/", query="deploy")["results"]
    assert call("prefetch/", message="What about the deploy?")["enabled"]

    page.click(".brand")
    expect(page.locator("h1")).to_have_text("Overview")
    page.locator(".h-seg label", has_text="7 days").click()
    page.wait_for_url(re.compile(r"/\?days=7$"))
    expect(page.locator(".hchart")).to_have_attribute("aria-label", re.compile("^The last 7 days"))
    page.select_option("#of-agent", "atlas")
    page.wait_for_url(re.compile("agent=atlas"))
    for _ in range(20):  # recalls are written within a second
        settle(page)
        page.click("text=As a table")
        today = page.locator(".h-table tbody tr").first.locator("td")
        recalls, answered = today.nth(7).inner_text(), today.nth(8).inner_text()
        if int(recalls) >= 4:
            break
        page.wait_for_timeout(500)
        page.reload()
    assert int(recalls) >= 4
    assert re.fullmatch(r"\d+ %", answered)

    switch = page.locator("#dash input[role=switch]")
    switch.click()
    expect(page.locator("#dash .saved")).to_be_visible()
    assert call("prefetch/", message="What about the deploy?") == {"enabled": False}
    page.reload()
    expect(switch).not_to_be_checked()
    switch.click()
    expect(page.locator("#dash .saved")).to_be_visible()
    assert call("prefetch/", message="What about the deploy?")["enabled"]

    page.goto(f"{site.url}/agents/")
    page.fill("main input[name=q]", "atl")
    page.wait_for_url(re.compile("q=atl"))
    expect(page.locator(".h-agents tbody tr")).to_have_count(1)
    page.click(".h-agents a:has-text('Atlas')")
    page.click(".tabs a:has-text('Activity')")
    expect(page.locator("main")).to_contain_text("enabled: True → False")
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        for path in PATHS:
            page.goto(site.url + path)
            for table in page.locator(".h-table summary").all():
                table.click()
            page.evaluate("scrollTo(0, 0)")  # the head covers what is scrolled below it
            assert width == 360 or violations(page) == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_the_overview_works_without_scripts_in_chinese_and_dark(browse, site):
    page = browse("olga", locale="zh-CN", color_scheme="dark", java_script_enabled=False)
    page.goto(f"{site.url}/")

    page.check("#days-7", force=True)
    page.click(".h-span button")

    assert "days=7" in page.url
    expect(page.locator("#days-7")).to_be_checked()
    row = page.locator("tr", has_text="xiaoman")
    switch = row.locator("input[role=switch]")
    for is_on in (False, True):
        switch.click()
        row.locator("button").click()
        expect(switch).to_be_checked(checked=is_on)
