"""The memory pages as people use them: with a mouse, a keyboard, a phone, without scripts."""

import pytest
from playwright.sync_api import expect

from tests.pages.conftest import on_both_engines
from tests.pages.steps import open_first, rows, search, settle, toast


def test_login_leads_to_where_one_wanted_to_go(browse, site):
    page = browse(None)

    page.goto(f"{site.url}/memories/trash/")
    page.fill("input[name=login]", "tom")
    page.fill("input[name=password]", "wrong")
    page.click("main form.h-form button[type=submit]")
    expect(page.locator("[role=alert]")).to_be_visible()
    page.fill("input[name=password]", site.passwords["tom"])
    page.click("main form.h-form button[type=submit]")

    page.wait_for_url("**/memories/trash/")
    page.click("text=Log out")
    page.wait_for_url("**/accounts/login/**")
    assert page.goto(f"{site.url}/memories/").url.endswith("?next=/memories/")


def test_search_as_one_types_is_in_the_address_and_survives_a_reload(browse):
    page = browse("tom")
    everything = rows(page).count()

    search(page, "deploy")

    found = rows(page).all_inner_texts()
    assert 0 < len(found) < everything
    assert "q=deploy" in page.url
    expect(page.locator(".lh")).to_contain_text("ms")
    page.reload()
    assert rows(page).all_inner_texts() == found
    page.click(".chip.project")
    settle(page)
    assert "type=project" in page.url
    expect(page.locator(".chip.project")).to_have_attribute("aria-current", "true")


def test_nothing_is_asked_while_an_input_method_composes(browse):
    page = browse("meilin", locale="zh-CN")
    asked = []
    page.on("request", lambda request: "q=" in request.url and asked.append(request.url))
    page.focus("[data-search]")
    session = page.context.new_cdp_session(page)

    for text in ("m", "ma", "mao"):
        session.send(
            "Input.imeSetComposition", {"text": text, "selectionStart": 3, "selectionEnd": 3}
        )
        page.wait_for_timeout(350)
    while_composing = list(asked)
    with page.expect_request(lambda sent: "q=" in sent.url):
        session.send("Input.insertText", {"text": "猫"})
    page.wait_for_timeout(900)

    assert while_composing == []
    assert len(asked) == 1
    assert rows(page).count() > 0


@on_both_engines
def test_a_memory_is_found_opened_corrected_and_put_back_by_keyboard(browse):
    page = browse("tom")
    page.keyboard.press("/")
    page.keyboard.type("deploy")
    expect(page.locator(".lh")).to_contain_text(" ms")
    settle(page)
    page.locator("[data-search]").blur()

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#detail h2")).to_be_focused()
    before = page.locator(".h-text").inner_text()
    page.keyboard.press("e")
    page.locator("textarea[name=content]").fill(f"{before} By Tom.")
    page.keyboard.press("Control+Enter")

    expect(page.locator(".h-text")).to_contain_text("By Tom.")
    expect(page.locator(".diff ins").first).to_contain_text("By Tom.")
    expect(toast(page)).to_contain_text("Saved")
    page.locator("text=back to version 1").first.click()
    expect(page.locator(".h-text")).to_have_text(before)


@on_both_engines
def test_the_second_editor_sees_both_texts_and_overwrites_nothing_unseen(browse):
    first, second = browse("tom"), browse("tom")
    for page in (first, second):
        search(page, "Berlin")
        open_first(page)
        page.keyboard.press("e")
        expect(page.locator("textarea[name=content]")).to_be_visible()
    mine = second.input_value("textarea[name=content]") + " Second."
    first.fill("textarea[name=content]", first.input_value("textarea[name=content]") + " First.")
    first.keyboard.press("Control+Enter")
    expect(first.locator(".h-text")).to_contain_text("First.")

    second.fill("textarea[name=content]", mine)
    second.keyboard.press("Control+Enter")

    expect(second.locator("[role=alert]")).to_contain_text("First.")
    assert second.input_value("textarea[name=content]") == mine
    second.keyboard.press("Control+Enter")
    expect(second.locator(".h-text")).to_contain_text("Second.")
    expect(second.locator(".tl")).to_contain_text("First.")


@on_both_engines
def test_a_deletion_is_undone_by_a_key(browse):
    page = browse("tom")
    search(page, "Fridays")
    count = rows(page).count()
    open_first(page)

    page.keyboard.press("#")
    expect(toast(page)).to_contain_text("trash")
    expect(rows(page)).to_have_count(count - 1)
    page.keyboard.press("z")

    expect(rows(page)).to_have_count(count)


@on_both_engines
def test_the_trash_gives_back_and_erases(browse, site):
    page = browse("tom")
    page.goto(f"{site.url}/memories/new/")
    page.fill("textarea[name=content]", "Kumquats are ripe in November.")
    page.click("main form button.btn-primary")
    address = page.url
    page.click("[data-deletes] button")
    expect(toast(page)).to_contain_text("trash")

    page.goto(f"{site.url}/memories/trash/")
    page.click("text=Kumquats are ripe")
    page.click("text=Restore")
    expect(page.locator(".pill.ok")).to_be_visible()
    page.click("[data-deletes] button")
    expect(toast(page)).to_contain_text("trash")
    page.goto(address)
    page.click("text=Erase it with its history")

    page.wait_for_url("**/memories/trash/")
    assert page.goto(address).status == 404


def test_everything_works_without_scripts(browse):
    page = browse("tom", java_script_enabled=False)

    page.fill("[data-search]", "deploy")
    page.keyboard.press("Enter")
    rows(page).first.click()
    page.click("text=Edit")
    page.fill("input[name=description]", "How we release")
    page.click("text=Save")
    expect(page.locator(".desc")).to_have_text("How we release")
    name = page.locator("h2").first.inner_text()
    page.click("[data-deletes] button")
    page.click("text=Trash")
    page.click(f"text={name}")
    page.click("text=Restore")
    expect(page.locator(".pill.ok")).to_be_visible()
    page.click("[data-deletes] button")
    expect(page.locator(".toastx")).to_contain_text("trash")
    page.click(".toastx button")

    page.fill("[data-search]", name)
    page.keyboard.press("Enter")
    expect(rows(page).first).to_have_text(name)


def test_an_expired_session_leads_to_login_and_not_into_the_list(browse):
    page = browse("tom")
    page.context.clear_cookies()

    page.fill("[data-search]", "deploy")

    page.wait_for_url("**/accounts/login/**")


def test_others_memories_are_not_there(browse, site):
    tom, meilin = browse("tom"), browse("meilin")
    open_first(meilin)
    address = meilin.url

    assert tom.goto(address).status == 404


@pytest.mark.parametrize("path", ["/memories/", "/memories/trash/", "/memories/new/", "/me/",
                                  "/me/memory/"])  # fmt: skip
def test_pages_fit_a_phone(browse, site, path):
    page = browse("tom", width=360, height=700)

    page.goto(site.url + path)

    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.click(".menu-b")
    expect(page.locator("#nav a", has_text="Preferences")).to_be_visible()


def test_a_phone_shows_the_list_or_the_memory(browse):
    page = browse("tom", width=360, height=700)

    open_first(page)
    expect(rows(page).first).to_be_hidden()
    page.click(".h-back")

    expect(rows(page).first).to_be_visible()
