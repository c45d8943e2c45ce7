"""The README's lines work as they stand, on both engines."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import MySQLdb
import pytest

ROOT = Path(__file__).resolve().parent.parent


def lines_of(heading):
    section = (ROOT / "README.md").read_text().partition(f"\n## {heading}\n")[2]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    return block.group(1).splitlines()


@pytest.fixture
def mysql_url():
    """A database of its own on the tests' server."""
    url = urlsplit(os.environ["TEST_MYSQL_URL"])
    name = f"{url.path.strip('/')}_readme"
    server = {"host": url.hostname, "port": url.port, "user": url.username}
    connection = MySQLdb.connect(password=url.password, **server)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        yield urlunsplit(url._replace(path=f"/{name}"))
        cursor.execute(f"DROP DATABASE {name}")
    connection.close()


def run(line, environment):
    done = subprocess.run(
        ["bash", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done.stdout


def environment_of(data_dir, **variables):
    """What a newcomer's shell has, with data of its own."""
    of_the_tests = {"MYSQL_URL", "DJANGO_SETTINGS_MODULE"}
    kept = {name: value for name, value in os.environ.items() if name not in of_the_tests}
    return {**kept, "DATA_DIR": str(data_dir), **variables}


@contextmanager
def product(environment):
    """Hippo as ./run starts it, stopped as Ctrl-C stops it."""
    process = subprocess.Popen(
        ["./run"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        for line in process.stdout:
            if line.startswith("Hippo is ready"):
                break
        else:
            pytest.fail(f"./run ended with {process.wait()}")
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        process.stdout.close()


def test_readme_gives_an_agent_a_memory_with_curl_alone(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    environment = environment_of(tmp_path, PORT=port, HIPPO_DEMO="0")
    script = "set -eu\n" + "\n".join(lines_of("Give an agent a memory in five minutes"))

    with product(environment):
        output = run(script, environment)

    answers = [json.loads(line) for line in output.splitlines() if line]
    saved, _, fits, silent, tools, updated, recalled, mings, bobs = answers
    assert saved["name"] == "Short answers"
    assert fits["memory_context"].splitlines()[-3:] == [
        "[project] 支付模块重构",
        "联调排在 12 月 3 日，错误码由周宁负责。",
        "</memory-context>",
    ]
    assert fits["system_prompt"].endswith(fits["memory_context"])
    assert silent["memory_context"] == ""
    assert [tool["function"]["name"] for tool in tools["tools"]] == ["memory_save", "memory_recall"]
    assert updated["result"] == {**updated["result"], "action": "updated", "id": saved["id"]}
    assert "in Chinese before noon" in recalled["text"]
    assert len(mings["results"]) == 2
    assert bobs["results"] == []


def children(process):
    """The processes that ./run started, by what they are."""
    listed = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True
    )
    rows = (line.split(None, 1) for line in listed.stdout.splitlines())
    names = {"gunicorn": "web", "config worker": "worker", "config beat": "beat"}
    return {
        name: int(pid) for pid, command in rows for text, name in names.items() if text in command
    }


def test_a_process_that_dies_is_started_again_and_takes_no_other_with_it(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    environment = environment_of(tmp_path, PORT=port, HIPPO_DEMO="0")

    with product(environment) as process:
        before = children(process)
        os.kill(before["worker"], signal.SIGKILL)
        until = time.monotonic() + 30
        while children(process).get("worker") in {None, before["worker"]}:
            assert time.monotonic() < until
            time.sleep(0.2)
        after = children(process)
        answer = run(f"curl -sS http://127.0.0.1:{port}/healthz", environment)

    assert (after["web"], after["beat"]) == (before["web"], before["beat"])
    assert json.loads(answer)["status"] == "ok"


@pytest.mark.parametrize("backend", ["sqlite", "mysql"])
def test_readme_shows_prefetch_and_recall_on_real_conversations(backend, tmp_path, mysql_url):
    lines = lines_of("Try it on real conversations")
    environment = environment_of(tmp_path)
    if backend == "mysql":
        environment["MYSQL_URL"] = mysql_url
        lines[0] = lines[0].replace("--backend sqlite", "--backend mysql")

    create, chinese, english, prefetch, recall, silent = (run(line, environment) for line in lines)

    assert create.splitlines()[-1].startswith("hippo_")
    assert "231 created" in chinese
    assert "233 created" in english
    assert prefetch.startswith("<memory-context>\n")
    assert "《流浪地球》" in prefetch
    assert "One Hundred Years of Solitude" in recall
    assert re.search(r"^3 memories in [\d.]+ ms, warm$", recall, re.MULTILINE)
    assert silent == ""
