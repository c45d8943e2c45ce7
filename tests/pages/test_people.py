"""An operator reads another's memories for a reason, and whoever they are about sees it."""

import re

import pytest
from playwright.sync_api import expect

from tests.pages.steps import faults_in_both_themes

REASON = "Tom asked why Atlas forgot his branch"


def row_of(page, name):
    return page.locator("tbody tr", has=page.locator("th b", has_text=re.compile(f"^{name}$")))


def ask_for(page, site, name, agent):
    """Go to the form that asks why the memories are to be read."""
    page.goto(f"{site.url}/users/")
    row_of(page, name).locator(f"a[href*='agent={agent}']").click()
    expect(page.locator("textarea[name=reason]")).to_be_visible()


def open_reading(page, site, name="tom", agent="atlas", reason=REASON):
    ask_for(page, site, name, agent)
    page.fill("textarea[name=reason]", reason)
    page.click("main button.btn-primary")
    page.wait_for_url(re.compile(r"/users/read/\d+/$"))


def test_an_operator_reads_for_a_reason_and_the_user_sees_it(browse, site):
    tom = browse("tom")
    expect(tom.locator("#nav a", has_text="Users")).to_have_count(0)
    olga = browse("olga")

    olga.click("#nav a:has-text('Users')")
    expect(row_of(olga, "olga")).to_contain_text("superuser")
    known = row_of(olga, "tom").locator("li", has=olga.locator("a[href*='agent=atlas']"))
    count = re.search(r"(\d+) memories", known.inner_text())[1]
    known.locator("a").click()
    olga.fill("textarea[name=reason]", "curious")
    olga.click("main button.btn-primary")
    expect(olga.locator("textarea:invalid")).to_be_visible()  # the browser itself refuses
    olga.fill("textarea[name=reason]", "Tom says that a branch is missing")
    olga.click("main button.btn-primary")
    expect(olga.locator("main article")).to_have_count(int(count))
    expect(olga.locator("main .ban")).to_contain_text("tom sees that you read this")

    tom.goto(f"{site.url}/me/memory/")
    read = tom.locator("section[aria-labelledby=reads] .job", has_text="a branch is missing")
    expect(read).to_contain_text("olga")
    expect(read).to_contain_text(f"{count} memories")
    expect(read).to_contain_text("Atlas")


def test_all_of_it_works_without_scripts(browse, site):
    page = browse("olga", java_script_enabled=False)
    page.goto(f"{site.url}/users/")

    page.fill("input[name=q]", "meilin")
    page.click("main form button")
    expect(page.locator("section[aria-labelledby=accounts] tbody tr")).to_have_count(1)
    page.locator("a[href*='agent=xiaoman']").click()
    page.fill("textarea[name=reason]", "She cannot see her own page at the moment")
    page.click("main button.btn-primary")

    expect(page.locator("main article").first).to_be_visible()


def addresses(page, site):
    """Yield where the pages are, with a form that was refused among them."""
    for path in ("/users/", "/users/?q=tom", "/users/?q=nobody", "/me/memory/"):
        page.goto(site.url + path)
        yield path
    ask_for(page, site, "tom", "xiaoman")
    yield "form"
    page.locator("textarea").evaluate("each => each.form.noValidate = true")
    page.click("main button.btn-primary")
    expect(page.locator("[aria-invalid=true]")).to_be_visible()
    yield "refused"
    open_reading(page, site, agent="xiaoman")
    yield "reading"


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_no_page_keeps_anybody_out(browse, site, locale):
    page = browse("olga", locale=locale, reduced_motion="reduce")

    found = {name: faults_in_both_themes(page) for name in addresses(page, site)}
    tom = browse("tom", locale=locale, reduced_motion="reduce")
    tom.goto(f"{site.url}/me/memory/")
    expect(tom.locator(".job", has_text=REASON).first).to_be_visible()
    found["read"] = faults_in_both_themes(tom)

    assert {name: faults for name, faults in found.items() if faults} == {}


def test_pages_fit_a_phone(browse, site):
    tom = browse("tom", width=360, height=700)
    tom.goto(f"{site.url}/memories/new/")
    tom.select_option("select[name=place]", label="小满")
    tom.fill("textarea[name=content]", "W" * 300)
    tom.fill("input[name=name]", "N" * 200)
    tom.click("main form button.btn-primary")
    tom.wait_for_url(re.compile(r"/memories/\d+/"))
    written = tom.url
    page = browse("olga", width=360, height=700)

    for name in addresses(page, site):
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
        assert page.locator("header.top").bounding_box()["y"] == 0, name
    open_reading(page, site, agent="xiaoman", reason="R" * 300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    tom.goto(f"{site.url}/me/memory/")
    assert tom.evaluate("document.documentElement.scrollWidth") <= 360
    tom.goto(written)
    tom.click("[data-deletes]")
    expect(tom.locator(".toastx")).to_be_visible()
