"""An operator writes golden questions down, asks them, breaks one, and sees which and why."""

import re

from playwright.sync_api import expect

from tests.pages.conftest import on_both_engines
from tests.pages.steps import faults_in_both_themes, settle, toast, write


def ask(page):
    with page.expect_response("**/golden/ask/"):
        page.click("button:has-text('Ask all')")
    settle(page)


def row_of(page, text):
    return page.locator("tbody tr", has_text=text)


@on_both_engines
def test_a_question_is_kept_asked_broken_and_compared(browse, site):
    page = browse("olga", reduced_motion="reduce")
    memory = write(page, site, "Olga waters the bonsai on Sundays")
    page.goto(f"{site.url}/playground/")
    page.select_option("select[name=agent]", "atlas")  # which writing begins with
    page.fill("input[name=user_id]", "olga")
    page.fill("textarea[name=query]", "When does Olga water the bonsai?")
    page.click("main form button.btn-primary")
    page.click("button:has-text('Keep as golden question')")

    # what was tried is in the form; the keyboard does the rest
    expect(page.locator("textarea[name=question]")).to_have_value(re.compile("bonsai"))
    page.fill("textarea[name=expected]", "on sundays")
    assert faults_in_both_themes(page) == []
    page.locator("textarea[name=unwanted]").press("Tab")
    page.keyboard.press("Enter")
    expect(toast(page)).to_contain_text("The question is kept.")
    golden = f"{site.url}/agents/atlas/golden/"
    ask(page)
    expect(row_of(page, "bonsai")).to_contain_text("number 1")
    expect(toast(page)).to_contain_text("1 of 1 passed.")
    assert faults_in_both_themes(page) == []

    page.goto(memory)
    page.click("[data-deletes] button")
    settle(page)
    page.goto(golden)
    ask(page)
    expect(row_of(page, "bonsai")).to_contain_text("not found")
    page.click("a:has-text('Runs, compared')")
    expect(row_of(page, "bonsai")).to_contain_text("fails now")
    expect(row_of(page, "bonsai")).to_contain_text("passed · found at 1")
    assert faults_in_both_themes(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.goto(golden)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click("button:has-text('Delete')")
    expect(page.locator("main")).to_contain_text("No question yet")
    toast(page).locator("button").click()
    expect(row_of(page, "bonsai")).to_be_visible()
