"""Logging in and out, the second factor, what is closed, and what is limited."""

import base64
import hashlib
import hmac
import re
import struct
import time

import pytest
import time_machine
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from tests.conftest import NOW

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse"


@pytest.fixture(autouse=True)
def no_earlier_attempts():
    cache.clear()


@pytest.fixture
def ming(django_user_model):
    return django_user_model.objects.create_user("ming", password=PASSWORD)


def log_in(client, password=PASSWORD, **more):
    return client.post("/accounts/login/", {"login": "ming", "password": password, **more})


def is_in(client):
    return "_auth_user_id" in client.session


def code_of(secret):
    """The code that an authenticator app shows now (RFC 6238)."""
    counter = struct.pack(">Q", int(time.time()) // 30)
    digest = hmac.new(base64.b32decode(secret), counter, hashlib.sha1).digest()
    offset = digest[-1] & 15
    number = struct.unpack(">I", digest[offset : offset + 4])[0] & 0x7FFFFFFF
    return f"{number % 10**6:06}"


# --- in and out ------------------------------------------------------------------------


def test_login_leads_back_and_logout_out(client, ming):
    wrong = log_in(client, "wrong")
    right = log_in(client, next="/me/")
    came_in = is_in(client)
    out = client.post("/accounts/logout/")

    assert (wrong.status_code, came_in) == (200, True)
    assert (right.url, out.url) == ("/me/", "/accounts/login/")
    assert not is_in(client)
    assert client.get("/me/").url == "/accounts/login/?next=/me/"


def test_login_leads_to_no_other_host(client, ming):
    assert log_in(client, next="https://evil.example/").url == "/"


def test_a_changed_password_logs_in_and_ends_other_sessions(client, ming):
    other = Client()
    for each in (client, other):
        log_in(each)
    change = {"oldpassword": PASSWORD, "password1": "new battery", "password2": "new battery"}

    client.post("/accounts/password/change/", change)

    assert is_in(client)
    assert other.get("/me/").status_code == 302
    assert log_in(Client(), PASSWORD).status_code == 200
    assert log_in(Client(), "new battery").status_code == 302


def test_signup_is_closed_unless_it_is_opened(client, ming, settings, django_user_model):
    new = {"username": "bob", "password1": PASSWORD, "password2": PASSWORD}
    client.cookies["django_language"] = "en"

    closed = client.post("/accounts/signup/", new)
    hidden = client.get("/accounts/login/")
    settings.SIGNUP_OPEN = True
    shown = client.get("/accounts/login/")
    client.post("/accounts/signup/", new)

    assert b"Sign-up is closed" in closed.content
    assert b"/accounts/signup/" not in hidden.content
    assert b"/accounts/signup/" in shown.content
    bob = django_user_model.objects.get(username="bob")
    assert not bob.identities.exists()
    assert is_in(client)


@pytest.mark.parametrize(
    "path",
    ["", "email/", "confirm-email/", "confirm-email/x/", "password/reset/", "password/set/",
     "password/reset/key/1-x/", "login/code/", "login/code/confirm/", "reauthenticate/code/",
     "phone/verify/", "2fa/webauthn/"],
)  # fmt: skip
def test_what_would_need_mail_is_not_there(client, ming, path):
    for log in (lambda: None, lambda: client.force_login(ming)):
        log()
        assert client.get(f"/accounts/{path}").status_code == 404


# --- the second factor -----------------------------------------------------------------


@pytest.fixture
def two_factors(client, ming):
    """Switch the authenticator app on and log out; return its secret and recovery codes."""
    with time_machine.travel(NOW, tick=False):
        log_in(client)
        asked = client.get("/accounts/2fa/totp/activate/")
        page = client.post(asked.url, {"password": PASSWORD}, follow=True)
        secret = re.search(r'id="secret" value="(\w+)"', page.content.decode())[1]
        wrong = client.post("/accounts/2fa/totp/activate/", {"code": "000000"})
        done = client.post("/accounts/2fa/totp/activate/", {"code": code_of(secret)})
        codes = re.findall(r"\b\d{8}\b", client.get(done.url).content.decode())
        saved = client.get("/accounts/2fa/recovery-codes/download/").content.decode().split()
        client.post("/accounts/logout/")

    assert asked.url.startswith("/accounts/reauthenticate/")
    assert 'src="data:image/svg+xml' in page.content.decode()
    assert (wrong.status_code, done.status_code) == (200, 302)
    assert (len(codes), saved) == (10, codes)
    return secret, codes


def test_login_takes_a_code_of_the_app_once(client, two_factors):
    secret, _ = two_factors
    with time_machine.travel(NOW, tick=False):
        password = log_in(client, next="/me/")
        half_way = client.get("/me/")
        wrong = client.post(password.url, {"code": "000000"})
        came_in_wrong = is_in(client)
        right = client.post(password.url, {"code": code_of(secret)})
        again = Client()
        replayed = again.post(log_in(again).url, {"code": code_of(secret)})

    assert password.url == reverse("mfa_authenticate")
    assert half_way.status_code == 302
    assert (wrong.status_code, came_in_wrong) == (200, False)
    assert (right.url, is_in(client)) == ("/me/", True)
    assert (replayed.status_code, is_in(again)) == (200, False)


def test_a_recovery_code_logs_in_once(client, two_factors):
    _, codes = two_factors
    again = Client()

    for each in (client, again):
        each.post(log_in(each).url, {"code": codes[0]})

    assert (is_in(client), is_in(again)) == (True, False)


def test_the_plain_admin_asks_for_the_second_factor_too(client, ming, two_factors):
    ming.is_staff = ming.is_superuser = True
    ming.save()

    client.post("/admin/login/", {"username": "ming", "password": PASSWORD})

    assert not is_in(client)
    assert client.get("/admin/", follow=True).redirect_chain[-1] == (
        "/accounts/login/?next=%2Fadmin%2F",
        302,
    )


def test_the_second_factor_can_be_switched_off(client, two_factors):
    secret, _ = two_factors
    client.post(log_in(client).url, {"code": code_of(secret)})
    asked = client.get("/accounts/2fa/totp/deactivate/")
    client.post(asked.url, {"password": PASSWORD})
    client.post("/accounts/2fa/totp/deactivate/")
    client.post("/accounts/logout/")

    assert log_in(client).url == "/"


# --- limits ----------------------------------------------------------------------------


def test_after_five_failures_an_account_waits(client, ming):
    for _ in range(5):
        log_in(client, "wrong")

    assert log_in(client).status_code == 200
    assert log_in(Client(headers={"host": "localhost:1"})).status_code == 200
    assert not is_in(client)


@pytest.mark.parametrize("language", ["zh-hans", "en"])
def test_too_many_attempts_from_one_place_are_told_so(client, ming, language):
    for _ in range(30):
        log_in(client)
        client.logout()

    client.cookies["django_language"] = language
    refused = log_in(client)

    assert refused.status_code == 429
    assert 'class="card h-entrance-card"' in refused.content.decode()
    assert f'<html lang="{language}"' in refused.content.decode()


def test_behind_a_proxy_each_client_is_counted_for_itself(client, ming, settings):
    def attempt(forwarded):
        for _ in range(30):
            answer = client.post(
                "/accounts/login/", {"login": "x"}, headers={"x-forwarded-for": forwarded}
            )
        return answer.status_code

    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    honest = [attempt("203.0.113.1"), attempt("203.0.113.2")]
    forged = [attempt(f"198.51.100.{number}, 203.0.113.3") for number in (1, 2)]

    assert honest == [200, 200]
    assert forged == [200, 429]


# --- a page that outlives its session --------------------------------------------------


def fragment(client, path, page, **more):
    return client.get(path, headers={"hx-request": "true", "hx-current-url": page}, **more)


def test_a_fragment_without_a_session_sends_the_page_to_the_login(client, ming):
    page = "http://testserver/memories/?q=tea&type=user"

    answer = fragment(client, "/memories/7/", page)

    target = "/accounts/login/?next=/memories/%3Fq%3Dtea%26type%3Duser"
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (200, target)
    assert answer.content == b""
    assert log_in(client, next="/memories/?q=tea&type=user").url == "/memories/?q=tea&type=user"


@pytest.mark.parametrize("page", ["https://evil.example/me/", "", "not a url"])
def test_it_comes_back_to_no_other_host(client, ming, page):
    answer = fragment(client, "/memories/", page)

    assert answer.headers["HX-Redirect"] == "/accounts/login/?next=/"
