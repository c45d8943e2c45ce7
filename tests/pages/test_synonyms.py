"""Operators say in a browser what means the same, and people find it so."""

import re

from playwright.sync_api import expect

from tests.pages.steps import faults_in_both_themes, rows, search, settle, toast


def test_rows_of_synonyms_are_written_kept_and_put_back(browse, site):
    page = browse("olga", reduced_motion="reduce")
    page.goto(f"{site.url}/memories/new/")
    page.select_option("select[name=place]", label="Atlas")
    page.select_option("select[name=type]", "project")
    page.fill("textarea[name=content]", "The zeppelin hangar is heated from October on")
    page.click("main form button.btn-primary")
    page.wait_for_url(re.compile(r"/memories/\d+/$"))
    page.goto(f"{site.url}/memories/")
    search(page, "airship")
    expect(rows(page)).to_have_count(0)

    page.goto(f"{site.url}/agents/atlas/synonyms/")
    page.fill("#words-new", "airship")
    page.keyboard.press("Enter")
    expect(page.locator("#said-new")).to_be_visible()
    page.fill("#words-new", "airship， balloon")
    page.keyboard.press("Enter")
    expect(page.locator("#words-1")).to_have_value("airship, balloon")
    expect(page.locator("#words-new")).to_be_focused()
    page.fill("#words-1", "airship, 飞艇, zeppelin")
    page.keyboard.press("Tab")
    expect(page.locator("#said-1 .saved")).to_be_visible()
    assert faults_in_both_themes(page) == []

    page.keyboard.press("Enter")  # the focus is on the row's button
    expect(page.locator("#words-1")).to_have_count(0)
    page.keyboard.press("Escape")
    toast(page).locator("button").click()
    expect(page.locator("#words-1")).to_have_value("airship, 飞艇, zeppelin")
    settle(page)

    page.goto(f"{site.url}/memories/")
    search(page, "飛艇 type:project after:2000")
    expect(rows(page)).to_have_count(1)
    search(page, "飛艇 type:blimp")
    expect(page.locator(".h-refusal")).to_be_visible()
    assert faults_in_both_themes(page) == []
