"""assert_recall: what it prints, and with which status it ends."""

import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from agents.models import Agent
from memory.models import GoldenRun, Memory
from memory.services.golden import questions
from memory.services.golden.questions import parse
from tests.conftest import NOW


@pytest.fixture
def mind(agent, remember):
    remember(agent, "ming", "Ming deploys on Fridays", name="Deploy day")
    return agent


@pytest.fixture
def ended(capsys):
    """Run the command; return its status, what it printed and what it says at the end."""

    def call(agent, *arguments):
        status, said = 0, ""
        try:
            call_command("assert_recall", getattr(agent, "name", agent), *map(str, arguments))
        except CommandError as error:
            status, said = error.returncode, str(error)
        return status, capsys.readouterr().out, said

    return call


def keep(agent, question="When does Ming deploy?", **lines):
    draft = parse({"user_id": "ming", "question": question, **lines})
    return questions.add(agent, draft, now=NOW)


def write(path, *records):
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records), encoding="utf-8")
    return path


def test_questions_that_pass_end_well_and_the_run_is_kept(mind, ended):
    keep(mind, expected="Friday")

    assert ended(mind, "--mode", "lexical") == (0, "1 of 1 passed.\n", "")

    [run] = GoldenRun.objects.all()
    assert (run.passed, run.mode, run.account_id) == (1, "lexical", None)


def test_failed_questions_are_named_with_what_they_failed_on(mind, ended):
    keep(mind, expected="Friday")
    keep(mind, "Does Ming\ndeploy?", expected="oolong", unwanted="deploy day")
    keep(mind, "Ming deploys")

    status, out, said = ended(mind)

    assert (status, said) == (1, "2 of 3 failed.")
    assert out.splitlines() == [
        "FAILED ming: Does Ming deploy?",
        "  missing: oolong (it is not found at all)",
        "  unwanted: deploy day (number 1)",
        "FAILED ming: Ming deploys",
        "  expected nothing, but 1 came back",
        "1 of 3 passed.",
    ]
    assert ended(mind, "--min-pass", "0.33")[0] == 0


def test_file_brings_its_memories_and_leaves_nothing(mind, ended, tmp_path):
    tea = {"content": "Likes oolong in the afternoon", "name": "Tea"}
    path = write(
        tmp_path / "questions.jsonl",
        {"user_id": "zoe", "memories": [tea], "question": "oolong?", "expected": ["Tea"]},
        {"user_id": "zoe", "question": "When does Ming deploy?", "expected": []},
        {"user_id": "ming", "question": "When does Ming deploy?", "expected": ["Friday"]},
    )

    assert ended(mind, "--file", path) == (0, "3 of 3 passed.\n", "")

    assert [Memory.objects.for_agent(each).count() for each in Agent.objects.all()] == [1]
    assert not GoldenRun.objects.exists()


def test_file_is_asked_by_the_agents_own_settings(mind, ended, tmp_path):
    mind.memory_config.min_score = 1.0
    mind.memory_config.save()
    note = {"content": "Likes oolong in the afternoon"}
    asked = {"user_id": "zoe", "question": "Who takes oolong and scones?", "expected": ["oolong"]}
    path = write(tmp_path / "questions.jsonl", {"user_id": "zoe", "memories": [note]}, asked)

    status, out, _ = ended(mind, "--file", path)

    assert status == 1
    assert "missing: oolong (it would be number 1)" in out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "line 1"),
        ("[]", "line 1"),
        ('{"user_id": "ming"}', "question"),
        ('{"user_id": "", "question": "When?"}', "user_id"),
        ('{"user_id": "ming", "question": "When?", "expect": ["x"]}', "unknown: expect"),
        ('{"user_id": "ming", "question": "When?", "memories": [1]}', "memories"),
        ('{"user_id": "ming", "question": "When?", "memories": [{"content": ""}]}', "memories"),
        ("", "asks nothing"),
    ],
)
def test_bad_file_ends_with_two(ada, ended, tmp_path, line, said):
    path = tmp_path / "questions.jsonl"
    path.write_text(f"{line}\n")

    status, _, error = ended(ada, "--file", path)

    assert status == 2
    assert said in error
    assert Agent.objects.count() == 1


def test_nobody_to_ask_and_nothing_to_ask_end_with_two(ada, ended, tmp_path):
    for arguments in (("nobody",), (ada,), (ada, "--min-pass", "2"),
                      (ada, "--file", tmp_path / "nowhere")):  # fmt: skip
        assert ended(*arguments)[0] == 2, arguments
