"""Empty the stores after a test that commits, at less cost than Django's flush."""

from functools import lru_cache

from django.core.management.color import no_style
from django.db import connections

# the tables that migrate fills: to flush them, Django must make each row anew after every test
_KEPT = {"django_content_type", "auth_permission"}


@lru_cache
def _tables(alias):
    names = connections[alias].introspection.django_table_names(
        only_existing=True, include_views=False
    )
    return sorted({*names} - _KEPT)


def _written(connection):
    """Return the tables that hold a row."""
    quote = connection.ops.quote_name
    looks = (
        f"SELECT '{table}' FROM (SELECT 1 AS x) one WHERE EXISTS (SELECT 1 FROM {quote(table)})"
        for table in _tables(connection.alias)
    )
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(looks))
        return [table for (table,) in cursor.fetchall()]


def empty_written(test_case):
    """Delete all rows of a TransactionTestCase's databases, of no table without one."""
    for alias in test_case._databases_names(include_mirrors=False):
        connection = connections[alias]
        if tables := _written(connection):
            connection.ops.execute_sql_flush(connection.ops.sql_flush(no_style(), tables))
