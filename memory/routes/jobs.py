"""Addresses of background work, below /jobs/."""

from __future__ import annotations

from django.urls import path

from memory.views import jobs

urlpatterns = [
    path("", jobs.job_list_page, name="job-list"),
    path("pill/", jobs.pill, name="job-pill"),
    path("<int:job_id>/", jobs.detail, name="job-detail"),
    path("<int:job_id>/row/", jobs.row, name="job-row"),
    path("<int:job_id>/cancel/", jobs.cancel, name="job-cancel"),
    path("<int:job_id>/retry/", jobs.retry, name="job-retry"),
    path("<int:job_id>/failed/", jobs.failed, name="job-failed"),
    path("<int:job_id>/download/", jobs.download, name="job-download"),
]
