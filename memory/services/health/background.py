"""Whether background work goes on: the broker, what waits, and who gives signs of life."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from celery import current_app
from django.conf import settings
from django.db.models import Count, Min
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from kombu.exceptions import OperationalError as BrokerError

from memory.models import Job, JobState
from memory.services import backlog
from memory.services.health import findings, pulses
from memory.services.health.findings import WELL, Finding, State

LONG_WAIT = timedelta(minutes=5)
"""A job that waits longer than this says that there are too few workers."""
_CONNECT_SECONDS = 2
_FOLDER = _("The folder of the messages cannot be written.")


@dataclass(frozen=True, slots=True)
class Background:
    """Jobs and signs of life, as the control database has them."""

    jobs: Mapping[tuple[str, str], int]
    """How many jobs there are of each (state, kind); ended ones are kept for 30 days."""
    oldest_waiting: datetime | None
    pulses: Mapping[str, datetime]
    model_failure: str = ""
    """What the model that embeds says, if it failed when it was last asked."""

    def count(self, state: str) -> int:
        """Return how many jobs are in a state."""
        return sum(count for (found, _kind), count in self.jobs.items() if found == state)


NOTHING_KNOWN = Background({}, None, {})


def look() -> Background:
    """Read jobs and signs of life; four queries. Raises DatabaseError."""
    counts = Job.objects.order_by().values_list("state", "kind").annotate(Count("pk"))
    waiting = Job.objects.filter(state=JobState.PENDING).aggregate(since=Min("created_at"))
    jobs = {(state, kind): count for state, kind, count in counts}
    return Background(jobs, waiting["since"], pulses.latest(), backlog.failure())


def broker_kind() -> str:
    """Return what carries the messages: `files`, `redis` or `amqp`."""
    scheme = urlsplit(settings.CELERY_BROKER_URL).scheme
    return {"filesystem": "files", "rediss": "redis", "amqps": "amqp"}.get(scheme, scheme)


def broker_address() -> str:
    """Return where the broker is, without user and password."""
    if broker_kind() == "files":
        return str(Path(settings.DATA_DIR) / "queue")
    return without_secrets(settings.CELERY_BROKER_URL)


def without_secrets(url: str) -> str:
    """Return host, port and path of a URL."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'localhost'}{f':{parts.port}' if parts.port else ''}{parts.path}"


def ask_broker() -> Finding:
    """Return whether messages can be sent."""
    if broker_kind() == "files":
        # a message is a file: to be able to write one is all there is to it
        return WELL if _can_write() else Finding(State.DOWN, _FOLDER, broker_mend())
    options = {"max_retries": 0, "socket_connect_timeout": _CONNECT_SECONDS}
    try:
        with current_app.connection_for_write(
            settings.CELERY_BROKER_URL, connect_timeout=_CONNECT_SECONDS, transport_options=options
        ) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
    except (BrokerError, OSError) as error:
        reason = format_lazy(_("The broker says: {error}."), error=str(error).rstrip("."))
        return Finding(State.DOWN, reason, broker_mend())
    return WELL


def broker_mend() -> findings.Words:
    """Return what to do about a broker that does not answer."""
    if broker_kind() == "files":
        return format_lazy(
            _("Give {path} to the account that runs Hippo (chown, chmod 700), and look at df."),
            path=broker_address(),
        )
    return format_lazy(
        _(
            "Look whether it runs at {address} and whether BROKER_URL is right. No job is lost: "
            "they wait, and are sent when it is back."
        ),
        address=broker_address(),
    )


def of_worker(found: Background, *, now: datetime) -> Finding:
    """Return whether a worker lives."""
    if _is_alive(found, pulses.WORKER, now=now):
        return WELL
    return _dead(_("No worker gives a sign of life: jobs wait and nothing is upkept."), "worker")


def of_beat(found: Background, *, now: datetime) -> Finding:
    """Return whether the scheduler goes round."""
    if _is_alive(found, pulses.BEAT, now=now):
        return WELL
    reason = _("The scheduler gives no sign of life: no upkeep begins, lost messages stay lost.")
    return _dead(reason, "beat")


def of_queue(found: Background, broker: Finding, *, now: datetime) -> Finding:
    """Return whether what is to be done gets done, as far as broker, worker and beat allow."""
    if broker.state != State.OK:
        return broker
    both_live = all(_is_alive(found, name, now=now) for name in (pulses.WORKER, pulses.BEAT))
    if both_live and not _is_alive(found, pulses.ROUND, now=now):
        reason = _(
            "Scheduler and worker live, and yet nothing of what one sends reaches the other."
        )
        mend = _(
            "Each must be started with the same BROKER_URL and DATA_DIR. If they were: ./run jobs "
            "says whether long jobs hold every thread of the worker; start one more worker."
        )
        return Finding(State.DOWN, reason, mend)
    if found.oldest_waiting and found.oldest_waiting < now - LONG_WAIT:
        reason = _("A job has waited for more than five minutes.")
        mend = _("Mend worker and scheduler first, if they are down. Else start one more worker.")
        return Finding(State.REDUCED, reason, mend)
    return WELL


def _can_write() -> bool:
    return os.access(Path(broker_address()) / "messages", os.W_OK | os.X_OK)


def _is_alive(found: Background, name: str, *, now: datetime) -> bool:
    at = found.pulses.get(name)
    return at is not None and at > now - pulses.SILENCE


def _dead(reason: findings.Words, name: str) -> Finding:
    mend = _(
        "./run starts it again by itself; look at the end of {log}. Without ./run: celery -A "
        "config {name}, from the folder of Hippo, with the environment of the web server."
    )
    log = Path(settings.DATA_DIR) / "logs" / f"{name}.log"
    return Finding(State.DOWN, reason, format_lazy(mend, log=log, name=name))
