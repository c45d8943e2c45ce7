"""The Celery application: `celery -A config worker`, `celery -A config beat`."""

from __future__ import annotations

import logging
import os
from logging.config import dictConfig
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_process_init, worker_ready
from django.conf import settings
from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["filesystem"] = "config.broker:Transport"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("hippo")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def log_as_we_do(loglevel: int, **options: Any) -> None:
    """Log as the settings say; `--loglevel` is for what Celery itself has to say."""
    dictConfig(settings.LOGGING)
    logging.getLogger("celery").setLevel(loglevel)


@worker_ready.connect
def show_life(**options: Any) -> None:
    """Let the system page know that a worker lives."""
    from memory.services.health import pulses

    pulses.keep_noting(pulses.WORKER)


@worker_process_init.connect
def load_model_of_child(**options: Any) -> None:
    """Load the model where a worker forks its children, which do its tasks."""
    from memory.retrieval import embedder

    embedder.load(after_seconds=3)


@worker_ready.connect
def load_model(sender: Any, **options: Any) -> None:
    """Load the model where tasks are done in this process: in threads, or alone."""
    if type(sender.pool).__module__ != "celery.concurrency.prefork":
        load_model_of_child()
