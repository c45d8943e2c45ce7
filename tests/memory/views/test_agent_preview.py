"""The preview is what a prefetch gives, without a trace, on memories that may be seen."""

from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.utils import timezone

from agents import audit
from agents.models import Agent, AuditEntry, Pause
from memory.models import Memory
from memory.services import demo, memories, previewing
from memory.services.context import prefetch
from tests.conftest import MING, NOW
from tests.memory.views.operators import htmx, make_operator

REASON = "Ming asked why it forgot Fridays"
MESSAGE = "When does Ming deploy the payment service?"


@pytest.fixture(autouse=True)
def _host(settings):
    settings.ALLOWED_HOSTS = ["testserver"]


@pytest.fixture
def opal(db):
    """An operator whom agents know as ming, who may not read others' contents."""
    return make_operator("opal", "ming")


@pytest.fixture
def web(client, opal):
    client.force_login(opal)
    return client


@pytest.fixture
def reader(client, db):
    account = make_operator("rita", may_read=True)
    client.force_login(account)
    return client


def page_of(agent):
    return f"/agents/{agent.name}/settings/"


def try_message(web, agent, message=MESSAGE, **values):
    answer = htmx(web, f"{page_of(agent)}preview/", {"message": message, **values})
    assert answer.status_code == 200
    return answer


def fill(agent, remember, user_id="ming", count=8):
    for number in range(count):
        content = f"Ming deploys the payment service on day {number}. " + "Details follow. " * 9
        remember(agent, user_id, content, name=f"Deploy {number}")


def rows(agent):
    return list(Memory.objects.for_agent(agent).order_by("pk").values())


def test_the_preview_is_the_block_of_a_prefetch_and_leaves_no_trace(agent, web, remember):
    fill(agent, remember)
    before = rows(agent)

    shown = try_message(web, agent).context["preview"]["found"]

    assert rows(agent) == before
    real = prefetch(agent, "ming", MESSAGE, now=NOW)
    assert (shown.block, shown.tokens) == (real.block, real.tokens)
    assert [hit.memory for hit in shown.hits] == [hit.memory for hit in real.hits]
    assert rows(agent) != before  # the real one does


def test_scores_words_tokens_and_the_exact_block_are_shown(ada, web, remember):
    remember(ada, "ming", "Ming deploys <b> on Fridays & pays", name="Deploys", type="feedback")

    answer = try_message(web, ada, "When does Ming deploy?")

    text, found = answer.content.decode(), answer.context["preview"]["found"]
    assert 'class="ty feedback"' in text
    assert "deploy" in text
    assert f"<b>{found.tokens}</b> / 1000" in text
    assert sum(found.costs) < found.tokens
    assert (
        '<span class="feedback">[feedback]</span> Deploys\nMing deploys &amp;lt;b&amp;gt;' in text
    )


def test_limit_budget_and_language_that_are_not_saved_are_tried(ada, web, remember):
    fill(ada, remember)

    def found(**values):
        return try_message(web, ada, **values).context["preview"]["found"]

    usual, two, tight = found(), found(prefetch_limit=2), found(budget_tokens=200)
    assert (len(usual.hits), len(two.hits)) == (5, 2)
    assert [hit.memory for hit in two.hits] == [hit.memory for hit in usual.hits[:2]]
    assert (len(usual.over_limit), len(two.over_limit)) == (3, 6)
    assert tight.tokens <= 200
    assert len(tight.hits) + len(tight.over_budget) == 5
    assert found(language="zh-hans").block.startswith("<memory-context>\n以下是")
    assert len(found(prefetch_limit=99, budget_tokens="x").hits) == 5  # not valid: as saved
    assert Agent.objects.named("ada").memory_config.prefetch_limit == 5


def test_silence_is_said_and_why(ada, web, remember):
    remember(ada, "ming", "Ming likes green tea")

    answer = try_message(web, ada, "What is the capital of Peru?", language="en")

    assert answer.context["preview"]["found"].block == ""
    assert "0.28" in answer.content.decode()


def test_memory_that_is_off_or_paused_is_previewed_and_that_is_said(ada, web, remember):
    fill(ada, remember)
    Pause.objects.create(agent=ada, user_id="ming")

    paused = try_message(web, ada)
    ada.memory_config.enabled = False
    ada.memory_config.save()
    off = try_message(web, ada)

    for answer in (paused, off):
        assert answer.context["preview"]["found"].hits
        assert "player-pause" in answer.content.decode()


def test_without_scripts_the_whole_page_shows_it(ada, web, remember):
    fill(ada, remember)

    answer = web.post(f"{page_of(ada)}preview/", {"message": MESSAGE})

    text = answer.content.decode()
    assert "<html" in text
    assert 'id="preview-block"' in text
    assert MESSAGE in text


# --- on whose memories -------------------------------------------------------------------


def test_own_identities_and_the_demos_people_are_offered_nobody_else(ada, grace, web, remember):
    for user_id in ("ming", "bob", "tom"):
        remember(ada, user_id, "tea")
    demo.load_demo(now=NOW)
    atlas = Agent.objects.named("atlas")

    def offered(agent):
        subjects = web.get(page_of(agent)).context["preview"]["subjects"]
        return [(each.user_id, each.kind) for each in subjects]

    assert offered(ada) == [("ming", "own")]
    assert offered(grace) == []
    assert offered(atlas) == [("tom", "demo"), ("meilin", "demo")]
    remember(atlas, "ming", "tea")
    assert offered(atlas)[0] == ("ming", "own")


def test_who_bears_the_name_of_a_demo_user_is_none(ada, web, remember):
    atlas = Agent.objects.create_agent("atlas", backend="sqlite")
    remember(atlas, "tom", "tea")

    assert web.get(page_of(atlas)).context["preview"]["subjects"] == []


def test_nobody_to_try_it_on_is_said_with_what_to_do(ada, web):
    text = web.get(page_of(ada), headers={"accept-language": "en"}).content.decode()

    assert "Nobody to try it on" in text
    assert 'id="try-message"' not in text


def test_anybody_elses_memories_stay_closed(ada, web, remember):
    fill(ada, remember, "ming")
    fill(ada, remember, "bob")

    answer = try_message(web, ada, user_id="bob")

    assert "found" not in answer.context["preview"]
    assert "Deploy" not in answer.content.decode()
    refused = web.post(f"{page_of(ada)}reason/", {"user_id": "bob", "reason": REASON})
    assert refused.status_code == 403
    assert not AuditEntry.objects.exists()


def test_a_reader_tries_for_a_reason_and_whoever_it_is_sees_that(agent, reader, remember):
    fill(agent, remember)
    ming = make_operator("ming", "ming")
    page = page_of(agent)

    before = try_message(reader, agent, user_id="ming")
    answer = reader.post(f"{page}reason/", {"user_id": "ming", "reason": REASON})
    shown = try_message(reader, agent, user_id="ming")

    assert "found" not in before.context["preview"]
    assert answer.status_code == 302
    assert len(shown.context["preview"]["found"].hits) == 5
    [entry] = audit.reads_about(ming)
    assert (entry.action, entry.reason, entry.count) == ("content_tried", REASON, 8)
    assert reader.get(page).context["preview"]["subject"].user_id == "ming"


def test_a_reason_must_say_something_and_the_user_must_be_known(ada, reader, remember):
    fill(ada, remember)

    for values in ({"user_id": "ming", "reason": "curious"}, {"user_id": "x", "reason": REASON}):
        answer = reader.post(f"{page_of(ada)}reason/", values)
        assert answer.status_code == 422
        assert answer.context["preview"]["reason"].errors
    assert not AuditEntry.objects.exists()


def test_a_reason_counts_for_its_time_its_agent_and_its_reader(ada, grace, reader, remember):
    for agent in (ada, grace):
        fill(agent, remember)
    reader.post(f"{page_of(ada)}reason/", {"user_id": "ming", "reason": REASON})

    def sees(agent):
        return "found" in try_message(reader, agent, user_id="ming").context["preview"]

    assert sees(ada)
    assert not sees(grace)
    AuditEntry.objects.update(created_at=timezone.now() - audit.READING_TIME - timedelta(seconds=1))
    assert not sees(ada)
    reader.post(f"{page_of(ada)}reason/", {"user_id": "ming", "reason": REASON})
    reader.force_login(make_operator("rob", may_read=True))
    assert not sees(ada)


def test_what_is_in_the_trash_is_not_given(ada, web, remember):
    memory = remember(ada, "ming", "Ming deploys on Fridays")
    remember(ada, "ming", "Ming likes tea")
    memories.trash(ada, "ming", memory.pk, actor=MING, now=NOW)

    assert try_message(web, ada, "deploys on Fridays").context["preview"]["found"].hits == ()


def test_a_silent_store_is_said_and_the_settings_are_there(ada, web, monkeypatch):
    def fail(*args, **kwargs):
        raise DatabaseError("gone")

    monkeypatch.setattr(previewing, "find_subjects", fail)

    assert web.get(page_of(ada)).context["preview"]["is_silent"]
    assert try_message(web, ada).context["preview"]["is_silent"]
