"""The system page, and what a failed fragment tells, in a browser."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.pages.site import manage
from tests.pages.steps import AXE, rows, settle, toast, write

_IDENTITY = "Identity.objects.{what}(account=get_user_model().objects.get(username='{name}'){more})"


def link(site, name, *, is_linked):
    """Let an account own what agents remember of its name, or not."""
    what = "create" if is_linked else "filter"
    line = _IDENTITY.format(what=what, name=name, more=f", user_id='{name}'" if is_linked else "")
    code = f"from django.contrib.auth import get_user_model; {line}"
    manage(site, "shell", "-c", code if is_linked else f"{code}.delete()")


def test_an_operator_sees_that_all_is_well_and_goes_on_seeing_it(browse, site):
    page = browse("olga", width=360)
    page.clock.install()
    page.goto(f"{site.url}/system/")
    stores = page.locator("section[aria-labelledby=stores] tbody tr")
    expect(stores.filter(has_text="Control database")).to_contain_text("well")
    expect(page.locator("section[aria-labelledby=beat]")).to_contain_text("well")
    assert page.evaluate("document.documentElement.scrollWidth") == 360

    with page.expect_response(re.compile("/system/$")) as asked:
        page.clock.fast_forward(10_500)
    settle(page)

    assert asked.value.request.headers["hx-request"] == "true"
    expect(stores.filter(has_text="Control database")).to_contain_text("well")
    expect(page.locator("main h1")).to_have_count(1)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_system_page_keeps_nobody_out(browse, site, theme):
    page = browse("olga", color_scheme=theme)
    page.goto(f"{site.url}/system/")

    violations = Axe().run(page, options=AXE).response["violations"]

    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in violations] == []


def test_a_fragment_that_failed_names_its_request_and_can_be_asked_for_again(
    browse, site, newcomer
):
    page = browse(newcomer)
    write(page, site, "Erin keeps three small kumquats")
    page.goto(f"{site.url}/memories/")
    link(site, newcomer, is_linked=False)

    rows(page).first.click()

    expect(toast(page)).to_contain_text("That did not work")
    told = re.search(r"Request ([0-9a-f]{16})", toast(page).inner_text())[1]
    assert told in (site.folder / "logs" / "web.log").read_text()

    link(site, newcomer, is_linked=True)
    toast(page).get_by_role("button", name="Try again").click()

    expect(page.locator("#detail")).to_contain_text("three small kumquats")
