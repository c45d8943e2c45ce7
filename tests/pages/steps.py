"""What people do on the memory pages, for the tests of several of them."""

import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

AXE = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    # else what was found in order is described too, node by node
    "resultTypes": ["violations"],
}


def faults_in_both_themes(page, part=None):
    """Return what axe finds in the page, or in a part, in the light and in the dark theme.

    The page must have been opened with `reduced_motion="reduce"`: else a colour is looked at
    while it changes.
    """
    found = []
    page.evaluate(Axe().axe_script)
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        expect(page.locator("html")).to_have_attribute("data-bs-theme", theme)
        look = "([part, options]) => axe.run(part || document, options)"
        for each in page.evaluate(look, [part, AXE])["violations"]:
            found.append((theme, each["id"], each["nodes"][0]["html"][:200]))
    return found


def rows(page):
    return page.locator("[data-row]")


def settle(page):
    # a function that is polled would be evaluated, which the content policy forbids
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling")).to_have_count(0)


def search(page, text):
    with page.expect_response(lambda answer: "q=" in answer.url):
        page.fill("[data-search]", text)
    settle(page)


def open_first(page):
    with page.expect_response(re.compile(r"/memories/\d+/")):
        rows(page).first.click()
    expect(page.locator("#detail h2")).to_be_visible()
    settle(page)


def write(page, site, content):
    """Write a memory by hand, and return its address."""
    page.goto(f"{site.url}/memories/new/")
    page.fill("textarea[name=content]", content)
    page.click("main form button.btn-primary")
    page.wait_for_url(re.compile(r"/memories/\d+/$"))
    return page.url


def toast(page):
    return page.locator("#toasts .toastx")
