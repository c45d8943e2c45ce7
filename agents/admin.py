"""The plain admin of the control plane, for superusers; it shows no memory."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents import keys
from agents.keys import NewKey
from agents.models import (
    Agent,
    AgentNotErased,
    ApiKey,
    AuditEntry,
    Identity,
    Membership,
    MemoryConfig,
    Team,
)


class MemoryConfigForm(forms.ModelForm):
    """Saves the suggested values too: Django leaves an untouched inline form out."""

    def has_changed(self) -> bool:
        """Return True for a configuration that is not there yet."""
        return self.instance._state.adding or super().has_changed()


class MemoryConfigInline(admin.StackedInline):
    model = MemoryConfig
    form = MemoryConfigForm
    can_delete = False
    min_num = 1

    def get_readonly_fields(self, request: HttpRequest, obj: Agent | None = None) -> list[str]:
        # another backend or file would leave the agent's memories behind
        return ["backend", "sqlite_path"] if obj else []


@admin.register(Agent)
class AgentAdmin(admin.ModelAdmin):
    list_display = ["name", "display_name", "language", "is_active", "created_at"]
    list_filter = ["is_active", "language"]
    search_fields = ["name", "display_name"]
    inlines = [MemoryConfigInline]

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().delete_view(request, *args, **kwargs)
        except AgentNotErased as error:
            return self._say_not_erased(request, error)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:  # deleting the selected ones
            return super().changelist_view(request, *args, **kwargs)
        except AgentNotErased as error:
            return self._say_not_erased(request, error)

    def _say_not_erased(self, request: HttpRequest, error: AgentNotErased) -> HttpResponse:
        text = _("Nothing was deleted: the memories cannot be erased now. %s") % error
        messages.error(request, text)
        return redirect("admin:agents_agent_changelist")


@admin.register(ApiKey)
class ApiKeyAdmin(admin.ModelAdmin):
    list_display = [
        "prefix", "agent", "name", "user_id", "last_used_at", "expires_at", "revoked_at",
    ]  # fmt: skip
    list_filter = ["agent"]
    list_select_related = ["agent"]
    actions = ["revoke"]

    def get_readonly_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> list[str]:
        shown = ["prefix", "last_used_at", "revoked_at"]
        return [*shown, "agent", "user_id", "expires_at"] if obj else shown

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        wanted = NewKey(obj.name, obj.user_id, obj.expires_at)
        row, key = keys.create(obj.agent, wanted, actor=request.user, now=timezone.now())
        obj.pk, obj.prefix = row.pk, row.prefix
        messages.warning(request, _("Copy the key now, it is not shown again: %s") % key)

    @admin.action(description=_("Revoke the selected keys"))
    def revoke(self, request: HttpRequest, queryset: Any) -> None:
        now = timezone.now()
        for key in queryset.filter(revoked_at=None).select_related("agent"):
            keys.revoke(key, actor=request.user, now=now)


@admin.register(Identity)
class IdentityAdmin(admin.ModelAdmin):
    list_display = ["account", "user_id", "agent"]
    list_select_related = ["account", "agent"]
    search_fields = ["account__username", "user_id"]


class MembershipInline(admin.TabularInline):
    model = Membership
    extra = 1


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin):
    list_display = ["name"]
    search_fields = ["name"]
    inlines = [MembershipInline]


@admin.register(AuditEntry)
class AuditEntryAdmin(admin.ModelAdmin):
    """A record that whoever it is about can rely on: nobody adds, changes or deletes it here."""

    list_display = [
        "created_at", "action", "actor_name", "subject_name", "agent_name", "user_id", "count",
    ]  # fmt: skip
    list_filter = ["action"]
    search_fields = ["actor_name", "subject_name", "user_id"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AuditEntry | None = None) -> bool:
        return False
