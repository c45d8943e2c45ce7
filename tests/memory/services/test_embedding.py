"""Vectors of what was saved: made beside all else, each once, whatever the model does."""

import numpy as np
import pytest

from memory.databases import store_alias
from memory.indexing import embedding_text
from memory.llm.embeddings import EmbeddingFailed
from memory.models import Job, Memory, MemoryVector, Scope
from memory.retrieval import embedder
from memory.services import backlog, embedding, job_kinds, jobs, memories
from tests.conftest import MING, NOW


class Letters:
    """A model that counts letters."""

    def __init__(self, model="letters", dimension=8):
        self.model, self.dimension, self.asked = model, dimension, []
        self.refused, self.is_down = set(), False
        self.meanwhile = lambda: None

    def embed(self, texts):
        self.asked.append(list(texts))
        self.meanwhile()
        if self.is_down or self.refused & set(texts):
            raise EmbeddingFailed("The model says no.")
        rows = [[text.count(chr(97 + n)) + 0.5 for n in range(self.dimension)] for text in texts]
        vectors = np.array(rows, dtype=np.float32).reshape(len(rows), self.dimension)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def letters(monkeypatch):
    model = Letters()
    monkeypatch.setattr(embedder, "current", lambda: model)
    monkeypatch.setattr(backlog, "_tried", {})
    return model


def vectors_of(agent):
    """Return an agent's rows by the memory's name."""
    scopes = Scope.objects.for_agent(agent).values("pk")
    rows = MemoryVector.objects.using(store_alias(agent)).filter(scope_id__in=list(scopes.values_list("pk", flat=True)))
    return {row.memory.name: row for row in rows.select_related("memory")}


def embed(now=NOW):
    """Do the job; return it."""
    job = jobs.enqueue("embed", now=now)
    job_kinds.perform(job.pk)
    job.refresh_from_db()
    return job


def test_what_was_saved_gets_its_vector(agent, letters, remember):
    remember(agent, "ming", "Ming deploys on Fridays", name="deploys")
    remember(agent, "bob", "支付模块周五上线", name="支付")

    job = embed()

    assert (job.state, job.result) == ("done", {"embedded": 2, "refused": 0})
    assert (job.done, job.total) == (2, 2)
    for row in vectors_of(agent).values():
        expected = letters.embed([embedding_text(row.memory)]).astype("<f2").tobytes()
        assert (row.model, row.dimension, bytes(row.vector)) == ("letters", 8, expected)
        assert row.stamp == Scope.objects.using(row._state.db).get(pk=row.scope_id).vector_stamp
