"""Several who migrate one database at once, and migrations beside which those of the version before can go on."""

from __future__ import annotations

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader

from tests.cluster.api.test_rivals import default_database, execute, settings_of, together
from volcano_ui import migration

# The last ones before pods of two versions ran beside each other.
BEFORE = {"cluster": "0017_binding_cluster", "jobs": "0002_operation_user"}
# Constraints that let through whatever those did whose place they take, so the version before writes nothing that they refuse.
LOOSER = {"token_one_holder"}


@pytest.fixture
def empty(postgres_url, transactional_db, monkeypatch):
    """An empty schema of PostgreSQL as the default database."""
    monkeypatch.setenv("DATABASE_URL", postgres_url)
    with default_database(settings_of(search_path="public")):
        execute("CREATE SCHEMA migrating")
    try:
        with default_database(settings_of(search_path="migrating")):
            yield
    finally:
        with default_database(settings_of(search_path="public")):
            execute("DROP SCHEMA migrating CASCADE")


def test_several_migrate_at_once(empty):
    def deed(_):
        with migration.alone():
            migration.migrate()
        return True

    assert together(deed, rivals=3) == [True] * 3
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), count(DISTINCT (app, name)) FROM django_migrations")
        (made, different) = cursor.fetchone()
    assert made == different > 15


def test_lock_is_free_again_after_a_failure(empty):
    def fail(_):
        with pytest.raises(RuntimeError), migration.alone():
            raise RuntimeError
        return True

    assert together(fail, rivals=2) == [True] * 2


def constraint(name):
    return models.CheckConstraint(condition=models.Q(a=""), name=name)


def goes_beside(operation):
    """Whether programs that do not know of an operation can go on when it is done."""
    if isinstance(operation, migrations.AddField):
        field = operation.field
        return field.null or field.many_to_many or field.db_default is not models.NOT_PROVIDED
    if isinstance(operation, migrations.AddConstraint):
        return operation.constraint.name in LOOSER
    harmless = migrations.CreateModel, migrations.AddIndex, migrations.RemoveConstraint, migrations.RunPython
    return isinstance(operation, harmless)


@pytest.mark.parametrize(
    ("operation", "goes"),
    [
        (migrations.CreateModel("thing", []), True),
        (migrations.AddField("thing", "a", models.TextField(db_default="")), True),
        (migrations.AddField("thing", "a", models.TextField(null=True)), True),
        (migrations.AddField("thing", "a", models.TextField(default="")), False),
        (migrations.RemoveField("thing", "a"), False),
        (migrations.RenameField("thing", "a", "b"), False),
        (migrations.AlterField("thing", "a", models.TextField()), False),
        (migrations.DeleteModel("thing"), False),
        (migrations.RemoveConstraint("thing", "narrow"), True),
        (migrations.AddConstraint("thing", constraint("token_one_holder")), True),
        (migrations.AddConstraint("thing", constraint("narrow")), False),
    ],
    ids=[
        "table",
        "default",
        "null",
        "default of Django alone",
        "removal",
        "name",
        "change",
        "table gone",
        "constraint gone",
        "looser constraint",
        "new constraint",
    ],
)
def test_what_goes_beside_the_version_before(operation, goes):
    assert goes_beside(operation) == goes


def test_migrations_since_several_pods_go_beside_the_version_before():
    known = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    assert all(key in known for key in BEFORE.items())
    newer = {key: each for key, each in known.items() if key[0] in BEFORE and key[1] > BEFORE[key[0]]}
    found = [
        (key, operation)
        for key, each in newer.items()
        for operation in each.operations
        if not goes_beside(operation)
    ]
    assert found == []
