from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = _("Agents")

    def ready(self) -> None:
        from allauth.account.signals import password_changed

        from agents.accounts import note_own_password

        password_changed.connect(note_own_password)
