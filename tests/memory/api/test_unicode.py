"""Whatever is sent, the answer is one of ours: never a 500, always the one shape of errors."""

import json
from urllib.parse import quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conftest import make_agent
from tests.memory.api.client import Api, error_of

TEXT = st.text(st.characters(blacklist_categories=()), max_size=12) | st.sampled_from(
    ["\x00", "\ud800", "\udfff x", "\u200b", "ming", "用户", "🙂" * 300, "\u2028", "nan", "null"]
)
NUMBER = st.integers(-(10**30), 10**30) | st.sampled_from([10**400, 1e308, -0.0, 5e-324, 2**63])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
STORABLE = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00"))
FIELDS = st.sampled_from(
    ["user_id", "type", "content", "name", "kind", "detail", "metadata", "tags", "source", "tier",
     "importance", "pinned", "status", "due_at", "expires_at", "query", "limit", "after",
     "min_score", "mode", "message", "session_id", "arguments", "memories", "delta", "action"]
)  # fmt: skip
BODY = st.dictionaries(FIELDS | TEXT, JSON, max_size=5)
PARAMETERS = st.lists(
    st.tuples(
        st.sampled_from(["user_id", "type", "kind", "tag", "tier", "source", "status", "q",
                         "created_after", "created_before", "min_importance", "cursor", "limit",
                         "purge", "format"]) | TEXT,
        TEXT | NUMBER.map(str) | st.datetimes().map(str),
    ),
    max_size=5,
)  # fmt: skip
POSTS = ["memories/", "memories/batch/", "search/", "prefetch/", "tools/memory_save/",
         "tools/memory_recall/", "memories/7/touch/", "memories/7/reinforce/",
         "memories/7/restore/"]  # fmt: skip
WHOLE = {"user_id": "ming", "type": "user", "content": "x", "query": "x", "message": "x",
         "arguments": {"content": "x"}, "memories": [{"type": "user", "content": "x"}],
         "delta": 0.1}  # fmt: skip
TAKEN = {
    "memories/": ("type", "content"), "memories/batch/": ("memories",), "search/": ("query",),
    "prefetch/": ("message",), "tools/memory_save/": ("arguments",),
    "tools/memory_recall/": ("arguments",), "memories/7/reinforce/": ("delta",),
}  # fmt: skip
bounded = settings(max_examples=50, derandomize=True)


@pytest.fixture
def api(local):
    return local


def assert_ours(response):
    """Assert that a response is an answer of ours, be it an error."""
    assert response.status_code < 500, response.content
    if response.status_code >= 400:
        error_of(response, response.status_code)
    elif response.content:
        json.loads(response.content)


def encode(value):
    # lone surrogates as escapes, as a caller's json.dumps writes them
    return json.dumps(value, allow_nan=True)


@bounded
@given(body=BODY, path=st.sampled_from(POSTS), key=st.none() | TEXT)
@example(body={"\ud800": 1}, path="memories/", key=None)
@example(body={"user_id": "\ud800"}, path="search/", key="k")
@example(body={"user_id": "ming", "arguments": "\ud800"}, path="tools/memory_save/", key=None)
@example(body={"user_id": "ming", "memories": [{"\ud800": 1}]}, path="memories/batch/", key=None)
def test_any_body_gets_an_answer_of_ours(api, body, path, key):
    headers = {"idempotency-key": key} if key and key.isascii() and key.isprintable() else None

    assert_ours(api.post(path, None, raw=encode(body), headers=headers))


@bounded
@given(changed=st.dictionaries(FIELDS, JSON, max_size=2), path=st.sampled_from(POSTS))
def test_a_body_that_is_nearly_right_gets_an_answer_of_ours(api, changed, path):
    body = {name: WHOLE[name] for name in ("user_id", *TAKEN.get(path, ()))}

    assert_ours(api.post(path, None, raw=encode({**body, **changed})))


@bounded
@given(item=st.dictionaries(FIELDS, JSON, max_size=3), value=JSON)
def test_any_item_and_any_argument_gets_an_answer_of_ours(api, item, value):
    whole = {"type": "user", "content": "x"}
    batch = {"user_id": "ming", "memories": [{**whole, **item}, whole]}
    answer = api.post("memories/batch/", None, raw=encode(batch))
    assert_ours(answer)
    assert answer.status_code == 200
    assert answer.json()["saved"] in {1, 2}
    for tool in ("memory_save", "memory_recall"):
        for arguments in (
            value,
            encode(value),
            {"content": "x", "query": value, "name": value},
            {"action": "delete", "id": value},
            {"query": "x", "limit": value},
        ):
            raw = encode({"user_id": "ming", "arguments": arguments})
            assert_ours(api.post(f"tools/{tool}/", None, raw=raw))  # fmt: skip


@bounded
@given(
    parameters=PARAMETERS,
    path=st.sampled_from(["memories/", "memories/7/", "memories/7/history/", "tools/"]),
    method=st.sampled_from(["GET", "DELETE"]),
)
@example(parameters=[("user_id", "ming"), ("cursor", "\ud800")], path="memories/", method="GET")
def test_any_query_gets_an_answer_of_ours(api, parameters, path, method):
    query = "&".join(
        "=".join(quote_plus(each, errors="surrogatepass") for each in pair) for pair in parameters
    )

    for given_query in (query, f"user_id=ming&{query}"):
        assert_ours(api.send(method, f"{path}?{given_query}"))


@bounded
@given(raw=st.binary(max_size=40), query=st.binary(max_size=20))
def test_any_bytes_get_an_answer_of_ours(api, raw, query):
    assert_ours(api.post("memories/", None, raw=raw))
    response = api.client.get(api.address("memories/"), QUERY_STRING=query.decode("latin-1"))
    assert_ours(response)


@bounded
@given(changes=st.dictionaries(FIELDS, JSON, max_size=3), tag=TEXT)
def test_any_change_gets_an_answer_of_ours(api, changes, tag):
    saved = api.save("any change")
    path = f"memories/{saved['id']}/"
    headers = {"if-match": tag, "if-none-match": tag} if tag.isascii() and tag.isprintable() else {}

    assert_ours(api.patch(path, None, raw=encode(changes), user_id="any change", headers=headers))
    assert_ours(api.get(path, user_id="any change", headers=headers))


@settings(max_examples=40, derandomize=True)
@given(
    metadata=st.dictionaries(
        STORABLE,
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | STORABLE,
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(STORABLE, inner),
            max_leaves=12,
        ),
    ),
    text=STORABLE.filter(lambda text: any(each.isalnum() for each in text)),
)
def test_metadata_and_texts_come_back_exactly(agent, metadata, text):
    api = Api(agent)
    saved = api.save("ming", text, metadata=metadata, description=text[:500])

    read = api.get(f"memories/{saved['id']}/", user_id="ming").json()

    assert json.dumps(read["metadata"]) == json.dumps(metadata)
    assert (read["content"], read["description"]) == (text, text[:500])


@bounded
@given(user_id=STORABLE.filter(lambda text: 1 <= len(text) <= 255))
def test_any_user_id_names_one_user(api, user_id):
    saved = api.save(user_id, "kumquat tea")

    assert api.get(f"memories/{saved['id']}/", user_id=user_id).json() == saved
    assert saved["id"] in {memory["id"] for memory in api.listed(user_id)}
    assert api.delete("memories/", user_id=user_id).json() == {"deleted": 1}


@bounded
@given(name=st.text(max_size=20))
def test_any_name_in_the_address_is_an_agent_or_a_404(api, name):
    response = api.client.get(f"/api/v1/agents/{quote_plus(name)}/memories/?user_id=ming")

    assert response.status_code in ({200} if name == "ada" else {404, 301})
    if response.status_code == 404:
        error_of(response, 404, "not_found")


def test_an_agent_of_any_script_has_an_address(local):
    api = Api(make_agent("助手-1.ü", "sqlite"))

    assert api.save("ming")["user_id"] == "ming"
