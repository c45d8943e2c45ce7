"""The README's lines work as they stand, on both engines."""

import os
import re
import subprocess
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


@pytest.mark.parametrize("backend", ["sqlite", "mysql"])
def test_readme_shows_prefetch_and_recall_on_real_conversations(backend, tmp_path, mysql_url):
    lines = lines_of("Try it on real conversations")
    of_the_tests = {"MYSQL_URL", "DJANGO_SETTINGS_MODULE"}
    environment = {name: value for name, value in os.environ.items() if name not in of_the_tests}
    environment["DATA_DIR"] = str(tmp_path)
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
