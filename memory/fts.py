"""The two full-text engines: expressions that query them, operations that build them.

Both index one column, `MemoryTerms.terms`, of words that the analyzer made; all raw SQL
of the project is here. FTS5 holds only the index (external content, detail=none: terms
need no positions) and is kept up by triggers; InnoDB keeps its own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, OperationalError, connections, models, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.operations.base import Operation
from django.db.models.expressions import Func
from django.db.models.lookups import GreaterThan, Lookup

logger = logging.getLogger(__name__)

TERMS_TABLE = "memory_memoryterms"
FTS_TABLE = "memory_terms_fts"
VOCABULARY = "memory_terms_vocabulary"
FULLTEXT_INDEX = "memory_terms_fulltext"

_TRIGGERS = {
    "memory_terms_fts_insert": f"""
        AFTER INSERT ON {TERMS_TABLE} BEGIN
            INSERT INTO {FTS_TABLE}(rowid, terms) VALUES (new.memory_id, new.terms);
        END""",
    "memory_terms_fts_delete": f"""
        AFTER DELETE ON {TERMS_TABLE} BEGIN
            INSERT INTO {FTS_TABLE}({FTS_TABLE}, rowid, terms)
            VALUES ('delete', old.memory_id, old.terms);
        END""",
    "memory_terms_fts_update": f"""
        AFTER UPDATE OF memory_id, terms ON {TERMS_TABLE} BEGIN
            INSERT INTO {FTS_TABLE}({FTS_TABLE}, rowid, terms)
            VALUES ('delete', old.memory_id, old.terms);
            INSERT INTO {FTS_TABLE}(rowid, terms) VALUES (new.memory_id, new.terms);
        END""",
}


@dataclass(frozen=True, slots=True)
class TermQuery:
    """Encoded terms any of which must occur; each of `prefixes` begins a further one."""

    terms: tuple[str, ...]
    prefixes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms or self.prefixes)

    def occurs_in(self, terms: str) -> bool:
        """Return whether what is indexed as `terms` matches."""
        held = set(terms.split())
        is_held = not held.isdisjoint(self.terms)
        return is_held or any(term.startswith(self.prefixes) for term in held)

    def fts5(self) -> str:
        """Return the FTS5 expression: quoted, so that no term can be an operator."""
        quoted = [f'"{term}"' for term in self.terms]
        quoted += [f'"{prefix}"*' for prefix in self.prefixes]
        return " OR ".join(quoted)

    def fulltext(self) -> str:
        """Return MySQL's text: bare words, with `*` behind a prefix (boolean mode only)."""
        return " ".join([*self.terms, *(f"{prefix}*" for prefix in self.prefixes)])


class FTS5Match(Func):
    """Condition: the rowid `expression` is that of a row whose terms match, by FTS5.

    The subquery runs once; its rows are then fetched by rowid.
    """

    template = f"%(expressions)s IN (SELECT rowid FROM {FTS_TABLE} WHERE {FTS_TABLE} MATCH %%s)"
    output_field = models.BooleanField()

    def __init__(self, expression: Any, text: str) -> None:
        super().__init__(expression)
        self.text = text

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> Any:
        """Return the condition and its parameters."""
        sql, parameters = super().as_sql(compiler, connection, *args, **extra)
        return sql, [*parameters, self.text]


class MatchAgainst(Func):
    """InnoDB's relevance of the terms in the column `expression`; above 0 where any match.

    Natural-language mode, since boolean mode raises on everyday punctuation; boolean
    mode for a prefix, where every word is the analyzer's plain ASCII.
    """

    output_field = models.FloatField()

    def __init__(self, expression: Any, text: str, *, has_prefix: bool = False) -> None:
        super().__init__(expression)
        self.text = text
        self.mode = "BOOLEAN" if has_prefix else "NATURAL LANGUAGE"

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> Any:
        """Return the expression and its parameters."""
        template = f"MATCH (%(expressions)s) AGAINST (%%s IN {self.mode} MODE)"
        sql, parameters = super().as_sql(compiler, connection, template=template)
        return sql, [*parameters, self.text]


def match_text(query: TermQuery, alias: str) -> str:
    """Return `query` in the language of the engine behind `alias`."""
    return query.fts5() if connections[alias].vendor == "sqlite" else query.fulltext()


def matches(text: str, alias: str, *, has_prefix: bool = False) -> Func | Lookup:
    """Return the condition on `Memory` rows for a text made by `match_text`."""
    if connections[alias].vendor == "sqlite":
        return FTS5Match(models.F("id"), text)
    # a comparison: of a bare condition Django makes `= TRUE`, which scans the table
    relevance = MatchAgainst(models.F("indexed__terms"), text, has_prefix=has_prefix)
    return GreaterThan(relevance, 0.0)


def finds_at_once(alias: str) -> bool:
    """Return whether the engine finds each row from the moment at which it is committed.

    While several connections write and search, be it in other tables, InnoDB misses a row for up
    to some 15 ms that a plain SELECT sees already: about one search in 20,000 that follows a
    save at once (measured with MySQL 9.7.4, three connections, two processors).
    """
    return connections[alias].vendor == "sqlite"


def document_counts(terms: Iterable[str], alias: str) -> dict[str, int]:
    """Return for each of `terms` how many memories hold it, exactly; one statement.

    Terms carry their scope, so the count is the scope's own.
    """
    terms = list(terms)
    if not terms:
        return {}
    with connections[alias].cursor() as cursor:
        if connections[alias].vendor == "sqlite":
            marks = ", ".join(["%s"] * len(terms))
            cursor.execute(f"SELECT term, doc FROM {VOCABULARY} WHERE term IN ({marks})", terms)
            return {**dict.fromkeys(terms, 0), **dict(cursor.fetchall())}
        count = f"SELECT COUNT(*) FROM {TERMS_TABLE} WHERE MATCH (terms) AGAINST (%s)"
        cursor.execute(" UNION ALL ".join([count] * len(terms)), terms)
        return dict(zip(terms, (row[0] for row in cursor.fetchall()), strict=True))


def holders(terms: Iterable[str], alias: str, most: int) -> dict[str, list[int]]:
    """Return for each of `terms` the ids of memories that hold it, at most `most` of them.

    One statement, in which each term costs the same whatever the index holds: the engines
    stop at the limit, InnoDB in boolean mode alone.
    """
    terms = list(terms)
    found: dict[str, list[int]] = {term: [] for term in terms}
    if not terms:
        return found
    if connections[alias].vendor == "sqlite":
        part = f"SELECT rowid FROM {FTS_TABLE} WHERE {FTS_TABLE} MATCH %s LIMIT {most:d}"
        parts = [f"SELECT {place}, rowid FROM ({part})" for place in range(len(terms))]
    else:
        part = f"FROM {TERMS_TABLE} WHERE MATCH (terms) AGAINST (%s IN BOOLEAN MODE)"
        parts = [
            f"(SELECT {place}, memory_id {part} LIMIT {most:d})" for place in range(len(terms))
        ]
    texts = [match_text(TermQuery((term,)), alias) for term in terms]
    with connections[alias].cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), texts)
        for place, memory_id in cursor.fetchall():
            found[terms[place]].append(memory_id)
    return found


def holds(prefix: str, alias: str) -> bool:
    """Return whether the index holds any term that begins with `prefix`, say a scope's key."""
    text = match_text(TermQuery((), (prefix,)), alias)
    with connections[alias].cursor() as cursor:
        if connections[alias].vendor == "sqlite":
            cursor.execute(f"SELECT 1 FROM {FTS_TABLE} WHERE {FTS_TABLE} MATCH %s LIMIT 1", [text])
        else:
            condition = "MATCH (terms) AGAINST (%s IN BOOLEAN MODE)"
            cursor.execute(f"SELECT 1 FROM {TERMS_TABLE} WHERE {condition} LIMIT 1", [text])
        return cursor.fetchone() is not None


class ContainsExact(Lookup):
    """`column__contains_exact=text`: the text occurs, byte for byte, on both engines.

    Django's `contains` folds ASCII case on SQLite; LIKE needs its wildcards escaped.
    """

    lookup_name = "contains_exact"
    prepare_rhs = False

    def get_db_prep_lookup(self, value: Any, connection: Any) -> Any:
        """Pass the text as it is: the column's own preparation is for whole values."""
        return "%s", [value]

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        """Return INSTR(column, text) > 0."""
        column, column_parameters = self.process_lhs(compiler, connection)
        text, text_parameters = self.process_rhs(compiler, connection)
        return f"INSTR({column}, {text}) > 0", [*column_parameters, *text_parameters]


def has_index(connection: BaseDatabaseWrapper) -> bool:
    """Return whether the full-text index and all that keeps it up are there."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "SELECT count(*) FROM sqlite_master WHERE name IN (%s, %s, %s, %s, %s)",
                [FTS_TABLE, VOCABULARY, *_TRIGGERS],
            )
            return cursor.fetchone()[0] == 2 + len(_TRIGGERS)
        cursor.execute(f"SHOW INDEX FROM {TERMS_TABLE} WHERE Key_name = %s", [FULLTEXT_INDEX])
        return cursor.fetchone() is not None


def index_statements(connection: BaseDatabaseWrapper) -> list[str]:
    """Return the statements that build the index of `connection`'s vendor."""
    if connection.vendor != "sqlite":
        return [f"CREATE FULLTEXT INDEX {FULLTEXT_INDEX} ON {TERMS_TABLE} (terms)"]
    return [
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {FTS_TABLE} USING fts5(terms, "
        f"content='{TERMS_TABLE}', content_rowid='memory_id', detail=none, "
        "tokenize='unicode61 remove_diacritics 0')",
        f"CREATE VIRTUAL TABLE IF NOT EXISTS {VOCABULARY} USING fts5vocab({FTS_TABLE}, row)",
        *(f"CREATE TRIGGER IF NOT EXISTS {name} {body}" for name, body in _TRIGGERS.items()),
        f"INSERT INTO {FTS_TABLE}({FTS_TABLE}) VALUES ('rebuild')",
    ]


def drop_statements(connection: BaseDatabaseWrapper) -> list[str]:
    """Return the statements that take the index away; the table stays."""
    if connection.vendor != "sqlite":
        return [f"DROP INDEX {FULLTEXT_INDEX} ON {TERMS_TABLE}"]
    return [
        *(f"DROP TRIGGER IF EXISTS {name}" for name in _TRIGGERS),
        f"DROP TABLE IF EXISTS {VOCABULARY}",
        f"DROP TABLE IF EXISTS {FTS_TABLE}",
    ]


def rebuild_index(connection: BaseDatabaseWrapper) -> None:
    """Take away what is left of a broken index and build it from the table."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite" or has_index(connection):
            for statement in drop_statements(connection):
                cursor.execute(statement)
        for statement in index_statements(connection):
            cursor.execute(statement)


def refill_index(connection: BaseDatabaseWrapper) -> None:
    """Fill FTS5's index from its table again; InnoDB's follows its rows by itself.

    Searches go on: readers see the old index until it is done.
    """
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {FTS_TABLE}({FTS_TABLE}) VALUES ('rebuild')")


def optimize_index(connection: BaseDatabaseWrapper) -> bool:
    """Merge the index and clear out deleted terms; return whether it could be done now.

    InnoDB does so under a global switch. Without it OPTIMIZE TABLE would rebuild the
    whole table and keep every writer waiting, so without the privilege for the switch,
    or where the table is busy, the index stays as it is.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"INSERT INTO {FTS_TABLE}({FTS_TABLE}) VALUES ('optimize')")
            return True
        try:
            cursor.execute("SET GLOBAL innodb_optimize_fulltext_only = ON")
        except OperationalError as error:
            logger.warning("%s: the full-text index is not optimised: %s", connection.alias, error)
            return False
        try:
            cursor.execute("SET SESSION lock_wait_timeout = 3")
            cursor.execute(f"OPTIMIZE TABLE {TERMS_TABLE}")
            return all(row[2] != "error" for row in cursor.fetchall())
        finally:
            cursor.execute("SET SESSION lock_wait_timeout = DEFAULT")
            cursor.execute("SET GLOBAL innodb_optimize_fulltext_only = OFF")


def index_fault(connection: BaseDatabaseWrapper) -> str | None:
    """Return what FTS5 finds wrong between its index and the table; None on MySQL.

    Reads the whole index.
    """
    if connection.vendor != "sqlite":
        return None
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {FTS_TABLE}({FTS_TABLE}, rank) VALUES ('integrity-check', 1)"
            )
    except DatabaseError as error:
        return str(error)
    return None


def stored_bytes(connection: BaseDatabaseWrapper) -> int:
    """Return about how large the tables of a MySQL database are, as its statistics have it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables "
            "WHERE table_schema = DATABASE()"
        )
        return int(cursor.fetchone()[0])


def explain(queryset: models.QuerySet[Any]) -> str:
    """Return the engine's plan of `queryset`, one line a step."""
    connection = connections[queryset.db]
    return queryset.explain(**({"format": "TRADITIONAL"} if connection.vendor == "mysql" else {}))


class CreateSearchIndex(Operation):
    """Migration: the engine's full-text index, where the router puts memory tables."""

    reversible = True

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Leave the models' state: the index is no model."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Build the index."""
        self._execute(app_label, schema_editor, index_statements(schema_editor.connection))

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Take it away."""
        self._execute(app_label, schema_editor, drop_statements(schema_editor.connection))

    def describe(self) -> str:
        """Return the line that `migrate` prints."""
        return "Create the full-text index on memory terms"

    def _execute(self, app_label: str, schema_editor: Any, statements: Iterable[str]) -> None:
        alias = schema_editor.connection.alias
        if router.allow_migrate(alias, app_label, model_name="memoryterms"):
            for statement in statements:
                schema_editor.execute(statement)
