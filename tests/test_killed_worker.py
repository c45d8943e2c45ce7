"""An import whose worker is killed under `./run` goes on by itself and ends right."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

from tests.memory.installation import fresh_mysql
from tests.test_readme import ROOT, children, environment_of, product

ROWS = 4_000
MOST_SECONDS = 120
_LEAVE = """
from django.contrib.auth import get_user_model
from django.utils import timezone
from memory.models import Job
from memory.services import job_kinds
from memory.services.transfers import importing, uploads
account = get_user_model().objects.create_user("ming")
for name, backend in (("ada", "sqlite"), ("grace", "mysql")):
    agent = Agent.objects.create_agent(name, backend=backend)
    with open({path!r}, "rb") as file:
        kept = uploads.keep("notes.jsonl", iter(lambda: file.read(65536), b""))
    wish = importing.Wish(kept, ((agent, "ming"),), "reference", True)
    checked = importing.request_check(account, wish, now=timezone.now())
    job_kinds.perform(checked.pk)
    while checked.state != "done":
        checked.refresh_from_db()
    importing.request(account, checked, now=timezone.now())
"""
_COUNT = """
import json
from memory.models import Memory
from memory.services import maintenance
found = {}
for agent in Agent.objects.all():
    contents = list(Memory.objects.in_scope(agent, "ming").values_list("content", flat=True))
    found[agent.name] = [len(contents), len(set(contents)), len(list(maintenance.check(agent)))]
print(json.dumps(found))
"""


def shell(environment, code):
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", code],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def imports(folder):
    with closing(sqlite3.connect(folder / "hippo.sqlite3", timeout=30)) as control:
        control.row_factory = sqlite3.Row
        rows = control.execute("SELECT * FROM memory_job WHERE kind = 'import'")
        return [dict(row) for row in rows]


def wait_for(is_so, folder, seconds):
    """Wait until the imports are as they should be, and return them."""
    until = time.monotonic() + seconds
    while not is_so(found := imports(folder)):
        assert time.monotonic() < until, found
        time.sleep(0.2)
    return found


def test_an_import_whose_worker_is_killed_goes_on_within_two_minutes(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    path = tmp_path / "notes.jsonl"
    lines = ({"type": "user", "content": f"note {n}: 支付模块周五上线"} for n in range(ROWS))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    with fresh_mysql() as url:
        environment = environment_of(tmp_path, PORT=port, HIPPO_DEMO="0", MYSQL_URL=url)
        with product(environment) as process:
            shell(environment, _LEAVE.format(path=str(path)))
            wait_for(lambda rows: len(rows) == 2 and all(row["done"] for row in rows), tmp_path, 60)
            os.kill(children(process)["worker"], signal.SIGKILL)
            killed_at = time.monotonic()
            killed = imports(tmp_path)
            wait_for(lambda rows: all(row["attempts"] == 2 for row in rows), tmp_path, MOST_SECONDS)
            resumed_after = time.monotonic() - killed_at
            ended = wait_for(
                lambda rows: {row["state"] for row in rows} == {"done"}, tmp_path, MOST_SECONDS
            )
            found = json.loads(shell(environment, _COUNT).splitlines()[-1])

    assert {row["state"] for row in killed} == {"running"}
    assert all(0 < row["done"] < ROWS for row in killed)
    assert resumed_after < MOST_SECONDS
    assert [json.loads(row["result"])["counts"] for row in ended] == [{"new": ROWS}] * 2
    assert found == {"ada": [ROWS, ROWS, 0], "grace": [ROWS, ROWS, 0]}
    print(f"both went on {resumed_after:.0f} s after the kill")
