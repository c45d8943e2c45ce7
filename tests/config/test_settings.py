"""What the settings make of the environment, in a process that has loaded nothing yet."""

import stat

import pytest

from tests.memory.installation import Installation


def settings_of(tmp_path, *names, **variables):
    """Start with these variables and nothing else; return the settings called `names`."""
    code = (
        "import json, config.settings as settings; "
        f"print(json.dumps([getattr(settings, name, None) for name in {names!r}], default=str))"
    )
    with Installation(tmp_path / "data", **variables).python(code) as process:
        return process.read()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# --- folders and the key ---------------------------------------------------------------


def test_every_folder_is_for_its_owner_alone(tmp_path):
    settings_of(tmp_path)

    folders = [tmp_path / "data", *(path for path in tmp_path.rglob("*") if path.is_dir())]
    assert {path.name for path in folders} >= {"data", "queue", "messages", "control"}
    assert {str(path.relative_to(tmp_path)): oct(mode(path)) for path in folders} == {
        str(path.relative_to(tmp_path)): "0o700" for path in folders
    }


def test_secret_key_is_kept_for_its_owner_alone(tmp_path):
    [first] = settings_of(tmp_path, "SECRET_KEY")
    [second] = settings_of(tmp_path, "SECRET_KEY")

    path = tmp_path / "data" / "secret_key"
    assert first == second == path.read_text()
    assert len(first) >= 50
    assert mode(path) == 0o600
    assert [each.name for each in path.parent.iterdir() if each.is_file()] == ["secret_key"]


def test_each_installation_has_a_key_of_its_own(tmp_path):
    keys = [settings_of(tmp_path / name, "SECRET_KEY") for name in ("one", "other")]

    assert keys[0] != keys[1]


def test_secret_key_of_the_environment_is_written_nowhere(tmp_path):
    given = "given-" + "k" * 50

    assert settings_of(tmp_path, "SECRET_KEY", SECRET_KEY=given) == [given]
    assert not (tmp_path / "data" / "secret_key").exists()


def test_empty_secret_key_stops_the_start(tmp_path):
    settings_of(tmp_path)
    (tmp_path / "data" / "secret_key").write_text("")

    with Installation(tmp_path / "data").python("import config.settings") as process:
        said = process.errors()

    assert "ImproperlyConfigured" in said
    assert "secret_key is empty" in said


# --- what is safe by default -----------------------------------------------------------


def test_defaults_are_those_of_production(tmp_path):
    debug, hosts, origins, frames = settings_of(
        tmp_path, "DEBUG", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "X_FRAME_OPTIONS"
    )

    assert debug is False
    assert hosts == ["localhost", "127.0.0.1", "[::1]"]
    assert origins == []
    assert frames == "DENY"


def test_hosts_and_debug_are_taken_from_the_environment(tmp_path):
    debug, hosts, origins = settings_of(
        tmp_path,
        "DEBUG",
        "ALLOWED_HOSTS",
        "CSRF_TRUSTED_ORIGINS",
        DEBUG="true",
        ALLOWED_HOSTS="hippo.example,10.0.0.7",
        CSRF_TRUSTED_ORIGINS="https://hippo.example",
    )

    assert debug is True
    assert hosts == ["hippo.example", "10.0.0.7"]
    assert origins == ["https://hippo.example"]


@pytest.mark.parametrize(
    "hosts", [{}, {"ALLOWED_HOSTS": "hippo.example"}], ids=["default", "given"]
)
def test_other_hosts_are_refused(tmp_path, hosts):
    code = (
        "import django, json; from django.conf import settings; "
        "settings.STORAGES['staticfiles']['BACKEND'] = "
        "'django.contrib.staticfiles.storage.StaticFilesStorage'; "
        "django.setup(); "
        "from django.test import Client; "
        "statuses = [Client().get('/healthz', headers={'host': host}).status_code "
        "for host in ('localhost', 'hippo.example', 'evil.example')]; "
        "print(json.dumps(statuses))"
    )
    variables = {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "LOG_LEVEL": "CRITICAL",
        # a fresh checkout has collected no static files, which is no matter here; nor above
        "PYTHONWARNINGS": "error,ignore:No directory at:UserWarning",
        **hosts,
    }

    with Installation(tmp_path / "data", **variables).python(code) as process:
        assert process.read() == ([400, 200, 400] if hosts else [200, 400, 400])


# --- the broker ------------------------------------------------------------------------

BROKER = ("CELERY_BROKER_URL", "CELERY_BROKER_TRANSPORT_OPTIONS")


def test_broker_is_a_folder_of_the_data_by_default(tmp_path):
    url, options = settings_of(tmp_path, *BROKER)

    queue = tmp_path / "data" / "queue"
    assert url == "filesystem://"
    assert options["data_folder_in"] == options["data_folder_out"] == str(queue / "messages")
    assert (queue / "messages").is_dir()
    assert (queue / "control").is_dir()


def test_redis_is_used_where_it_is_given(tmp_path):
    url, options = settings_of(tmp_path, *BROKER, BROKER_URL="redis://127.0.0.1:6379/3")

    assert (url, options) == ("redis://127.0.0.1:6379/3", None)
    assert not (tmp_path / "data" / "queue").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BROKER_URL", "nonsense://127.0.0.1"),
        ("BROKER_URL", "127.0.0.1:6379"),
        ("TIME_ZONE", "Mars/Olympus"),
        ("LOG_LEVEL", "LOUD"),
        ("EMBEDDING_QUERY_SECONDS", "0"),
    ],
)
def test_wrong_value_stops_the_start_and_is_said(tmp_path, name, value):
    variables = {"DJANGO_SETTINGS_MODULE": "config.settings", name: value}

    with Installation(tmp_path, **variables).python("import django; django.setup()") as process:
        said = process.errors()

    assert "Error" in said or "ImproperlyConfigured" in said
    assert value in said


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"EMBEDDING_KEY": "sk-1"}, "need EMBEDDING_URL"),
        ({"EMBEDDINGS": "endpoint"}, "needs EMBEDDING_URL"),
        (
            {"EMBEDDING_URL": "https://h", "EMBEDDING_KEY": "sk secret"},
            "EMBEDDING_KEY holds a space",
        ),
        ({"CHAT_PROVIDER": "openai", "CHAT_URL": "https://h"}, "needs CHAT_MODEL"),
        ({"CHAT_KEY": "sk-1"}, "need CHAT_PROVIDER"),
    ],
)
def test_half_a_model_stops_the_start_without_a_word_of_its_key(tmp_path, variables, said):
    variables = {"DJANGO_SETTINGS_MODULE": "config.settings", **variables}

    with Installation(tmp_path, **variables).python("import django; django.setup()") as process:
        errors = process.errors()

    assert said in errors
    assert "secret" not in errors.replace("secret_key", "").replace("_secret_key", "")


@pytest.mark.parametrize("name", ["a#1", "a?b", "a%41b", "数据 目录"])
def test_folder_of_any_name_holds_its_own_control_database(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()

    status, said = Installation(folder).manage("migrate_stores")

    assert status == 0, said
    assert (folder / "hippo.sqlite3").exists()


def test_wrong_setting_is_one_line_of_the_command(tmp_path):
    status, said = Installation(tmp_path, LANGUAGE_CODE="zh").manage("check")

    assert status == 1
    assert said.strip() == "LANGUAGE_CODE must be zh-hans or en."
