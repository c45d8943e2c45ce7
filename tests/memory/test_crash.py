"""Processes killed by SIGKILL while they write: what they were told is saved, is saved whole."""

import random
import time

import pytest

from tests.memory.test_concurrency import inconsistencies

ROUNDS = 4
COUNT = 500
pytestmark = pytest.mark.parametrize("agent", ["ada", "grace"])


def run_until_killed(installation, task, most, **arguments):
    """Run a task, kill it between any two of its first `most` values; return the values.

    pytest-randomly seeds the choice; `-p randomly -p "randomly_seed=…"` repeats it.
    """
    with installation.start(task, **arguments) as process:
        assert process.read() == "ready"
        values = [process.read() for _ in range(random.randint(1, most))]
        time.sleep(random.uniform(0, 0.01))
        return values + process.kill()


def state_of(installation, agent):
    """Return an agent's rows by user, once they are known to agree with index and counts."""
    state = installation.run("inspect", agent=agent)
    assert list(inconsistencies(state)) == []
    rows = {}
    for row in state["memories"]:
        rows.setdefault(row["user_id"], []).append(row)
    return rows


def test_kill_loses_no_memory_that_was_acknowledged(installation, agent):
    acknowledged = {}
    for number in range(ROUNDS):
        task = {"agent": agent, "user_id": f"saver {number}", "count": COUNT}
        acknowledged[task["user_id"]] = run_until_killed(
            installation, "save_one_by_one", COUNT - 1, **task
        )

    rows = state_of(installation, agent)
    for user_id, saved in acknowledged.items():
        found = [[row["id"], row["content"]] for row in rows[user_id]]
        # the one that was being saved may be there too
        assert found[: len(saved)] == saved
        assert len(found) - len(saved) in {0, 1}


def test_kill_leaves_whole_batches_only(installation, agent):
    size, acknowledged = 7, {}
    for number in range(ROUNDS):
        task = {"agent": agent, "user_id": f"batcher {number}", "count": 40, "size": size}
        acknowledged[task["user_id"]] = run_until_killed(installation, "save_batches", 39, **task)

    rows = state_of(installation, agent)
    for user_id, batches in acknowledged.items():
        found = {}
        for row in rows[user_id]:
            found.setdefault(row["tags"][0], []).append(row["id"])
        assert list(found.values())[: len(batches)] == batches
        assert len(found) - len(batches) in {0, 1}
        assert {len(ids) for ids in found.values()} == {size}


def test_kill_keeps_a_revision_for_each_version(installation, agent):
    acknowledged = {}
    for number in range(ROUNDS):
        task = {"agent": agent, "user_id": f"updater {number}", "count": COUNT}
        acknowledged[task["user_id"]] = run_until_killed(installation, "update_again", 200, **task)

    rows = state_of(installation, agent)
    for user_id, (memory_id, *versions) in acknowledged.items():
        [row] = rows[user_id]
        last = versions[-1] if versions else 1
        assert row["id"] == memory_id
        # a trip to the trash and back adds two, and the update after it a third
        assert 0 <= row["version"] - last <= 3
        texts = [[version, content] for version, content, _ in row["revisions"]]
        texts.append([row["version"], row["content"]])
        expected = "text1 of the note"
        for version, content in texts:
            if content != expected:
                expected = f"text{version} of the note"
            assert content == expected


def test_store_whose_making_was_killed_opens_the_next_time(installation, agent):
    if agent == "grace":
        pytest.skip("MySQL tables are made by migrate, not by the first save")
    for number in range(ROUNDS):
        name = f"late-{number}"
        installation.run("create_agents", agents={name: ["sqlite", f"late{number}.db"]})
        with installation.start("open_store", agent=name) as process:
            assert process.read() == "ready"
            time.sleep(random.uniform(0, 0.3))
            process.kill()

        found = installation.run("live", agent=name)

        assert found["restored"] == ["支付模块周五上线"]
        assert installation.run("inspect", agent=name)["faults"] == []
