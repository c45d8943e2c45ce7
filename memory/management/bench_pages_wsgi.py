"""The product's WSGI application; a header of each answer says how many queries it took."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connections

# nothing is collected for a benchmark, and no page names a file by its hash
settings.STORAGES["staticfiles"]["BACKEND"] = (
    "django.contrib.staticfiles.storage.StaticFilesStorage"
)
_product = get_wsgi_application()


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answer as the product does, and count."""
    queries = 0

    def count(execute: Any, *arguments: Any) -> Any:
        nonlocal queries
        queries += 1
        return execute(*arguments)

    def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
        return start_response(status, [*headers, ("X-Queries", str(queries))], *more)

    with ExitStack() as stack:
        for connection in connections.all():
            stack.enter_context(connection.execute_wrapper(count))
        return _product(environ, start)
