"""Every string of the interface has its Chinese, and what is compiled is what is written."""

import subprocess
from gettext import GNUTranslations
from pathlib import Path

from django.core.management import call_command
from django.utils.translation import gettext, override

ROOT = Path(__file__).resolve().parent.parent
CATALOG = Path("locale/zh_Hans/LC_MESSAGES/django.po")


def entries(path):
    listed = subprocess.run(
        ["msgattrib", "--no-location", "--no-wrap", "--sort-output", path],
        capture_output=True,
        check=True,
        text=True,
    )
    return listed.stdout.partition("\n\n")[2]


def messages(compiled):
    with compiled.open("rb") as file:
        return GNUTranslations(file)._catalog


def test_every_string_is_translated(tmp_path, monkeypatch):
    # a copy: makemessages rewrites the catalog it finds
    for folder in ("agents", "memory", "config", "templates", "locale"):
        subprocess.run(["cp", "-r", ROOT / folder, tmp_path], check=True)
    monkeypatch.chdir(tmp_path)
    with override("en"):
        call_command("makemessages", locale=["zh_Hans"], no_obsolete=True, verbosity=0)

    assert entries(tmp_path / CATALOG) == entries(ROOT / CATALOG)
    for fault in ("--untranslated", "--only-fuzzy"):
        found = subprocess.run(
            ["msgattrib", fault, tmp_path / CATALOG], capture_output=True, check=True, text=True
        )
        assert "\n#: " not in found.stdout


def test_the_compiled_catalog_is_the_written_one(tmp_path):
    compiled = tmp_path / "django.mo"
    subprocess.run(["msgfmt", "--check", "-o", compiled, ROOT / CATALOG], check=True)

    assert messages(compiled) == messages((ROOT / CATALOG).with_suffix(".mo"))


def test_the_admin_speaks_chinese():
    with override("zh-hans"):
        assert gettext("API keys") == "API 密钥"
