"""What is found of what is remembered already, and what a save does about it."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connections

from memory import fts
from memory.databases import store_alias
from memory.llm.embeddings import embedded_model
from memory.models import Memory, MemoryVector, Scope
from memory.services import duplicates, memories
from memory.services.naming import save_named
from tests.conftest import MING, NOW
from tests.memory.rows import assert_consistent

FRIDAY = "Ming deploys the payment module on Fridays."


def scope_of(agent, user_id="ming"):
    return Scope.objects.of_user(agent, user_id).get()


def look(agent, content, user_id="ming", **options):
    return duplicates.find(scope_of(agent, user_id), content, now=NOW, **options)


def save(agent, user_id="ming", **values):
    return save_named(agent, user_id, values, actor=MING, now=NOW)


def test_a_repetition_is_exact_and_an_update_only_alike(agent, remember):
    friday = remember(agent, "ming", FRIDAY)
    remember(agent, "ming", "Grace manages billing")
    remember(agent, "bob", FRIDAY)

    [exact] = look(agent, "ming deploys the payment module on fridays")
    [same] = look(agent, "Ming really deploys the payment module on Friday")
    [alike] = look(agent, "Ming deploys the payment module on Mondays.")

    assert exact.memory.pk == same.memory.pk == alike.memory.pk == friday.pk
    assert (exact.is_exact, exact.is_same, exact.likeness) == (True, True, 1.0)
    assert (same.is_exact, same.is_same) == (False, True)
    assert (alike.is_exact, alike.is_same) == (False, False)
    assert duplicates.likeness.SIMILAR <= alike.likeness < 1
    assert look(agent, "Kumquats are ripe") == ()
    assert look(agent, FRIDAY, exclude=friday.pk) == ()


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ("小林的生日是12月3日", "小林的生日是12月5日"),
        ("Ming writes C++", "Ming writes C#"),
        ("The price is 1.5 euros", "The price is 15 euros"),
        ("用户喜欢喝乌龙茶", "用户不喜欢喝乌龙茶"),
    ],
)
def test_what_differs_in_a_sign_a_number_or_a_negation_is_another(agent, kept, said):
    save(agent, content=kept)

    assert save(agent, content=said)[1] == "created"
    assert not any(each.is_same for each in look(agent, said, exclude=max_id(agent)))


def max_id(agent):
    return max(memory.pk for memory in memories.walk(agent, "ming"))


def test_the_trash_and_what_has_expired_are_no_duplicates(agent, remember):
    trashed = remember(agent, "ming", FRIDAY)
    memories.trash(agent, "ming", trashed.pk, actor=MING, now=NOW)
    remember(agent, "ming", FRIDAY, expires_at=NOW - timedelta(days=1))

    assert look(agent, FRIDAY) == ()
    assert save(agent, content=FRIDAY)[1] == "created"
    paused = memories.update(
        agent, "ming", max_id(agent), {"status": "paused"}, actor=MING, now=NOW
    )
    assert [each.memory.pk for each in look(agent, FRIDAY)] == [paused.pk]


# field case C030
def test_the_same_saved_again_is_known_and_never_lost(agent):
    texts = [
        "Dogs descend from wolves.",
        "dogs descend from wolves",
        " Dogs descend from wolves.  ",
    ]

    done = [save(agent, content=text) for text in texts]

    assert [action for _, action in done] == ["created", "unchanged", "unchanged"]
    [memory] = memories.walk(agent, "ming")
    assert {each.pk for each, _ in done} == {memory.pk}
    assert (memory.content, memory.version, memory.status) == (texts[0], 1, "active")
    assert_consistent(agent)


def test_a_name_that_says_more_makes_a_memory_of_its_own(agent):
    save(agent, name="favourite colour", content="Blue, like the sea")

    known = save(agent, name="colour of the sea", content="blue like the sea")
    other = save(agent, name="colour of the car", content="Blue, like the sea")
    typed = save(agent, content="blue like the sea", type="reference")

    assert (known[1], other[1], typed[1]) == ("unchanged", "created", "created")
    assert other[0].name == "colour of the car"


def test_two_equal_saves_at_once_make_one_memory(agent):
    def one(number):
        try:
            return save(agent, content="Dogs descend from wolves" + "." * number)[1]
        finally:
            connections[store_alias(agent)].close()
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        done = sorted(pool.map(one, range(4)))

    assert done == ["created", "unchanged", "unchanged", "unchanged"]
    assert len(list(memories.walk(agent, "ming"))) == 1


def test_a_common_text_is_sought_among_the_newest(agent, remember, monkeypatch):
    monkeypatch.setattr(duplicates, "HOLDERS", 2)
    kept = [
        remember(agent, "ming", f"Ming likes tea {n}", now=NOW + timedelta(n)) for n in range(5)
    ]

    found = look(agent, "Ming likes tea 9")

    assert {each.memory.pk for each in found} <= {memory.pk for memory in kept}
    assert len(found) == 3


def test_a_look_takes_five_statements_at_most_and_reads_by_indexes(
    agent, remember, django_assert_max_num_queries
):
    for number in range(30):
        remember(agent, "ming", f"{FRIDAY} {number}")
    scope = scope_of(agent)

    with django_assert_max_num_queries(5, connection=connections[store_alias(agent)]):
        duplicates.find(scope, FRIDAY, now=NOW)

    digested = Memory.objects.using(store_alias(agent)).filter(
        embedded__scope_id=scope.pk, embedded__digest="x" * 32
    )
    assert "vector_by_digest" in fts.explain(digested)


def embed(agent, memory, model, user_id="ming"):
    rows = MemoryVector.objects.of_scope(scope_of(agent, user_id)).filter(pk=memory.pk)
    [vector] = model.embed([memory.content])
    rows.update(model=model.model, dimension=len(vector), vector=vector.astype("<f2").tobytes())


def test_vectors_that_are_there_tell_a_paraphrase(agent, remember, settings):
    settings.EMBEDDINGS = "embedded"
    model = embedded_model()
    memory = remember(agent, "ming", "The customer pays within thirty days.")
    said = "Payment terms of the customer are 30 days."
    assert look(agent, said, by_meaning=True) == ()

    embed(agent, memory, model)

    [found] = look(agent, said, by_meaning=True)
    assert (found.memory.pk, found.is_same) == (memory.pk, False)
    other = remember(agent, "ming", said)
    embed(agent, other, model)
    assert [each.memory.pk for each in look(agent, said, exclude=other.pk, by_meaning=True)] == [
        memory.pk
    ]
    assert look(agent, said, exclude=other.pk) == ()


def test_several_scopes_are_looked_through_for_a_text_that_is_embedded_once(
    agent, remember, settings, monkeypatch
):
    settings.EMBEDDINGS = "embedded"
    model = embedded_model()
    said = "Payment terms of the customer are 30 days."
    nearest = remember(agent, "bob", said)
    memory = remember(agent, "ming", "The customer pays within thirty days.")
    embed(agent, memory, model)
    other = remember(agent, "grace", "Payment terms of the customer are 60 days.")
    embed(agent, other, model, "grace")
    asked = []
    monkeypatch.setattr(
        model, "embed", lambda texts: asked.append(texts) or type(model).embed(model, texts)
    )
    scopes = [scope_of(agent, user_id) for user_id in ("ming", "grace", "bob")]

    found = duplicates.find_in(scopes, said, now=NOW, by_meaning=True)

    assert [each.memory.pk for each in found] == [nearest.pk, other.pk, memory.pk]
    assert asked == [[said]]
    assert duplicates.find_in(scopes, said, now=NOW, limit=1)[0].is_exact
    assert duplicates.find_in([], said, now=NOW) == ()
