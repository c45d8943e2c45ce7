"""Variables of the environment, read and checked: a wrong value raises ImproperlyConfigured."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tempfile
from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

env = environ.Env()


def secret_key(folder: Path) -> str:
    """Return SECRET_KEY, or the one kept in `folder`, made at the first start."""
    if key := env.str("SECRET_KEY", ""):
        return key
    path = folder / "secret_key"
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=folder) as draft:  # mode 600
            draft.write(secrets.token_urlsafe(50))
            draft.flush()
            # a link appears whole and to one process only, however many start at once
            with contextlib.suppress(FileExistsError):
                os.link(draft.name, path)
    key = path.read_text()
    if not key:
        raise ImproperlyConfigured(f"{path} is empty; delete it and start again.")
    return key


def switch(name: str) -> bool:
    """Return an on-off variable, off where it is not set."""
    value = env.str(name, "").lower()
    if value not in {"1", "true", "yes", "on", "0", "false", "no", "off", ""}:
        raise ImproperlyConfigured(f"{name} must be true or false.")
    return value in {"1", "true", "yes", "on"}


def number(name: str, default: int, least: int) -> int:
    """Return a whole number of `least` or more."""
    value = env.str(name, str(default))
    if not value.isascii() or not value.isdigit() or int(value) < least:
        raise ImproperlyConfigured(f"{name} must be a whole number, {least} or more; not {value}.")
    return int(value)


def seconds(name: str, default: float) -> float:
    """Return a time in seconds, 0.1 to 60."""
    value = env.str(name, str(default))
    if not re.fullmatch(r"\d{1,2}(\.\d{1,3})?", value) or not 0.1 <= float(value) <= 60:
        raise ImproperlyConfigured(f"{name} must be seconds from 0.1 to 60; not {value}.")
    return float(value)


def model_key(name: str) -> str:
    """Return the key of a model's server, which is sent in a header."""
    value = env.str(name, "")
    if not re.fullmatch(r"[!-~]*", value):
        raise ImproperlyConfigured(f"{name} holds a space, a line break or a letter beyond ASCII.")
    return value
