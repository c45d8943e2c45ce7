"""The first run in a browser: from an empty Hippo to an agent's first memory."""

import subprocess

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.memory.installation import fresh_mysql
from tests.pages.site import started
from tests.pages.steps import AXE

BUTTON = "main form.h-form button.btn-primary"


@pytest.fixture
def mysql_url():
    with fresh_mysql() as url:
        yield url


@pytest.fixture
def site(request, tmp_path):
    """The product in which nobody has an account yet, with MySQL where a test names it."""
    with_mysql = "mysql_url" in request.fixturenames
    extra = {"MYSQL_URL": request.getfixturevalue("mysql_url")} if with_mysql else {}
    with started(tmp_path / "data", HIPPO_DEMO="0", TIME_ZONE="Asia/Shanghai", **extra) as site:
        yield site


def violations(page):
    found = Axe().run(page, options=AXE).response["violations"]
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]


def shows_no_fault(page):
    """Check the page as it is and in the other language, and come back."""
    for _ in range(2):
        assert violations(page) == []
        before = page.locator("html").get_attribute("lang")
        page.click(".h-look [name=language]")
        expect(page.locator("html")).not_to_have_attribute("lang", before)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def fill_operator(page, language):
    page.fill("[name=username]", "lin")
    page.fill("[name=password]", "correct horse")
    page.fill("[name=again]", "correct horse")
    page.select_option("[name=language]", language)


def test_from_nothing_to_a_first_memory(mysql_url, browse, site):
    page = browse(None, width=360, height=740)
    expect(page).to_have_url(f"{site.url}/setup/")
    expect(page.locator("[name=time_zone]")).to_have_value("Asia/Shanghai")
    shows_no_fault(page)
    page.fill("[name=username]", "lin")
    page.fill("[name=password]", "short")
    page.click(BUTTON)
    expect(page.locator("#id_password_error").first).to_be_visible()
    assert violations(page) == []
    fill_operator(page, "en")
    page.click(BUTTON)

    expect(page.locator("[type=radio]")).to_have_count(2)
    expect(page).to_have_url(f"{site.url}/setup/backend/")
    expect(page.locator("h1")).to_be_focused()
    expect(page.locator(".pill.ok")).to_have_count(2)
    shows_no_fault(page)
    page.check("[value=mysql]")
    page.click(BUTTON)

    expect(page.locator("select[name=backend]")).to_have_value("mysql")
    page.reload()
    expect(page.locator("select[name=backend]")).to_have_value("mysql")
    shows_no_fault(page)
    page.fill("[name=name]", "a b")
    page.click(BUTTON)
    expect(page.locator("#id_name_error")).to_be_visible()
    page.fill("[name=name]", "小河")
    page.click(BUTTON)

    expect(page).to_have_url(f"{site.url}/setup/key/")
    shows_no_fault(page)
    page.click(BUTTON)
    expect(page.locator(".h-copy").first).to_contain_text("hippo_")
    assert violations(page) == []
    snippet = page.locator(".h-copy").nth(1).inner_text()
    page.locator(".h-copy").first.click()
    selected = page.evaluate("getSelection().toString().trim()")
    assert selected == page.locator(".h-copy").first.inner_text().strip()
    done = subprocess.run(["bash", "-c", f"{snippet} -sS -f"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page.click("text=To the memories")
    expect(page.locator("[data-row]")).to_contain_text("short answers")
    page.goto(f"{site.url}/setup/")
    expect(page).to_have_url(f"{site.url}/")


def test_it_works_without_scripts_and_says_why_mysql_does_not(browse, site):
    page = browse(None, locale="zh-CN", java_script_enabled=False)
    fill_operator(page, "zh-hans")
    page.click(BUTTON)

    expect(page).to_have_url(f"{site.url}/setup/backend/")
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page.locator("[value=mysql]")).to_be_disabled()
    expect(page.locator(".opt", has=page.locator("[value=mysql]"))).to_contain_text("MYSQL_URL")
    page.click("a[href='/setup/backend/']")
    expect(page.locator("[value=sqlite]")).to_be_checked()
    page.click(BUTTON)
    page.fill("[name=name]", "ada")
    page.click(BUTTON)
    page.context.clear_cookies(name="sessionid")
    page.goto(f"{site.url}/setup/")
    page.fill("[name=login]", "lin")
    page.fill("[name=password]", "correct horse")
    page.click("main form.h-form button[type=submit]")
    expect(page).to_have_url(f"{site.url}/setup/key/")
    page.click(BUTTON)
    expect(page.locator(".h-copy").first).to_contain_text("hippo_")
