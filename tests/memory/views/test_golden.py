"""The tab of golden questions: who sees and asks what, and what it says."""

import pytest
from django.utils import timezone

from agents.models import Agent, AuditAction, AuditEntry
from memory.errors import BackendUnavailable
from memory.models import GoldenQuestion, GoldenRun, Job
from memory.services import demo, job_kinds, memories
from memory.services.demo import load_demo
from memory.services.golden import asking, questions
from memory.services.golden.questions import parse
from memory.services.writing import SYSTEM
from tests.conftest import NOW, make_agent
from tests.memory.views.operators import htmx, make_operator

FRIDAY = "Opal deploys on Fridays"
SECRET = "When does Bob see the doctor?"
REASON = "Bob asked why it forgot Mondays"


@pytest.fixture
def opal(db, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    return make_operator("opal", "opal")


@pytest.fixture
def web(client, opal):
    client.force_login(opal)
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    return client


@pytest.fixture
def mind(agent, remember):
    agent.friday = remember(agent, "opal", FRIDAY, name="Deploy day")
    remember(agent, "bob", "Bob sees Dr Wu on Mondays", name="Doctor")
    return agent


def tab(agent, rest=""):
    return f"/agents/{agent.name}/golden/{rest}"


def keep(agent, user_id="opal", question="When does Opal deploy?", **lines):
    draft = parse({"user_id": user_id, "question": question, **lines})
    return questions.add(agent, draft, now=timezone.now())


def words(answer):
    return " ".join(answer.content.decode().split())


def test_empty_tab_teaches_what_to_do(web, mind):
    said = words(web.get(tab(mind)))

    assert "No question yet" in said
    assert tab(mind, "new/") in said
    assert "Ask all" not in said
    assert "No run yet" in words(web.get(tab(mind, "runs/")))


def test_question_is_kept_asked_and_shown_with_its_rank(web, mind):
    form = {"user_id": "opal", "question": "When does Opal deploy?", "expected": "friday",
            "unwanted": "coffee"}  # fmt: skip
    assert web.post(tab(mind, "new/"), form).url == tab(mind)
    assert "not asked yet" in words(web.get(tab(mind)))

    answer = htmx(web, tab(mind, "ask/"), {"mode": "hybrid"})

    said = words(answer)
    assert "1 of 1 passed." in answer.headers["HX-Trigger"]
    assert "number 1" in said
    assert 'value="hybrid" selected' in said
    assert "<html" not in said
    assert GoldenRun.objects.get().account_id == web.get(tab(mind)).wsgi_request.user.pk


def test_without_script_it_is_asked_and_said_on_the_next_page(web, mind):
    keep(mind, expected="friday\noolong", unwanted="deploy day")

    answer = web.post(tab(mind, "ask/"), {"mode": "auto"}, follow=True)

    said = words(answer)
    assert "0 of 1 passed." in said
    assert "not found" in said
    assert "failed" in said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"user_id": "zoe"}, "knows nobody"),
        ({"user_id": "bob"}, "somebody else"),
        ({"question": " "}, "required"),
        ({"question": "a" * 2_001}, "2000"),
        ({"unwanted": "Friday"}, "cannot be expected and unwanted"),
        ({"expected": "x\n" + "\n".join(map(str, range(30)))}, "At most 20 lines"),
    ],
)
def test_what_cannot_be_kept_comes_back_with_what_was_typed(web, mind, values, said):
    form = {"user_id": "opal", "question": "When?", "expected": "friday", **values}

    answer = web.post(tab(mind, "new/"), form)

    assert answer.status_code == 422
    assert said in words(answer)
    assert form["expected"].splitlines()[0] in words(answer)
    assert not GoldenQuestion.objects.exists()


def test_question_is_edited_and_its_result_is_then_of_another(web, mind):
    question = keep(mind, expected="friday")
    web.post(tab(mind, "ask/"), {"mode": "auto"})
    page = tab(mind, f"{question.pk}/")
    assert "When does Opal deploy?" in words(web.get(page))

    assert web.post(page, {"user_id": "opal", "question": "", "expected": ""}).status_code == 422
    answer = web.post(page, {"user_id": "opal", "question": "Whither?"}, follow=True)

    assert "Whither?" in words(answer)
    assert "changed since" in words(answer)
    assert web.get(tab(mind, "999999/")).status_code == 404


def test_question_of_another_agent_is_not_there(web, mind):
    other = make_agent("other", "sqlite")
    question = keep(mind)

    for rest in ("", "delete/"):
        assert web.post(tab(other, f"{question.pk}/{rest}")).status_code == 404
    web.post(tab(other, f"{question.pk}/restore/"))
    assert GoldenQuestion.objects.get().agent_id == mind.pk


def test_deleting_is_undone(web, mind):
    question = keep(mind)

    answer = htmx(web, tab(mind, f"{question.pk}/delete/"))

    assert "No question yet" in words(answer)
    undo = tab(mind, f"{question.pk}/restore/")
    assert undo in answer.headers["HX-Trigger"]
    assert question.question in words(htmx(web, undo))
    web.post(tab(mind, f"{question.pk}/delete/"))
    assert question.question in words(web.post(undo, follow=True))


# --- somebody else's -------------------------------------------------------------------


def test_what_is_somebody_elses_is_neither_shown_nor_asked(web, mind):
    keep(mind, "bob", SECRET, expected="Dr Wu")

    page = words(web.get(tab(mind)))
    answer = htmx(web, tab(mind, "ask/"), {"mode": "auto"})

    assert SECRET not in page
    assert "Dr Wu" not in page
    assert "you may not read contents" in page
    assert "may be asked" in answer.headers["HX-Trigger"]
    assert not GoldenRun.objects.exists()
    edit = tab(mind, f"{GoldenQuestion.objects.get().pk}/")
    assert web.get(edit).url == tab(mind)
    assert web.post(edit, {"user_id": "opal", "question": "x"}).url == tab(mind)
    assert GoldenQuestion.objects.get().question == SECRET
    assert web.post(tab(mind, "reason/"), {"reason": REASON}).status_code == 403


def test_reason_opens_them_and_is_recorded_with_what_came(client, mind, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    client.force_login(make_operator("rita", may_read=True))
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    keep(mind, "bob", SECRET, expected="Dr Wu")
    assert SECRET not in words(client.get(tab(mind)))
    assert client.post(tab(mind, "reason/"), {"reason": "why"}).status_code == 422

    page = words(client.post(tab(mind, "reason/"), {"reason": REASON}, follow=True))
    client.post(tab(mind, "ask/"), {"mode": "auto"})

    assert SECRET in page
    [entry] = AuditEntry.objects.filter(action=AuditAction.CONTENT_TRIED)
    assert (entry.user_id, entry.reason, entry.actor_name, entry.count) == (
        "bob",
        REASON,
        "rita",
        1,
    )
    assert GoldenRun.objects.get().passed == 1


def test_question_about_somebody_else_wants_a_reason_first(client, mind, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    client.force_login(make_operator("rita", may_read=True))
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    form = {"user_id": "bob", "question": SECRET, "expected": "Dr Wu"}

    refused = client.post(tab(mind, "new/"), form)
    assert refused.status_code == 422
    assert 'name="reason"' in words(refused)
    assert not GoldenQuestion.objects.exists()
    kept = client.post(tab(mind, "new/"), {**form, "reason": REASON})

    assert kept.status_code == 302
    assert AuditEntry.objects.get(action=AuditAction.CONTENT_TRIED).user_id == "bob"
    assert GoldenQuestion.objects.get().question == SECRET


@pytest.mark.django_db(transaction=True, databases="__all__")
def test_demo_people_are_asked_without_a_reason(web):
    load_demo(now=NOW)
    agent = next(each for each in Agent.objects.all() if demo.demo_users(each))
    keep(agent, demo.demo_users(agent)[0], "quantum chromodynamics")

    answer = htmx(web, tab(agent, "ask/"), {"mode": "auto"})

    assert "1 of 1 passed." in answer.headers["HX-Trigger"]


# --- many, and compared ----------------------------------------------------------------


def test_many_questions_are_asked_by_a_job(web, mind, monkeypatch):
    monkeypatch.setattr(asking, "AT_ONCE", 1)
    monkeypatch.setattr("memory.views.agents.golden.AT_ONCE", 1)
    for number in range(2):
        keep(mind, question=f"When does Opal deploy {number}?", expected="friday")

    answer = htmx(web, tab(mind, "ask/"), {"mode": "auto"})

    job = Job.objects.get(kind="golden")
    assert "every 2s" in words(answer)
    assert f"/jobs/{job.pk}/" in words(answer)
    assert "every 2s" in words(htmx(web, tab(mind), method="get"))
    job_kinds.perform(job.pk)
    done = words(htmx(web, tab(mind), method="get"))
    assert "every 2s" not in done
    assert "2 of 2" in done
    assert "2 questions passed" in words(web.get(f"/jobs/{job.pk}/"))


def test_job_that_failed_is_said(web, mind):
    question = keep(mind, expected="friday")
    account = web.get(tab(mind)).wsgi_request.user
    job = asking.request(mind, "auto", [question], account_id=account.pk, now=timezone.now())
    Job.objects.filter(pk=job.pk).update(state="failed", active_key=None)

    assert "could not be asked" in words(web.get(tab(mind)))


def test_runs_are_compared(web, mind):
    keep(mind, expected="friday")
    web.post(tab(mind, "ask/"), {"mode": "auto"})
    assert "Before and after" not in words(web.get(tab(mind, "runs/")))
    memories.trash(mind, "opal", mind.friday.pk, actor=SYSTEM, now=NOW)
    web.post(tab(mind, "ask/"), {"mode": "auto"})

    page = web.get(tab(mind, "runs/"))
    old, new = GoldenRun.objects.order_by("pk")
    turned = web.get(tab(mind, f"runs/?old={new.pk}&new={old.pk}"))
    same = web.get(tab(mind, f"runs/?old={new.pk}&new={new.pk}"))

    assert "fails now" in words(page)
    assert "passed · found at 1" in words(page)
    assert "passes again" in words(turned)
    assert "Choose two different runs" in words(same)
    assert web.get(tab(mind, "runs/?old=x&new=99999")).status_code == 200


def test_playground_leads_to_a_form_that_is_filled(web, mind):
    form = {"agent": mind.name, "user_id": "opal", "query": "When does <Opal> deploy?",
            "asked": "query", "threshold": "0.22"}  # fmt: skip
    said = words(web.post("/playground/", form))
    assert tab(mind, "new/") in said
    assert 'value="Deploy day' in said

    kept = {"keep": "1", "user_id": "opal", "question": form["query"], "expected": "Deploy day\n"}
    answer = web.post(tab(mind, "new/"), kept)

    assert answer.status_code == 200
    assert "When does &lt;Opal&gt; deploy?" in words(answer)
    assert not GoldenQuestion.objects.exists()


def test_silent_store_is_said(web, mind, monkeypatch):
    keep(mind, expected="friday")

    def fail(*args, **kwargs):
        raise BackendUnavailable("The store is down.")

    monkeypatch.setattr("memory.services.demo.demo_users", fail)
    monkeypatch.setattr("memory.services.recall.search", fail)

    assert "nothing can be asked now" in words(web.get(tab(mind)))
    answer = htmx(web, tab(mind, "ask/"), {"mode": "auto"})
    assert "nothing was asked" in answer.headers["HX-Trigger"]
    assert not GoldenRun.objects.exists()
