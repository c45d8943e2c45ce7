"""What people do on the memory pages, for the tests of several of them."""

import re

from playwright.sync_api import expect

AXE = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}


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
