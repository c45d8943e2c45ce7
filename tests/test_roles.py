"""Every address for people, asked for by everybody: who may what, and who finds nothing.

An address that is not in the table fails the test.
"""

import pytest
from django.contrib.auth import get_user_model
from django.urls import get_resolver
from django.urls.resolvers import URLResolver

from agents.auth import find_key, issue_key
from agents.models import Identity
from tests.conftest import NOW

ROLES = ("anonymous", "user", "operator", "superuser")
LOGIN = "/accounts/login/"
SETTINGS = "/agents/ada/settings/"
SYNONYMS = "/agents/ada/synonyms/"
GOLDEN = "/agents/ada/golden/"
OTHERS = {
    "<int:memory_id>": "{memory}", "<int:version>": "1", "<str:agent>": "{agent}",
    "<int:job_id>": "7", "<int:entry_id>": "7", "<int:question_id>": "7", "<int:key_id>": "{key}",
    "<int:account_id>": "{account}", "<int:identity_id>": "7", "<str:kind>": "csv",
    "<str:purpose>": "chat",
}  # fmt: skip

# what everybody who is logged in gets; anonymous is led to the login
LOGGED_IN = {
    "": 200,
    "memories/": 200,
    "memories/new/": 200,
    "POST memories/similar/": 200,
    "memories/trash/": 200,
    "memories/counts/": 200,
    "POST memories/bulk/": 404,  # without an action
    "memories/bulk/<int:job_id>/": 404,
    "POST memories/undo/": 404,  # of no moment
    "search/": 200,
    "jobs/": 200,
    "jobs/pill/": 200,
    "jobs/<int:job_id>/": 404,  # there is none
    "jobs/<int:job_id>/row/": 404,
    "POST jobs/<int:job_id>/cancel/": 404,
    "POST jobs/<int:job_id>/retry/": 404,
    "jobs/<int:job_id>/failed/": 404,
    "jobs/<int:job_id>/download/": 404,
    "import/": 200,
    "import/<int:job_id>/": 404,
    "POST import/<int:job_id>/start/": 404,
    "export/": 200,
    # others' memories are not there, whoever asks
    "memories/<int:memory_id>/": 404,
    "memories/<int:memory_id>/alike/": 404,
    "memories/<int:memory_id>/edit/": 404,
    "POST memories/<int:memory_id>/edit/": 404,
    "POST memories/<int:memory_id>/mark/": 404,
    "POST memories/<int:memory_id>/revert/<int:version>/": 404,
    "POST memories/<int:memory_id>/delete/": 404,
    "POST memories/<int:memory_id>/restore/": 404,
    "POST memories/<int:memory_id>/erase/": 404,
    "me/": 200,
    "me/memory/": 200,
    "me/memory/download/": 200,
    "POST me/memory/pause/<str:agent>/": "/me/memory/",  # of oneself, whoever else it knows
    "POST me/memory/erase/": 422,
    "accounts/reauthenticate/": 200,
    "accounts/password/change/": 200,
    "accounts/2fa/": 200,
    "accounts/2fa/reauthenticate/": "/accounts/reauthenticate/",
    "accounts/2fa/totp/activate/": "/accounts/reauthenticate/",
    "accounts/2fa/totp/deactivate/": 404,
    "accounts/2fa/recovery-codes/": 404,
    "accounts/2fa/recovery-codes/generate/": "/accounts/reauthenticate/",
    "accounts/2fa/recovery-codes/download/": 404,
}
# anonymous, then everybody who is logged in
OPEN = {
    "POST look/": ("/", "/"),
    "setup/": (404, "/"),
    "setup/backend/": (404, "/"),
    "setup/agent/": (404, "/"),
    "setup/key/": (404, "/"),
    "accounts/login/": (200, "/"),
    "accounts/logout/": (LOGIN, 200),
    "accounts/inactive/": (200, 200),
    "accounts/signup/": (200, "/"),  # says that it is closed
    "accounts/2fa/authenticate/": (LOGIN, "/"),
}
# anonymous, user, operator, superuser
OPERATORS = {
    "agents/": (LOGIN, 403, 200, 200),
    "agents/<str:agent>/": (LOGIN, 403, 200, 200),
    "agents/<str:agent>/activity/": (LOGIN, 403, 200, 200),
    "POST agents/<str:agent>/switch/": (LOGIN, 403, "/agents/", "/agents/"),
    "agents/+new/": (LOGIN, 403, 200, 200),
    "agents/<str:agent>/settings/": (LOGIN, 403, 200, 200),
    "POST agents/<str:agent>/settings/delete/": (LOGIN, 403, 422, 422),
    "POST agents/<str:agent>/settings/preview/": (LOGIN, 403, 200, 200),
    "POST agents/<str:agent>/settings/reason/": (LOGIN, 403, 403, 422),
    "agents/<str:agent>/settings/store/": (LOGIN, 403, 200, 200),
    "agents/<str:agent>/settings/store/test/?backend=sqlite": (LOGIN, 403, SETTINGS, SETTINGS),
    "agents/<str:agent>/settings/store/move/": (LOGIN, 403, 200, 200),
    "POST agents/<str:agent>/settings/store/copies/": (LOGIN, 403, 422, 422),
    "agents/<str:agent>/synonyms/": (LOGIN, 403, 200, 200),
    "POST agents/<str:agent>/synonyms/restore/": (LOGIN, 403, SYNONYMS, SYNONYMS),
    "agents/<str:agent>/golden/": (LOGIN, 403, 200, 200),
    "agents/<str:agent>/golden/new/": (LOGIN, 403, 200, 200),
    "POST agents/<str:agent>/golden/ask/": (LOGIN, 403, 404, 404),  # by no mode
    "POST agents/<str:agent>/golden/reason/": (LOGIN, 403, 403, 422),
    "agents/<str:agent>/golden/runs/": (LOGIN, 403, 200, 200),
    "agents/<str:agent>/golden/<int:question_id>/": (LOGIN, 403, 404, 404),  # there is none
    "POST agents/<str:agent>/golden/<int:question_id>/delete/": (LOGIN, 403, 404, 404),
    "POST agents/<str:agent>/golden/<int:question_id>/restore/": (LOGIN, 403, GOLDEN, GOLDEN),
    "agents/<str:agent>/connect/": (LOGIN, 403, 200, 200),
    "keys/": (LOGIN, 403, 200, 200),
    "keys/<int:key_id>/first-call/": (LOGIN, 403, "/agents/ada/connect/", "/agents/ada/connect/"),
    "POST keys/<int:key_id>/rotate/": (LOGIN, 403, 404, 404),  # without an overlap
    "POST keys/<int:key_id>/revoke/": (LOGIN, 403, "/keys/", "/keys/"),
    "POST keys/<int:key_id>/restore/": (LOGIN, 403, "/keys/", "/keys/"),
    "users/": (LOGIN, 403, 200, 200),
    "system/": (LOGIN, 403, 200, 200),
    "users/read/?agent={agent}&user_id=bob": (LOGIN, 403, 403, 200),
    "users/read/<int:entry_id>/": (LOGIN, 403, 403, 404),
    "users/new/": (LOGIN, 403, 200, 200),
    "users/erase/?user_id=bob": (LOGIN, 403, 200, 200),
    "users/erased/<int:job_id>/": (LOGIN, 403, 404, 404),
    # of another operator, whom superusers manage
    "users/<int:account_id>/": (LOGIN, 403, 200, 200),
    "POST users/<int:account_id>/role/": (LOGIN, 403, 422, 422),
    "POST users/<int:account_id>/active/": (LOGIN, 403, 403, "{page}"),
    "POST users/<int:account_id>/reading/": (LOGIN, 403, 403, "{page}"),
    "POST users/<int:account_id>/password/": (LOGIN, 403, 403, 200),
    "POST users/<int:account_id>/factor/": (LOGIN, 403, 403, "{page}"),
    "POST users/<int:account_id>/sessions/": (LOGIN, 403, 403, "{page}"),
    "users/<int:account_id>/link/?user_id=ming": (LOGIN, 403, 422, 200),
    "POST users/<int:account_id>/unlink/<int:identity_id>/": (LOGIN, 403, 403, 404),
    "users/<int:account_id>/erase/": (LOGIN, 403, 403, 200),
    "audit/": (LOGIN, 403, 200, 200),
    "audit/export.<str:kind>": (LOGIN, 403, 200, 200),
    "playground/": (LOGIN, 403, 200, 200),
    "settings/": (LOGIN, 403, 200, 200),
    "POST settings/<str:purpose>/": (LOGIN, 403, 422, 422),
    "POST settings/<str:purpose>/test/": (LOGIN, 403, 422, 422),
}
TABLE = {
    **{route: (LOGIN, *[answer] * 3) for route, answer in LOGGED_IN.items()},
    **{route: (first, *[other] * 3) for route, (first, other) in OPEN.items()},
    **OPERATORS,
}
FOR_PROGRAMS = ("api/", "^api/", "healthz", "readyz", "metrics")
ADMIN = "admin/"


def routes(patterns=None, prefix=""):
    for pattern in patterns or get_resolver().url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        else:
            yield route


FOR_PEOPLE = [each for each in routes() if not each.startswith(FOR_PROGRAMS)]


@pytest.fixture
def others(ada, remember):
    """The agent and a memory of bob, who none of the four is; nothing is left to set up."""
    row, key = issue_key(ada)
    find_key(key, now=NOW)
    ola = get_user_model().objects.create_user("ola", is_staff=True)
    memory = remember(ada, "bob", "Bob deploys on Fridays")
    return {"agent": ada.name, "memory": memory.pk, "key": row.pk, "account": ola.pk}


@pytest.fixture(params=ROLES)
def role(request, client, others):
    """One of the four, logged in as such."""
    if request.param != "anonymous":
        account = get_user_model().objects.create_user(
            request.param,
            is_staff=request.param != "user",
            is_superuser=request.param == "superuser",
        )
        account.set_password("correct horse")
        account.save()
        Identity.objects.create(account=account, user_id=request.param)
        client.force_login(account)
    else:
        get_user_model().objects.create_user("somebody")
    return request.param


def ask(client, route, others):
    method, _, path = route.rpartition(" ")
    for name, value in OTHERS.items():
        path = path.replace(name, value)
    answer = client.generic(method or "GET", f"/{path.format(**others)}")
    answer.close()
    return answer


def outcome(answer):
    """The status, or where a redirect leads without what comes after `?`."""
    return answer.url.partition("?")[0] if answer.status_code == 302 else answer.status_code


def test_every_address_for_people_has_its_line():
    listed = {route.removeprefix("POST ").partition("?")[0] for route in TABLE}

    assert {each for each in FOR_PEOPLE if not each.startswith(ADMIN)} == listed


def test_everybody_gets_what_is_theirs_and_no_more(role, client, others):
    answers = {route: outcome(ask(client, route, others)) for route in TABLE}

    column = ROLES.index(role)
    page = f"/users/{others['account']}/"
    expected = {route: each[column] for route, each in TABLE.items()}
    assert answers == {route: page if e == "{page}" else e for route, e in expected.items()}


def test_nothing_is_done_for_those_who_are_not_logged_in(client, others, django_user_model):
    django_user_model.objects.create_user("somebody")

    for route in LOGGED_IN | OPERATORS:
        path = route.removeprefix("POST ")
        for method in ("GET", "POST", "PUT", "DELETE"):
            answer = ask(client, f"{method} {path}", others)
            assert outcome(answer) in {LOGIN, 405}, (method, path)


def test_the_plain_admin_is_for_superusers(role, client, others):
    fits_all = {"admin/login/", "admin/logout/", "admin/jsi18n/", "admin/password_change/",
                "admin/password_change/done/", "admin/"}  # fmt: skip
    pages = [each for each in FOR_PEOPLE if each.startswith(ADMIN) and "(" not in each]
    pages = [each for each in pages if "<" not in each and each not in fits_all]

    answers = {each: outcome(ask(client, each, others)) for each in pages}

    assert len(answers) > 10
    # what is only looked at cannot be added, and autocompletion wants parameters
    refused = {403} if role == "superuser" else {403, "/admin/login/"}
    shown = {path for path, answer in answers.items() if answer == 200}
    assert {answers[path] for path in answers.keys() - shown} <= refused
    assert bool(shown) == (role == "superuser")
