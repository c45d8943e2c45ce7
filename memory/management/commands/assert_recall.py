from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError
from django.utils import timezone

from agents.models import Agent
from memory.errors import HippoError
from memory.management.base import HippoCommand, find_agent
from memory.services.golden import asking, asserting, questions
from memory.services.golden.questions import Draft
from memory.services.recall import MODES

_FAILED, _BAD_INPUT = 1, 2


class Command(HippoCommand):
    help = """Ask an agent's golden questions, or those of a file. Ends with 0 where enough pass,
    with 1 where they do not, with 2 where nothing could be asked."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", metavar="AGENT")
        parser.add_argument("--mode", choices=MODES, default="auto")
        parser.add_argument("--file", type=Path, metavar="QUESTIONS.jsonl")
        parser.add_argument(
            "--min-pass", type=float, default=1.0, metavar="SHARE", help="by default 1.0: all"
        )

    def run(self, **options: Any) -> None:
        if not 0 <= options["min_pass"] <= 1:
            raise CommandError("--min-pass is a share from 0 to 1.", returncode=_BAD_INPUT)
        try:
            agent = find_agent(options["agent"])
            ask = self._ask_file if options["file"] else self._ask_kept
            passed, asked = ask(agent, options["mode"], options["file"])
        except (CommandError, HippoError, DatabaseError, ValueError, OSError) as error:
            raise CommandError(str(error), returncode=_BAD_INPUT) from error
        self.stdout.write(f"{passed} of {asked} passed.")
        if passed / asked < options["min_pass"] - 1e-9:
            raise CommandError(f"{asked - passed} of {asked} failed.", returncode=_FAILED)

    def _ask_kept(self, agent: Agent, mode: str, _file: Path | None) -> tuple[int, int]:
        """Ask the agent's own questions; the run is kept beside those of its page."""
        asked = list(questions.of_agent(agent))
        if not asked:
            raise CommandError(f"{agent.name} has no golden questions; write one down, or --file.")
        run = asking.ask_all(agent, mode, asked, now=timezone.now())
        drafts = {question.pk: questions.drafted(question) for question in asked}
        for result in run.results:
            if not result["passed"]:
                self._name(drafts[result["question"]], result, len(result["came"]))
        return run.passed, run.passed + run.failed

    def _ask_file(self, agent: Agent, mode: str, file: Path) -> tuple[int, int]:
        """Ask what a file asks: of what it brings along, else of the agent."""
        found, now = asserting.read(file), timezone.now()
        if not found.drafts:
            raise CommandError(f"{file} asks nothing.")
        passed = 0
        with ExitStack() as stack:
            stage = None
            if found.memories:
                staged = asserting.stage(agent, found, embeds=mode != "lexical", now=now)
                stage = stack.enter_context(staged)
            for draft in found.drafts:
                asked = stage if stage and draft.user_id in found.users else agent
                answer = asking.ask(asked, draft, mode, now=now)
                passed += answer.passed
                if not answer.passed:
                    self._name(draft, asking.outcome(answer), len(answer.hits))
        return passed, len(found.drafts)

    def _name(self, draft: Draft, result: dict[str, Any], came: int) -> None:
        """Print which question failed, and on what."""
        self.stdout.write(f"FAILED {draft.user_id}: {' '.join(draft.question.split())}")
        for line, rank, beyond in zip(
            draft.expected, result["expected"], result["beyond"], strict=True
        ):
            if rank is None:
                where = f"it would be number {beyond}" if beyond else "it is not found at all"
                self.stdout.write(f"  missing: {line} ({where})")
        for line, rank in zip(draft.unwanted, result["unwanted"], strict=True):
            if rank is not None:
                self.stdout.write(f"  unwanted: {line} (number {rank})")
        if not draft.expected and came:
            self.stdout.write(f"  expected nothing, but {came} came back")
