"""What the pages say of a job: its kind, its steps and what came of it, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, ngettext_lazy

from memory.models import Job, JobState
from memory.services import job_list
from memory.services.transfers.intake import Outcome

register = template.Library()
KIND_LABELS = {
    "import": gettext_lazy("Import"),
    "import_check": gettext_lazy("Look at an import"),
    "export": gettext_lazy("Export"),
    "bulk": gettext_lazy("Change of many memories"),
    "erase_user": gettext_lazy("Erasing a user"),
    "move": gettext_lazy("Change of store"),
    "reindex": gettext_lazy("New index"),
    "golden": gettext_lazy("Golden questions"),
    "expire": gettext_lazy("Expiry"),
    "purge_trash": gettext_lazy("Emptying the trash"),
    "optimize_indexes": gettext_lazy("Upkeep of indexes"),
    "embed": gettext_lazy("Vectors of new memories"),
}
OUTCOME_LABELS = {
    Outcome.NEW: gettext_lazy("new"),
    Outcome.UPDATE: gettext_lazy("update"),
    Outcome.DUPLICATE: gettext_lazy("duplicate"),
    Outcome.KEPT: gettext_lazy("newer here"),
    Outcome.ERROR: gettext_lazy("error"),
}
_STATE_CLASSES = {
    JobState.DONE: "ok", JobState.FAILED: "bad", JobState.CANCELLED: "warn",
}  # fmt: skip
_COUNTED = {
    "expire": "trashed",
    "purge_trash": "erased",
    "reindex": "reindexed",
    "move": "memories",
    "erase_user": "memories",
    "bulk": "changed",
    "export": "memories",
    "golden": "passed",
    "embed": "embedded",
}
_SAID = {
    "expire": ngettext_lazy("%d memory moved to the trash", "%d memories moved to the trash"),
    "purge_trash": ngettext_lazy("%d memory erased", "%d memories erased"),
    "reindex": ngettext_lazy("%d memory indexed again", "%d memories indexed again"),
    "move": ngettext_lazy("%d memory moved and verified", "%d memories moved and verified"),
    "erase_user": ngettext_lazy("%d memory erased and verified", "%d memories erased and verified"),
    "bulk": ngettext_lazy("%d memory changed", "%d memories changed"),
    "export": ngettext_lazy("%d memory exported", "%d memories exported"),
    "golden": ngettext_lazy("%d question passed", "%d questions passed"),
    "embed": ngettext_lazy("%d vector made", "%d vectors made"),
}
_OUTCOMES: tuple[tuple[str, Any], ...] = (
    ("new", ngettext_lazy("%d new", "%d new")),
    ("update", ngettext_lazy("%d updated", "%d updated")),
    ("duplicate", ngettext_lazy("%d duplicate", "%d duplicates")),
    ("kept", ngettext_lazy("%d newer here", "%d newer here")),
)


@register.filter
def kind_label(job: Job) -> str:
    """Return what people call a kind of job."""
    return str(KIND_LABELS.get(job.kind, job.kind.replace("_", " ")))


@register.filter
def state_class(job: Job) -> str:
    """Return the colour of a job's state."""
    return _STATE_CLASSES.get(JobState(job.state), "")


@register.filter
def step_label(step: str) -> str:
    """Return a step's name in the page's language; the name of an agent stays as it is."""
    return _(step) if step else ""


@register.filter
def percent(job: Job) -> int | None:
    """Return how much of the present step is done, None where that is not known."""
    return job_list.percent(job)


@register.filter
def failures(job: Job) -> int:
    """Return how many rows of an import failed."""
    counts = _counts(job)
    return int(counts.get("error", 0)) if counts else 0


@register.filter
def outcome(job: Job) -> str:
    """Return what came of a job, or what it had done when it was ended; '' where nothing."""
    if job.kind in {"import", "import_check"}:
        return _import_outcome(job)
    if job.state != JobState.DONE:
        return ""
    if job.kind == "optimize_indexes":
        return ", ".join(job.result.get("optimized", []))
    count = job.result.get(_COUNTED.get(job.kind, ""))
    return str(_SAID[job.kind] % count) if isinstance(count, int) else ""


def _import_outcome(job: Job) -> str:
    counts = _counts(job)
    said = [str(words % counts[name]) for name, words in _OUTCOMES if counts.get(name)]
    if not said and job.state == JobState.DONE:
        return _("nothing to import")
    words = ", ".join(said)
    # nothing was imported yet
    return _("would be: %s") % words if words and job.kind == "import_check" else words


def _counts(job: Job) -> Mapping[str, Any]:
    """Return the counts of an import, of one that did not end well those until then."""
    found: Mapping[str, Any] = job.result.get("counts") or job.checkpoint.get("counts") or {}
    return found if job.kind in {"import", "import_check"} else {}


@register.filter
def duration(seconds: float | None) -> str:
    """Return a time as people say it: "0.4 s", "22 s", "3 min", "2 h"."""
    if seconds is None:
        return ""
    if seconds < 10:
        return _("%s s") % f"{seconds:.1f}"
    if seconds < 90:
        return _("%s s") % round(seconds)
    if seconds < 5400:
        return _("%s min") % round(seconds / 60)
    return _("%s h") % round(seconds / 3600)


@register.filter
def outcome_label(outcome: str) -> str:
    """Return what people call that which becomes of a row."""
    return str(OUTCOME_LABELS[Outcome(outcome)])


@register.filter
def outcome_class(outcome: str) -> str:
    """Return the colour of what becomes of a row."""
    return {"new": "ok", "update": "ok", "error": "bad", "kept": "warn"}.get(outcome, "")


@register.filter
def mend(job: Job) -> str:
    """Return what can be done about a job that did not end well."""
    found = _MENDS.get(job.kind)
    return found() if found else _("Try again goes on from where it was.")


@register.inclusion_tag("memory/_job_pill.html", takes_context=True)
def job_pill(context: Mapping[str, Any]) -> dict[str, Any]:
    """Show what of the account's runs; one query."""
    account = context.get("user")
    is_known = account is not None and account.is_authenticated
    return {"at_work": job_list.at_work(account) if is_known else []}


@register.filter
def others_at_work(jobs: list[Job]) -> str:
    """Return how many more run than the newest."""
    more = len(jobs) - 1
    return ngettext("and %d more", "and %d more", more) % more if more > 0 else ""


_MENDS: dict[str, Callable[[], str]] = {
    "import": lambda: _(
        "What was imported until then stays. Try again goes on with the next row; nothing is "
        "imported twice."
    ),
    "import_check": lambda: _("Upload the file again if it is not there any more."),
    "move": lambda: _("The memories are in use where they were; nothing was switched."),
}
