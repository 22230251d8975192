"""The database of the test run between two tests that commit.

Django's own way, `flush`, makes the content types and permissions of all applications anew each time, which takes a
hundred times as long as emptying the tables.
"""

from django.db import connections, transaction
from django.test import TransactionTestCase

# Written by the migrations, and by no test.
PRESERVED_TABLES = {"django_migrations", "django_content_type", "auth_permission"}


def flush_by_deletion():
    """Have every test that commits end with its databases' tables emptied; sequences go on, as with `flush`."""
    TransactionTestCase._fixture_teardown = _empty_databases


def _empty_databases(case):
    for alias in case._databases_names(include_mirrors=False):
        empty(alias)


def empty(alias):
    """Empty a database's tables."""
    connection = connections[alias]
    tables = connection.introspection.django_table_names(only_existing=True, include_views=False)
    with transaction.atomic(alias), connection.cursor() as cursor:
        for table in set(tables) - PRESERVED_TABLES:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")
