"""What the pages of keys say of a key in few words."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.translation import ngettext

from agents.models import ApiKey

register = template.Library()
_HOUR, _DAY = 60, 24 * 60


@register.filter
def key_state(key: ApiKey) -> str:
    """Return whether a key is live, ending, expired or revoked now."""
    return str(key.state(timezone.now()).value)


@register.filter
def is_idle(key: ApiKey) -> bool:
    """Return whether nobody has used a key for long; a new one may wait as long."""
    return timezone.now() - (key.last_used_at or key.created_at) > ApiKey.IDLE_TIME


@register.filter
def ends_in(moment: datetime) -> str:
    """Return how long it is to a moment: in minutes, hours or days."""
    minutes = max(round((moment - timezone.now()).total_seconds() / 60), 1)
    if minutes < 2 * _HOUR:
        return ngettext("Ends in %d min", "Ends in %d min", minutes) % minutes
    if minutes < 2 * _DAY:
        hours = round(minutes / _HOUR)
        return ngettext("Ends in %d h", "Ends in %d h", hours) % hours
    days = round(minutes / _DAY)
    return ngettext("Ends in %d day", "Ends in %d days", days) % days
