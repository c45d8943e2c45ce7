"""Stores: which query goes where, how a store is opened, and what refuses to be one."""

import socket
import sqlite3
import sys
import threading
from contextlib import closing

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections, transaction

from agents.fields import ExactCharField, ExactTextField, exact_collation
from agents.models import Agent
from memory import databases, fts
from memory.databases import MemoryRouter, store_alias
from memory.errors import StoreNotOpen, UnknownMemory, UnscopedQuery
from memory.fields import TermsField
from memory.filters import MemoryFilter
from memory.models import (
    AgentDay,
    IdempotencyRecord,
    Memory,
    MemoryRevision,
    MemoryTerms,
    MemoryVector,
    NodeLease,
    Scope,
    ScopeDay,
    Store,
)
from memory.services import maintenance, memories
from tests.conftest import MING, NOW, make_agent
from tests.memory.installation import (
    Installation,
    crew,
    fresh_mysql,
    lasting_paths,
    mysql_cursor,
)
from tests.memory.test_concurrency import first_saves

SQLITE = "sqlite:memory.db"
MEMORY_MODELS = [
    Memory, MemoryTerms, MemoryRevision, Scope, Store, IdempotencyRecord, ScopeDay, AgentDay,
    MemoryVector,
]  # fmt: skip


# --- the router ------------------------------------------------------------------------


@pytest.mark.parametrize("model", MEMORY_MODELS)
@pytest.mark.parametrize(
    "query",
    [
        lambda model: model.objects.count(),
        lambda model: list(model.objects.filter(pk=1)),
        lambda model: model.objects.filter(pk=1).delete(),
        lambda model: model(pk=1).save(),
    ],
    ids=["count", "read", "delete", "save"],
)
def test_query_that_names_no_agent_raises(ada, model, query):
    with pytest.raises(UnscopedQuery):
        query(model)


def test_query_of_an_agent_goes_to_its_store(ada, grace):
    assert Memory.objects.for_agent(ada).db == SQLITE
    assert Memory.objects.in_scope(grace, "ming").db == "mysql"
    assert Scope.objects.of_user(grace, "ming").db == "mysql"


def test_what_belongs_to_a_memory_is_read_where_the_memory_is(agent, remember):
    memory = remember(agent, "ming", "Ming deploys on Fridays")
    memories.update(agent, "ming", memory.pk, {"content": "Thursdays"}, actor=MING, now=NOW)

    found = memories.get(agent, "ming", memory.pk)

    alias = store_alias(agent)
    assert found.revisions.get()._state.db == alias
    assert found.scope._state.db == alias
    assert found.indexed._state.db == alias


def test_rows_of_two_stores_cannot_relate(ada, grace, remember):
    in_sqlite = remember(ada, "ming", "Ming deploys on Fridays")
    in_mysql = remember(grace, "ming", "Ming deploys on Fridays")

    with pytest.raises(ValueError, match="router prevents"):
        in_sqlite.scope = in_mysql.scope


def test_control_plane_is_in_default_and_a_store_holds_memories_alone(ada, grace):
    router = MemoryRouter()
    control_plane = {
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if model._meta.app_label != "memory" or model is NodeLease
    }
    memory_tables = {model._meta.db_table for model in MEMORY_MODELS}

    tables = {alias: set(connections[alias].introspection.table_names()) for alias in connections}

    assert router.db_for_read(Agent) is router.db_for_write(NodeLease) is None
    assert control_plane | memory_tables <= tables[DEFAULT_DB_ALIAS]
    assert tables["mysql"] == memory_tables | {"django_migrations"}
    assert {name for name in tables[SQLITE] if not name.startswith("memory_terms_")} == (
        memory_tables | {"django_migrations"}
    )


# --- late aliases ----------------------------------------------------------------------


@pytest.fixture
def own_connections(monkeypatch):
    """Let a test register aliases that are forgotten after it."""
    monkeypatch.setattr(connections, "settings", connections.settings)


def test_late_alias_has_every_setting_that_a_first_one_has(own_connections, tmp_path):
    databases._register("sqlite:late.db", tmp_path / "late.db")

    late, first = (connections.settings[each] for each in ("sqlite:late.db", DEFAULT_DB_ALIAS))
    assert set(late) >= set(first) - {"TEST"}
    assert set(late["TEST"]) >= {"CHARSET", "COLLATION", "MIGRATE", "MIRROR", "NAME"}


def test_aliases_registered_at_once_are_all_kept_and_disturb_nobody(own_connections, tmp_path):
    names = [[f"sqlite:{part}-{n}.db" for n in range(100)] for part in range(4)]
    errors = []
    is_done = threading.Event()

    def look():
        try:
            while not is_done.is_set():
                for alias in connections:
                    assert connections.settings[alias]["ENGINE"]
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    def register(part):
        for alias in names[part]:
            databases._register(alias, tmp_path / "late.db")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        lookers = [threading.Thread(target=look) for _ in range(2)]
        writers = [threading.Thread(target=register, args=[part]) for part in range(4)]
        for thread in [*lookers, *writers]:
            thread.start()
        for thread in writers:
            thread.join()
        is_done.set()
        for thread in lookers:
            thread.join()
    finally:
        sys.setswitchinterval(interval)

    assert errors == []
    assert {alias for part in names for alias in part} <= set(connections)


# --- what is in force ------------------------------------------------------------------


@pytest.mark.parametrize("alias", [DEFAULT_DB_ALIAS, SQLITE])
def test_sqlite_runs_with_wal_full_sync_and_patience(ada, alias):
    found = {}
    with connections[alias].cursor() as cursor:
        for pragma in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys"):
            cursor.execute(f"PRAGMA {pragma}")
            [found[pragma]] = cursor.fetchone()

    full = 2
    assert found == {
        "journal_mode": "wal",
        "synchronous": full,
        "busy_timeout": 30_000,
        "foreign_keys": 1,
    }


@pytest.mark.parametrize("alias", [DEFAULT_DB_ALIAS, SQLITE])
def test_sqlite_transaction_takes_the_write_lock_at_its_begin(ada, alias):
    path = connections[alias].settings_dict["NAME"]

    with closing(sqlite3.connect(path, timeout=0)) as other, transaction.atomic(using=alias):
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        assert other.execute("SELECT count(*) FROM django_migrations").fetchone() > (0,)


def test_mysql_runs_strict_read_committed_in_utf8mb4(grace):
    with connections["mysql"].cursor() as cursor:
        cursor.execute("SELECT @@transaction_isolation, @@character_set_connection, @@sql_mode")
        isolation, charset, mode = cursor.fetchone()

    assert (isolation, charset) == ("READ-COMMITTED", "utf8mb4")
    assert "STRICT_TRANS_TABLES" in mode


# --- who sees what ---------------------------------------------------------------------


def test_two_agents_in_one_file_see_nothing_of_each_other(ada, remember, names_found):
    eve = make_agent("eve", "sqlite")
    memory = remember(ada, "ming", "Ming deploys on Fridays")
    remember(eve, "ming", "Ming likes tea")
    done = {"actor": MING, "now": NOW}

    assert store_alias(ada) == store_alias(eve)
    assert names_found(eve, "ming", "deploys") == []
    assert [each.name for each in memories.list_page(eve, "ming").memories] == ["Ming likes tea"]
    assert [each.name for each in memories.walk(eve)] == ["Ming likes tea"]
    assert memories.touch(eve, "ming", [memory.pk], now=NOW) == 0
    for call in (
        lambda: memories.get(eve, "ming", memory.pk),
        lambda: memories.history(eve, "ming", memory.pk),
        lambda: memories.update(eve, "ming", memory.pk, {"content": "stolen"}, **done),
        lambda: memories.trash(eve, "ming", memory.pk, **done),
        lambda: memories.restore(eve, "ming", memory.pk, **done),
        lambda: memories.purge(eve, "ming", memory.pk),
    ):
        with pytest.raises(UnknownMemory):
            call()
    assert memories.trash_matching(eve, "ming", MemoryFilter(), **done) == 1
    assert names_found(ada, "ming", "deploys") == ["Ming deploys on Fridays"]


def test_agent_with_a_file_of_its_own_shares_nothing(installation):
    installation.run("create_agents", agents={"own": ["sqlite", "own.db"]})

    lived = installation.run("live", agent="own")

    path = installation.memory_dir / "own.db"
    assert lived["alias"] == "sqlite:own.db"
    assert lived["file"] == str(path)
    assert lived["restored"] == ["支付模块周五上线"]
    with closing(sqlite3.connect(path)) as store:
        assert store.execute("SELECT count(*) FROM memory_memory").fetchone() == (1,)
    found = installation.run("inspect", agent="ada")
    assert found["memories"] == []


def test_user_ids_compare_exactly(agent, remember, names_found):
    users = ["u1", "U1", "u1 ", "ú1", "u1\u200b", "ｕ1", "u\u03011"]
    for number, user_id in enumerate(users):
        remember(agent, user_id, f"deploys on day {number}")

    for number, user_id in enumerate(users):
        listed = memories.list_page(agent, user_id).memories
        assert [each.content for each in listed] == [f"deploys on day {number}"]
        assert names_found(agent, user_id, "deploys") == [f"deploys on day {number}"]
    assert Scope.objects.for_agent(agent).count() == len(users)


# --- the index after a schema change ---------------------------------------------------


def broken_by_lost_triggers(connection):
    with connection.cursor() as cursor:
        for name in fts._TRIGGERS:
            cursor.execute(f"DROP TRIGGER {name}")


def broken_by_remake(connection):
    """Remake the table, as Django does for most schema changes on SQLite."""
    with connection.schema_editor() as editor:
        editor._remake_table(MemoryTerms)


def broken_by_loss(connection):
    with connection.cursor() as cursor:
        for statement in fts.drop_statements(connection):
            cursor.execute(statement)


@pytest.mark.parametrize(
    ("alias", "broken"),
    [
        (SQLITE, broken_by_lost_triggers),
        (SQLITE, broken_by_remake),
        (SQLITE, broken_by_loss),
        ("mysql", broken_by_loss),
    ],
)
def test_migrate_restores_a_broken_index(ada, grace, remember, names_found, alias, broken):
    agent = ada if alias == SQLITE else grace
    erased = remember(agent, "ming", "Ming likes tea")
    broken(connections[alias])
    assert not fts.has_index(connections[alias])
    remember(agent, "ming", "Ming deploys on Fridays")
    memories.purge(agent, "ming", erased.pk)

    call_command("migrate", "memory", database=alias, verbosity=0)

    assert fts.has_index(connections[alias])
    assert names_found(agent, "ming", "deploys tea") == ["Ming deploys on Fridays"]
    assert list(maintenance.check(agent)) == []
    remember(agent, "ming", "Bob deploys on Mondays")
    assert len(names_found(agent, "ming", "deploys")) == 2


# --- states ----------------------------------------------------------------------------


def set_state(agent, state):
    alias = store_alias(agent)
    with transaction.atomic(using=alias):
        Store.objects.using(alias).update_or_create(agent_id=agent.pk, defaults={"state": state})
        Scope.objects.for_agent(agent).update(state=state)


def all_rows(agent):
    alias = store_alias(agent)
    return {
        model: list(model.objects.using(alias).order_by("pk").values()) for model in MEMORY_MODELS
    }


@pytest.mark.parametrize("state", ["frozen", "moved"])
def test_store_that_is_not_open_refuses_every_write_and_reads_on(
    agent, remember, names_found, state
):
    memory = remember(agent, "ming", "Ming deploys on Fridays")
    trashed = remember(agent, "ming", "Ming likes tea")
    done = {"actor": MING, "now": NOW}
    memories.trash(agent, "ming", trashed.pk, **done)
    set_state(agent, state)
    before = all_rows(agent)
    writes = {
        "save": lambda: remember(agent, "ming", "late"),
        "save of a new user": lambda: remember(agent, "bob", "late"),
        "save_batch": lambda: memories.save_batch(agent, "bob", [], now=NOW),
        "update": lambda: memories.update(agent, "ming", memory.pk, {"content": "late"}, **done),
        "reinforce": lambda: memories.reinforce(agent, "ming", memory.pk, 0.1, **done),
        "trash": lambda: memories.trash(agent, "ming", memory.pk, **done),
        "trash_matching": lambda: memories.trash_matching(agent, "ming", MemoryFilter(), **done),
        "restore": lambda: memories.restore(agent, "ming", trashed.pk, **done),
        "purge": lambda: memories.purge(agent, "ming", memory.pk),
    }

    for write in writes.values():
        with pytest.raises(StoreNotOpen, match=state):
            write()
    assert memories.touch(agent, "ming", [memory.pk], now=NOW) == 0

    assert all_rows(agent) == before
    assert names_found(agent, "ming", "deploys") == ["Ming deploys on Fridays"]
    assert memories.get(agent, "ming", memory.pk).content == "Ming deploys on Fridays"
    assert len(memories.list_page(agent, "ming").memories) == 1
    assert len(memories.history(agent, "ming", trashed.pk)) == 1
    assert len(list(memories.walk(agent))) == 2


def test_new_agent_whose_store_is_frozen_cannot_begin(agent, remember):
    set_state(agent, "frozen")

    with pytest.raises(StoreNotOpen):
        remember(agent, "ming", "Ming deploys on Fridays")
    assert not Scope.objects.for_agent(agent).exists()


def test_freeze_of_one_agent_leaves_its_neighbour_open(agent, remember):
    neighbour = make_agent("eve", agent.memory_config.backend)
    remember(neighbour, "ming", "Ming likes tea")
    set_state(agent, "frozen")

    remember(neighbour, "ming", "Ming deploys on Fridays")
    remember(neighbour, "bob", "Bob deploys on Mondays")

    assert len(list(memories.walk(neighbour))) == 3


# --- paths -----------------------------------------------------------------------------


def test_no_path_leads_out_of_the_memory_folder(installation, tmp_path):
    folder = installation.memory_dir
    installation.run("create_agents", agents={"mallory": ["sqlite", ""]})
    links = {
        "control.db": folder.parent / "hippo.sqlite3",
        "out.db": tmp_path / "stolen.db",
    }
    folder.mkdir(exist_ok=True)
    for name, target in links.items():
        (folder / name).symlink_to(target)
    (folder / "inner").mkdir()
    (folder / "folder.db").mkdir()
    paths = [
        "../hippo.sqlite3",
        "../outside.db",
        "inner/../../outside.db",
        "inner/deep.db",
        str(tmp_path / "absolute.db"),
        str(folder.parent / "hippo.sqlite3"),
        "notes.txt",
        "memory.db-wal",
        ".db",
        "",
        ".",
        "folder.db",
        *links,
    ]
    before = lasting_paths(folder.parent)

    outcome = installation.run("confine", agent="mallory", paths=paths)

    refused = {
        path for path, error in outcome.items() if error and error[0] == "BackendUnavailable"
    }
    assert refused == set(paths), {path: outcome[path] for path in set(paths) - refused}
    assert all("choose a plain file name" in error for _, error in outcome.values())
    assert lasting_paths(folder.parent) == before
    assert [*tmp_path.iterdir()] == []


# --- at once ---------------------------------------------------------------------------


def test_six_processes_that_open_a_new_store_at_once_all_succeed(installation):
    agents = [f"crowd{number}" for number in range(3)]
    installation.run("create_agents", agents={name: ["sqlite", f"{name}.db"] for name in agents})

    errors = first_saves(installation, agents, 6)

    assert errors == []
    for name in agents:
        found = installation.run("inspect", agent=name, tokens=False)
        assert len(found["memories"]) == 12
        assert found["faults"] == []


@pytest.mark.parametrize("alias", [DEFAULT_DB_ALIAS, "mysql"])
def test_six_processes_that_migrate_at_once_all_succeed(tmp_path, alias):
    with fresh_mysql() as mysql_url:
        installed = Installation(tmp_path, MYSQL_URL=mysql_url)
        with crew(installed.start("migrate_at_once", alias=alias) for _ in range(6)) as processes:
            for process in processes:
                process.go()

            tables = [process.rest()[-1] for process in processes]

    assert all("memory_memoryterms" in each for each in tables)


def test_secret_key_is_made_once_by_processes_that_start_at_once(tmp_path):
    code = (
        "import json, sys; print('\"ready\"', flush=True); sys.stdin.readline();"
        "from config.settings import SECRET_KEY; print(json.dumps(SECRET_KEY))"
    )
    for number in range(3):
        installed = Installation(tmp_path / str(number))
        with crew(installed.python(code) for _ in range(6)) as processes:
            for process in processes:
                process.go()

            keys = {process.rest()[-1] for process in processes}

        path = installed.data_dir / "secret_key"
        assert keys == {path.read_text()}
        assert len(path.read_text()) >= 50
        assert path.stat().st_mode & 0o077 == 0


# --- MySQL -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def all_mysql(tmp_path_factory):
    """An installation with `default` on MySQL and no MYSQL_URL; yields it and its database."""
    with fresh_mysql() as url:
        installed = Installation(tmp_path_factory.mktemp("data"), DATABASE_URL=url)
        installed.run("prepare", agents={"grace": ["mysql", ""], "ada": ["sqlite", ""]})
        yield installed, url.rpartition("/")[2]


@pytest.mark.parametrize(
    ("agent", "alias"), [("grace", DEFAULT_DB_ALIAS), ("ada", SQLITE)], ids=["mysql", "sqlite"]
)
def test_everything_works_with_default_on_mysql(all_mysql, agent, alias):
    installed, _ = all_mysql

    lived = installed.run("live", agent=agent)

    assert lived["alias"] == alias
    assert lived["saved"] == lived["restored"] == ["支付模块周五上线"]
    assert lived["trashed"] == []
    assert installed.run("inspect", agent=agent, tokens=False)["faults"] == []
    assert installed.run("obstacle") is None
    assert not (installed.data_dir / "hippo.sqlite3").exists()


def test_agent_names_compare_exactly_on_mysql(all_mysql):
    installed, _ = all_mysql
    names = ["Ada", "ADA", "adá", "ａda"]

    installed.run("create_agents", agents={name: ["mysql", ""] for name in names})

    assert installed.run("try_agents", agents=names) == dict.fromkeys(names)


def test_columns_have_their_collation_on_mysql(all_mysql, grace):
    _, database = all_mysql
    exact = exact_collation(connections["mysql"])
    expected = {
        (model._meta.db_table, field.column): "ascii_bin" if field.column == "terms" else exact
        for model in apps.get_models()
        for field in model._meta.local_fields
        if isinstance(field, ExactCharField | ExactTextField | TermsField)
    }

    with mysql_cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, collation_name FROM information_schema.columns "
            "WHERE table_schema = %s",
            [database],
        )
        found = {(table, column): collation for table, column, collation in cursor.fetchall()}

    exactly = {("memory_scope", "user_id"), ("memory_memory", "name"), ("agents_agent", "name")}
    assert exactly | {("memory_memoryterms", "terms")} <= expected.keys()
    assert {column: found[column] for column in expected} == expected


@pytest.fixture(params=["not configured", "no server", "silent server", "no driver", "bad driver"])
def without_mysql(request, tmp_path):
    """An installation that cannot use MySQL, and words of the reason that it must give."""
    modules = tmp_path / "modules"
    modules.mkdir()
    url = {"MYSQL_URL": "mysql://app:app@127.0.0.1:3306/hippo", "PYTHONPATH": str(modules)}
    with closing(socket.socket()) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        reachable = {"MYSQL_URL": f"mysql://app:app@127.0.0.1:{port}/hippo"}
        if request.param == "not configured":
            variables, reason = {}, "set MYSQL_URL=mysql://"
        elif request.param == "no server":
            variables, reason = reachable, "MySQL does not answer"
        elif request.param == "silent server":
            server.listen()
            variables, reason = reachable, "MySQL does not answer"
        elif request.param == "no driver":
            (modules / "sitecustomize.py").write_text("import sys; sys.modules['MySQLdb'] = None")
            variables, reason = url, "apt install default-libmysqlclient-dev"
        else:
            # what a driver says whose library was removed
            (modules / "MySQLdb").mkdir()
            (modules / "MySQLdb" / "__init__.py").write_text("raise ImportError('libmysql.so')")
            variables, reason = url, "apt install default-libmysqlclient-dev"
        yield Installation(tmp_path / "data", **variables), reason


def test_without_mysql_the_reason_is_said_and_sqlite_works(without_mysql):
    installed, reason = without_mysql
    agents = {"ada": ["sqlite", ""], "grace": ["mysql", ""]}
    # grace was made while there was MySQL
    installed.run("prepare", agents=agents, with_mysql=False)

    # at once, for each may wait for as long as a server may take to answer
    asking = installed.start("obstacle")
    trying = installed.start("try_agents", agents=["grace", "ada"])
    with asking, trying:
        status, said = installed.manage("create_agent", "eve", "--backend", "mysql")
        obstacle, tried = asking.rest()[-1], trying.rest()[-1]

    assert reason in obstacle
    assert reason in said
    assert status != 0
    assert "Traceback" not in said
    assert tried["ada"] is None
    # a server that is down may be back at the next save; the rest is a matter of configuration
    assert tried["grace"][0] in {"OperationalError", "BackendUnavailable"}
    assert reason in tried["grace"][1] or "answer" in reason


@pytest.mark.parametrize("without_mysql", ["no server"], indirect=True)
def test_migrate_stores_goes_on_where_mysql_is_down(without_mysql):
    installed, reason = without_mysql
    agents = {"ada": ["sqlite", "own.db"], "grace": ["mysql", ""]}
    installed.run("prepare", agents=agents, with_mysql=False)

    _, said = installed.manage("migrate_stores")

    assert (installed.memory_dir / "own.db").exists()
    assert reason in said
    assert "Traceback" not in said


# --- settings --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LANGUAGE_CODE", "fr"),
        ("DATABASE_URL", "postgres://app@127.0.0.1/hippo"),
        ("DATABASE_URL", "hippo.sqlite3"),
        # in memory: all would be lost at the end of each process
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_URL", "sqlite://:memory:"),
        ("DATABASE_URL", "mysql://app:app@127.0.0.1"),
        ("MYSQL_URL", "postgres://app@127.0.0.1/hippo"),
        ("MYSQL_URL", "sqlite:///hippo.db"),
        ("MYSQL_URL", "mysql://app:app@127.0.0.1"),
        ("MYSQL_URL", "mysql://app:app@127.0.0.1:port/hippo"),
        ("DEBUG", "maybe"),
    ],
)
def test_wrong_setting_stops_the_start_and_is_named(tmp_path, name, value):
    installed = Installation(tmp_path, PYTHONWARNINGS="default", **{name: value})
    with installed.python("import config.settings") as process:
        said = process.errors()

    assert "ImproperlyConfigured" in said
    assert name in said.splitlines()[-1]


def test_mysql_for_default_without_a_driver_stops_the_start(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['MySQLdb'] = None")
    variables = {"DATABASE_URL": "mysql://app@127.0.0.1/hippo", "PYTHONPATH": str(tmp_path)}

    with Installation(tmp_path / "data", **variables).python("import config.settings") as process:
        said = process.errors()

    assert "ImproperlyConfigured: DATABASE_URL" in said
    assert "apt install default-libmysqlclient-dev" in said


def test_a_store_that_is_gone_is_missed_and_not_made_anew(tmp_path):
    installation = Installation(tmp_path)
    assert installation.manage("migrate_stores")[0] == 0
    assert installation.manage("create_agent", "ada")[0] == 0
    store, lock = (installation.memory_dir / name for name in ("memory.db", "memory.db.lock"))
    for path in installation.memory_dir.glob("memory.db*"):
        if path != lock:
            path.unlink()

    status, said = installation.manage("check_memory")

    assert status == 1
    assert "is gone" in said
    assert str(lock) in said
    assert not store.exists()

    lock.unlink()

    assert installation.manage("check_memory")[0] == 0
