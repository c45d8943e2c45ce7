"""Moves in processes of their own: killed at any statement, and while others write."""

import random
import time
from contextlib import ExitStack

import pytest

from tests.memory.installation import crew

KILLS = 8
HOMES = {"sqlite": ["sqlite", ""], "mysql": ["mysql", ""]}
PLACES = {"mysql": {"backend": "mysql"}, "file": {"backend": "sqlite", "sqlite_path": "new.db"}}


def fill(installation, agent):
    for user_id in ("ming", "../bob"):
        with installation.start("save_batches", agent=agent, user_id=user_id, count=2, size=3) as p:
            p.rest()
    with installation.start("update_again", agent=agent, user_id="ming", count=7) as process:
        process.rest()


@pytest.mark.parametrize(
    ("home", "places"),
    [
        (["sqlite", ""], [["mysql", ""], ["sqlite", "memory.db"]]),
        (["sqlite", ""], [["sqlite", "killed.db"], ["sqlite", "memory.db"]]),
    ],
    ids=["mysql", "file"],
)
def test_move_killed_at_any_statement_is_finished_by_the_next_run(installation, home, places):
    agent = f"killed-{places[0][0]}"
    installation.run("create_agents", agents={agent: home, f"{agent}-neighbour": home})
    fill(installation, agent)
    installation.run("live", agent=f"{agent}-neighbour")
    neighbour = installation.run("inspect", agent=f"{agent}-neighbour")
    seed = random.randrange(1 << 30)

    with installation.start(
        "killed_moves", agent=agent, places=places, kills=KILLS, seed=seed
    ) as process:
        first, *moves = process.rest()

    assert first["state"] == "done"
    assert first["result"]["memories"] == 13
    assert sum(each["was_killed"] for each in moves) >= KILLS // 2
    expected = moves[0]["after"]["memories"]
    for each in moves:
        assert each["dead"]["memories"] == each["after"]["memories"] == expected, each["at"]
        assert each["after"]["faults"] == [], each["at"]
        assert each["after"]["state"] == "open", each["at"]
        assert each["job"]["state"] == "done", each
        assert each["job"]["result"] == first["result"], each["at"]
    assert [each["after"]["alias"] for each in moves] == [
        {"mysql": "mysql", "sqlite": f"sqlite:{path}"}[backend]
        for backend, path in (places * KILLS)[1 : KILLS + 1]
    ]
    assert installation.run("inspect", agent=f"{agent}-neighbour") == neighbour


@pytest.mark.parametrize(("home", "place"), [("sqlite", "mysql"), ("mysql", "file")])
def test_move_under_load_loses_no_save_that_was_acknowledged(installation, home, place):
    agent = f"loaded-{home}"
    installation.run("create_agents", agents={agent: HOMES[home]})

    with ExitStack() as stack:
        hammers = (installation.start("hammer", agent=agent, process=n) for n in range(2))
        writers = stack.enter_context(crew(hammers))
        start = installation.start("move", agent=agent, **PLACES[place])
        [mover] = stack.enter_context(crew([start]))
        for process in writers:
            process.go()
        time.sleep(random.uniform(0.5, 2.0))
        mover.go()
        moved = mover.read()
        time.sleep(0.2)
        for process in writers:
            process.go()
        accounts = [process.read() for process in writers]

    state = installation.run("inspect", agent=agent, tokens=False)
    saved = [each for account in accounts for each in account["saved"]]
    rows = [[row["id"], row["user_id"], row["content"]] for row in state["memories"]]
    assert moved["error"] == ""
    assert moved["state"] == "done"
    assert [account["errors"] for account in accounts] == [[], []]
    assert all(account["refused"] for account in accounts)
    assert sorted(rows) == sorted(saved)
    assert moved["result"]["memories"] == len(saved)
    assert state["faults"] == []
