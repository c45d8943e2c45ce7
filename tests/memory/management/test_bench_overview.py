"""The benchmark of the overview runs, with numbers too small to say anything."""

import re

import pytest
from django.core.management import CommandError, call_command

from memory.management import bench_overview

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")


def test_few_and_many_memories_are_compared_by_the_same_number_of_queries(capsys):
    call_command(
        "bench_overview", "--rows", "6,60", "--agents", "3", "--rounds", "2", "--per-user", "10"
    )

    table = capsys.readouterr().out
    for name in bench_overview.PAGES:
        line = re.search(rf"^{re.escape(name)}\s+(.*)$", table, re.MULTILINE)[1].split()
        of_few, of_many = line[5].split("/")
        assert of_few == of_many, name


@pytest.mark.parametrize("options", [["--rows", "300"], ["--rows", "0,2"], ["--rounds", "1"]])
def test_what_cannot_be_measured_is_refused(options):
    with pytest.raises(CommandError, match=options[0]):
        call_command("bench_overview", *options)
