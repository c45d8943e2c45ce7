"""What operators are told of vectors that are not there."""

from contextlib import suppress
from datetime import timedelta

from django.utils import timezone

from memory.databases import store_alias
from memory.llm.embeddings import EmbeddingFailed
from memory.models import MemoryVector
from memory.services import backlog, job_kinds, jobs
from memory.services.health import metrics, survey
from memory.services.health.findings import State


def embed(now=None):
    job = jobs.enqueue("embed", now=now or timezone.now())
    with suppress(EmbeddingFailed):
        job_kinds.perform(job.pk)
    return job


def report_of(client):
    return client.get("/system/").context["report"]


def test_without_a_model_that_is_said_and_nothing_is_wrong(ada, olga, remember):
    remember(ada, "ming", "Ming deploys on Fridays")

    answer = olga.get("/system/")

    assert answer.context["report"].state == State.OK
    assert "none: searches go by words alone" in answer.content.decode()


def test_what_was_just_saved_may_wait_a_while(agent, olga, letters, remember):
    now = timezone.now()
    remember(agent, "ming", "Ming deploys on Fridays", now=now)

    report = report_of(olga)

    assert (report.meaning.state, report.without_vector.total) == (State.OK, 1)
    assert survey.look(now=now + timedelta(minutes=6)).meaning.state == State.REDUCED
    embed()
    assert report_of(olga).without_vector.total == 0


def test_a_model_that_is_down_is_told_with_what_it_says(agent, olga, letters, remember):
    now = timezone.now()
    remember(agent, "ming", "Ming deploys on Fridays", now=now)
    remember(agent, "ming", "Ming drinks tea", now=now)
    letters.is_down = True
    job = embed(now)

    meaning = report_of(olga).meaning

    assert meaning.state == State.REDUCED
    assert str(meaning.reason).startswith("The model says: The model says no. 2 memories are found")
    assert "embed_memories" in str(meaning.mend)
    letters.is_down = False
    job_kinds.perform(job.pk)
    assert report_of(olga).state == State.OK


def test_texts_that_are_refused_are_told(agent, olga, letters, remember):
    remember(agent, "ming", "note", now=timezone.now(), name="note")
    letters.refused = {"note"}
    embed()

    answer = olga.get("/system/")

    meaning = answer.context["report"].meaning
    assert str(meaning.reason).startswith("The model refuses the text of 1 memory")
    assert "--again" in str(meaning.mend)
    assert "Refused by the model" in answer.content.decode()


def test_a_new_model_leaves_all_to_be_made_anew(agent, olga, letters, remember):
    remember(agent, "ming", "Ming deploys on Fridays")
    embed()
    letters.model = "another"

    report = report_of(olga)

    assert str(report.meaning.reason).startswith("1 memory has no vector of this model yet")


def test_metrics_tell_them_by_store(ada, grace, letters, remember):
    for agent in (ada, grace):
        remember(agent, "ming", "Ming deploys on Fridays")
    remember(grace, "ming", "note", name="note")
    letters.refused = {"note"}
    embed()
    remember(ada, "bob", "Bob drinks tea")

    lines = metrics.render(survey.look(now=timezone.now())).splitlines()

    assert 'hippo_vectors_waiting{store="sqlite:memory.db"} 1' in lines
    assert 'hippo_vectors_waiting{store="mysql"} 1' in lines
    assert 'hippo_vectors_refused{store="mysql"} 1' in lines
    assert 'hippo_part_state{part="meaning"} 1' in lines


def test_the_agents_page_says_how_many_have_a_vector(agent, olga, letters, remember):
    other = type(agent).objects.create_agent("eve", backend=agent.memory_config.backend)
    path = f"/agents/{agent.name}/"
    assert "a vector" not in olga.get(path).content.decode()
    for number in range(3):
        remember(agent, "ming", f"note {number}", name=f"note {number}")
    embed()
    remember(agent, "bob", "Bob drinks tea")
    remember(other, "bob", "Bob drinks tea")

    page = olga.get(path).content.decode()

    assert "3 of 4 memories have a vector." in page
    rows = MemoryVector.objects.using(store_alias(agent))
    assert rows.filter(model="").count() == 2
    assert jobs.find(backlog.latest_job().pk).state == "done"
