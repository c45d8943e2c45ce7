"""Querysets compiled once a connection and run many times with other values.

For the few queries and updates of the hot path: Django takes several times as long to compile
one of them as the database takes to answer it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from django.db import connections, models
from django.db.models.sql import UpdateQuery

Row = TypeVar("Row", bound=models.Model)
_MARKED_TIME = datetime(1111, 11, 11, 11, 11, 11, tzinfo=UTC)
_MARKED_NUMBER = -7_111_111_111_111_000


@dataclass(frozen=True, slots=True)
class _Compiled:
    sql: str
    parameters: tuple[Any, ...]
    places: tuple[tuple[int, int], ...]
    compiler: Any
    converters: Any


def run(
    key: Hashable,
    build: Callable[..., models.QuerySet[Any]],
    values: Sequence[int | str | datetime],
    alias: str,
    *,
    convert: bool = True,
) -> list[Sequence[Any]]:
    """Return the rows of `build(*values)`, converted as Django does or as the driver gives them.

    `key` stands for the shape of the query: calls with the same key must build the same
    SQL. Every value must stand in it as a parameter, once or more, as it is.
    """

    def compiler_of(*marks: Any) -> Any:
        return build(*marks).query.get_compiler(alias)

    compiled, parameters = _filled(key, compiler_of, values, alias)
    with connections[alias].cursor() as cursor:
        cursor.execute(compiled.sql, parameters)
        rows: Iterable[Any] = cursor.fetchall()
    if convert and compiled.converters:
        rows = compiled.compiler.apply_converters(rows, compiled.converters)
    return list(rows)


def instances(model: type[Row], rows: Iterable[Sequence[Any]], alias: str) -> list[Row]:
    """Return model instances of rows that hold all of the model's columns in order."""
    names = [column.attname for column in model._meta.concrete_fields]
    return [model.from_db(alias, names, row) for row in rows]


def update(
    key: Hashable,
    build: Callable[..., tuple[models.QuerySet[Any], Mapping[str, Any]]],
    values: Sequence[int | str | date],
    alias: str,
) -> int:
    """Change the rows that `build(*values)` returns as it says beside them; return how many.

    `key` and `values` are as for `run`.
    """

    def compiler_of(*marks: Any) -> Any:
        rows, changes = build(*marks)
        query = rows.query.chain(UpdateQuery)
        query.add_update_values(changes)  # type: ignore[attr-defined]
        return query.get_compiler(alias)

    compiled, parameters = _filled(key, compiler_of, values, alias)
    with connections[alias].cursor() as cursor:
        cursor.execute(compiled.sql, parameters)
        return int(cursor.rowcount)


def _filled(
    key: Hashable, compiler_of: Callable[..., Any], values: Sequence[Any], alias: str
) -> tuple[_Compiled, list[Any]]:
    """Return what is compiled under `key`, or is so now, and its parameters with the values."""
    connection = connections[alias]
    prepared: dict[Hashable, _Compiled] = connection.__dict__.setdefault("hippo_prepared", {})
    compiled = prepared.get(key)
    if compiled is None:
        compiled = prepared[key] = _compile(compiler_of, values, alias)
    parameters = list(compiled.parameters)
    for place, index in compiled.places:
        parameters[place] = _adapted(values[index], connection)
    return compiled, parameters


def _compile(compiler_of: Callable[..., Any], values: Sequence[Any], alias: str) -> _Compiled:
    """Compile the query with marks for values and note where each mark ended up."""
    connection = connections[alias]
    marks = [_mark(index, value) for index, value in enumerate(values)]
    compiler = compiler_of(*marks)
    sql, parameters = compiler.as_sql()
    index_of = {_adapted(mark, connection): index for index, mark in enumerate(marks)}
    places = tuple(
        (place, index_of[parameter])
        for place, parameter in enumerate(parameters)
        if parameter in index_of
    )
    if {index for _, index in places} != set(range(len(values))):
        raise ValueError("A value of a prepared query is not among its parameters.")
    columns = [column for column, _, _ in compiler.select or ()]  # an update has none
    converters = compiler.get_converters(columns)
    return _Compiled(sql, tuple(parameters), places, compiler, converters)


def _mark(index: int, value: Any) -> Any:
    if isinstance(value, datetime):
        return _MARKED_TIME + timedelta(days=index)
    if isinstance(value, date):
        return _MARKED_TIME.date() + timedelta(days=index)
    if isinstance(value, str):
        return f"\x02{index}\x03"
    return _MARKED_NUMBER - index


def _adapted(value: Any, connection: Any) -> Any:
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    if isinstance(value, date):
        return connection.ops.adapt_datefield_value(value)
    return value
