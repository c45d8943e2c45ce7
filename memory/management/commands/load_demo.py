from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.utils import timezone

from memory.management.base import HippoCommand
from memory.services.demo import load_demo


class Command(HippoCommand):
    help = "Load the demo: three agents, three accounts, what the agents remember. Repeatable."

    def run(self, **options: Any) -> None:
        logins = load_demo(now=timezone.now())
        path = settings.DATA_DIR / "demo-logins.txt"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "a", encoding="utf-8") as file:
            for login in logins:
                line = f"{login.role:9} {login.username:8} password {login.password}"
                file.write(f"{line}\n")
                self.stdout.write(line)
        (settings.DATA_DIR / "demo-loaded").touch()
        if not logins:
            self.stdout.write("The demo is there already.")
