"""Calls of the API that are ready to run: the address, the agent, the key and a user filled in."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from string import Template
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from agents.models import Agent
from memory import tools
from memory.services.instructions import INSTRUCTIONS

_PYTHON = Template("""\
import json
${import_os}import urllib.request

BASE = $base
KEY = $key
USER_ID = $user_id


def call(path, **body):
    request = urllib.request.Request(
        BASE + path,
        data=json.dumps({"user_id": USER_ID, **body}).encode(),
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


saved = call("memories/", type="user", content=$content)
print("saved", saved["id"])
found = call("search/", query=$query)
print("recalled", [hit["memory"]["content"] for hit in found["results"]])
context = call("prefetch/", message=$query)
print(context["memory_context"])
""")

_TYPESCRIPT = Template("""\
const BASE = $base;
const KEY = $key;
const USER_ID = $user_id;

async function call(path: string, body: object) {
  const answer = await fetch(BASE + path, {
    method: "POST",
    headers: { Authorization: `Bearer $${KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify({ user_id: USER_ID, ...body }),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

const saved = await call("memories/", { type: "user", content: $content });
console.log("saved", saved.id);
const found = await call("search/", { query: $query });
console.log("recalled", found.results.map((hit: any) => hit.memory.content));
const context = await call("prefetch/", { message: $query });
console.log(context.memory_context);
""")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Texts to copy for one way of calling; each has a label, '' where one is all there is."""

    slug: str
    title: str
    hint: str
    parts: tuple[tuple[str, str], ...]

    @property
    def texts(self) -> list[tuple[str, str, str]]:
        """Return the id that each text has on the page, its label and the text."""
        return [(f"{self.slug}-{n}", *part) for n, part in enumerate(self.parts, start=1)]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls for whom; without `key` the snippets take it from the environment."""

    request: HttpRequest
    agent: Agent
    user_id: str
    key: str = ""

    @property
    def base(self) -> str:
        """Where the agent's addresses begin; its name is percent-encoded."""
        path = reverse("memories", args=[self.agent.name])
        return self.request.build_absolute_uri(path).removesuffix("memories/")


def snippets_for(caller: Caller) -> list[Snippet]:
    """Return every way to connect; the tools are left out while the agent's memory is off."""
    ways = [_curl(caller), _python(caller), _typescript(caller)]
    if caller.agent.memory_config.enabled:
        ways.append(_tools(caller.agent))
    ways.append(_instructions(caller.agent))
    return ways


def curl_save(caller: Caller) -> str:
    """Return a call that saves something about the user."""
    return _curl_call(caller, "memories/", {"type": "user", "content": _content()})


def _content() -> str:
    return _("I like short answers: the conclusion first, then the reasons.")


def _query() -> str:
    return _("What kind of answers do I like?")


def _curl(caller: Caller) -> Snippet:
    parts = (
        (_("Save"), curl_save(caller)),
        (_("Recall"), _curl_call(caller, "search/", {"query": _query()})),
        (_("Prefetch, before each answer"), _curl_call(caller, "prefetch/", {"message": _query()})),
    )
    return Snippet("curl", "curl", "", parts)


def _curl_call(caller: Caller, path: str, body: dict[str, Any]) -> str:
    # the shell puts the variable in between double quotes only
    token = (
        shlex.quote(f"Authorization: Bearer {caller.key}")
        if caller.key
        else '"Authorization: Bearer $HIPPO_KEY"'
    )
    text = json.dumps({"user_id": caller.user_id, **body}, ensure_ascii=False)
    return " \\\n  ".join(
        [
            f"curl {shlex.quote(caller.base + path)}",
            f"-H {token}",
            "-H 'Content-Type: application/json'",
            f"-d {shlex.quote(text)}",
        ]
    )


def _python(caller: Caller) -> Snippet:
    code = _PYTHON.substitute(
        _literals(caller),
        key=_literal(caller.key) if caller.key else 'os.environ["HIPPO_KEY"]',
        import_os="" if caller.key else "import os\n",
    )
    return Snippet("python", "Python", _("The standard library is enough."), (("", code),))


def _typescript(caller: Caller) -> Snippet:
    key = _literal(caller.key) if caller.key else "process.env.HIPPO_KEY"
    code = _TYPESCRIPT.substitute(_literals(caller), key=key)
    hint = _("Save it as hippo.mts: Node 22.18 or newer runs it as it is, older ones with tsx.")
    return Snippet("typescript", "TypeScript", hint, (("", code),))


def _tools(agent: Agent) -> Snippet:
    parts = tuple(
        (name, json.dumps(tools.definitions(agent, form), ensure_ascii=False, indent=2))
        for form, name in (("openai", "OpenAI"), ("anthropic", "Anthropic"))
    )
    hint = _(
        "Hand these to the model, and post what it calls, with the user_id, to tools/{name}/ as "
        "arguments. The agent gets them fresh from tools/?format=openai or ?format=anthropic."
    )
    return Snippet("tools", _("Tools for the model"), hint, parts)


def _instructions(agent: Agent) -> Snippet:
    hint = _("What prefetch puts into system_prompt; take it from here where you build your own.")
    return Snippet("prompt", _("System prompt"), hint, (("", INSTRUCTIONS[agent.language]),))


def _literals(caller: Caller) -> dict[str, str]:
    return {
        "base": _literal(caller.base),
        "user_id": _literal(caller.user_id),
        "content": _literal(_content()),
        "query": _literal(_query()),
    }


def _literal(text: str) -> str:
    """Return text as a literal that Python and TypeScript read alike."""
    return json.dumps(text, ensure_ascii=False)
