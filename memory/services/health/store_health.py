"""How each store is: whether it answers, how fast, how large it is, whether its index is whole."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import Error, connections
from django.db.models import Sum
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from memory import fts
from memory.analyzer import ANALYZER_VERSION
from memory.errors import HippoError
from memory.models import Memory, MemoryTerms, OwnerKind, Scope, Status
from memory.services.health import findings, meaning, readiness
from memory.services.health.findings import WELL, Finding, State
from memory.services.health.meaning import NOTHING_WAITS, Waiting

_SAMPLE = 25
_MOST_SECONDS = 2
"""So long a connection of ours waits for the engine."""
_REINDEX = _(
    "./run reindex_memory mends it while all goes on; ./run check_memory looks at every row."
)


@dataclass(frozen=True, slots=True)
class StoreReport:
    """What was found out about a store; None where it could not be."""

    alias: str
    address: str
    agents: int
    finding: Finding
    index: Finding = WELL
    milliseconds: float | None = None
    size_bytes: int | None = None
    version: str = ""
    analyzer_version: int | None = None
    memories: Mapping[int, int] = field(default_factory=dict)
    """How many memories, the trash left out, each agent has; by the agent's id."""
    waiting: Waiting = NOTHING_WAITS
    """What has no vector of the present model."""

    @property
    def is_up(self) -> bool:
        """Return whether it answers."""
        return self.finding.state != State.DOWN

    @property
    def troubles(self) -> list[Finding]:
        """Return what is not well."""
        return [each for each in (self.finding, self.index) if each.state != State.OK]


def look(alias: str, agents: int, *, has_counts: bool, model: str = "") -> StoreReport:
    """Return how a store is; in a thread of its own, for it gives the connection limits.

    `has_counts` adds the memories of each agent, which reads every scope's row; `model` what
    waits for a vector of it.
    """
    if not alias.startswith("sqlite:") and alias not in settings.DATABASES:
        return _not_configured(alias, agents)
    _bound(alias)
    report = StoreReport(alias, address(alias), agents, WELL)
    try:
        readiness.ask_store(alias)
        began = time.perf_counter()
        Scope.objects.using(alias).exists()
        milliseconds = (time.perf_counter() - began) * 1000
        index, version = _index(alias)
        counts = _counts(alias) if has_counts else {}
        waiting = meaning.waiting_in(alias, model) if model else NOTHING_WAITS
    except (Error, HippoError, OSError) as error:
        return replace(report, finding=_meaning(alias, error))
    return replace(
        report,
        index=index,
        analyzer_version=version,
        milliseconds=milliseconds,
        size_bytes=_size(alias),
        version=_version(alias),
        memories=counts,
        waiting=waiting,
    )


def silent(alias: str, agents: int, seconds: float) -> StoreReport:
    """Return the report of a store that has not answered in time."""
    if _is_mysql(alias):
        host, port, _name = _server(alias)
        mend = findings.mysql_is_unreachable(host, port)
    else:
        mend = _("The disk under it may hang: look at df and dmesg on this machine.")
    return StoreReport(alias, address(alias), agents, findings.silent(seconds, mend))


def _not_configured(alias: str, agents: int) -> StoreReport:
    reason = _("Agents keep their memories in MySQL, which is not configured.")
    finding = Finding(State.DOWN, reason, _(settings.MYSQL_OBSTACLE))
    return StoreReport(alias, "", agents, finding)


def address(alias: str) -> str:
    """Return where a store is, without user and password."""
    if alias.startswith("sqlite:"):
        return str(Path(settings.MEMORY_DIR) / alias.removeprefix("sqlite:"))
    if not _is_mysql(alias):
        return str(settings.DATABASES[alias]["NAME"])
    host, port, name = _server(alias)
    return f"{host}:{port}/{name}"


def _is_mysql(alias: str) -> bool:
    known: dict[str, Any] = settings.DATABASES.get(alias, {})
    return str(known.get("ENGINE", "")).endswith("mysql")


def _server(alias: str) -> tuple[str, str, str]:
    database = settings.DATABASES[alias]
    host, port = database.get("HOST") or "localhost", database.get("PORT") or 3306
    return str(host), str(port), str(database["NAME"])


def _bound(alias: str) -> None:
    """Let this thread's connection wait for seconds only; the requests' own wait longer."""
    if alias not in connections.settings:  # a file that is opened for the first time
        return
    own = connections[alias].copy()
    limits: dict[str, Any] = {"timeout": _MOST_SECONDS}
    if own.vendor == "mysql":
        limits = {"connect_timeout": _MOST_SECONDS, "read_timeout": _MOST_SECONDS}
    own.settings_dict["OPTIONS"] = {**own.settings_dict["OPTIONS"], **limits}
    connections[alias] = own


def _meaning(alias: str, error: Exception) -> Finding:
    path = address(alias)
    if _is_mysql(alias):
        return findings.of_mysql(error, *_server(alias))
    if not Path(path).exists():
        reason = format_lazy(_("The file {path} is gone."), path=path)
        mend = _(
            "Put it back from a backup, then nothing else is needed. To begin with an empty one "
            "instead, delete {path}.lock; what it held is lost then."
        )
        return Finding(State.DOWN, reason, format_lazy(mend, path=path))
    return findings.of_sqlite(error, path)


def _index(alias: str) -> tuple[Finding, int | None]:
    """Return how a store's index is, by its parts and a sample, and the latest row's version."""
    if not fts.has_index(connections[alias]):
        reason = _("The full-text index or a trigger that keeps it up is missing: searches fail.")
        return Finding(State.DOWN, reason, _REINDEX), None
    rows = Memory.objects.sampled(alias, _SAMPLE)
    wrong = sum(
        indexed != (None if status == Status.TRASHED else scope)
        for status, scope, indexed, *_rest in rows
    )
    versions = {each for *_rest, each in rows if each is not None}
    latest = MemoryTerms.objects.using(alias).order_by("-pk").only("terms", "analyzer_version")
    newest = latest.first()
    version = newest.analyzer_version if newest else None
    if wrong or (newest and not _is_found(alias, newest)):
        reason = _("Memories and index disagree in a sample: searches miss some.")
        return Finding(State.REDUCED, reason, _REINDEX), version
    if versions - {ANALYZER_VERSION}:
        reason = _("Some memories were indexed by another version: searches may miss them.")
        return Finding(State.REDUCED, reason, _REINDEX), version
    return WELL, version


def _is_found(alias: str, row: MemoryTerms) -> bool:
    """Return whether the engine knows a row's first word; one that has gone meanwhile is none."""
    word = next(iter(row.terms.split()), "")
    if not word or fts.holds(word, alias):
        return True
    return not MemoryTerms.objects.using(alias).filter(pk=row.pk, terms=row.terms).exists()


def _counts(alias: str) -> dict[int, int]:
    scopes = Scope.objects.using(alias).filter(kind=OwnerKind.USER).values("agent_id")
    counted = scopes.annotate(total=Sum("memory_count")).values_list("agent_id", "total")
    return dict(counted.order_by())


def _size(alias: str) -> int:
    if _is_mysql(alias):
        return fts.stored_bytes(connections[alias])
    path = connections[alias].settings_dict["NAME"]
    parts = (Path(f"{path}{suffix}") for suffix in ("", "-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


def _version(alias: str) -> str:
    if not _is_mysql(alias):
        return ""
    return str(connections[alias].mysql_server_info)  # type: ignore[attr-defined]
