"""The commands: what they print where, and what they leave when they fail."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress

import pytest
from django.conf import settings as configured
from django.core.management import CommandError, call_command

from agents.auth import find_key
from agents.models import Agent, ApiKey, MemoryConfig
from memory.databases import store_alias
from memory.drafts import MemoryDraft
from memory.management.commands import export_memories
from memory.models import Memory, MemoryTerms, Scope, Store
from memory.services import memories
from memory.services.context import prefetch
from memory.services.transfers.transfer import export_lines
from tests.conftest import NOW, make_agent
from tests.memory.installation import ROOT, Installation, lasting_paths, mysql_cursor
from tests.memory.rows import row_counts

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")

TEA = {"user_id": "ming", "type": "user", "content": "Ming drinks green tea"}


@pytest.fixture
def run(capsys):
    """Run a command; return what it printed to stdout, and nothing may be on stderr."""

    def call(*arguments):
        call_command(*map(str, arguments))
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return call


@pytest.fixture
def refused(capsys):
    """Run a command that must fail; return its error, with nothing on stdout."""

    def call(*arguments):
        with pytest.raises(CommandError) as caught:
            call_command(*map(str, arguments))
        assert capsys.readouterr().out == ""
        return str(caught.value)

    return call


def write(path, *records):
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records), encoding="utf-8")
    return path


def manage(installed, *arguments):
    """Run a command in a process of its own, its output and its errors apart."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=installed.env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


# --- naming an agent -------------------------------------------------------------------

NEEDS_AGENT = [
    ("recall", "nobody", "ming", "tea"),
    ("prefetch", "nobody", "ming", "tea"),
    ("export_memories", "--agent", "nobody"),
    ("import_memories", "nowhere.jsonl", "--agent", "nobody"),
    ("check_memory", "nobody"),
    ("reindex_memory", "nobody"),
]


def test_unknown_agent_is_told_which_there_are(refused):
    for command in NEEDS_AGENT:
        assert "create_agent" in refused(*command)

    make_agent("ada", "sqlite")
    make_agent("小满", "mysql")

    for command in NEEDS_AGENT:
        error = refused(*command)
        assert "nobody" in error
        assert "ada, 小满" in error


def test_malformed_user_is_refused(ada, refused):
    for command in ("recall", "prefetch"):
        for user_id in ("", "m" * 256):
            assert "user_id" in refused(command, "ada", user_id, "tea")


# --- create_agent ----------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["sqlite", "mysql"])
def test_last_line_is_the_key_of_the_new_agent(run, backend):
    out = run("create_agent", "小满-2.0", "--backend", backend, "--display-name", "Xiǎo Mǎn",
              "--language", "en")  # fmt: skip

    *said, key = out.splitlines()
    found = find_key(key, now=NOW)
    agent = found.agent
    assert (agent.name, agent.display_name, agent.language) == ("小满-2.0", "Xiǎo Mǎn", "en")
    assert agent.memory_config.backend == backend
    assert found.user_id == ""
    assert store_alias(agent) in said[0]
    memories.save(agent, "ming", MemoryDraft("user", "tea", "tea"), now=NOW)
    assert len(list(export_lines(agent))) == 1


def test_key_can_be_bound_to_a_user(run):
    key = run("create_agent", "ada", "--user", "ming ").splitlines()[-1]

    assert find_key(key, now=NOW).user_id == "ming "


REFUSED = [
    [""], ["two words"], ["../ada"], ["."], ["a" * 101], ["ada\n"],
    ["ada", "--sqlite-path", "../hippo.db"], ["ada", "--sqlite-path", "/tmp/hippo.db"],
    ["ada", "--sqlite-path", "hippo.sqlite3"], ["ada", "--language", "fr"],
    ["ada", "--user", "m" * 256], ["ada", "--backend", "postgres"],
    ["ada", "--sqlite-path", "linked.db"],
]  # fmt: skip


def test_agent_that_is_refused_leaves_nothing(refused, subtests):
    folder = configured.MEMORY_DIR
    link = folder / "linked.db"
    link.symlink_to(folder.parent / "elsewhere.db")
    before = sorted(folder.iterdir())
    try:
        for arguments in REFUSED:
            with subtests.test(" ".join(arguments)):
                assert refused("create_agent", *arguments)

                left = [model.objects.count() for model in (Agent, MemoryConfig, ApiKey)]
                Agent.objects.all().delete()
                assert left == [0, 0, 0]
                assert sorted(folder.iterdir()) == before
    finally:
        link.unlink()


def test_taken_name_is_refused_and_the_agent_stays_as_it_is(run, refused):
    key = run("create_agent", "ada").splitlines()[-1]

    assert refused("create_agent", "ada", "--backend", "mysql")

    assert [agent.memory_config.backend for agent in Agent.objects.all()] == ["sqlite"]
    assert find_key(key, now=NOW).agent == Agent.objects.get()
    assert ApiKey.objects.count() == 1


# --- import and export -----------------------------------------------------------------


def test_export_to_stdout_is_lines_of_json_and_nothing_else(agent, run, remember):
    remember(agent, "ming", "支付模块\u2028周五上线")
    remember(agent, "bob", "Bob drinks tea")

    out = run("export_memories", "--agent", agent.name)
    of_bob = run("export_memories", "--agent", agent.name, "--user", "bob")

    assert out.removesuffix("\n").split("\n") == list(export_lines(agent))
    assert [json.loads(line)["user_id"] for line in of_bob.splitlines()] == ["bob"]
    with pytest.raises(CommandError, match="no memories of user nobody"):
        run("export_memories", "--agent", agent.name, "--user", "nobody")


def test_export_to_a_file_and_import_from_it(agent, run, remember, tmp_path):
    for content in ("支付模块周五上线", "Ming drinks tea"):
        remember(agent, "ming", content)
    path = tmp_path / "out.jsonl"

    said = run("export_memories", path, "--agent", agent.name)

    assert path.read_text(encoding="utf-8").splitlines() == list(export_lines(agent))
    assert path.stat().st_mode & 0o777 == 0o600
    assert said == f"2 memories written to {path}\n"
    assert list(tmp_path.iterdir()) == [path]
    make_agent("eve", "mysql" if agent.memory_config.backend == "sqlite" else "sqlite")
    assert run("import_memories", path, "--agent", "eve").startswith("2 created, 0 updated")
    again = run("import_memories", path, "--agent", "eve")
    assert again == "0 created, 0 updated, 2 unchanged, 0 newer here, 0 bad lines\n"
    assert run("export_memories", "--agent", "eve") == path.read_text(encoding="utf-8")


def test_import_can_give_all_to_one_user(ada, run, tmp_path):
    path = write(tmp_path / "in.jsonl", TEA, {**TEA, "user_id": "bob"})

    run("import_memories", path, "--agent", "ada", "--user", "mallory")

    assert [each.scope.user_id for each in memories.walk(ada)] == ["mallory", "mallory"]


def test_import_reads_from_a_pipe(ada, run, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    text = "".join(f"{json.dumps({**TEA, 'content': f'tea {number}'})}\n" for number in range(250))
    writer = threading.Thread(target=path.write_text, args=[text])
    writer.start()

    out = run("import_memories", path, "--agent", "ada")

    writer.join()
    assert out.startswith("250 created")
    assert row_counts(ada)["Memory"] == 250


def test_import_reports_bad_lines_with_file_and_number(ada, capsys, tmp_path):
    """Field case C032: the good lines are stored, and the bad file is named."""
    path = write(tmp_path / "in.jsonl", TEA, {**TEA, "type": "nonsense"}, {**TEA, "content": None})

    call_command("import_memories", str(path), "--agent", "ada")

    out, err = capsys.readouterr()
    assert out == "1 created, 0 updated, 0 unchanged, 0 newer here, 2 bad lines\n"
    first, second = err.splitlines()
    assert "line 2" in first
    assert "line 3" in second
    assert path.name in err
    assert row_counts(ada)["Memory"] == 1


def test_import_tells_what_became_of_taken_ids(ada, run, remember, tmp_path):
    path = tmp_path / "out.jsonl"
    for number in range(25):
        remember(ada, "ming", f"tea {number}")
    run("export_memories", path, "--agent", "ada")
    make_agent("eve", "sqlite")

    out = run("import_memories", path, "--agent", "eve").splitlines()

    assert out[0].startswith("25 created")
    assert [line.split(":")[0] for line in out[1:21]] == [f"line {n}" for n in range(1, 21)]
    assert out[21:] == ["… and 5 lines more"]


def test_file_that_cannot_be_read_is_named(ada, refused, tmp_path):
    for name in ("nowhere.jsonl", "no/where.jsonl", "."):
        path = tmp_path / name

        assert str(path) in refused("import_memories", path, "--agent", "ada")


def test_file_that_cannot_be_written_is_named_and_nothing_is_left(ada, refused, remember, tmp_path):
    remember(ada, "ming", "Ming drinks tea")
    (tmp_path / "folder").mkdir()
    for name in ("no/where.jsonl", "n" * 300, "folder"):
        path = tmp_path / name

        assert str(path) in refused("export_memories", path, "--agent", "ada")

        assert [each.name for each in tmp_path.rglob("*")] == ["folder"]


def test_old_file_stays_when_an_export_fails(ada, remember, tmp_path, monkeypatch):
    remember(ada, "ming", "Ming drinks tea")
    path = tmp_path / "out.jsonl"
    path.write_text("the export of yesterday")

    def fail(*args):
        yield from export_lines(*args)
        raise RuntimeError("in the middle")

    monkeypatch.setattr(export_memories, "export_lines", fail)

    with pytest.raises(RuntimeError, match="in the middle"):
        call_command("export_memories", str(path), "--agent", "ada")

    assert path.read_text() == "the export of yesterday"
    assert list(tmp_path.iterdir()) == [path]


# --- recall and prefetch ---------------------------------------------------------------


def test_recall_prints_ranked_memories_with_scores(agent, run, remember):
    tea = remember(agent, "ming", "Ming drinks\ngreen tea after lunch", name="Tea")
    remember(agent, "ming", "Ming deploys on Fridays", name="Deploys")
    remember(agent, "bob", "Bob drinks green tea", name="Bob's tea")

    lines = run("recall", agent.name, "ming", "tea at noon").splitlines()

    score, head = lines[0].split("  ")
    assert 0 < float(score) <= 1
    assert head == "[user] Tea"
    assert lines[1].strip() == "Ming drinks green tea after lunch"
    assert lines[2].strip() == f"id {tea.pk} · matched tea"
    assert lines[3].startswith("1 memory in ")
    assert lines[3].endswith(" ms, warm")
    assert len(lines) == 4


def test_recall_takes_a_limit_a_least_score_and_half_a_word(agent, run, remember):
    for number in range(4):
        remember(agent, "ming", f"Ming deploys number {number}")

    def count(*options):
        return run("recall", agent.name, "ming", *options).splitlines()[-1].split()[0]

    assert count("deploys") == "4"
    assert count("deploys", "--limit", "2") == "2"
    assert count("deploys", "--min-score", "1.0") == "0"
    assert count("depl") == "0"
    assert count("depl", "--as-you-type") == "4"
    assert count("quantum") == count("") == "0"


def test_prefetch_prints_the_block_and_nothing_else(agent, run, remember):
    remember(agent, "ming", "Ming drinks green tea after lunch", name="Tea")

    out = run("prefetch", agent.name, "ming", "Which tea does Ming drink?")

    assert out == prefetch(agent, "ming", "Which tea does Ming drink?", now=NOW).block + "\n"
    assert "[user] Tea" in out


def test_prefetch_of_nothing_prints_nothing(agent, run, remember):
    remember(agent, "ming", "Ming drinks green tea after lunch", name="Tea")

    assert run("prefetch", agent.name, "ming", "quantum chromodynamics") == ""
    assert run("prefetch", agent.name, "nobody", "tea") == ""


def test_prefetch_with_memory_off_says_so_beside_the_output(agent, capsys, remember):
    remember(agent, "ming", "Ming drinks green tea after lunch", name="Tea")
    MemoryConfig.objects.filter(agent=agent).update(enabled=False)

    call_command("prefetch", agent.name, "ming", "green tea")

    out, err = capsys.readouterr()
    assert out == ""
    assert agent.name in err


# --- upkeep ----------------------------------------------------------------------------


def test_check_fails_on_a_fault_and_reindex_mends_it(agent, run, capsys, remember):
    remember(agent, "ming", "Ming drinks tea")
    broken = remember(agent, "ming", "Ming deploys on Fridays")
    assert run("check_memory") == f"{agent.name}: 2 memories checked\nNo faults.\n"
    MemoryTerms.objects.using(store_alias(agent)).filter(pk=broken.pk).delete()

    with pytest.raises(CommandError, match="reindex_memory") as caught:
        call_command("check_memory", agent.name)

    out, err = capsys.readouterr()
    assert caught.value.returncode == 1
    assert out == f"{agent.name}: 2 memories checked\n"
    assert f"{agent.name}/ming memory {broken.pk}: " in err
    assert run("reindex_memory", agent.name) == f"{agent.name}: 2 memories reindexed\n"
    assert run("check_memory", agent.name).endswith("No faults.\n")


def test_agents_are_checked_and_reindexed_by_name_or_all(ada, grace, run, remember):
    for agent in (ada, grace):
        remember(agent, "ming", "Ming drinks tea")

    assert run("reindex_memory").splitlines() == [
        "ada: 1 memories reindexed",
        "grace: 1 memories reindexed",
    ]
    assert run("check_memory", "grace", "ada").splitlines() == [
        "grace: 1 memories checked",
        "ada: 1 memories checked",
        "No faults.",
    ]
    assert run("reindex_memory", "grace") == "grace: 1 memories reindexed\n"


def test_stores_are_migrated_again_and_again(ada, grace, run):
    expected = ["default: up to date", "mysql: up to date", "sqlite:memory.db: up to date"]

    assert run("migrate_stores").splitlines() == expected
    assert run("migrate_stores").splitlines() == expected


def test_demo_is_loaded_once_and_its_logins_are_written_for_the_owner(run, settings, tmp_path):
    settings.DATA_DIR = tmp_path

    first, second = run("load_demo"), run("load_demo")

    path = tmp_path / "demo-logins.txt"
    assert path.read_text() == first
    assert path.stat().st_mode & 0o777 == 0o600
    assert [line.split()[:3] for line in first.splitlines()] == [
        ["superuser", "olga", "password"],
        ["user", "meilin", "password"],
        ["user", "tom", "password"],
    ]
    assert second == "The demo is there already.\n"


# --- evaluate --------------------------------------------------------------------------


@pytest.fixture
def sets(tmp_path):
    """A folder with one small labelled set."""
    folder = tmp_path / "sets"
    folder.mkdir()
    question = {"scope": "ming", "query": "green tea", "lang": "en"}
    write(folder / "tea.memories.jsonl", {**TEA, "id": "tea"})
    write(
        folder / "tea.queries.jsonl",
        {**question, "qid": "1", "relevant": ["tea"]},
        {**question, "qid": "2", "relevant": ["nowhere"], "category": "adversarial"},
    )
    return folder


def test_evaluation_prints_a_table_and_writes_json(run, sets, tmp_path, settings):
    settings.EVALUATIONS_DIR = tmp_path / "evaluations"
    path = tmp_path / "figures.json"

    out = run("evaluate", sets, "--json", path)

    figures = json.loads(path.read_text())
    assert [(each["set"], each.get("group"), each["backend"]) for each in figures] == [
        ("tea", "", "sqlite"),
        ("tea", "adversarial", "sqlite"),
        ("mean", None, "sqlite"),
        ("tea", "", "mysql"),
        ("tea", "adversarial", "mysql"),
        ("mean", None, "mysql"),
    ]
    assert [each["nDCG@10"] for each in figures] == [1, 0, 1, 1, 0, 1]
    assert figures[0]["queries"] == 1
    lines = [line.split() for line in out.splitlines()]
    assert lines[0][:8] == ["set", "lang", "backend", "queries", "recall@5", "recall@10",
                            "MRR@10", "nDCG@10"]  # fmt: skip
    assert lines[1][:11] == ["tea", "en", "sqlite", "1", *["1.000"] * 6, "0.000"]
    assert lines[4] == ["Threshold", "0.28;", "answered", "by:", "lexical."]
    assert lines[-1] == ["greatest", "difference", *["0.000"] * 8]
    assert Agent.objects.count() == 0


def test_evaluation_is_compared_with_the_last_of_its_kind(run, sets, tmp_path, settings):
    settings.EVALUATIONS_DIR = tmp_path / "evaluations"
    ask = ("evaluate", sets, "--backend", "sqlite", "--mode", "lexical", "--compare")
    assert "no earlier run" in run(*ask)
    assert "changes since" in run(*ask)

    with pytest.raises(CommandError, match=r"tea en on sqlite: recall 1\.000 → 0\.000") as worse:
        run(*ask, "--threshold", "0.9999")

    assert worse.value.returncode == 1
    run(*ask, "--threshold", "0.9999", "--tolerance", "1")
    assert len((tmp_path / "evaluations" / "runs.jsonl").read_text().splitlines()) == 4


def test_evaluation_at_no_score_is_refused(refused, sets):
    assert "--threshold" in refused("evaluate", sets, "--threshold", "1.5")


def test_evaluation_on_one_engine(run, sets, tmp_path, settings):
    settings.EVALUATIONS_DIR = tmp_path / "evaluations"
    out = run("evaluate", sets, "--backend", "mysql")

    assert "mysql" in out
    assert "sqlite" not in out


def test_folder_without_a_set_is_refused(refused, tmp_path):
    assert str(tmp_path) in refused("evaluate", tmp_path)


def test_malformed_question_is_refused_by_file_and_line(refused, sets):
    with (sets / "tea.queries.jsonl").open("a") as file:
        file.write("nonsense\n")

    assert "tea.queries.jsonl, line 3" in refused("evaluate", sets)


def test_malformed_memory_is_refused_by_file_and_line(sets):
    with (sets / "tea.memories.jsonl").open("a") as file:
        file.write("nonsense\n")

    with pytest.raises(CommandError, match=r"tea\.memories\.jsonl, line 2"):
        call_command("evaluate", str(sets), "--backend", "sqlite")

    assert Agent.objects.count() == 0


@pytest.mark.parametrize("category", ["adversarial", None])
def test_set_without_a_question_to_measure_has_no_mean(sets, category):
    question = {"qid": "1", "scope": "ming", "query": "tea", "relevant": [], "category": category}
    write(sets / "tea.queries.jsonl", *([question] if category else []))

    # to refuse it or to print no mean: either will do
    with suppress(CommandError):
        call_command("evaluate", str(sets), "--backend", "sqlite")

    assert Agent.objects.count() == 0


def test_figures_that_cannot_be_written_are_refused(sets, tmp_path):
    path = tmp_path / "no" / "where.json"

    with pytest.raises(CommandError, match=r"where\.json"):
        call_command("evaluate", str(sets), "--backend", "sqlite", "--json", str(path))


# --- bench_search ----------------------------------------------------------------------


def test_benchmark_of_no_size_is_refused(refused):
    for rows in ("many", "10,", "999", "1000,1"):
        assert "row" in refused("bench_search", "--backend", "sqlite", "--rows", rows)


def test_benchmark_leaves_no_file_no_row_and_no_database(installation, tmp_path):
    # the command as it is, with a smaller corpus and fewer rounds
    code = f"""
import django, json, pathlib, sys
django.setup()
from django.core.management import call_command
from memory.management import bench
bench._TEXTS, bench.REPEATS, bench._SAVES = 1_000, 1, 5
for backend, rows in (("sqlite", "1000,2000"), ("mysql", "1000")):
    out = pathlib.Path({str(tmp_path)!r}, backend)
    call_command("bench_search", backend=backend, rows=rows, json=out, stdout=sys.stderr)
print(json.dumps("done"))
"""
    installation.env["DJANGO_SETTINGS_MODULE"] = "config.settings"
    installation.run("live", agent="ada")
    before = everything_in(installation)

    with installation.python(code) as process:
        assert process.rest() == ["done"]

    assert everything_in(installation) == before
    kinds = ("rare word", "common word", "sentence", "save", "duplicates")
    for backend, sizes in (("sqlite", (1_000, 2_000)), ("mysql", (1_000,))):
        figures = json.loads((tmp_path / backend).read_text())
        assert [(each["backend"], each["rows"], each["kind"]) for each in figures] == [
            (backend, rows, kind) for rows in sizes for kind in kinds
        ]
        assert all(each["search_ms"] > 0 for each in figures)


def test_benchmark_compares_meaning_with_words(installation, tmp_path):
    out = tmp_path / "figures"
    code = f"""
import django, json, pathlib, sys
django.setup()
from django.core.management import call_command
from memory.management import bench
bench._TEXTS, bench.REPEATS, bench._SAVES = 1_000, 1, 5
bench.SCOPE_SIZE = 50
call_command("bench_search", mode="hybrid", backend="sqlite", rows="50,100",
             json=pathlib.Path({str(out)!r}), stdout=sys.stderr)
print(json.dumps("done"))
"""
    installation.run("live", agent="ada")
    installation.env |= {"DJANGO_SETTINGS_MODULE": "config.settings", "EMBEDDINGS": "embedded"}
    before = everything_in(installation)

    with installation.python(code) as process:
        assert process.rest() == ["done"]

    assert everything_in(installation) == before
    figures = json.loads(out.read_text())
    late = ("nothing cached", "after a save", "after its vector")
    kinds = ("rare word", "common word", "sentence", *late, "save")
    assert [(each["rows"], each["kind"]) for each in figures] == [
        (rows, kind) for rows in (50, 100) for kind in kinds
    ]
    assert all("lexical_ms" in each for each in figures if each["kind"].endswith(("word", "ence")))


def test_benchmark_without_a_model_says_so(refused):
    assert "EMBEDDINGS=embedded" in refused("bench_search", "--mode", "hybrid")


def test_comparison_without_its_packages_says_how_to_get_them(refused, sets):
    message = refused("bench_peers", str(sets))

    assert "chromadb" in message
    assert "./run bench_peers" in message


def everything_in(installed):
    """Return the installation's files, its MySQL databases, and the rows of both stores."""
    tables = [model._meta.db_table for model in (Memory, MemoryTerms, Scope, Store)]
    found = [sorted(path.name for path in lasting_paths(installed.data_dir))]
    name = installed.env["MYSQL_URL"].rpartition("/")[2]
    with mysql_cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        found.append([each for (each,) in cursor.fetchall() if name in each])
        for table in tables:
            cursor.execute(f"SELECT COUNT(*) FROM {name}.{table}")
            found.append(cursor.fetchone())
    with closing(sqlite3.connect(installed.memory_dir / "memory.db")) as store:
        counts = [store.execute(f"SELECT COUNT(*) FROM {table}").fetchone() for table in tables]
    return found + counts


# --- in a process of their own ---------------------------------------------------------


def test_life_of_an_agent_by_commands_alone(tmp_path):
    installed = Installation(tmp_path / "data")
    path = write(tmp_path / "in.jsonl", TEA)

    done = [
        manage(installed, "migrate_stores"),
        manage(installed, "create_agent", "ada", "--sqlite-path", "ada.db", "--language", "en"),
        manage(installed, "create_agent", "eve", "--sqlite-path", "eve.db"),
        manage(installed, "import_memories", str(path), "--agent", "ada"),
        manage(installed, "prefetch", "ada", "ming", "Which green tea?"),
        manage(installed, "export_memories", "--agent", "ada"),
        manage(installed, "migrate_stores"),
    ]

    assert [(each.returncode, each.stderr) for each in done] == [(0, "")] * len(done)
    _, ada, eve, imported, found, exported, migrated = (each.stdout for each in done)
    assert all(out.splitlines()[-1].startswith("hippo_") for out in (ada, eve))
    assert imported.startswith("1 created")
    assert found.startswith("<memory-context>\n")
    assert found.endswith("</memory-context>\n")
    assert [json.loads(line)["content"] for line in exported.splitlines()] == [TEA["content"]]
    assert migrated.splitlines() == [
        "default: up to date",
        "sqlite:ada.db: up to date",
        "sqlite:eve.db: up to date",
    ]


@pytest.fixture(scope="module")
def migrated(tmp_path_factory):
    """An installation of its own, without MySQL and without an agent."""
    installed = Installation(tmp_path_factory.mktemp("data"))
    installed.run("prepare", agents={}, with_mysql=False)
    return installed


def count_agents(installed):
    with closing(sqlite3.connect(installed.data_dir / "hippo.sqlite3")) as default:
        return default.execute("SELECT count(*) FROM agents_agent").fetchone()[0]


def test_agent_for_mysql_that_is_not_configured_leaves_nothing(migrated):
    refused = manage(migrated, "create_agent", "grace", "--backend", "mysql")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "MYSQL_URL=mysql://" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert count_agents(migrated) == 0


def test_agent_whose_file_is_no_database_leaves_nothing(migrated):
    notes = migrated.memory_dir / "notes.db"
    notes.parent.mkdir(exist_ok=True)
    text = "Ming's notes, which are no database. " * 50
    notes.write_text(text)

    refused = manage(migrated, "create_agent", "ada", "--sqlite-path", "notes.db")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "notes.db" in refused.stderr
    assert count_agents(migrated) == 0
    assert notes.read_text() == text


def test_check_counts_orphans_though_another_agent_has_a_fault(ada, run, remember):
    remember(ada, "ming", "支付模块周五上线")
    gone = Agent.objects.create_agent("gone", backend="sqlite")
    remember(gone, "bob", "Bob drinks tea")
    Scope.objects.for_agent(gone).update(agent_id=987_654)
    Scope.objects.for_agent(ada).update(memory_count=7)

    with pytest.raises(CommandError, match="2 faults"):
        run("check_memory")


# --- bench_api -------------------------------------------------------------------------


def test_benchmark_of_the_api_shows_both_engines_and_leaves_nothing(installation, tmp_path):
    code = f"""
import django, json, pathlib, sys
django.setup()
from django.core.management import call_command
from memory.management import bench
from memory.management.commands import bench_api
bench._TEXTS, bench_api._ROUNDS = 1_000, 1
out = pathlib.Path({str(tmp_path)!r}, "out.json")
call_command("bench_api", seconds=1.0, json=out, stdout=sys.stderr)
print(json.dumps("done"))
"""
    installation.env["DJANGO_SETTINGS_MODULE"] = "config.settings"
    installation.run("live", agent="ada")
    before = everything_in(installation)

    with installation.python(code) as process:
        assert process.rest() == ["done"]

    assert everything_in(installation) == before
    rows = json.loads((tmp_path / "out.json").read_text())
    assert [row["backend"] for row in rows] == ["sqlite", "mysql"]
    for row in rows:
        assert row["errors"] == 0
        assert row["calls"] >= 16
        assert row["ratio"] == pytest.approx(row["recall_ms"] / row["bare_ms"])
