"""Memories as rows of a table (CSV), as spreadsheets write and read it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from typing import IO, Any

from agents.models import Agent
from memory.models import Memory
from memory.services.transfers.cells import (
    COLUMNS,
    field_of,
    guarded,
    record_of,
    texts_of,
    unguarded,
)

BOM = "\ufeff"
"""Excel takes a file without it for one in the encoding of its country."""
_MAX_CELL_CHARS = 1_000_000
_DELIMITERS = ",;\t"


class NotATable(Exception):
    """The file has no heading that names a column of contents."""


def write_rows(file: IO[str], memories: Iterable[tuple[Agent, Memory]]) -> Iterator[int]:
    """Write memories below a heading; yield 1 for each."""
    writer = csv.writer(file)
    file.write(BOM)
    writer.writerow(COLUMNS)
    for agent, memory in memories:
        texts = {**texts_of(memory), "agent": agent.name}
        # a spreadsheet would round an id
        cells = [f"'{texts[name]}" if name == "id" else guarded(texts[name]) for name in COLUMNS]
        writer.writerow(cells)
        yield 1


def read_rows(file: IO[str]) -> Iterator[tuple[int, list[str], dict[str, Any]]]:
    """Yield each row as (its first line's number, its cells, the record that it is).

    Raises NotATable, and csv.Error where the file is none.
    """
    csv.field_size_limit(_MAX_CELL_CHARS)
    heading, delimiter = _heading(file)
    names = [field_of(cell) for cell in heading]
    if "content" not in names:
        raise NotATable
    reader = csv.reader(file, delimiter=delimiter)
    line = 2
    for cells in reader:
        if any(cells):
            texts = {
                name: unguarded(cell) for name, cell in zip(names, cells, strict=False) if name
            }
            yield line, cells, record_of(texts)
        line = reader.line_num + 2


def heading_of(file: IO[str]) -> list[str]:
    """Return the cells of the heading. Raises csv.Error."""
    return _heading(file)[0]


def _heading(file: IO[str]) -> tuple[list[str], str]:
    first = file.readline(_MAX_CELL_CHARS).removeprefix(BOM)
    delimiter = max(_DELIMITERS, key=first.count)
    return next(csv.reader([first], delimiter=delimiter), []), delimiter
