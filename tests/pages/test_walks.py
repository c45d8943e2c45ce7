"""What somebody does with all that agents remember of them, on either engine."""

import re

from playwright.sync_api import expect

from tests.pages.conftest import on_both_engines
from tests.pages.steps import rows, settle, toast


def write(page, site, agent, content):
    page.goto(f"{site.url}/memories/new/")
    page.select_option("select[name=place]", label=agent)
    page.fill("textarea[name=content]", content)
    page.click("main form button.btn-primary")
    page.wait_for_url(re.compile(r"/memories/\d+/"))


def write_three(page, site):
    write(page, site, "Atlas", "The staging server is called plum.")
    write(page, site, "Atlas", "The release is cut on Thursdays.")
    write(page, site, "小满", "月饼喜欢睡在窗台上。")


@on_both_engines
def test_ticked_memories_are_changed_together_and_put_back(browse, site, newcomer):
    page = browse(newcomer)
    write_three(page, site)
    page.goto(f"{site.url}/memories/")

    for number in (0, 2):
        page.locator(".mi input[type=checkbox]").nth(number).check()
    page.locator(".h-bulk-bar button[value=delete]").click()
    expect(toast(page)).to_contain_text("2")
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text("release")
    settle(page)
    page.keyboard.press("z")
    expect(rows(page)).to_have_count(3)
    settle(page)
    page.locator("[data-select-shown]").check()
    page.locator(".h-bulk-bar button[value=pause]").click()

    expect(page.locator(".mi.off")).to_have_count(3)


@on_both_engines
def test_an_agent_is_paused_and_everything_erased_with_a_receipt(browse, site, newcomer):
    page = browse(newcomer)
    write_three(page, site)
    page.goto(f"{site.url}/me/memory/")
    atlas = page.locator("section[aria-labelledby=agents] .job", has_text="Atlas")
    expect(atlas).to_contain_text("2 memories")

    atlas.locator("button").click()
    expect(atlas).to_contain_text("neither recalls nor saves")
    expect(page.locator(".job", has_text="小满")).not_to_contain_text("neither recalls nor saves")
    page.fill("input[name=confirm]", "somebody")
    page.click("main .btn-danger")
    expect(page.locator("#refused")).to_be_visible()
    page.fill("input[name=confirm]", newcomer)
    page.click("main .btn-danger")
    receipt = page.locator("section[aria-labelledby=erase] [role=status]")
    for _ in range(120):
        expect(receipt).to_be_visible()
        if "Erased and verified" in receipt.inner_text():
            break
        page.wait_for_timeout(250)
        page.reload()

    expect(receipt).to_contain_text("3 memories with their history")
    page.goto(f"{site.url}/memories/")
    expect(rows(page)).to_have_count(0)
