"""The plain admin of background work, for operators; a job is looked at, not edited."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from memory.errors import JobNotEnded
from memory.models import Job, JobState
from memory.services import jobs


@admin.register(Job)
class JobAdmin(admin.ModelAdmin):
    list_display = [
        "id", "kind", "state", "progress", "step", "attempts", "created_at", "heartbeat_at",
    ]  # fmt: skip
    list_filter = ["state", "kind"]
    fields = [
        "kind", "state", "is_cancel_requested", "progress", "step", "attempts", "error", "payload",
        "result", "created_at", "started_at", "heartbeat_at", "finished_at",
    ]  # fmt: skip
    readonly_fields = ["progress"]
    actions = ["cancel", "retry"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Job | None = None) -> bool:
        return False

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Return whether the person may cancel and retry: who could change jobs, were that open."""
        return super().has_change_permission(request)

    @admin.display(description=_("progress"))
    def progress(self, job: Job) -> str:
        return jobs.progress(job)

    @admin.action(description=_("Cancel the selected jobs"), permissions=["operate"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        active = queryset.filter(state__in=[JobState.PENDING, JobState.RUNNING])
        ids = list(active.values_list("pk", flat=True))
        for job_id in ids:
            jobs.cancel(job_id, now=timezone.now())
        text = ngettext(
            "%d job was cancelled, or ends at its next chunk.",
            "%d jobs were cancelled, or end at their next chunk.",
            len(ids),
        )
        messages.success(request, text % len(ids))

    @admin.action(description=_("Let the selected jobs go on"), permissions=["operate"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        going_on = 0
        for job_id in queryset.values_list("pk", flat=True):
            try:
                jobs.retry(job_id, now=timezone.now())
                going_on += 1
            except JobNotEnded:
                text = _("Job %d goes on only if it has failed or was cancelled.") % job_id
                messages.warning(request, text)
        if going_on:
            text = ngettext("%d job goes on.", "%d jobs go on.", going_on)
            messages.success(request, text % going_on)
