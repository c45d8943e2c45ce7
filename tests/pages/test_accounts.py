"""Accounts in a browser: in and out, the second factor, what is limited."""

import subprocess
import sys

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.agents.test_accounts import code_of
from tests.pages.site import started
from tests.pages.steps import AXE, faults_in_both_themes, rows, search
from tests.test_readme import ROOT, environment_of

SUBMIT = "main form.h-form button[type=submit], main form.h-form button.btn-primary"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with started(tmp_path_factory.mktemp("site"), TRUSTED_PROXY_COUNT="1") as site:
        site.keeps_sessions = False  # how long ago one logged in matters here
        yield site


def violations(page):
    found = Axe().run(page, options=AXE).response["violations"]
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]


def confirm(page, password):
    """Give the password again where it is asked for."""
    page.fill("[name=password]", password)
    page.click(SUBMIT)


def test_the_second_factor_from_on_to_off(browse, site):
    page = browse("tom")
    page.goto(f"{site.url}/me/")
    page.click("text=Two-factor authentication")
    page.click("text=Switch on")
    confirm(page, site.passwords["tom"])
    assert page.locator(".h-qr").evaluate("image => image.complete && image.naturalWidth > 50")
    secret = page.locator("#secret").input_value()
    page.fill("[name=code]", "000000")
    page.click(SUBMIT)
    expect(page.locator("#id_code_error")).to_be_visible()
    page.fill("[name=code]", code_of(secret))
    page.click(SUBMIT)
    recovery = page.locator(".h-copy").inner_text().split()
    with page.expect_download() as download:
        page.click("text=Download")
    page.click("text=Log out")

    assert download.value.path().read_text().split() == recovery
    page.fill("[name=login]", "tom")
    confirm(page, site.passwords["tom"])
    page.fill("[name=code]", "000000")
    page.click(SUBMIT)
    expect(page.locator("#id_code_error")).to_be_visible()
    assert violations(page) == []
    page.fill("[name=code]", recovery[0])
    page.click(SUBMIT)
    page.wait_for_url(f"{site.url}/")
    page.goto(f"{site.url}/accounts/2fa/")
    expect(page.locator("main")).to_contain_text("9 codes are left")
    page.click("text=Switch off")
    if page.locator("[name=password]").count():
        confirm(page, site.passwords["tom"])
    page.click("main form .btn-danger")
    expect(page.locator("main")).to_contain_text("the password alone")


@pytest.mark.parametrize("locale", ["zh-CN", "en-US"])
def test_the_pages_have_no_fault_that_axe_finds(browse, site, locale):
    page = browse("meilin", locale=locale, reduced_motion="reduce", width=360, height=740)
    inside = ["/accounts/2fa/", "/accounts/password/change/", "/accounts/logout/",
              "/accounts/reauthenticate/", "/nothing/"]  # fmt: skip

    for path in inside:
        page.goto(site.url + path)
        assert faults_in_both_themes(page) == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    page.goto(f"{site.url}/accounts/2fa/totp/activate/")
    confirm(page, site.passwords["meilin"])
    assert faults_in_both_themes(page) == []
    page.goto(f"{site.url}/accounts/2fa/recovery-codes/generate/")
    page.context.clear_cookies(name="sessionid")
    for path in ("/accounts/login/", "/accounts/signup/", "/accounts/inactive/"):
        page.goto(site.url + path)
        assert faults_in_both_themes(page) == [], path


def test_a_session_that_ran_out_leads_to_the_login_and_back(browse, site):
    page = browse("tom")
    search(page, "deploy")
    page.context.clear_cookies(name="sessionid")

    rows(page).first.click()

    page.wait_for_url("**/accounts/login/**")
    assert page.locator("main").count() == 1
    page.fill("[name=login]", "tom")
    confirm(page, site.passwords["tom"])
    page.wait_for_url("**/memories/?*q=deploy*")
    assert rows(page).count() > 0


# logs in as olga from a process of its own, by the rules and the counts of the product
ELSEWHERE = """
from django.test import Client
client = Client(headers={"accept-language": "en", "host": "localhost"})
form = {"login": "olga", "password": PASSWORD}
print(client.post("/accounts/login/", form).content.decode())
"""


def test_all_processes_count_failures_together(browse, site):
    page = browse(None)
    page.set_extra_http_headers({"X-Forwarded-For": "203.0.113.9"})  # counted for itself
    page.goto(f"{site.url}/accounts/login/")
    for _ in range(5):
        page.fill("[name=login]", "olga")
        confirm(page, "wrong")
        expect(page.locator("[role=alert]")).to_contain_text("not correct")

    script = ELSEWHERE.replace("PASSWORD", repr(site.passwords["olga"]))
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", script],
        cwd=ROOT, env=environment_of(site.folder), capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert "Too many failed login attempts" in done.stdout


def test_who_tries_too_often_is_told_to_wait(browse, site):
    page = browse(None)
    sender = {"X-Forwarded-For": "203.0.113.10"}
    page.set_extra_http_headers(sender)
    page.goto(f"{site.url}/accounts/login/")
    token = page.locator("main form.h-form [name=csrfmiddlewaretoken]").input_value()
    form = {"login": "nobody", "password": "wrong", "csrfmiddlewaretoken": token}
    for _ in range(25):  # nobody need look at these
        page.request.post(page.url, form=form, headers=sender)

    for _ in range(6):
        page.fill("[name=login]", "nobody")
        confirm(page, "wrong")
        if page.locator("h1").inner_text() == "Too many attempts":
            break

    expect(page.locator("main")).to_contain_text("Wait a minute")
    assert violations(page) == []
    assert page.goto(f"{site.url}/accounts/login/").status == 200
