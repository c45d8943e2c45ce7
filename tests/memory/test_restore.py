"""Restores: what comes back, what is refused, and what becomes of what was there."""

import fcntl
import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory.services.backups import manifest
from memory.services.backups.manifest import BackupError
from tests.memory.backups import AGENTS, LAYOUTS, installed_in, run, start
from tests.memory.installation import ROOT, Installation, mysql_cursor


@pytest.fixture(scope="module")
def backup(tmp_path_factory):
    """A backup of memories on SQLite and MySQL, and what they were."""
    folder = tmp_path_factory.mktemp("old")
    with installed_in(folder, LAYOUTS["sqlite"]) as old:
        old.memory_dir.mkdir()
        (old.memory_dir / "link.db").symlink_to("bob.db")
        (old.data_dir / "uploads").mkdir()
        (old.data_dir / "uploads" / "wanted.csv").write_text("1")
        agents = {**AGENTS, "linked": ["sqlite", "link.db"]}
        before = run(old, "prepare", agents=agents, number=20)
        [said, error] = run(old, "commands", lines=[["backup"]])
        assert error == ""
    return Path(said.splitlines()[-1]), before


def run_restore(installed, backup):
    """Restore by ./run, as an operator does, into a folder that nothing has seen yet."""
    done = subprocess.run(
        ["./run", "restore", str(backup)], cwd=ROOT, env=installed.env, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_run_restores_every_field_every_file_and_its_mode(backup, tmp_path):
    path, before = backup
    with installed_in(tmp_path / "new", LAYOUTS["sqlite"]) as new:
        said = run_restore(new, path)
        after = run(new, "look", agents=[*before])

    assert "Restored: 4 agents, 80 memories" in said
    assert after == before
    assert after["grace"]["memories"] == 20
    data = path / "data"
    assert {each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file()} == {
        "manifest.json", "mysql.sql", "data/hippo.sqlite3", "data/secret_key",
        "data/memory/memory.db", "data/memory/bob.db", "data/uploads/wanted.csv",
    }  # fmt: skip
    assert (new.data_dir / "secret_key").read_text() == (data / "secret_key").read_text()
    assert (new.data_dir / "uploads" / "wanted.csv").read_text() == "1"
    assert (new.memory_dir / "link.db").readlink() == Path("bob.db")
    private = [path, data, path / "mysql.sql", data / "memory" / "bob.db", new.memory_dir]
    private += [each / "secret_key" for each in (data, new.data_dir)]
    assert [each for each in private if each.stat().st_mode & 0o077] == []
    # else `./run` would add the demo's accounts
    assert (new.data_dir / "demo-loaded").exists()


def test_restore_replaces_nothing_unasked_and_destroys_nothing_even_if_killed(backup, tmp_path):
    path, before = backup
    with installed_in(tmp_path / "there", LAYOUTS["sqlite"]) as there:
        run(there, "prepare", agents={"ada": AGENTS["ada"], "eve": AGENTS["grace"]}, number=2)
        (there.data_dir / "note.txt").write_text("mine")
        [[_, refused]] = start_and_rest(there, [["restore", str(path)]])
        with (there.data_dir / "run.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            [[_, running]] = start_and_rest(there, [["restore", str(path), "--replace"]])

        now = run(
            there, "killed_restores", folder=str(path), kills=6, agents=[*before], replace=True
        )

        [aside] = there.data_dir.glob("before-restore-*")
        database = there.env["MYSQL_URL"].rpartition("/")[2]
        kept = f"{database[:30]}_{aside.name.replace('-', '_')}"
        old = Installation(aside, MYSQL_URL=there.env["MYSQL_URL"].replace(database, kept))
        try:
            then = run(old, "look", agents=["ada", "eve"])
        finally:
            with mysql_cursor() as cursor:
                cursor.execute(f"DROP DATABASE {kept}")

    assert "Hippo runs on" in running
    assert all(word in refused for word in ("hippo.sqlite3", "memory.db", "MySQL", "--replace"))
    assert now["killed"] >= 1
    assert now["agents"] == before
    assert (then["ada"]["memories"], then["eve"]["memories"]) == (2, 2)
    assert (then["ada"]["faults"], then["eve"]["faults"]) == ([], [])
    assert (aside / "note.txt").read_text() == "mine"


def test_backup_of_an_older_version_is_migrated_into_a_fresh_database(tmp_path):
    with installed_in(tmp_path / "old", []) as old:
        before = run(old, "prepare", agents={"ada": AGENTS["ada"]}, number=2, with_mysql=False)
        # as on a machine where the new version has not been started yet
        steps = [["migrate", "agents", "0003", "--verbosity", "0"], ["backup"]]
        [_, [said, error]] = [*start_and_rest(old, steps)]
        assert error == ""
        path = Path(said.splitlines()[-1])
    assert not any("agents.0004" in name for name in manifest.read(path).databases[0].migrations)

    with installed_in(tmp_path / "new", []) as new:
        # a control database that was only just made is no obstacle
        steps = [["migrate_stores"], ["restore", str(path)], ["migrate", "--check"]]
        errors = [error for _, error in start_and_rest(new, steps)]
        after = run(new, "look", agents=["ada"])

    assert errors == ["", "", ""]
    assert after == before


def start_and_rest(installed, steps):
    with start(installed, "commands", lines=steps) as process:
        return process.rest()


def test_restore_looks_before_it_touches_anything(backup, tmp_path):
    path, _ = backup
    told = json.loads((path / "manifest.json").read_text())
    changed, newer, format_2, short = (tmp_path / name for name in ("a", "b", "c", "d"))
    for folder in (changed, newer, format_2, short):
        shutil.copytree(path, folder, symlinks=True)
    with (changed / "data" / "memory" / "bob.db").open("r+b") as file:
        file.seek(5_000)
        file.write(b"!")
    (short / "mysql.sql").unlink()
    (format_2 / "manifest.json").write_text(json.dumps(told | {"format": 2}))
    told["databases"][0]["migrations"].append("memory.9999_from_the_future")
    (newer / "manifest.json").write_text(json.dumps(told))
    unfinished = path.rename(path.with_name(f"{path.name}.part"))
    tries = [changed, newer, format_2, short, unfinished, path.parent, tmp_path / "no"]

    try:
        with installed_in(tmp_path / "new", LAYOUTS["sqlite"]) as new:
            said = start_and_rest(new, [["restore", str(each)] for each in tries])
        for variables in ({}, {"DATABASE_URL": "mysql://nobody:none@127.0.0.1:1/none"}):
            other = Installation(tmp_path / f"other{len(variables)}", **variables)
            said += start_and_rest(other, [["restore", str(changed)]])
    finally:
        unfinished.rename(path)

    errors = [error for _, error in said]
    words = [
        "bob.db is not as it was", "memory.9999_from_the_future", "is of format 2",
        "mysql.sql is missing", "was never finished", "is no backup", "is no backup",
        "let MYSQL_URL name an empty database", "control database is sqlite's",
    ]  # fmt: skip
    assert [error for error, word in zip(errors, words, strict=True) if word not in error] == []
    assert not (new.data_dir / "hippo.sqlite3").exists()
    assert not (new.data_dir / "restore-unfinished.json").exists()


@pytest.mark.parametrize(
    "part",
    [{"path": "../outside", "mode": 0o600}, {"path": "/etc/outside", "mode": 0o600}],
    ids=["up", "root"],
)
def test_manifest_cannot_lead_out_of_the_backup(tmp_path, part):
    written = manifest.Manifest("1", "x", datetime.now(UTC), [], {}, [])
    manifest.write(tmp_path, written)
    assert manifest.read(tmp_path) == written
    told = json.loads((tmp_path / "manifest.json").read_text())
    told["files"] = [{"size": 1, "sha256": "", **part}]
    (tmp_path / "manifest.json").write_text(json.dumps(told))

    with pytest.raises(BackupError, match="leads outside"):
        manifest.read(tmp_path)
