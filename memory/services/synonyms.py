"""The synonyms of an agent: rows of words that mean the same, with a record of who set them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, transaction
from django.utils.translation import gettext as _

from agents import audit
from agents.models import Agent, AuditAction, MemoryConfig
from memory.analyzer import fold, query_terms
from memory.understanding.synonyms import MAX_GROUPS, MAX_WORD_CHARS, MAX_WORDS

Group = list[str]
_BETWEEN = re.compile(r"[,，、;；\n]+")


def parse(text: str) -> Group:
    """Return the words of a row as it is typed: between commas, Chinese ones too.

    Words that differ in case, width or traditional characters alone are one. Raises
    ValidationError for too few or too many, and for one that no search could look for.
    """
    distinct: dict[str, str] = {}
    for word in _BETWEEN.split(text):
        if plain := " ".join(word.split()):
            distinct.setdefault(fold(plain), plain)
    group = list(distinct.values())
    if len(group) < 2:
        raise ValidationError(_("Give at least two words, separated by commas."))
    if len(group) > MAX_WORDS:
        raise ValidationError(_("At most %d words in a row.") % MAX_WORDS)
    for word in group:
        if len(word) > MAX_WORD_CHARS:
            raise ValidationError(_("At most %d characters in a word.") % MAX_WORD_CHARS)
        if not query_terms(word):
            raise ValidationError(_("“%s” holds no letter or digit.") % word)
    return group


def in_words(group: Sequence[str]) -> str:
    """Return a row as it is typed."""
    return ", ".join(group)


def add(agent: Agent, group: Group, *, place: int = 0, actor: Any, now: datetime) -> None:
    """Add a row at a place, the first by default.

    Raises ValidationError where there is such a row, or no room for another.
    """

    def insert(groups: list[Group]) -> None:
        if len(groups) >= MAX_GROUPS:
            raise ValidationError(_("There are %d rows already, as many as may be.") % MAX_GROUPS)
        _refuse_repeated(group, groups)
        groups.insert(place, group)

    _write(agent, insert, f"+ {in_words(group)}", actor, now)


def change(agent: Agent, before: Group, group: Group, *, actor: Any, now: datetime) -> None:
    """Put another row in place of `before`; one that is there already is left as it is.

    Raises ValidationError where `before` is not there any more, or another is like the new one.
    """

    def put(groups: list[Group]) -> None:
        place = _place(before, groups)
        _refuse_repeated(group, groups[:place] + groups[place + 1 :])
        groups[place] = group

    _write(agent, put, f"{in_words(before)} → {in_words(group)}", actor, now)


def remove(agent: Agent, group: Group, *, actor: Any, now: datetime) -> int:
    """Take a row away and return where it was. Raises ValidationError where it is not there."""
    places: list[int] = []

    def take(groups: list[Group]) -> None:
        places.append(_place(group, groups))
        del groups[places[0]]

    _write(agent, take, f"− {in_words(group)}", actor, now)
    return places[0]


def _write(
    agent: Agent, alter: Callable[[list[Group]], None], said: str, actor: Any, now: datetime
) -> None:
    """Let `alter` change the rows as they are now; who changes another at the same time waits."""
    with transaction.atomic(using=DEFAULT_DB_ALIAS):
        config = MemoryConfig.objects.select_for_update().get(agent=agent)
        groups = [list(group) for group in config.synonyms]
        alter(groups)
        if groups != config.synonyms:
            config.synonyms = groups
            config.save(update_fields=["synonyms"])
            detail = f"synonyms: {said}"
            audit.note(actor, AuditAction.SETTING_CHANGED, agent=agent, detail=detail, now=now)
    agent.memory_config = config


def _place(group: Group, groups: list[Group]) -> int:
    if group not in groups:
        raise ValidationError(_("Somebody else changed this row; reload the page."))
    return groups.index(group)


def _refuse_repeated(group: Group, groups: list[Group]) -> None:
    if set(map(fold, group)) in (set(map(fold, each)) for each in groups):
        raise ValidationError(_("There is a row of these words already."))
