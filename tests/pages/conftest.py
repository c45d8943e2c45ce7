"""The product as `./run` starts it, with its demo people, in a real browser."""

import re
import sqlite3
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.memory.installation import fresh_mysql, mysql_cursor
from tests.pages import chromium
from tests.pages.site import add_account, manage, started

_PATIENCE_MS = 20_000
"""Three workers, their browsers and their servers may share two processors."""
expect.set_options(timeout=_PATIENCE_MS)
CHROMIUM = chromium.find()  # here, for where playwright runs already it cannot be asked


@pytest.fixture(scope="session")
def browser_type_launch_args():
    assert CHROMIUM, "Run the tests with ./run test: it installs chromium."
    return {"executable_path": CHROMIUM, "args": ["--no-sandbox", "--disable-quic"]}


on_both_engines = pytest.mark.parametrize("site", ["sqlite", "mysql"], indirect=True)


@pytest.fixture
def site(request):
    """Where the product listens, and the passwords of its demo people.

    Its agents live in SQLite; a test that is marked `on_both_engines` runs on MySQL too.
    """
    return request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_site")


@pytest.fixture(scope="session")
def sqlite_site(tmp_path_factory):
    with started(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(scope="session")
def mysql_site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    with fresh_mysql() as url, started(folder, MYSQL_URL=url) as site:
        manage(site, "shell", "-c", _MOVE_ALL)
        assert _memories_in_mysql(url) > 60
        assert _memories_in_sqlite(folder) == 0
        yield site
        assert _memories_in_sqlite(folder) == 0


_MOVE_ALL = """
from django.core.management import call_command
for agent in Agent.objects.all():
    call_command("move_memories", agent.name, to="mysql")
    call_command("move_memories", agent.name, confirm=True)
"""


@pytest.fixture
def newcomer(site):
    """The name of a new account, whom no agent knows yet."""
    name = f"erin{len(site.passwords)}"
    add_account(site, name)
    return name


def _memories_in_mysql(url):
    with mysql_cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {urlsplit(url).path[1:]}.memory_memory")
        return cursor.fetchone()[0]


def _memories_in_sqlite(folder):
    with closing(sqlite3.connect(folder / "memory" / "memory.db")) as connection:
        return connection.execute("SELECT COUNT(*) FROM memory_memory").fetchone()[0]


@pytest.fixture
def browse(browser, site):
    """Open pages as somebody: browse("tom", locale="zh-CN", …); nothing may go wrong in them.

    A console error, a violation of the content policy, an error of a script or a request
    to anywhere else fails the test at its end.
    """
    contexts, faults = [], []
    sessions = site.sessions

    def watch(page):
        page.on("console", lambda said: _is_fault(said) and faults.append(said.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda sent: _is_elsewhere(sent.url, site) and faults.append(sent.url))

    def open_as(name, *, locale="en-US", width=1280, height=800, **options):
        context = browser.new_context(
            locale=locale,
            viewport={"width": width, "height": height},
            storage_state=sessions.get(name),
            **options,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(_PATIENCE_MS)
        watch(page)
        page.goto(f"{site.url}/memories/")
        # the second time somebody comes the session is still there, unless a test ended it
        if name and "/login/" in page.url:
            page.fill("input[name=login]", name)
            page.fill("input[name=password]", site.passwords[name])
            page.click("main form.h-form button[type=submit]")
            page.wait_for_url("**/memories/")
            if site.keeps_sessions:
                sessions[name] = context.storage_state()
        return page

    yield open_as
    for context in contexts:
        context.close()
    assert faults == []


def _is_fault(said):
    # that an answer was a no is what the browser says of it, and no fault of the page
    is_answer = re.search(r"(status of|Error Code) (403|404|409|422|429)", said.text)
    return said.type == "error" and not is_answer


def _is_elsewhere(url, site):
    return not url.startswith((site.url, "data:", "blob:"))
