"""Operators manage accounts: who may do what with whose, and that it is recorded."""

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client

from agents import administration, audit
from agents.authority import Refused, Role, role_of
from agents.models import AuditEntry, Identity
from memory.models import Job, Scope
from memory.services import job_kinds
from tests.conftest import NOW

MADE = "correct horse battery"


@pytest.fixture(autouse=True)
def _host(settings):
    settings.ALLOWED_HOSTS = ["testserver"]


def make_account(name, *user_ids, role="user", **fields):
    staff = {"user": {}, "operator": {"is_staff": True},
             "superuser": {"is_staff": True, "is_superuser": True}}[role]  # fmt: skip
    account = get_user_model().objects.create_user(name, password=MADE, **staff, **fields)
    for user_id in user_ids or (name,):
        Identity.objects.create(account=account, user_id=user_id)
    return account


def logged_in(account):
    client = Client()
    client.force_login(account)
    return client


def text_of(answer):
    return answer.content.decode()


def words(entry):
    return (entry.action, entry.actor_name, entry.subject_name, entry.user_id, entry.detail)


# --- who may ---------------------------------------------------------------------------

DEEDS = {
    "role": {"role": "operator"}, "active": {}, "reading": {"may_read": "true"}, "password": {},
    "factor": {}, "sessions": {}, "link": {"user_id": "u9"}, "unlink": {}, "erase": {},
}  # fmt: skip
# which of the deeds each may do with whom
MANAGE = {"active", "password", "factor", "sessions", "link", "unlink", "erase"}
MATRIX = {
    ("operator", "user"): MANAGE,
    ("operator", "operator"): set(),
    ("operator", "superuser"): set(),
    ("operator", "self"): set(),
    ("superuser", "user"): MANAGE | {"role"},
    ("superuser", "operator"): MANAGE | {"role", "reading"},
    ("superuser", "superuser"): MANAGE | {"role"},
    ("superuser", "self"): {"link", "unlink"},
}


@pytest.mark.parametrize("permission", [False, True])
@pytest.mark.parametrize(("actor", "target"), MATRIX)
def test_everybody_may_what_the_table_says_and_no_more(db, actor, target, permission):
    opal = make_account("opal", role=actor)
    if permission:  # to read contents is no right over accounts
        opal.user_permissions.add(Permission.objects.get(codename="view_content"))
    account = opal if target == "self" else make_account("tess", role=target)
    allowed = set()

    for deed, data in DEEDS.items():
        identity = account.identities.first()
        path = f"unlink/{identity.pk}" if deed == "unlink" else deed
        count = AuditEntry.objects.count()
        client = logged_in(get_user_model().objects.get(pk=opal.pk))
        answer = client.post(f"/users/{account.pk}/{path}/", data)
        if deed == "unlink" and answer.status_code == 302:
            Identity.objects.create(account=account, user_id="tess")
        # the form of erasing answers without the word, and a refused link with the form
        is_done = answer.status_code in {200, 302} or (
            deed == "erase" and answer.status_code == 422
        )
        allowed |= {deed} if is_done else set()
        if not is_done:
            assert AuditEntry.objects.count() == count
        if deed in {"role", "active"} and is_done:
            changes = {"is_staff": target != "user", "is_superuser": target == "superuser"}
            get_user_model().objects.filter(pk=account.pk).update(is_active=True, **changes)

    assert allowed == MATRIX[actor, target]
    assert role_of(get_user_model().objects.get(pk=opal.pk)) == actor


def test_an_operator_gets_at_nobodys_memories_by_a_link(db):
    opal, bob = make_account("opal", role="operator"), make_account("bob")
    make_account("ming", "u1")
    web = logged_in(opal)

    refused = [
        web.post(f"/users/{opal.pk}/link/", {"user_id": "u9"}),
        web.post(f"/users/{bob.pk}/link/", {"user_id": "u1"}),
        web.get(f"/users/{bob.pk}/link/", {"user_id": "u1"}),
    ]

    assert [each.status_code for each in refused] == [422, 422, 422]
    assert Identity.objects.filter(user_id__in=["u1", "u9"]).count() == 1
    root = make_account("root", role="superuser")
    logged_in(root).post(f"/users/{bob.pk}/link/", {"user_id": "u1"})
    assert Identity.objects.filter(user_id="u1").count() == 2


def test_what_was_taken_from_one_is_given_to_another_by_superusers_only(db):
    opal, bob = make_account("opal", role="operator"), make_account("bob")
    ming = make_account("ming", "u1")
    web = logged_in(opal)
    web.post(f"/users/{ming.pk}/unlink/{ming.identities.get(user_id='u1').pk}/")

    assert web.post(f"/users/{bob.pk}/link/", {"user_id": "u1"}).status_code == 422
    assert web.post("/users/new/", {"username": "u1", "language": "en"}).context["is_unlinked"]
    assert not Identity.objects.filter(user_id="u1").exists()
    web.post(f"/users/{ming.pk}/link/", {"user_id": "u1"})
    assert Identity.objects.get(user_id="u1").account == ming


def test_a_new_account_does_not_take_over_whom_another_is(db):
    make_account("ming", "bob")
    web = logged_in(make_account("opal", role="operator"))

    answer = web.post("/users/new/", {"username": "bob", "language": "en"})

    assert answer.context["is_unlinked"]
    assert not Identity.objects.filter(account__username="bob").exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_superusers_who_demote_each_other_one_stays():
    first, second = (make_account(name, role="superuser") for name in ("ann", "ben"))
    administration.change_role(first, second.pk, Role("user"), now=NOW)

    with pytest.raises(Refused):  # a request that began before
        administration.change_role(second, first.pk, Role("user"), now=NOW)

    assert get_user_model().objects.filter(is_superuser=True).count() == 1


def test_whoever_becomes_a_user_reads_no_contents_any_more(db):
    root, opal = make_account("root", role="superuser"), make_account("opal", role="operator")
    administration.set_reading(root, opal.pk, True, now=NOW)
    administration.change_role(root, opal.pk, Role("user"), now=NOW)
    administration.change_role(root, opal.pk, Role("operator"), now=NOW)

    assert not get_user_model().objects.get(pk=opal.pk).has_perm("agents.view_content")
    details = [entry.detail for entry in AuditEntry.objects.order_by("pk")]
    assert details == ["view_content: False → True", "role: operator → user",
                       "role: user → operator"]  # fmt: skip


# --- accounts --------------------------------------------------------------------------


@pytest.mark.parametrize("typed", ["", "three small kumquats"])
def test_an_account_is_made_with_a_password_that_is_shown_once(db, typed):
    web = logged_in(make_account("opal", role="operator"))

    answer = web.post("/users/new/", {"username": "lin", "language": "en", "password": typed})

    password = answer.context["password"] or typed
    assert get_user_model().objects.get(username="lin").check_password(password)
    assert (typed == "") == (password in text_of(answer))
    assert "no-store" in answer.headers["Cache-Control"]
    lin = get_user_model().objects.get(username="lin")
    assert role_of(lin) == "user"
    assert [each.user_id for each in lin.identities.all()] == ["lin"]
    assert [words(entry)[0] for entry in AuditEntry.objects.order_by("pk")] == [
        "account_created", "identity_linked",
    ]  # fmt: skip
    kept = str(list(AuditEntry.objects.values())) + str(
        [s.get_decoded() for s in Session.objects.all()]
    )
    assert password not in kept
    assert password not in text_of(web.get(f"/users/{lin.pk}/"))


@pytest.mark.parametrize(
    "fields",
    [{"username": ""}, {"username": "Opal"}, {"username": "a b"}, {"language": "fr"},
     {"password": "1234567"}],
)  # fmt: skip
def test_a_malformed_account_is_not_made(db, fields):
    web = logged_in(make_account("opal", role="operator"))

    answer = web.post("/users/new/", {"username": "lin", "language": "en", **fields})

    assert answer.status_code == 422
    assert get_user_model().objects.count() == 1


def test_a_password_set_by_another_ends_sessions_and_is_told_at_every_login(db, settings):
    cache.clear()  # which counts the logins of this address, other tests' among them
    ming, opal = make_account("ming"), make_account("opal", role="operator")
    mings = logged_in(ming)

    answer = logged_in(opal).post(f"/users/{ming.pk}/password/", headers={"accept-language": "en"})
    password = answer.context["password"]

    assert mings.get("/memories/").status_code == 302
    assert "no-store" in answer.headers["Cache-Control"]
    for _ in range(2):
        again = Client(headers={"accept-language": "en"})
        page = again.post("/accounts/login/", {"login": "ming", "password": password}, follow=True)
        assert "opal gave you this password" in text_of(page)
    again.post("/accounts/password/change/", {"oldpassword": password, "password1": MADE,
                                             "password2": MADE})  # fmt: skip
    page = Client().post("/accounts/login/", {"login": "ming", "password": MADE}, follow=True)
    assert "opal gave you" not in text_of(page)
    deeds = [(each.actor_name, each.detail) for each in audit.deeds_about(ming)]
    assert deeds == [("ming", "password: changed"), ("opal", "password: reset")]
    assert "set anew by somebody else" in text_of(again.get("/me/memory/"))


def test_a_second_factor_and_sessions_are_taken_away(db):
    ming, opal = make_account("ming"), make_account("opal", role="operator")
    Authenticator.objects.create(user=ming, type="totp", data={})
    mings, web = logged_in(ming), logged_in(opal)

    web.post(f"/users/{ming.pk}/factor/")
    assert not Authenticator.objects.exists()
    assert mings.get("/memories/").status_code == 302
    mings.force_login(ming)
    web.post(f"/users/{ming.pk}/sessions/")
    assert mings.get("/memories/").status_code == 302
    assert web.get("/users/").status_code == 200
    mings.force_login(ming)
    web.post(f"/users/{ming.pk}/active/")
    assert mings.get("/memories/").status_code == 302
    assert [entry.detail for entry in AuditEntry.objects.order_by("pk")] == [
        "second_factor: removed", "sessions: ended", "active: True → False",
    ]  # fmt: skip


# --- identities ------------------------------------------------------------------------


def test_a_link_shows_what_it_gives_and_whoever_has_it_sees_it(ada, grace, remember):
    ming, bob = make_account("ming", "u1"), make_account("bob")
    remember(ada, "u1", "tea")
    remember(grace, "u1", "tea")
    web = logged_in(make_account("root", role="superuser"))
    address = f"/users/{bob.pk}/link/"

    asked = web.get(address, {"user_id": "u1", "agent": ada.pk})
    answer = web.post(address, {"user_id": "u1", "agent": ada.pk})

    assert (asked.context["total"], asked.context["others"].get().account) == (1, ming)
    assert answer.status_code == 302
    [deed] = audit.deeds_about(ming)
    assert words(deed) == ("identity_linked", "root", "bob", "u1", "")
    assert "for the account bob" in text_of(
        logged_in(ming).get("/me/memory/", headers={"accept-language": "en"})
    )
    again = web.post(address, {"user_id": "u1", "agent": ada.pk})
    bad = web.post(address, {"user_id": "x" * 256})
    assert (again.status_code, bad.status_code) == (422, 422)
    identity = bob.identities.get(user_id="u1")
    web.post(f"/users/{bob.pk}/unlink/{identity.pk}/")
    assert [each.action for each in audit.deeds_about(ming)] == [
        "identity_unlinked", "identity_linked",
    ]  # fmt: skip


# --- erasing ---------------------------------------------------------------------------


def test_an_account_is_erased_with_a_receipt_and_deleted(agent, remember):
    ming, opal = make_account("ming", "u1"), make_account("opal", role="operator")
    for number in range(3):
        remember(agent, "u1", f"tea {number}")
    remember(agent, "u2", "Bob's")
    web, address = logged_in(opal), f"/users/{ming.pk}/erase/"

    wrong = web.post(address, {"confirm": "Ming"})
    assert (wrong.status_code, Job.objects.count()) == (422, 0)
    answer = web.post(address, {"confirm": "ming", "deletes_account": "true"})
    pending = text_of(web.get(answer.url))
    assert "receipt" in text_of(
        logged_in(ming).get("/me/memory/", headers={"accept-language": "en"})
    )
    job_kinds.perform(Job.objects.get().pk)

    assert 'hx-trigger="every 2s"' in pending
    done = web.get(answer.url, headers={"accept-language": "en"})
    assert "Erased and verified" in text_of(done)
    assert 'hx-trigger="every 2s"' not in text_of(done)
    assert not Scope.objects.of_user(agent, "u1").exists()
    assert Scope.objects.of_user(agent, "u2").exists()
    assert not get_user_model().objects.filter(username="ming").exists()
    entry = AuditEntry.objects.get()
    assert (words(entry)[:3], entry.count) == (("user_erased", "opal", "ming"), 3)


def test_an_account_that_became_an_operators_is_not_deleted(ada, remember):
    ming, root = make_account("ming", "u1"), make_account("root", role="superuser")
    remember(ada, "u1", "tea")
    web = logged_in(root)
    web.post(f"/users/{ming.pk}/erase/", {"confirm": "ming", "deletes_account": "true"})
    administration.change_role(root, ming.pk, Role("operator"), now=NOW)

    job_kinds.perform(Job.objects.get().pk)

    assert get_user_model().objects.filter(username="ming").exists()
    assert Job.objects.get().result["account"] == ""


@pytest.mark.parametrize("user_id", ["x", "u1 ", "用户/甲", "line\nbreak", " "])
def test_whom_no_account_has_is_erased_and_every_operator_sees_the_receipt(
    agent, remember, user_id
):
    remember(agent, user_id, "tea")
    web = logged_in(make_account("opal", role="operator"))
    ada = web.get("/users/erase/", {"user_id": user_id})
    word = ada.context["word"]

    answer = web.post(ada.wsgi_request.get_full_path(), {"confirm": word})
    job_kinds.perform(Job.objects.get().pk)

    other = logged_in(make_account("ola", role="operator"))
    assert "Erased and verified" in text_of(
        other.get(answer.url, headers={"accept-language": "en"})
    )
    assert not Scope.objects.of_user(agent, user_id).exists()
    entry = AuditEntry.objects.get()
    assert (entry.user_id, entry.count) == (user_id, 1)


def test_only_what_nobody_has_is_erased_by_user_id(ada, grace, remember):
    bob = make_account("bob", "other")
    Identity.objects.create(account=bob, user_id="b", agent=ada)
    for agent in (ada, grace):
        remember(agent, "b", "tea")
    web = logged_in(make_account("opal", role="operator"))

    web.post("/users/erase/?user_id=b", {"confirm": "b"})
    job_kinds.perform(Job.objects.get().pk)

    assert Scope.objects.of_user(ada, "b").exists()
    assert not Scope.objects.of_user(grace, "b").exists()
    assert web.get("/users/erase/?user_id=b").status_code == 404
    assert web.get("/users/erase/?user_id=nobody").status_code == 404


def test_what_an_operator_shares_is_erased_by_superusers_only(ada, remember):
    bob, opal = make_account("bob", "b"), make_account("opal", role="operator")
    make_account("ola", "b", role="operator")
    remember(ada, "b", "tea")

    refused = logged_in(opal).get(f"/users/{bob.pk}/erase/")
    asked = logged_in(make_account("root", role="superuser")).get(f"/users/{bob.pk}/erase/")

    assert refused.status_code == 403
    assert "ola" in text_of(asked)


def test_the_role_narrows_the_list(db):
    for role in ("user", "operator", "superuser"):
        make_account(role, role=role)
    web = logged_in(get_user_model().objects.get(username="operator"))

    for role in ("user", "operator", "superuser"):
        found = web.get("/users/", {"role": role}).context["people"]
        assert [account.username for account, _ in found] == [role]
