"""Many writers and readers at once, in several processes, on both engines together.

HIPPO_TEST_SECONDS shortens the long test.
"""

import os
import random
import time
from collections import Counter
from contextlib import ExitStack

import pytest

from tests.memory.installation import crew

SECONDS = float(os.environ.get("HIPPO_TEST_SECONDS", "60"))
PROCESSES, WRITERS, READERS = 4, 2, 2
STEADY = 12
ROUNDS = 6


def merged(parts):
    """Put what each process says of one agent into one account."""
    account = {"books": {}, "touches": Counter(), "done": Counter()}
    for name in ("purged", "steady_updates", "errors"):
        account[name] = [each for part in parts for each in part[name]]
    for part in parts:
        doubled = account["books"].keys() & part["books"].keys()
        assert not doubled, f"one id for two memories: {doubled}"
        account["books"].update(part["books"])
        account["touches"].update(part["touches"])
        account["done"].update(part["done"])
    return account


def differences(account, state):
    """Yield where a store and the books of those who wrote it differ."""
    rows = {str(row["id"]): row for row in state["memories"]}
    if len(rows) != len(state["memories"]):
        yield "an id occurs twice"
    steady = rows.keys() - account["books"].keys()
    if len(steady) != STEADY:
        yield f"{len(steady) - STEADY} memories that nobody saved"
    for memory_id, book in account["books"].items():
        row = rows.get(memory_id)
        if row is None:
            yield f"{memory_id} is lost: {book}"
        elif any(row[name] != book[name] for name in ("user_id", "content", "status", "version")):
            yield f"{memory_id} is not as it was left: {row}, {book}"
    for memory_id in map(str, account["purged"]):
        if memory_id in rows:
            yield f"{memory_id} was purged and is there"
    latest = {}
    for memory_id, version, content in account["steady_updates"]:
        if version in latest.setdefault(str(memory_id), {}):
            yield f"two updates of {memory_id} made version {version}"
        latest[str(memory_id)][version] = content
    for memory_id in steady:
        updates, row = latest.get(memory_id, {}), rows[memory_id]
        if sorted(updates) != list(range(2, row["version"] + 1)):
            yield f"{memory_id} is at {row['version']} after {sorted(updates)}"
        elif updates and row["content"] != updates[row["version"]]:
            yield f"{memory_id} lost its last update"
        if row["access_count"] != account["touches"][memory_id]:
            yield f"{memory_id}: {row['access_count']} of {account['touches'][memory_id]} touches"


def inconsistencies(state):
    """Yield where rows, revisions, index and counts of one store disagree."""
    yield from state["faults"]
    counts, terms = Counter(), Counter()
    for row in state["memories"]:
        versions = [version for version, _, _ in row["revisions"]]
        if versions != list(range(1, row["version"])):
            yield f"{row['id']} is at version {row['version']} with revisions {versions}"
        is_kept = row["status"] != "trashed"
        if (row["content_terms"] is not None) != is_kept:
            yield f"{row['id']} is {row['status']}; its index row says otherwise"
        if row["found"] != is_kept:
            yield f"{row['id']} is {row['status']} and found is {row['found']}"
        counts[row["user_id"]] += is_kept
        terms[row["user_id"]] += row["content_terms"] or 0
    for scope in state["scopes"]:
        actual = (counts[scope["user_id"]], terms[scope["user_id"]])
        if (scope["memory_count"], scope["content_terms"]) != actual:
            yield f"{scope} counts what is {actual}"


def first_saves(installation, agents, number_of_processes):
    """Save by two threads of each process at once, for one agent after another; return errors."""
    errors = []
    started = (
        installation.start("first_saves", agents=agents, threads=2)
        for _ in range(number_of_processes)
    )
    with crew(started) as processes:
        for name in agents:
            for process in processes:
                process.go()
            for process in processes:
                errors += process.read()
                if name != agents[-1]:
                    assert process.read() == "ready"
    return errors


def traffic_faults(installation, agents, seconds, upkeep=()):
    """Run writers and readers, and workers on `upkeep`; return all that is wrong afterwards."""
    installation.run("create_agents", agents=agents)
    steady = {name: installation.run("lay_steady", agent=name, count=STEADY) for name in agents}
    task = {"agents": [*agents], "writers": WRITERS, "readers": READERS, "seconds": seconds}
    started = [
        *(installation.start("mixed", process=n, steady=steady, **task) for n in range(PROCESSES)),
        *(installation.start(each, agents=[*agents], seconds=seconds) for each in upkeep),
    ]
    with crew(started) as processes:
        for process in processes:
            process.go()
        results = [process.rest()[-1] for process in processes]

    faults = [fault for each in results[PROCESSES:] for fault in each]
    for name in agents:
        account = merged([part[name] for part in results[:PROCESSES]])
        state = installation.run("inspect", agent=name)
        print(name, len(state["memories"]), "memories after", dict(account["done"]))
        faults += [*account["errors"], *differences(account, state), *inconsistencies(state)]
    return faults


def test_writers_and_readers_at_once_lose_nothing(installation):
    agents = {"busy-sqlite": ["sqlite", ""], "busy-mysql": ["mysql", ""]}

    assert traffic_faults(installation, agents, SECONDS) == []


@pytest.mark.parametrize("backend", ["sqlite", "mysql"])
def test_reindexing_and_optimising_disturb_no_writer(installation, backend):
    agents = {f"kept-up-{backend}": [backend, ""]}

    faults = traffic_faults(installation, agents, SECONDS / 6, upkeep=["reindex", "optimize"])

    assert faults == []


@pytest.mark.parametrize("backend", ["sqlite", "mysql"])
def test_first_saves_of_a_new_user_at_once_all_succeed(installation, backend):
    agents = [f"new-{backend}-{number}" for number in range(ROUNDS)]
    installation.run("create_agents", agents={name: [backend, ""] for name in agents})

    errors = first_saves(installation, agents, PROCESSES)

    assert errors == []
    for name in agents:
        state = installation.run("inspect", agent=name, tokens=False)
        assert len(state["memories"]) == PROCESSES * 2
        assert [scope["memory_count"] for scope in state["scopes"]] == [PROCESSES * 2]


@pytest.mark.parametrize("backend", ["sqlite", "mysql"])
def test_freeze_stops_writers_at_once_and_loses_nothing(installation, backend):
    agent = f"moving-{backend}"
    installation.run("create_agents", agents={agent: [backend, ""]})

    with ExitStack() as stack:
        hammers = (installation.start("hammer", agent=agent, process=n) for n in range(2))
        writers = stack.enter_context(crew(hammers))
        freeze = installation.start("freeze", agent=agent, settle_seconds=1.0)
        [freezer] = stack.enter_context(crew([freeze]))
        for process in writers:
            process.go()
        time.sleep(random.uniform(0.5, 2.0))
        freezer.go()
        at_freeze, later = freezer.read()
        for process in writers:
            process.go()
        accounts = [process.read() for process in writers]

    state = installation.run("inspect", agent=agent, tokens=False)
    saved = [each for account in accounts for each in account["saved"]]
    rows = [[row["id"], row["user_id"], row["content"]] for row in state["memories"]]
    assert [account["errors"] for account in accounts] == [[], []]
    assert all(account["refused"] for account in accounts)
    assert at_freeze == later
    assert sorted(rows) == sorted(saved)
