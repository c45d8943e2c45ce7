"""Everything that agents remember of somebody, as one ZIP to take along."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Sequence
from typing import IO

from agents.models import Agent
from memory.models import Memory
from memory.services import memories
from memory.services.library import Shelf
from memory.services.transfers.markdown_files import markdown_of
from memory.services.transfers.records import to_record

LINES = "memories.jsonl"
_UNSAFE = re.compile(r"[^\w.-]+")
_NAME_CHARS = 60


def write_zip(file: IO[bytes], shelves: Sequence[Shelf]) -> int:
    """Write a ZIP of all memories of the shelves, the trash included; return how many.

    `memories.jsonl` holds every field and every earlier state, and can be imported again;
    below `markdown/` each memory is a file to read. Reads in chunks, holds one memory.
    """
    count = 0
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(LINES, "w", force_zip64=True) as lines:
            for shelf in shelves:
                for memory in memories.walk(shelf.agent, shelf.user_id):
                    lines.write(line_of(shelf.agent, memory))
                    count += 1
        for shelf in shelves:
            for memory in memories.walk(shelf.agent, shelf.user_id):
                archive.writestr(path_of(shelf.agent, memory), markdown_of(memory))
    return count


def line_of(agent: Agent, memory: Memory) -> bytes:
    """Return a memory with all its history as a JSON line."""
    record = {"agent": agent.name, **to_record(memory)}
    return f"{json.dumps(record, ensure_ascii=False)}\n".encode()


def path_of(agent: Agent, memory: Memory) -> str:
    """Return where the ZIP has a memory's Markdown file."""
    return f"markdown/{agent.name}/{file_name(memory)}"


def file_name(memory: Memory) -> str:
    """Return the name of a memory's Markdown file, one that every file system takes."""
    name = _UNSAFE.sub("-", memory.name).strip("-.")[:_NAME_CHARS] or "memory"
    return f"{memory.pk}-{name}.md"
