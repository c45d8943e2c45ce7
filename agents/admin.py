"""The plain admin of the control plane, for superusers; it shows no memory."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db import DEFAULT_DB_ALIAS, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents import audit, keys
from agents.keys import NewKey
from agents.models import (
    Agent,
    AgentNotErased,
    ApiKey,
    AuditAction,
    AuditEntry,
    Identity,
    Membership,
    MemoryConfig,
    Team,
)


class Noted(admin.ModelAdmin):
    """Notes what is added, changed and deleted in the audit, in the transaction of the deed."""

    added: AuditAction
    changed: AuditAction
    deleted: AuditAction

    def about(self, obj: Any) -> dict[str, Any]:
        """Return whom and what an entry about `obj` names."""
        raise NotImplementedError

    def log_addition(self, request: Any, obj: Any, message: Any) -> Any:
        self.note(request, self.added, obj)
        return super().log_addition(request, obj, message)

    def log_change(self, request: Any, obj: Any, message: Any) -> Any:
        if detail := self.detail_of(message):
            self.note(request, self.changed, obj, detail)
        return super().log_change(request, obj, message)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with transaction.atomic(using=DEFAULT_DB_ALIAS):
            self.note(request, self.deleted, obj)
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        with transaction.atomic(using=DEFAULT_DB_ALIAS):
            for obj in queryset:
                self.note(request, self.deleted, obj)
            super().delete_queryset(request, queryset)

    def detail_of(self, message: Any) -> str:
        """Return which fields a change was of; Django's message has their names in English."""
        parts = [part.get("changed", {}) for part in message if isinstance(part, dict)]
        names = [name for part in parts for name in part.get("fields", ())]
        return f"fields: {', '.join(map(str, names))}" if names else ""

    def note(self, request: Any, action: AuditAction, obj: Any, detail: str = "") -> None:
        audit.note(request.user, action, detail=detail, now=timezone.now(), **self.about(obj))


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
class AgentAdmin(Noted):
    added, changed = AuditAction.AGENT_CREATED, AuditAction.SETTING_CHANGED
    deleted = AuditAction.AGENT_DELETED
    list_display = ["name", "display_name", "language", "is_active", "created_at"]
    list_filter = ["is_active", "language"]
    search_fields = ["name", "display_name"]
    inlines = [MemoryConfigInline]

    def about(self, obj: Agent) -> dict[str, Any]:
        return {"agent": obj}

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
class IdentityAdmin(Noted):
    """Links and unlinks; an identity is never rewritten, so that the audit tells who had what."""

    added = changed = AuditAction.IDENTITY_LINKED
    deleted = AuditAction.IDENTITY_UNLINKED
    list_display = ["account", "user_id", "agent"]
    list_select_related = ["account", "agent"]
    search_fields = ["account__username", "user_id"]

    def has_change_permission(self, request: HttpRequest, obj: Identity | None = None) -> bool:
        return False

    def about(self, obj: Identity) -> dict[str, Any]:
        return {"agent": obj.agent, "subject": obj.account, "user_id": obj.user_id}


admin.site.unregister(User)


@admin.register(User)
class AccountAdmin(UserAdmin, Noted):
    """Accounts; nobody demotes, shuts out or deletes himself, so the last superuser stays."""

    added, changed = AuditAction.ACCOUNT_CREATED, AuditAction.ACCOUNT_CHANGED
    deleted = AuditAction.ACCOUNT_CHANGED

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        own = ("username", "is_active", "is_staff", "is_superuser")
        # a user name stays: agents may know its owner by it
        return own if obj == request.user else ("username",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return obj != request.user and super().has_delete_permission(request, obj)

    def about(self, obj: User) -> dict[str, Any]:
        return {"subject": obj}

    def note(self, request: Any, action: AuditAction, obj: Any, detail: str = "") -> None:
        if action == AuditAction.ACCOUNT_CREATED:
            detail = audit.PASSWORD_GIVEN
        elif "assword" in detail:
            detail = audit.PASSWORD_RESET
        super().note(request, action, obj, detail or "account: deleted")


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
