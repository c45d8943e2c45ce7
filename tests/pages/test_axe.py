"""No page keeps anybody out, in any state, language or theme: axe finds no violation."""

import pytest
from playwright.sync_api import expect

from tests.pages.steps import faults_in_both_themes, open_first, settle


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_no_page_keeps_anybody_out(browse, site, locale):
    page = browse("tom", locale=locale, reduced_motion="reduce")
    open_first(page)
    address = page.url
    paths = ["/memories/", "/memories/?q=deploy", "/memories/?q=xyzzy", "/memories/trash/",
             "/memories/new/", "/me/", "/me/memory/", "/jobs/", "/import/", "/export/",
             "/accounts/password/change/",
             "/accounts/2fa/", "/search/?q=deploy", "/nothing/"]  # fmt: skip
    tabs = [f"{address}?tab={tab}" for tab in ("recalls", "similar", "metadata")]
    found = {}

    def look(state, part=None):
        found[state] = faults_in_both_themes(page, part)

    for url in (*(site.url + path for path in paths), address, *tabs, f"{address}edit/"):
        page.goto(url)
        look(url)
    page.goto(f"{site.url}/memories/")
    page.click(".h-more summary")
    look("filters")
    page.reload()
    page.locator(".mi input[name=id]").first.check()
    look("ticked")
    page.click(".h-pop summary")
    look("what to do with the ticked", ".h-pop-box")  # it covers a part of the page
    for dialog in ("palette", "keys"):
        page.reload()
        page.keyboard.press({"palette": "Control+k", "keys": "?"}[dialog])
        expect(page.locator(f"#{dialog}")).to_be_visible()
        settle(page)
        look(dialog)

    assert {url: faults for url, faults in found.items() if faults} == {}
