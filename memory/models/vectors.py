"""What a memory's text means, as a vector; and what tells equal texts."""

from __future__ import annotations

from django.db import models

from agents.fields import ExactCharField
from memory.models.memories import Memory
from memory.querysets import MemoryVectorQuerySet


class MemoryVector(models.Model):
    """The vector of a memory, made after it was saved; every indexed memory has a row.

    The row is written with the memory and waits with `model` "" until a worker embeds it, so a
    missing vector is seen and no save waits for a model. A changed text begins anew.
    """

    memory = models.OneToOneField(Memory, models.CASCADE, primary_key=True, related_name="embedded")
    # no key: it would cost every save an index of its own
    scope_id = models.BigIntegerField()
    digest = ExactCharField(max_length=32)
    """Of the normalised text: equal for texts that differ in case, width, signs or space."""
    model = ExactCharField(max_length=200, blank=True, default="")
    """Whose vector it is; "" while there is none."""
    dimension = models.PositiveSmallIntegerField(default=0)
    vector = models.BinaryField(default=b"")
    """`dimension` little-endian float16 of length 1."""
    stamp = models.PositiveBigIntegerField(default=0)
    """The scope's `vector_stamp` when this was written: caches read what is later than theirs."""
    attempts = models.PositiveSmallIntegerField(default=0)
    """How often the model was asked for it in vain since the text changed."""

    objects = MemoryVectorQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["scope_id", "stamp"], name="vector_by_stamp"),
            models.Index(fields=["scope_id", "digest"], name="vector_by_digest"),
            # finds what waits, and what another model made
            models.Index(fields=["model", "memory"], name="vector_by_model"),
        ]

    def __str__(self) -> str:
        return f"vector of {self.memory_id}"
