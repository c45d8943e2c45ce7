"""The list as people work through it: ticked, changed together, narrowed, gone through by keys."""

import re

import pytest
from playwright.sync_api import expect

from tests.pages.steps import open_first, rows, search, settle, toast, write


def ticked(page):
    return page.locator(".mi input[name=id]:checked")


def bar(page):
    return page.locator(".bulk")


def test_ticked_memories_are_deleted_together_and_come_back_by_one_key(browse):
    page = browse("tom")
    before = rows(page).all_inner_texts()

    page.locator(".mi input[name=id]").nth(0).click()
    page.locator(".mi input[name=id]").nth(2).click(modifiers=["Shift"])
    expect(ticked(page)).to_have_count(3)
    expect(bar(page)).to_contain_text("3 selected")
    page.keyboard.press("#")
    expect(toast(page)).to_contain_text("Moved 3 memories to the trash.")
    assert before[0] not in rows(page).all_inner_texts()
    page.keyboard.press("z")

    expect(toast(page)).to_contain_text("Put back 3 memories.")
    assert rows(page).all_inner_texts() == before


def test_everything_that_matches_is_changed_though_a_part_is_shown(browse, site):
    page = browse("tom")
    for number in range(3):
        write(page, site, f"Physalis {number} grows in the yard")
    page.goto(f"{site.url}/memories/?type=project")
    total = int(page.locator(".chip.project .n").inner_text())
    page.goto(f"{site.url}/memories/")
    everything = int(page.locator(".chip .n").first.inner_text())
    assert everything > 30

    page.locator("[data-select-shown]").check()
    page.locator("input[name=everything]").check()
    bar(page).get_by_role("button", name="Pause").click()
    expect(toast(page)).to_contain_text(re.compile(r"(Paused|Changed) \d+ memories."))
    page.goto(f"{site.url}/memories/?status=paused&type=project")
    assert int(page.locator(".chip.project .n").inner_text()) == total
    page.goto(f"{site.url}/memories/?status=paused")
    assert int(page.locator(".chip .n").first.inner_text()) == everything
    page.locator("[data-select-shown]").check()
    page.locator("input[name=everything]").check()
    page.click(".h-pop summary")
    page.click("text=Let it be recalled again")
    expect(toast(page)).to_contain_text(f"Changed {everything} memories.")


def test_keys_walk_tick_and_let_go(browse):
    page = browse("tom")

    page.keyboard.press("j")
    expect(rows(page).nth(0)).to_be_focused()
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(ticked(page)).to_have_count(2)
    page.keyboard.press("k")
    expect(rows(page).nth(0)).to_be_focused()
    page.keyboard.press("Escape")
    expect(ticked(page)).to_have_count(0)

    expect(bar(page)).to_be_hidden()


def test_filters_are_in_the_address_and_named_where_nothing_is_left(browse):
    page = browse("tom")
    search(page, "deploy")
    page.click(".h-more summary")

    with page.expect_response(lambda answer: "importance=0.8" in answer.url):
        page.select_option("select[name=importance]", "0.8")
    with page.expect_response(lambda answer: "tag=" in answer.url):
        page.fill("input[name=tag]", "no such tag")
        page.keyboard.press("Enter")
    settle(page)

    assert "q=deploy" in page.url
    assert "cursor" not in page.url
    assert "status=" not in page.url
    expect(page.locator("#list .es")).to_contain_text("Tag = no such tag")
    page.click("text=Clear filters")
    assert page.url.endswith("?q=deploy")
    assert rows(page).count() > 0


def test_the_list_can_be_ordered(browse):
    page = browse("tom")
    newest = rows(page).all_inner_texts()

    with page.expect_response(lambda answer: "sort=oldest" in answer.url):
        page.select_option("select[name=sort]", "oldest")
    settle(page)

    assert "sort=oldest" in page.url
    assert rows(page).first.inner_text() != newest[0]


def test_a_row_follows_what_is_done_to_its_memory(browse):
    page = browse("tom")
    open_first(page)

    page.keyboard.press("p")
    expect(page.locator(".mi").first).to_contain_text("Paused")
    page.keyboard.press("p")
    expect(page.locator(".mi").first).not_to_contain_text("Paused")


def test_the_list_stays_as_narrowed_beside_a_memory_and_after_its_deletion(browse):
    page = browse("tom")
    search(page, "deploy")
    count = rows(page).count()
    open_first(page)
    expect(page).to_have_url(re.compile(r"/memories/\d+/\?q=deploy$"))

    page.click("[data-deletes] button")
    expect(toast(page)).to_contain_text("trash")
    expect(rows(page)).to_have_count(count - 1)
    assert page.url.endswith("/memories/?q=deploy")
    page.locator("#toasts button").click()

    expect(rows(page)).to_have_count(count)
    assert page.locator("[data-search]").input_value() == "deploy"


def test_tabs_show_recalls_similar_and_metadata(browse):
    page = browse("tom")
    search(page, "Berlin")
    open_first(page)

    page.click(".tabs >> text=Similar")
    expect(page.locator(".h-similar-list li").first).to_be_visible()
    page.click(".tabs >> text=Metadata")
    expect(page.locator(".h-meta")).to_contain_text("Kind")
    expect(page.locator(".tabs [aria-current]")).to_be_focused()
    page.click(".tabs >> text=Recalls")

    expect(page.locator("#tab")).to_contain_text("No agent has recalled it yet.")


def test_the_palette_leads_to_memories_agents_and_pages(browse):
    page = browse("tom")

    page.keyboard.press("Control+k")
    expect(page.locator("#palette-results")).to_contain_text("My data")
    page.keyboard.type("berl")
    expect(page.locator("#palette-results li").first).to_contain_text("Berlin")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/memories/\d+/"))
    expect(page.locator("#detail h2")).to_contain_text("Berlin")

    page.keyboard.press("Control+k")
    expect(page.locator("#palette-results")).to_contain_text("My data")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()


def test_a_sheet_tells_the_keys_and_two_keys_go_elsewhere(browse):
    page = browse("tom")

    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("t")

    page.wait_for_url("**/memories/trash/")


def test_single_keys_can_be_switched_off(browse, site):
    page = browse("meilin")
    page.goto(f"{site.url}/me/")
    page.uncheck("input[name=has_shortcuts]")
    page.click("main form.h-form button.btn-primary")
    page.goto(f"{site.url}/memories/")

    page.keyboard.press("j")
    page.keyboard.press("?")

    expect(rows(page).nth(0)).not_to_be_focused()
    expect(page.locator("#keys")).to_be_hidden()
    page.goto(f"{site.url}/me/")
    page.check("input[name=has_shortcuts]")
    page.click("main form.h-form button.btn-primary")


def test_a_page_from_before_another_login_says_that_it_is_out_of_date(browse, site):
    """From the field: a whole error page inside a row (C051)."""
    page = browse("tom")
    page.locator(".mi input[name=id]").first.click()
    other = page.context.new_page()
    other.goto(f"{site.url}/memories/")
    other.click("text=Log out")
    other.fill("input[name=login]", "tom")
    other.fill("input[name=password]", site.passwords["tom"])
    other.click("main form.h-form button[type=submit]")
    other.wait_for_url(f"{site.url}/")
    count = rows(page).count()

    bar(page).get_by_role("button", name="Delete").click()

    expect(toast(page)).to_contain_text("reload")
    assert rows(page).count() == count
    assert page.locator("html").count() == 1


@pytest.mark.parametrize("width", [360, 1280])
def test_the_bar_of_the_ticked_fits(browse, width):
    page = browse("tom", width=width, height=700)

    page.locator(".mi input[name=id]").first.click()

    box = bar(page).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    page.click(".h-pop summary")
    popped = page.locator(".h-pop-box").bounding_box()
    assert popped["x"] >= 0
    assert popped["x"] + popped["width"] <= width


def test_what_was_being_written_can_be_gone_back_to(browse):
    page = browse("tom")
    open_first(page)
    page.keyboard.press("e")
    page.locator("textarea[name=content]").fill("half a sentence")

    rows(page).nth(1).click()
    expect(toast(page)).to_contain_text("not saved")
    settle(page)
    page.click("#toasts button")

    expect(page.locator("textarea[name=content]")).to_have_value("half a sentence")
    page.locator("[data-edit] [data-key=Escape]").click()


def test_the_list_goes_on_where_it_is_scrolled_to_and_not_where_it_is_hidden(browse, site):
    page = browse("tom")
    for number in range(3):
        write(page, site, f"Medlar {number} is bletted in November")
    page.goto(f"{site.url}/memories/")
    first = rows(page).count()

    page.locator(".h-next").scroll_into_view_if_needed()

    expect(rows(page)).not_to_have_count(first)
    phone = browse("tom", width=360, height=700)
    phone.goto(page.url)
    asked = []
    phone.on("request", lambda request: "cursor=" in request.url and asked.append(request.url))
    open_first(phone)
    phone.mouse.wheel(0, 3000)
    phone.wait_for_timeout(700)
    assert asked == []


def test_enter_in_the_palette_waits_for_what_was_typed(browse):
    page = browse("tom")

    page.keyboard.press("Control+k")
    expect(page.locator("#palette-results")).to_contain_text("My data")
    page.keyboard.type("trash")
    page.keyboard.press("Enter")

    page.wait_for_url("**/memories/trash/")


def test_after_a_conflict_the_alert_is_in_view_and_what_the_other_did_is_named(browse):
    first, second = browse("tom"), browse("tom")
    for page in (first, second):
        search(page, "dunning")
        open_first(page)
        page.keyboard.press("e")
        expect(page.locator("textarea[name=content]")).to_be_visible()
    first.fill("input[name=tags]", "dunning, wip, red")
    first.keyboard.press("Control+Enter")
    expect(toast(first)).to_contain_text("Saved")

    second.fill("textarea[name=content]", "Both tests are green by now.")
    second.keyboard.press("Control+Enter")

    expect(second.locator("[role=alert]")).to_contain_text("red")
    expect(second.locator("[role=alert]")).to_be_focused()
    expect(second.locator("[role=alert]")).to_be_in_viewport()
    assert "red" in second.input_value("input[name=tags]")
    first.locator("#toasts button").click()
    expect(toast(first)).to_contain_text("Put back 1 memory.")
