"""Backups taken while others write, move and are killed: what was acknowledged is in them."""

import fcntl
import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.memory.backups import AGENTS, LAYOUTS, installed_in, restored, run, saving, start

STOPS = [
    "INSERT `memory_memory` in mysql 1",  # half of the copy is there
    "UPDATE `memory_store` in sqlite:memory.db 2",  # about to take no more writes
    "UPDATE `agents_memoryconfig` in default 1",  # about to be switched
    "UPDATE `memory_store` in mysql 2",  # switched, and not open yet
]


@pytest.mark.parametrize("layout", ["mysql", "both"])
def test_backup_under_load_restores_every_acknowledged_memory(tmp_path, layout):
    variables = LAYOUTS[layout]
    with installed_in(tmp_path / "old", variables) as old:
        run(old, "prepare", agents=AGENTS)
        with (
            saving(old, AGENTS, makes_agents=True) as savers,
            start(old, "take", times=1) as taker,
        ):
            assert taker.read() == "ready"
            savers.wait(10)
            begun = time.monotonic()
            taker.go()
            backup = taker.read()
            ended = time.monotonic()

        now = restored(tmp_path / "new", backup, variables, AGENTS)

    assert "No faults." in now["said"]
    assert [each["faults"] for each in now["agents"].values()] == [[], [], []]
    assert list(savers.losses(begun, now["agents"])) == []
    # it was taken under load indeed
    told = savers.acknowledged.values()
    assert all(any(begun < moment < ended for moment, *_ in each) for each in told)


def test_backup_during_a_move_loses_nothing_wherever_the_move_stands(tmp_path):
    agents, backups = {"ada": AGENTS["ada"]}, []
    with ExitStack() as stack:
        old = stack.enter_context(installed_in(tmp_path / "old", ["MYSQL_URL"]))
        run(old, "prepare", agents=agents, number=5)
        move = start(old, "held_move", agent="ada", backend="mysql", stops=STOPS)
        with move as mover, start(old, "take", times=len(STOPS)) as taker:
            assert (mover.read(), taker.read()) == ("ready", "ready")
            with saving(old, agents) as savers:
                savers.wait(10)
                mover.go()
                while isinstance(stop := mover.read(), str):
                    begun = time.monotonic()
                    taker.go()
                    backups.append((stop, begun, taker.read()))
                    mover.go()
                savers.wait(1)

        def restore(number):
            folder = tmp_path / f"new{number}"
            return restored(folder, backups[number][2], ["MYSQL_URL"], agents)

        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(restore, range(len(backups))))

    assert stop["state"] == "done", stop
    assert [stop for stop, *_ in backups] == STOPS
    for (stop, begun, _), now in zip(backups, found, strict=True):
        ada = now["agents"]["ada"]
        assert (ada["alias"], ada["state"], ada["faults"]) == ("mysql", "open", []), stop
        assert list(savers.losses(begun, now["agents"])) == [], stop
        assert "No faults." in now["said"], stop


def test_backup_killed_at_any_moment_never_looks_complete(tmp_path):
    with installed_in(tmp_path / "old", ["MYSQL_URL"]) as old:
        before = run(old, "prepare", agents=AGENTS, number=30)

        taken = run(old, "killed_takes", kills=8)

        assert taken["killed"] >= 4
        assert taken["left"] >= 1
        assert taken["left_afterwards"] == 0
        with installed_in(tmp_path / "new", ["MYSQL_URL"]) as new:
            now = run(new, "killed_restores", folder=taken["folder"], kills=5, agents=[*AGENTS])
    assert now["killed"] >= 1
    assert now["started"] == 0
    assert now["agents"] == before


def test_keep_deletes_the_oldest_of_this_installation_only(tmp_path):
    with installed_in(tmp_path / "old", []) as old:
        run(old, "prepare", agents={"ada": AGENTS["ada"]}, with_mysql=False)
        folder = tmp_path / "backups"
        foreign = folder / "20260101T000000Z"
        lines = [["backup", "--to", str(folder), "--keep", "2"]]
        with start(old, "commands", lines=lines * 4) as process:
            first, _ = process.read()
            shutil.copytree(first.splitlines()[-1], foreign)
            told = json.loads((foreign / "manifest.json").read_text())
            (foreign / "manifest.json").write_text(json.dumps(told | {"installation": "other"}))
            (folder / "holiday.part").mkdir()
            rest = process.rest()

    assert [error for _, error in rest] == ["", "", ""]
    paths = [Path(said.splitlines()[-1]) for said, _ in rest]
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [".lock", "holiday.part", foreign.name, *(path.name for path in paths[-2:])]
    )


def test_backup_that_cannot_be_whole_is_refused_and_leaves_nothing(tmp_path):
    with installed_in(tmp_path / "old", []) as old:
        run(old, "prepare", agents={"ada": AGENTS["ada"]}, number=3, with_mysql=False)
        old.env["MYSQL_URL"] = "mysql://hippo:secret@127.0.0.1:1/hippo"
        (tmp_path / "file").write_text("")
        (tmp_path / "busy").mkdir()
        with (tmp_path / "busy" / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            steps = [
                ["backup", "--to", str(tmp_path / "busy")],
                ["backup", "--to", str(tmp_path / "file")],
                ["limit", 300_000],
                ["backup"],
                ["limit", 0],
                ["agent", "grace", "mysql"],
                ["backup"],
                ["remove", str(old.memory_dir / "memory.db")],
                ["backup"],
            ]
            with start(old, "commands", lines=steps) as process:
                said = process.rest()
    busy, file, full, silent, gone = (error for _, error in said)

    assert busy == f"Another backup to {tmp_path / 'busy'} is under way."
    assert file == f"{tmp_path / 'file'}: File exists"
    assert "hippo.sqlite3: " in full
    assert "memory.db was here and is gone" in gone
    assert silent.startswith("mysql: MySQL says: Can't connect")
    assert [path.name for path in (old.data_dir / "backups").iterdir()] == [".lock"]
