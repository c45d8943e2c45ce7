"""Embedding at the command line: what it says, and its exit status."""

import pytest
from django.core.management import CommandError, call_command

from memory.services import backlog


@pytest.fixture
def embed(capsys):
    """Run the command; return its output, its error lines and the CommandError, if any."""

    def call(*arguments):
        said = ""
        try:
            call_command("embed_memories", *arguments)
        except CommandError as error:
            said = str(error)
        out, err = capsys.readouterr()
        return out, err, said

    return call


def place_of(agent):
    return "mysql" if agent.name == "grace" else "sqlite:memory.db"


def test_it_embeds_what_waits_and_says_how_many_still_do(agent, letters, remember, embed):
    for number in range(3):
        remember(agent, "ming", f"note {number}", name=f"note {number}")
    letters.refused = {"note 1"}
    place = place_of(agent)

    first = embed()
    letters.refused = set()
    second = embed()
    third = embed()

    waits = "Not all is embedded; searches find the rest by words."
    assert first == (
        f"{place}: 2 memories embedded by letters, 1 wait; 1 were refused\n",
        "",
        waits,
    )
    assert second == (f"{place}: 1 memories embedded by letters, 0 wait\n", "", "")
    assert third == (f"{place}: 0 memories embedded by letters, 0 wait\n", "", "")


def test_what_was_refused_again_and_again_is_tried_if_asked(agent, letters, remember, embed):
    remember(agent, "ming", "note", name="note")
    letters.refused = {"note"}
    for _ in range(backlog.MOST_ATTEMPTS):
        embed()
    asked = len(letters.asked)

    assert "1 wait" in embed()[0]
    assert len(letters.asked) == asked
    letters.refused = set()
    assert "1 memories embedded" in embed("--again")[0]


def test_one_agents_memories_alone_if_asked(ada, letters, remember, embed):
    eve = type(ada).objects.create_agent("eve", backend="sqlite")
    remember(ada, "ming", "Ming deploys on Fridays")
    remember(eve, "ming", "Ming drinks tea")

    assert embed("--agent", "eve") == (
        "sqlite:memory.db: 1 memories embedded by letters, 0 wait\n", "", "",
    )  # fmt: skip
    assert letters.asked == [["Ming drinks tea. Ming drinks tea"]]
    assert "There is no agent nobody" in embed("--agent", "nobody")[2]


def test_a_model_that_fails_is_told(agent, letters, remember, embed):
    remember(agent, "ming", "Ming deploys on Fridays")
    letters.is_down = True

    out, err, said = embed()

    assert "0 memories embedded by letters, 1 wait" in out
    assert err == f"{place_of(agent)}: the model fails: The model says no.\n"
    assert said


def test_without_a_model_it_says_so(ada, embed):
    out, _, said = embed()

    assert (out, said) == ("", "No model embeds here: EMBEDDINGS, or the settings, say none.")
