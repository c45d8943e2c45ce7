"""What somebody sets and takes along for oneself."""

import json
import zipfile

from playwright.sync_api import expect

from tests.pages.steps import write


def test_language_and_theme_go_with_the_account(browse, site, newcomer):
    page = browse(newcomer)
    html = page.locator("html")
    expect(html).to_have_attribute("lang", "en")

    page.click("button[name=language]")
    expect(html).to_have_attribute("lang", "zh-hans")
    expect(page.locator("h1")).to_have_text("记忆")
    page.click("button[name=theme]")
    expect(html).to_have_attribute("data-bs-theme", "dark")

    elsewhere = browse(newcomer, locale="en-US")
    expect(elsewhere.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(elsewhere.locator("html")).to_have_attribute("data-bs-theme", "dark")
    elsewhere.goto(f"{site.url}/me/")
    elsewhere.select_option("select[name=language]", "en")
    elsewhere.select_option("select[name=theme]", "light")
    elsewhere.select_option("select[name=time_zone]", "Asia/Shanghai")
    elsewhere.click("main form.h-form button.btn-primary")
    expect(elsewhere.locator("#toasts")).to_contain_text("Saved.")
    page.reload()
    expect(html).to_have_attribute("lang", "en")
    expect(html).to_have_attribute("data-bs-theme", "light")


def test_before_the_login_a_cookie_keeps_language_and_theme(browse):
    page = browse(None)

    page.click("button[name=language]")
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    page.click("button[name=theme]")
    page.reload()

    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page.locator("html")).to_have_attribute("data-bs-theme", "dark")


def test_everything_can_be_downloaded(browse, site, newcomer, tmp_path):
    page = browse(newcomer)
    write(page, site, "月饼喜欢睡在窗台上。")
    page.goto(f"{site.url}/me/memory/")

    with page.expect_download() as loading:
        page.click("text=Download everything")
    loading.value.save_as(tmp_path / "mine.zip")

    archive = zipfile.ZipFile(tmp_path / "mine.zip")
    [line] = archive.read("memories.jsonl").splitlines()
    assert json.loads(line)["content"] == "月饼喜欢睡在窗台上。"
    [text] = [name for name in archive.namelist() if name.endswith(".md")]
    assert "月饼喜欢睡在窗台上。" in archive.read(text).decode()
