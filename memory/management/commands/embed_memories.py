from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import DatabaseError

from agents.models import Agent
from memory.databases import aliases_in_use, open_store, store_alias
from memory.errors import HippoError
from memory.llm.embeddings import Embedder, EmbeddingFailed
from memory.management.base import HippoCommand, find_agent, progress
from memory.models import Scope
from memory.querysets import MemoryVectorQuerySet
from memory.retrieval import embedder
from memory.services import backlog, embedding
from memory.services.embedding import Tally


class Command(HippoCommand):
    help = "Embed what has no vector of the present model; exit status 1 while something waits."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--agent", metavar="NAME", help="only this agent's memories")
        parser.add_argument(
            "--again", action="store_true", help="also texts that the model refused again and again"
        )

    def run(self, **options: Any) -> None:
        model = embedder.current()
        if model is None:
            raise CommandError("No model embeds here: EMBEDDINGS, or the settings, say none.")
        agent = find_agent(options["agent"]) if options["agent"] else None
        waiting = 0
        for alias in [store_alias(agent)] if agent else aliases_in_use():
            try:
                waiting += self._embed(alias, agent, model, again=options["again"])
            except (DatabaseError, HippoError) as error:
                waiting += 1
                self.stderr.write(f"{alias}: its store fails: {error}")
        if waiting:
            raise CommandError("Not all is embedded; searches find the rest by words.")

    def _embed(self, alias: str, agent: Agent | None, model: Embedder, *, again: bool) -> int:
        """Embed what waits in a store; return how many still do."""
        open_store(alias)
        rows = _rows(alias, agent)
        tried = rows if again else rows.filter(attempts__lt=backlog.MOST_ATTEMPTS)
        tally = Tally()
        with progress(tried.pending(model.model).count(), f"Embedding {alias}") as bar:
            try:
                for count in embedding.embed_rows(tried, model, tally):
                    bar.update(count)
            except EmbeddingFailed as error:
                self.stderr.write(f"{alias}: the model fails: {error}")
        waiting = rows.pending(model.model).count()
        words = f"{alias}: {tally.embedded} memories embedded by {model.model}, {waiting} wait"
        self.stdout.write(f"{words}; {tally.refused} were refused" if tally.refused else words)
        return waiting


def _rows(alias: str, agent: Agent | None) -> MemoryVectorQuerySet:
    rows = backlog.of_store(alias)
    return rows.filter(scope_id__in=Scope.objects.for_agent(agent).values("pk")) if agent else rows
