"""What a store holds, looked at past the services."""

from django.db import connections

from memory.analyzer import encode_term, scope_key
from memory.databases import store_alias
from memory.fts import VOCABULARY, document_counts, index_fault
from memory.models import Memory, MemoryRevision, MemoryTerms, MemoryVector, Scope, Store


def rows_of(agent, memory):
    """Return every row of a memory, and its scope's."""
    alias = store_alias(agent)
    return [
        list(model.objects.using(alias).filter(**{key: value}).order_by("pk").values())
        for model, key, value in (
            (Memory, "pk", memory.pk),
            (MemoryTerms, "memory_id", memory.pk),
            (MemoryVector, "memory_id", memory.pk),
            (MemoryRevision, "memory_id", memory.pk),
            (Scope, "pk", memory.scope_id),
        )
    ]


def row_counts(agent):
    """Return how many rows each table of the agent's store has, of whatever agent."""
    alias = store_alias(agent)
    models = (Memory, MemoryTerms, MemoryVector, MemoryRevision, Scope, Store)
    return {model.__name__: model.objects.using(alias).count() for model in models}


def terms_left(agent, *words):
    """Return how often `words` stand in the store: in index rows and in the index itself."""
    alias = store_alias(agent)
    keys = [scope_key(pk) for pk in Scope.objects.using(alias).values_list("pk", flat=True)]
    encoded = [encode_term(word, key) for key in keys for word in words]
    rows = MemoryTerms.objects.using(alias).values_list("terms", flat=True)
    in_rows = sum(term in terms.split(" ") for terms in rows for term in encoded)
    return in_rows + sum(document_counts(encoded, alias).values() if encoded else [])


def is_index_empty(agent):
    """Return whether the index has no term at all; on MySQL, whether no row has one."""
    alias = store_alias(agent)
    if connections[alias].vendor == "sqlite":
        with connections[alias].cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {VOCABULARY}")
            if cursor.fetchone()[0]:
                return False
    return not MemoryTerms.objects.using(alias).exists()


def assert_consistent(agent):
    """Assert that scopes count what is indexed, and that all but the trash is indexed."""
    alias = store_alias(agent)
    assert index_fault(connections[alias]) is None
    for scope in Scope.objects.for_agent(agent):
        rows = list(MemoryTerms.objects.of_scope(scope))
        kept = Memory.objects.of_scope(scope).kept().values_list("pk", flat=True)
        assert {row.memory_id for row in rows} == set(kept)
        vectors = list(MemoryVector.objects.of_scope(scope))
        assert {row.memory_id for row in vectors} == set(kept)
        assert all(row.stamp <= scope.vector_stamp for row in vectors)
        assert scope.memory_count == len(rows)
        assert scope.content_terms == sum(row.content_terms for row in rows)
        held = [set(row.terms.split()) for row in rows]
        words = sorted(set().union(*held))
        expected = {word: sum(word in each for each in held) for word in words}
        assert (document_counts(words, alias) if words else {}) == expected
