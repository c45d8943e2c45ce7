"""A memory as a Markdown file to read, its facts in front, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

from memory.errors import InvalidMemory
from memory.models import Memory
from memory.services.transfers.cells import field_of, record_of, texts_of

MAX_FILE_BYTES = 256 * 1024
_FACTS = (
    "id", "name", "type", "kind", "status", "description", "tags", "importance", "confidence",
    "tier", "source", "pinned", "core", "visibility", "detail", "metadata", "due_at",
    "expires_at", "version", "created_at", "updated_at",
)  # fmt: skip
_TEXTS = {"due_at", "expires_at", "created_at", "updated_at"}
_FRONT = re.compile(r"---[ \t]*\r?\n(.*?\n)?---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_HEADING = re.compile(r"\s*# +(\S[^\n]*?)[ \t\r]*(?:\n|\Z)")


class _Loader(yaml.BaseLoader):
    """Reads texts, lists and objects; no references, by which a small file becomes a vast one."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node. Raises YAMLError for a reference."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("references are not taken")
        return super().compose_node(parent, index)


def markdown_of(memory: Memory) -> str:
    """Return a memory, with its scope loaded, as Markdown, its facts in front."""
    texts = texts_of(memory)
    facts = {
        name: texts[name] if name in _TEXTS else getattr(memory, name)
        for name in _FACTS
        if texts[name]
    }
    # JSON is YAML, and quotes what needs it
    head = "\n".join(
        f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()
    )
    described = f"\n_{memory.description}_\n" if memory.description else ""
    return f"---\n{head}\n---\n\n# {_title(memory.name)}\n{described}\n{memory.content}\n"


def record_of_markdown(text: str, path: str) -> dict[str, Any]:
    """Return the record that a Markdown file is. Raises InvalidMemory.

    Without a name in front the first heading is the name, else the file's own.
    """
    found = _FRONT.match(text)
    facts = _facts(found[1] or "") if found else {}
    body = text[found.end() :] if found else text
    record = record_of(facts)
    record["content"] = _content(body, record)
    if not record.get("name"):
        record["name"] = PurePosixPath(path).stem[:255]
    return record


def _facts(head: str) -> dict[str, Any]:
    facts = _facts_in_json(head)
    if facts is None:
        try:
            facts = yaml.load(head, _Loader) or {}  # noqa: S506  # texts, lists, objects only
        except (yaml.YAMLError, RecursionError) as error:
            problem = " ".join(str(error).split())[:200]
            raise InvalidMemory({"frontmatter": f"This is not YAML: {problem}."}) from error
    if not isinstance(facts, Mapping):
        raise InvalidMemory({"frontmatter": "These are not names with values."})
    return {field_of(str(name)): value for name, value in facts.items()}


def _facts_in_json(head: str) -> dict[str, Any] | None:
    """Return the facts where each is JSON on a line of its own, as `markdown_of` writes them.

    YAML takes some characters in them for the ends of lines.
    """
    facts: dict[str, Any] = {}
    for line in filter(None, head.split("\n")):
        name, colon, text = line.partition(": ")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not colon or not re.fullmatch(r"\w+", name):
            return None
        facts[name] = value if isinstance(value, str | list | dict) else text.strip()
    return facts


def _content(body: str, record: dict[str, Any]) -> str:
    """Return the text below heading and description, where these say what the facts say."""
    heading = _HEADING.match(body)
    if heading is None:
        return body.strip("\r\n")
    name = record.get("name")
    if isinstance(name, str) and heading[1] != _title(name):
        return body.strip("\r\n")
    rest = body[heading.end() :]
    described = f"\n_{record.get('description')}_\n"
    if rest.startswith(described):
        rest = rest[len(described) :]
    if name and rest.startswith("\n") and rest.endswith("\n"):
        rest = rest[1:-1]  # as `markdown_of` put it: what is left is the content, to the space
    if not rest.strip():
        return heading[1]
    record["name"] = name or heading[1][:255]
    return rest if name else rest.strip("\r\n")


def _title(name: str) -> str:
    return " ".join(name.split())
