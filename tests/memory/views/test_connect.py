"""Operators connect agents: keys that are shown once, and calls that are ready to run."""

import ast
import html
import json
import re
import shlex
from datetime import timedelta
from urllib.parse import quote, urlencode

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from agents import keys
from agents.auth import find_key, issue_key
from agents.models import Agent, ApiKey, AuditEntry
from memory.services.instructions import INSTRUCTIONS
from memory.tools import NAMES
from tests.conftest import NOW, make_agent

HTMX = {"hx-request": "true"}


@pytest.fixture
def opal(db):
    return get_user_model().objects.create_user("opal", is_staff=True)


@pytest.fixture
def web(client, opal, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    client.force_login(opal)
    client.cookies["django_language"] = "en"
    return client


@pytest.fixture
def local(db):
    """ada; a test of keys does not depend on the engine, and is rolled back."""
    return make_agent("ada", "sqlite")


CONNECT = "/agents/ada/connect/"


def text_of(answer):
    return answer.content.decode()


def keys_on(answer):
    return set(re.findall(r"hippo_[\w-]{40,}", text_of(answer)))


def form_of(web, path=CONNECT, **fields):
    """Return the fields of the form as the page has them, and as they were filled in."""
    ticket = web.get(path).context["form"]["ticket"].value()
    return {"ticket": str(ticket), "name": "laptop", "user_id": "", "days": "", **fields}


def create(web, path=CONNECT, headers=None, **fields):
    return web.post(path, form_of(web, path, **fields), headers=headers or {})


def copied(answer):
    """Return what can be copied, by the id of its box, as the browser would copy it."""
    boxes = re.findall(r'<pre class="h-copy" id="([\w-]+)"[^>]*>(.*?)</pre>', text_of(answer), re.S)
    return {name: html.unescape(text) for name, text in boxes}


# --- one key, shown once ---------------------------------------------------------------


@pytest.mark.parametrize("path", [CONNECT, "/keys/"])
def test_a_key_is_shown_once_and_kept_nowhere(web, local, path):
    made = create(web, path, agent="ada")

    (key,) = keys_on(made)
    assert made.status_code == 200
    assert find_key(key, now=NOW).name == "laptop"
    assert "no-store" in made.headers["Cache-Control"]
    assert key not in str(made.headers) + str(made.cookies) + str(dict(web.session))
    for again in (CONNECT, "/keys/"):
        later = web.get(again)
        assert keys_on(later) == set()
        assert "no-store" in later.headers["Cache-Control"]
    assert AuditEntry.objects.get().action == "key_created"


@pytest.mark.parametrize("path", [CONNECT, "/keys/"])
@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_form_that_is_sent_twice_makes_one_key(web, local, path, headers):
    form = form_of(web, path, agent="ada")

    first, second = (web.post(path, form, headers=headers) for _ in range(2))

    assert (first.status_code, second.status_code) == (200, 409)
    assert keys_on(second) == set()
    assert f"made the key {ApiKey.objects.get()}, which cannot be shown again" in text_of(second)
    again = {**form, "ticket": str(second.context["form"]["ticket"].value())}
    assert len(keys_on(web.post(path, again, headers=headers))) == 1
    assert ApiKey.objects.count() == 2


def test_a_key_may_be_bound_and_may_end(web, local):
    made = create(web, user_id=" ming", days="30")

    row = ApiKey.objects.get()
    assert row.user_id == " ming"
    assert timedelta(days=29) < row.expires_at - timezone.now() <= timedelta(days=30)
    assert '"user_id": " ming"' in copied(made)["curl-1"]


@pytest.mark.parametrize(
    "fields",
    [{"user_id": "x" * 256}, {"days": "0"}, {"days": "-1"}, {"days": "3651"}, {"days": "x"},
     {"name": "x" * 101}, {"user_id": "a\x00"}, {"ticket": "x"}],
)  # fmt: skip
@pytest.mark.parametrize("headers", [{}, HTMX])
def test_what_is_wrong_is_said_and_what_was_typed_stays(web, local, fields, headers):
    answer = create(web, headers=headers, **{"name": "my laptop", **fields})

    assert answer.status_code == 422
    assert set(answer.context["form"].errors) == set(fields)
    assert "name" in fields or "my laptop" in text_of(answer)
    assert not ApiKey.objects.exists()
    if headers:
        assert text_of(answer).strip().startswith('<details class="card')
        assert "hx-swap-oob" not in text_of(answer)


def test_a_key_of_no_agent_is_not_made(web, local):
    for agent in ("", "grace"):
        assert create(web, "/keys/", agent=agent).status_code == 422
    assert web.get("/agents/grace/connect/").status_code == 404
    assert not ApiKey.objects.exists()


def test_htmx_gets_a_fresh_form_the_key_and_the_list(web, local):
    first = form_of(web, "/keys/?q=lap", agent="ada")

    made = web.post("/keys/?q=lap", first, headers=HTMX)

    text = text_of(made)
    assert "<html" not in text
    assert text.count('hx-swap-oob="true"') == 2
    assert str(made.context["form"]["ticket"].value()) != first["ticket"]
    assert f"/keys/{ApiKey.objects.get().pk}/revoke/?q=lap" in text
    assert text.count('id="issued"') == text.count('id="list"') == text.count('id="key-new"') == 1


def test_names_are_shown_and_not_obeyed(web, local):
    made = create(web, name="<b>laptop</b>", user_id="</pre><script>")

    assert "<b>laptop" not in text_of(made)
    assert "<script>" not in text_of(made).partition("<main")[2]


# --- what is ready to run --------------------------------------------------------------


@pytest.fixture
def xiaohe(db):
    """An agent, and an operator, whose names need quoting everywhere."""
    return Agent.objects.create_agent("小河", backend="sqlite", display_name="It's 小河")


def test_snippets_are_whole_with_the_key_and_with_its_place(web, xiaohe):
    path = f"/agents/{quote('小河')}/connect/"
    base = f"http://testserver/api/v1/agents/{quote('小河')}/"
    empty = copied(web.get(path))
    made = create(web, path, user_id='O\'Neil "$HOME" `x`')
    filled, (key,) = copied(made), keys_on(made)

    assert filled["new-key"] == key
    for texts, token in ((empty, "$HIPPO_KEY"), (filled, key)):
        for number, address in ((1, "memories/"), (2, "search/"), (3, "prefetch/")):
            words = shlex.split(texts[f"curl-{number}"].replace("\\\n", " "))
            assert words[:4] == ["curl", base + address, "-H", f"Authorization: Bearer {token}"]
            user_id = json.loads(words[-1])["user_id"]
            assert user_id == ("opal" if texts is empty else 'O\'Neil "$HOME" `x`')
        ast.parse(texts["python-1"])
        assert f'BASE = "{base}"' in texts["python-1"]
        assert "hippo_" not in str(empty)
    assert '"Authorization: Bearer $HIPPO_KEY"' in empty["curl-1"]  # the shell fills it in
    assert 'os.environ["HIPPO_KEY"]' in empty["python-1"]
    assert "process.env.HIPPO_KEY" in empty["typescript-1"]
    assert key in filled["python-1"]
    assert key in filled["typescript-1"]
    assert "mcp" not in str(filled).casefold()


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_tools_and_prompt_are_in_the_agents_language(web, local, language):
    Agent.objects.update(language=language)

    texts = copied(web.get(CONNECT))

    openai, anthropic = json.loads(texts["tools-1"]), json.loads(texts["tools-2"])
    assert [each["function"]["name"] for each in openai] == list(NAMES)
    assert [each["name"] for each in anthropic] == list(NAMES)
    assert ("记" in texts["tools-1"]) == (language == "zh-hans")
    assert texts["prompt-1"] == INSTRUCTIONS[language]


def test_while_the_memory_is_off_no_tools_are_offered(web, local):
    local.memory_config.enabled = False
    local.memory_config.save()

    assert "tools-1" not in copied(web.get(CONNECT))


# --- the first call --------------------------------------------------------------------


def watch(web, row, seen="waiting"):
    return web.get(f"/keys/{row.pk}/first-call/?seen={seen}", headers=HTMX)


def age(row, **since):
    ApiKey.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(**since))


def test_the_page_asks_until_the_first_call_has_come(web, local):
    made = create(web)
    row = ApiKey.objects.get()
    assert f'hx-get="/keys/{row.pk}/first-call/?seen=waiting" hx-trigger="every 2s"' in text_of(
        made
    )
    assert watch(web, row).status_code == 204

    find_key(keys_on(made).pop(), now=timezone.now())
    called = watch(web, row)

    assert called.status_code == 200
    assert "First call received" in text_of(called)
    assert f"<code>{row}</code> laptop" in text_of(called)
    assert "hx-get" not in text_of(called)
    assert "Last call" in text_of(web.get(CONNECT))


def test_after_a_minute_it_says_what_may_be_wrong_and_stops_after_half_an_hour(web, local):
    row, _ = issue_key(local)
    age(row, seconds=61)
    checks = watch(web, row)
    assert "http://testserver/healthz" in text_of(checks)
    assert "The memory of ada is on." in text_of(checks)
    assert "seen=checks" in text_of(checks)
    assert watch(web, row, "checks").status_code == 204

    Agent.objects.update(is_active=False)
    local.memory_config.enabled = False
    local.memory_config.save()
    age(row, minutes=31)
    stopped = text_of(watch(web, row, "checks"))

    assert "is off: saving and searching answer 409" in stopped
    assert "The agent is inactive" in stopped
    assert "hx-get" not in stopped
    assert CONNECT in stopped


@pytest.mark.parametrize("end", [{"revoked_at": NOW}, {"expires_at": timezone.now()}])
def test_nobody_waits_for_a_key_that_does_not_work(web, local, end):
    row, _ = issue_key(local)
    ApiKey.objects.update(**end)

    text = text_of(watch(web, row))

    assert "does not work any more" in text
    assert "hx-get" not in text
    assert "No key of this agent works" in text_of(web.get(CONNECT))


def test_without_htmx_it_leads_to_the_page(web, local):
    row, _ = issue_key(local)

    assert web.get(f"/keys/{row.pk}/first-call/").url == CONNECT
    assert web.get("/keys/99/first-call/").status_code == 404


def test_the_last_call_is_that_of_the_key_used_last(web, local):
    old, new = (issue_key(local, name=name)[0] for name in ("old", "new"))
    ApiKey.objects.filter(pk=new.pk).update(last_used_at=NOW - timedelta(days=9))
    ApiKey.objects.filter(pk=old.pk).update(last_used_at=NOW - timedelta(days=2))
    issue_key(make_agent("bo", "sqlite"))

    assert web.get(CONNECT).context["watched"] == old


# --- the list --------------------------------------------------------------------------


def listed(web, **query):
    return [key.name for key in web.get(f"/keys/?{urlencode(query)}").context["page"]]


def test_keys_are_found_by_agent_state_and_text(web, local):
    bo = make_agent("bo", "sqlite")
    for agent, name, user_id in ((local, "laptop", "ming"), (bo, "server", ""), (bo, "old", "")):
        issue_key(agent, name=name, user_id=user_id)
    old = ApiKey.objects.get(name="old")
    ApiKey.objects.filter(pk=old.pk).update(revoked_at=NOW)

    assert listed(web) == ["old", "server", "laptop"]
    assert listed(web, agent="bo") == ["old", "server"]
    assert listed(web, state="revoked") == ["old"]
    assert listed(web, agent="bo", state="live") == ["server"]
    assert listed(web, q="lap") == listed(web, q="ming") == ["laptop"]
    assert listed(web, q=old.prefix) == ["old"]
    assert listed(web, state="x") == ["old", "server", "laptop"]
    assert listed(web, q="a\x00") == listed(web, agent="grace") == []
    assert "No key is like that" in text_of(web.get("/keys/?q=nothing"))
    fragment = text_of(web.get("/keys/?state=revoked", headers=HTMX))
    assert fragment.startswith("<section")
    assert fragment.count("<tr id=") == 1


def test_each_row_says_what_is_to_be_known_of_a_key(web, local):
    key, _ = issue_key(local, name="laptop")
    used = timezone.now() - timedelta(minutes=3)
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=used)
    keys.rotate(key, overlap=timedelta(hours=23), actor=None, now=timezone.now())
    forgotten, _ = issue_key(local, name="forgotten", user_id="ming")
    age(forgotten, days=91)

    rows = re.findall(r'<tr id="key-(\d+)">(.*?)</tr>', text_of(web.get("/keys/")), re.S)
    said = {int(pk): " ".join(re.sub(r"<[^>]+>", " ", row).split()) for pk, row in rows}

    new = ApiKey.objects.get(replaces=key)
    assert f"Ends in 23 h replaced by {new}; last used 3 min ago" in said[key.pk]
    assert "Rotate" not in said[key.pk]
    assert "Never used" in said[new.pk]
    assert "Not used for 90 days" in said[forgotten.pk]
    assert "ming" in said[forgotten.pk]


def test_the_list_costs_the_same_for_many(web, local):
    def queries(path):
        with CaptureQueriesContext(connection) as captured:
            assert web.get(path).status_code == 200
        return len(captured)

    issue_key(local)
    few = [queries("/keys/"), queries(CONNECT)]
    for number in range(199):
        row, _ = issue_key(local, name=f"key {number}")
        if number % 2:
            keys.rotate(row, overlap=timedelta(0), actor=None, now=timezone.now())
    many = [queries("/keys/"), queries(CONNECT)]

    assert many == few
    assert max(few) <= 9


def test_keys_come_in_pages(web, local, monkeypatch):
    monkeypatch.setattr("memory.views.key_list.KEYS", 2)
    for number in range(5):
        issue_key(local, name=f"key {number}")

    pages = [listed(web, page=number) for number in (1, 2, 3)]

    assert pages == [["key 4", "key 3"], ["key 2", "key 1"], ["key 0"]]
    assert listed(web, page="x") == pages[0]
    assert 'href="/keys/?state=live&amp;page=2"' in text_of(web.get("/keys/?state=live"))
    assert f'href="{CONNECT}?page=2"' in text_of(web.get(CONNECT))


# --- rotate, revoke, undo --------------------------------------------------------------


def test_rotating_shows_the_new_key_once(web, local):
    row, old = issue_key(local, name="laptop", user_id="ming")

    page = web.post(f"/keys/{row.pk}/rotate/", {"overlap": "3600"})

    (key,) = keys_on(page)
    now = timezone.now()
    assert "no-store" in page.headers["Cache-Control"]
    assert find_key(key, now=now).user_id == "ming"
    assert find_key(old, now=now)
    assert find_key(old, now=now + timedelta(hours=1)) is None
    assert '"user_id": "ming"' in copied(page)["curl-1"]
    again = web.post(f"/keys/{row.pk}/rotate/", {"overlap": "3600"}, follow=True)
    assert "was replaced by" in text_of(again)
    assert keys_on(again) == set()
    assert ApiKey.objects.count() == 2


def test_htmx_gets_the_new_key_and_the_list_it_came_from(web, local):
    row, _ = issue_key(local)
    path = f"/keys/{row.pk}/rotate/?tab=ada"

    made = web.post(path, {"overlap": "0"}, headers=HTMX)
    again = web.post(path, {"overlap": "0"}, headers=HTMX)

    assert len(keys_on(made)) == 1
    assert text_of(made).count('hx-swap-oob="true"') == 1
    assert text_of(made).strip().startswith('<div id="issued"')
    assert "Expired" in text_of(made)
    assert again.headers["HX-Retarget"] == "#list"  # the new key stays where it is shown
    assert "rotate that one instead" in json.loads(again.headers["HX-Trigger"])["toast"]["text"]


@pytest.mark.parametrize("overlap", ["", "1", "-1", "3600.0", "9" * 40, "²"])
def test_an_overlap_that_is_not_offered_is_none(web, local, overlap):
    row, _ = issue_key(local)

    assert web.post(f"/keys/{row.pk}/rotate/", {"overlap": overlap}).status_code == 404
    assert ApiKey.objects.count() == 1


def test_revoking_can_be_undone_where_it_was_done(web, local):
    row, key = issue_key(local)
    row_2, _ = issue_key(make_agent("bo", "sqlite"))

    revoked = web.post(f"/keys/{row.pk}/revoke/?tab=ada", headers=HTMX)
    toast = json.loads(revoked.headers["HX-Trigger"])["toast"]
    was_dead = find_key(key, now=timezone.now()) is None
    undone = web.post(toast["undo"], headers=HTMX)

    assert toast["text"] == f"The key {row} is revoked."
    assert was_dead
    assert find_key(key, now=timezone.now())
    for answer in (revoked, undone):
        assert f'id="key-{row.pk}"' in text_of(answer)
        assert f'id="key-{row_2.pk}"' not in text_of(answer)
    assert json.loads(undone.headers["HX-Trigger"])["toast"]["undo"] == ""


@pytest.mark.parametrize(
    ("query", "page"), [("?tab=ada", CONNECT), ("?state=live&q=lap", "/keys/?state=live&q=lap")]
)
def test_without_scripts_it_ends_on_the_page_it_began_on(web, local, query, page):
    row, key = issue_key(local, name="laptop")

    answer = web.post(f"/keys/{row.pk}/revoke/{query}")
    shown = web.get(answer.url)
    undo = re.search(r'action="(/keys/\d+/restore/[^"]*)"', text_of(shown))[1]
    back = web.post(html.unescape(undo))

    assert answer.url == back.url == page
    assert find_key(key, now=timezone.now())


def test_what_was_revoked_a_while_ago_stays_so(web, local):
    row, key = issue_key(local)
    ApiKey.objects.update(revoked_at=timezone.now() - timedelta(seconds=61))

    answer = web.post(f"/keys/{row.pk}/restore/", follow=True)
    again = web.post(f"/keys/{row.pk}/revoke/", follow=True)

    assert "the time to undo that is over" in text_of(answer)
    assert "was revoked already" in text_of(again)
    assert "/restore/" not in text_of(again)
    assert find_key(key, now=timezone.now()) is None
    assert not AuditEntry.objects.exists()


def test_nothing_changes_by_looking(web, local):
    row, key = issue_key(local)

    for action in ("rotate", "revoke", "restore"):
        assert web.get(f"/keys/{row.pk}/{action}/").status_code == 405
        assert web.post(f"/keys/99/{action}/", {"overlap": "0"}).status_code == 404
    assert find_key(key, now=NOW)


# --- ways here -------------------------------------------------------------------------


def test_the_palette_leads_operators_to_agents_and_keys(web, local):
    def places(query):
        text = text_of(web.get(f"/search/?{urlencode({'q': query})}", headers=HTMX))
        return re.findall(r'<a href="([^"]+)"', text)

    assert places("ada") == ["/agents/ada/"]
    assert "/keys/" in places("keys")
    assert {"/keys/", "/agents/"} <= set(places(""))
    get_user_model().objects.update(is_staff=False)
    assert places("ada") == []
    assert "/keys/" not in places("")


def test_pages_are_in_chinese_too(web, local):
    with translation.override("zh-hans"):
        web.cookies["django_language"] = "zh-hans"
        assert "我喜欢简短的回答" in copied(web.get(CONNECT))["curl-1"]
