"""The Celery application: `celery -A config worker`, `celery -A config beat`."""

from __future__ import annotations

import os

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["filesystem"] = "config.broker:Transport"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("hippo")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
