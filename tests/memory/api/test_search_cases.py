"""Searches that failed in the field, over HTTP and on both engines."""

import re

import pytest

from agents.models import Agent
from memory.models import Memory, MemoryTerms, MemoryVector
from memory.services import bulk, library
from memory.services.bulk import Bulk
from tests.conftest import NOW
from tests.memory.api.client import fields_of
from tests.memory.rows import terms_left

ENGINE_WORDS = re.compile(
    r"fts5|no such column|unterminated|syntax|SELECT|MATCH|ProgrammingError|Traceback",
    re.IGNORECASE,
)


def ask(api, query, user_id="ming", **body):
    """Return the names that a search finds; it must answer 200 and tell nothing of an engine."""
    response = api.post("search/", {"user_id": user_id, "query": query, "min_score": 0, **body})
    assert response.status_code == 200, (query, response.content)
    answer = response.json()
    names = [hit["memory"]["name"] for hit in answer["results"]]
    rest = {name: value for name, value in answer.items() if name != "results"}
    assert not ENGINE_WORDS.search(str(rest))
    return names


def test_the_query_language_of_fts5_is_plain_text(api):
    """Field case C002."""
    api.save("ming", "say hi to the deploy bot", name="greeting")
    queries = [
        'say "hi', '"', "foo AND", "NOT", "NEAR(a", "name:deploy", "*", "^", "-deploy",
        "grammar::fa", "{content} : deploy", "a OR", "$X", "#123", "a@b.example",
    ]  # fmt: skip

    found = {query: ask(api, query) for query in queries}

    for query in ("name:deploy", "-deploy", "{content} : deploy", 'say "hi'):
        assert found[query] == ["greeting"], query
    # what people type into the interface is plain text to an agent
    for query in ("type:user deploy", "tag:none deploy", "before:2020 deploy", "after:x deploy"):
        assert ask(api, query) == ["greeting"], query


def test_the_operators_of_boolean_mode_are_plain_text(api):
    """Field case C004."""
    api.save("ming", "libicuio lives under opt/icu4c@78/lib", name="lib-note")

    for query in ("opt/icu4c@78/lib", "-lib", "~icu4c", "<lib>", '"opt', "icu4c -libicuio"):
        assert ask(api, query) == ["lib-note"], query
    for query in ("+++++-", "!--"):
        assert ask(api, query) == [], query


def test_identifiers_beside_chinese_and_a_query_longer_than_any_text(api):
    """Field case C006."""
    api.save("ming", "步骤2 重跑gen-itgc后50条悬空引用清零", name="m1")
    api.save("ming", "端到端测试通过", name="m2")

    for query in ("itgc", "gen-itgc", "悬空", "50条", "懸空", "ＩＴＧＣ"):
        assert ask(api, query)[0] == "m1", query
    found = ask(api, "端到端测试结果")
    assert found[0] == "m2"
    assert found.index("m2") < (found.index("m1") if "m1" in found else len(found))


def test_short_words_and_stop_words(api):
    """Field case C008."""
    api.save("ming", "Servers are in the east region", name="m1")
    api.save("ming", "Holiday in Hawaii", name="m2")

    assert ask(api, "east") == ["m1"]
    assert ask(api, "Hawaii") == ["m2"]
    ask(api, "are")
    ask(api, "in the")


@pytest.mark.parametrize("quoted", [False, True])
def test_filters_come_before_the_limit(api, quoted):
    """Field case C010; a phrase is a filter too."""
    for number in range(30):
        api.save("u1", "invoice " * 8, name=f"project {number}", type="project")
    api.save("u1", "the invoice was late", name="feedback", type="feedback", tags=["late"])
    api.save("u2", "one invoice", name="of u2")
    best = ask(api, "invoice", "u1", limit=2)
    for memory in api.listed("u1"):
        if memory["name"] in best:
            api.delete(f"memories/{memory['id']}/", user_id="u1")

    query = '"invoice"' if quoted else "invoice"
    assert ask(api, query, "u2", limit=1) == ["of u2"]
    assert ask(api, query, "u1", limit=1, type="feedback") == ["feedback"]
    assert ask(api, query, "u1", limit=1, tags=["late"]) == ["feedback"]
    assert ask(api, '"was late" invoice', "u1", limit=1) == ["feedback"]
    found = ask(api, query, "u1", limit=20)
    assert len(found) == 20
    assert not set(found) & set(best)
    assert len(ask(api, query, "u1", limit=100)) == 29


def test_wildcards_are_letters(api):
    """Field case C011."""
    for name, content in (
        ("m1", "discount is 100%"), ("m2", "count was 1000"), ("m3", "see the file_name rule"),
        ("m4", "see the fileXname rule"),
    ):  # fmt: skip
        api.save("ming", content, name=name)

    assert ask(api, "100%") == ["m1"]
    assert ask(api, "file_name") == ["m3"]
    assert ask(api, '"file_name"') == ["m3"]
    assert ask(api, '"100%"') == ["m1"]
    for query in ("%", "_", "\\", '"%"', '"_"', '"\\"'):
        assert ask(api, query) == [], query


def test_the_index_follows_what_is_deleted_restored_and_made_again(
    agent, neighbour, api, client_of
):
    """Field case C014."""
    ids = {}
    for name in ("kumquat", "durian", "apple", "pear", "plum"):
        ids[name] = api.save("ming", f"{name} in the bowl", name=name)["id"]
    other = client_of(neighbour)
    other.save("ming", "rambutan in the bowl", name="rambutan")

    api.delete(f"memories/{ids['kumquat']}/", user_id="ming")
    assert ask(api, "kumquat") == []
    api.post(f"memories/{ids['kumquat']}/restore/", {"user_id": "ming"})
    assert ask(api, "kumquat") == ["kumquat"]

    api.delete(f"memories/{ids['durian']}/", user_id="ming")
    api.save("ming", "durian in the bowl", name="durian")
    assert ask(api, "durian") == ["durian"]

    scopes = set(Memory.objects.for_agent(neighbour).values_list("scope_id", flat=True))
    Agent.objects.get(pk=neighbour.pk).delete()
    alias = Memory.objects.for_agent(agent).db
    for rows in (MemoryTerms, MemoryVector):
        assert not rows.objects.using(alias).filter(scope_id__in=scopes).exists()

    shelves = [
        library.Shelf(agent, "ming", scope)
        for scope in {memory.scope for memory in Memory.objects.in_scope(agent, "ming")}
    ]
    doing = Bulk("delete", "", "ming", NOW)
    gone = [ids[name] for name in ("apple", "pear", "plum")]
    assert bulk.change(bulk.select(shelves, gone, doing), doing) == 3
    for name in ("apple", "pear", "plum", "rambutan"):
        assert ask(api, name) == [], name
        assert not terms_left(agent, name)
    for rows in (MemoryTerms, MemoryVector):
        assert not rows.objects.using(alias).filter(memory_id__in=gone).exists()


def test_queries_without_a_word_find_nothing_and_no_query_is_refused(api):
    """Field case C015."""
    for content in ("Ming deploys on Fridays", "支付模块周五上线", "Really?! ... 。。。"):
        api.save("ming", content)

    for query in ("?!...", "。。。", "\u200b", "-", '""', "“”"):
        assert ask(api, query) == [], query
    for query in ("", "   ", "\n", "\u0000", None):
        answer = api.post("search/", {"user_id": "ming", "query": query})
        if answer.status_code == 200:
            assert answer.json()["results"] == [], query
        else:
            assert fields_of(answer) == {"query"}, query
    assert fields_of(api.post("search/", {"user_id": "ming"})) == {"query"}
    for message in ("", "   ", "\n", "?!...", "。。。", "\u200b", "\u0000"):
        answer = api.post("prefetch/", {"user_id": "ming", "message": message})
        assert answer.status_code in {200, 400}, message
        assert answer.json().get("memory_context", "") == "", message
