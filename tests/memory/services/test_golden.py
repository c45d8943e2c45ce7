"""Golden questions: what counts as passed, what is kept, and what is gone when it must be."""

from datetime import timedelta

import pytest

from agents import audit
from agents.models import AuditAction, AuditEntry
from memory.models import GoldenQuestion, GoldenRun, Job, Memory
from memory.retrieval.calibration import MIN_SCORE
from memory.services import job_kinds, memories, receipts
from memory.services.figures import recall_counts
from memory.services.golden import access, asking, comparing, questions
from memory.services.golden.asking import NothingToAsk, ask, ask_all
from memory.services.golden.questions import Draft, InvalidQuestion, parse
from memory.services.library import Shelf
from memory.services.writing import SYSTEM
from tests.conftest import NOW
from tests.memory.views.operators import make_operator

FRIDAY = "Ming deploys on Fridays"
TEA = "Drinks green tea at four"


@pytest.fixture
def mind(agent, remember):
    """An agent that knows two things about ming."""
    agent.friday = remember(agent, "ming", FRIDAY, name="Deploy day")
    agent.tea = remember(agent, "ming", TEA, name="Tea")
    return agent


def keep(agent, question="When does Ming deploy?", *, user_id="ming", **lines):
    draft = parse({"user_id": user_id, "question": question, **lines})
    return questions.add(agent, draft, now=NOW)


def asked_of(agent, mode="lexical", **more):
    return ask_all(agent, mode, list(questions.of_agent(agent)), now=NOW, **more)


# --- what is written down --------------------------------------------------------------


def test_lines_are_trimmed_and_told_apart():
    draft = parse(
        {"user_id": "ming", "question": " When? ", "expected": " Friday \r\n\n12\nFriday",
         "unwanted": ["tea", 7]}
    )  # fmt: skip

    assert draft == Draft("ming", "When?", ("Friday", "12"), ("tea", "7"))


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("user_id", {"user_id": ""}),
        ("user_id", {"user_id": 7}),
        ("user_id", {"user_id": "m" * 256}),
        ("question", {"question": " \n"}),
        ("question", {"question": None}),
        ("question", {"question": "a" * 2_001}),
        ("expected", {"expected": "\n".join(map(str, range(21)))}),
        ("expected", {"expected": "a" * 501}),
        ("expected", {"expected": {"a": 1}}),
        ("expected", {"expected": [["a"]]}),
        ("unwanted", {"unwanted": "\u200b"}),
        ("unwanted", {"expected": "Ｔｅａ", "unwanted": "tea"}),
    ],
)
def test_what_cannot_be_asked_is_refused_by_field(field, values):
    with pytest.raises(InvalidQuestion) as refused:
        parse({"user_id": "ming", "question": "When?", **values})

    assert refused.value.field == field


def test_an_agent_has_no_more_than_so_many(ada, monkeypatch):
    monkeypatch.setattr(questions, "MAX_QUESTIONS", 1)
    keep(ada)

    with pytest.raises(InvalidQuestion):
        keep(ada)


# --- what passes -----------------------------------------------------------------------


def test_question_passes_by_words_or_by_id_whatever_the_case(mind):
    for line in ("DEPLOYS  on ｆridays", "deploy DAY", str(mind.friday.pk)):
        draft = Draft("ming", "When does Ming deploy?", (line,))

        answer = ask(mind, draft, "lexical", now=NOW)

        assert (answer.passed, answer.expected, answer.beyond) == (True, (1,), (None,)), line


def test_question_fails_on_what_is_missing_and_on_what_is_unwanted(mind):
    missing = Draft("ming", "When does Ming deploy?", ("Thursday",))
    unwanted = Draft("ming", "When does Ming deploy?", ("Friday",), ("deploy",))

    assert not ask(mind, missing, "lexical", now=NOW).passed
    answer = ask(mind, unwanted, "lexical", now=NOW)
    assert (answer.passed, answer.expected, answer.unwanted) == (False, (1,), (1,))


def test_where_nothing_is_expected_only_silence_passes(mind):
    loud = ask(mind, Draft("ming", "When does Ming deploy?"), "lexical", now=NOW)
    silent = ask(mind, Draft("ming", "quantum chromodynamics"), "lexical", now=NOW)

    assert (loud.passed, silent.passed, silent.hits) == (False, True, ())


def test_what_the_limit_or_the_threshold_keeps_out_is_told(mind, remember):
    remember(mind, "ming", "Ming deploys on Fridays with Bob, when does Ming deploy?")
    draft = Draft("ming", "When does Ming deploy?", ("Deploy day",))
    mind.memory_config.prefetch_limit = 1

    assert ask(mind, draft, "lexical", now=NOW).beyond == (2,)

    mind.memory_config.prefetch_limit, mind.memory_config.min_score = 5, 1.0
    answer = ask(mind, draft, "lexical", now=NOW)
    assert (answer.passed, answer.beyond) == (False, (2,))


def test_another_user_and_another_agent_are_not_asked(mind, remember):
    remember(mind, "bob", "Bob deploys on Mondays")

    answer = ask(mind, Draft("bob", "When does Ming deploy?", ("Friday",)), "lexical", now=NOW)

    assert (answer.passed, answer.beyond) == (False, (None,))


def test_asking_leaves_no_trace(mind):
    keep(mind, expected="Friday")

    asked_of(mind)

    assert not recall_counts._pending
    found = Memory.objects.for_agent(mind)
    assert set(found.values_list("access_count", "last_accessed_at")) == {(0, None)}


# --- runs ------------------------------------------------------------------------------


def test_run_holds_numbers_only(mind):
    question = keep(mind, expected="Friday\nThursday", unwanted="tea")

    run = asked_of(mind, account_id=7)

    run.refresh_from_db()
    assert (run.passed, run.failed, run.mode, run.account_id) == (0, 1, "lexical", 7)
    assert run.p95_ms >= run.p50_ms > 0
    assert run.settings["threshold"] == MIN_SCORE
    [result] = run.results
    assert result == {
        "question": question.pk, "mark": result["mark"], "passed": False,
        "came": [mind.friday.pk], "expected": [1, None], "beyond": [None, None],
        "unwanted": [None],
    }  # fmt: skip
    assert isinstance(result["mark"], int)


def test_latest_runs_are_kept(mind, monkeypatch):
    monkeypatch.setattr(asking, "KEPT_RUNS", 2)
    keep(mind, expected="Friday")

    made = [asked_of(mind).pk for _ in range(3)]

    assert [run.pk for run in comparing.runs_of(mind)] == [made[2], made[1]]


def test_nothing_to_ask_makes_no_run(ada):
    with pytest.raises(NothingToAsk):
        asked_of(ada)

    assert not GoldenRun.objects.exists()


def test_comparison_tells_what_broke_what_was_mended_and_what_moved(mind, remember):
    breaks, mends, moves, same, changes = (
        keep(mind, "green tea", expected="green tea"),
        keep(mind, "Does Ming drink oolong?", expected="oolong"),
        keep(mind, "When does Ming deploy?", expected="Deploy day"),
        keep(mind, "quantum chromodynamics"),
        keep(mind, "Ming deploys", expected="Friday"),
    )
    before = asked_of(mind)
    memories.trash(mind, "ming", mind.tea.pk, actor=SYSTEM, now=NOW)
    remember(mind, "ming", "Ming likes oolong")
    remember(mind, "ming", "When does Ming deploy? Ming says")
    questions.edit(changes, Draft("ming", "Ming deploys", ("Deploy day",)))
    added = keep(mind, "Fridays", expected="Friday")
    after = asked_of(mind)

    found = comparing.compare(mind, before, after)

    assert {each.question_id: each.turn for each in found} == {
        breaks.pk: "broken", mends.pk: "mended", moves.pk: "moved", same.pk: "same",
        changes.pk: "changed", added.pk: "added",
    }  # fmt: skip
    assert found[0].question == breaks
    ranks = {each.question_id: (each.before, each.after) for each in found}[moves.pk]
    assert [result["expected"] for result in ranks] == [[1], [2]]


# --- deleting, restoring, erasing ------------------------------------------------------


def test_deleted_question_can_be_put_back_for_a_while(ada, grace):
    question = keep(ada)
    other = keep(ada, "Another?")

    assert questions.delete(question, now=NOW)

    assert list(questions.of_agent(ada)) == [other]
    assert not questions.restore(grace, question.pk, now=NOW)
    assert questions.restore(ada, question.pk, now=NOW + timedelta(minutes=5))
    assert list(questions.of_agent(ada)) == [question, other]

    questions.delete(question, now=NOW)
    later = NOW + questions.UNDO_TIME
    assert not questions.restore(ada, question.pk, now=later)
    assert questions.purge(now=later) == 1
    assert list(GoldenQuestion.objects.all()) == [other]


def test_erasing_a_user_takes_questions_and_results_along(mind, remember):
    remember(mind, "bob", "Bob deploys on Mondays")
    mine = keep(mind, expected="Friday")
    deleted = keep(mind, "Tea?", expected="tea")
    his = keep(mind, "When does Bob deploy?", user_id="bob", expected="Monday")
    both, only_mine = asked_of(mind), ask_all(mind, "lexical", [mine], now=NOW)
    questions.delete(deleted, now=NOW)
    scope = mind.friday.scope

    job = receipts.request_erasure_of("ming", [Shelf(mind, "ming", scope)], asked_by=1, now=NOW)
    job_kinds.perform(job.pk)

    job.refresh_from_db()
    assert job.state == "done", job.error
    assert list(GoldenQuestion.objects.all()) == [his]
    both.refresh_from_db()
    assert [result["question"] for result in both.results] == [his.pk]
    assert (both.passed, both.failed) == (1, 0)
    assert not GoldenRun.objects.filter(pk=only_mine.pk).exists()


def test_deleting_an_agent_takes_questions_and_runs_along(mind):
    questions.delete(keep(mind, "Tea?"), now=NOW)
    keep(mind, expected="Friday")
    asked_of(mind)

    mind.delete()

    assert not GoldenQuestion.objects.exists()
    assert not GoldenRun.objects.exists()


# --- by a job, and by whom -------------------------------------------------------------


def test_job_asks_and_holds_no_text(mind):
    question = keep(mind, expected="Friday")
    gone = keep(mind, "Tea?", expected="tea")

    job = asking.request(mind, "lexical", [question, gone], account_id=7, now=NOW)
    questions.delete(gone, now=NOW)
    job_kinds.perform(job.pk)

    job.refresh_from_db()
    [run] = GoldenRun.objects.all()
    assert (job.state, job.result) == ("done", {"run": run.pk, "asked": 1, "passed": 1})
    assert "ming" not in str(Job.objects.values().get(pk=job.pk))


def test_job_without_a_question_left_fails(mind):
    question = keep(mind, expected="Friday")
    job = asking.request(mind, "lexical", [question], account_id=7, now=NOW)
    questions.delete(question, now=NOW)

    with pytest.raises(NothingToAsk):
        job_kinds.perform(job.pk)


def test_what_may_be_asked_is_ones_own_and_what_a_reason_was_given_for(mind, remember):
    opal = make_operator("opal", "opal", may_read=True)
    blind = make_operator("blind")
    action = AuditAction.CONTENT_TRIED
    for account in (opal, blind):
        audit.note_content_read(account, mind, "ming", reason="x" * 10, now=NOW, action=action)

    found = access.access_of(opal, mind, now=NOW)

    assert [found.opens(user) for user in ("opal", "ming", "bob")] == [True, True, False]
    assert not access.access_of(blind, mind, now=NOW).opens("ming")
    later = NOW + audit.READING_TIME
    assert not access.access_of(opal, mind, now=later).opens("ming")


def test_how_many_were_shown_is_added_to_the_record(mind):
    opal = make_operator("opal", may_read=True)
    action = AuditAction.CONTENT_TRIED
    entry = audit.note_content_read(opal, mind, "ming", reason="x" * 10, now=NOW, action=action)
    keep(mind, expected="Friday")
    keep(mind, "green tea", expected="tea")
    opened = access.access_of(opal, mind, now=NOW)

    asked_of(mind, readings=opened.used_for(questions.of_agent(mind)))

    assert AuditEntry.objects.get(pk=entry.pk).count == 2
