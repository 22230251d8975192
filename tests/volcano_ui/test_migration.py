"""Several who migrate one database at once, and migrations beside which those of the version before can go on."""

import contextlib
import sqlite3

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, connections, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tests.cluster.api.test_rivals import together
from tests.schemas import default_database, execute, new_schema
from volcano_ui import checks, env, migration

# The last ones before pods of two versions ran beside each other.
BEFORE = {"cluster": "0017_binding_cluster", "jobs": "0002_operation_user"}
# Constraints that let through whatever those did whose place they take, so the version before writes nothing that they refuse.
LOOSER = {"token_one_holder"}


@pytest.fixture
def empty(postgres_url, transactional_db, monkeypatch):
    """An empty schema of PostgreSQL as the default database."""
    monkeypatch.setenv("DATABASE_URL", postgres_url)
    with new_schema(postgres_url, "migrating") as values, default_database(values):
        yield


def test_several_migrate_at_once_and_the_lock_is_free_again_after_a_failure(empty):
    def fail(_):
        with pytest.raises(RuntimeError), migration.alone():
            raise RuntimeError
        return True

    def deed(_):
        with migration.alone():
            migration.migrate()
        return True

    assert together(fail, rivals=2) == [True] * 2
    assert together(deed, rivals=3) == [True] * 3
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), count(DISTINCT (app, name)) FROM django_migrations")
        (made, different) = cursor.fetchone()
    assert made == different > 15


FOREIGN = "CREATE TABLE auth_user (id integer PRIMARY KEY, login text)"


def tables():
    return sorted(connection.introspection.table_names())


def file_database(path):
    connections.databases["bare"] = env.database(path)
    connections.configure_settings(connections.databases)
    return default_database(connections.databases.pop("bare"))


@pytest.fixture(params=["sqlite", "postgresql"])
def bare(request, transactional_db, tmp_path):
    """An empty database of either kind as the default one."""
    if request.param == "postgresql":
        request.getfixturevalue("empty")
        yield
        return
    with file_database(tmp_path / "db.sqlite3"):
        yield


def test_somebody_elses_database_is_refused_and_left_as_it_is(bare):
    execute(FOREIGN)
    connection.close()
    file = connection.settings_dict["NAME"]
    before = file.read_bytes() if connection.vendor == "sqlite" else None
    with pytest.raises(migration.Refused, match=r"somebody else's: it has tables \(auth_user\), .* DATA=/some/dir"):
        migration.check()
    assert before is None or file.read_bytes() == before
    assert tables() == ["auth_user"]


def test_file_of_another_program_is_only_read(transactional_db, tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "db.sqlite3")) as file:
        file.execute(FOREIGN)
    before = (tmp_path / "db.sqlite3").read_bytes()
    with file_database(tmp_path / "db.sqlite3"):
        (error,) = checks.whose_file()
    assert error.id == "volcano_ui.E008"
    assert "auth_user" in error.msg
    assert [path.name for path in tmp_path.iterdir()] == ["db.sqlite3"]
    assert (tmp_path / "db.sqlite3").read_bytes() == before


def test_an_empty_database_and_our_own_are_taken(bare):
    migration.check()
    migration.migrate()
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            assert cursor.execute("PRAGMA foreign_keys").fetchone() == (1,)
    migration.check()
    execute("CREATE TABLE of_others (id integer)")  # who put it beside ours knows why
    migration.check()
    migration.migrate()


def test_migration_that_fails_half_way_leaves_nothing(bare):
    execute("CREATE TABLE jobs_operation (id integer)")  # which a late one is to make
    with pytest.raises(DatabaseError, match="jobs_operation"):
        migration.migrate()
    assert tables() == ["jobs_operation"]


def test_step_that_fails_half_way_leaves_the_version_before(bare):
    (last,) = [key for key in MigrationLoader(None).graph.leaf_nodes() if key[0] == "cluster"]
    call_command("migrate", "cluster", "0017_binding_cluster", verbosity=0)
    execute("CREATE TABLE cluster_decision (id integer)")
    before, applied = tables(), MigrationRecorder(connection).applied_migrations().keys()
    with pytest.raises(DatabaseError, match="cluster_decision"):
        migration.migrate()
    assert tables() == before
    assert MigrationRecorder(connection).applied_migrations().keys() == applied
    execute("DROP TABLE cluster_decision")
    migration.migrate()
    assert last in MigrationRecorder(connection).applied_migrations()


def test_older_code_refuses_what_a_newer_version_has_written(bare):
    migration.migrate()
    recorder = MigrationRecorder(connection)
    recorder.record_applied("blog", "0001_initial")  # of somebody beside us
    migration.check()
    for app, name in (("cluster", "0999_newer"), ("auth", "0099_newer")):
        recorder.record_applied(app, name)
        with pytest.raises(migration.Refused, match=rf"newer version: this one does not know {app}\.{name}\. Nothing"):
            migration.check()
        migration.check(may_be_newer=True)
        recorder.record_unapplied(app, name)


def goes_beside(operation):
    """Whether programs that do not know of an operation can go on when it is done."""
    if isinstance(operation, migrations.AddField):
        field = operation.field
        return field.null or field.many_to_many or field.db_default is not models.NOT_PROVIDED
    if isinstance(operation, migrations.AddConstraint):
        return operation.constraint.name in LOOSER
    harmless = migrations.CreateModel, migrations.AddIndex, migrations.RemoveConstraint, migrations.RunPython
    return isinstance(operation, harmless)


def test_migrations_since_several_pods_go_beside_the_version_before():
    loaded = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    assert all(key in loaded for key in BEFORE.items())
    newer = [each for (app, name), each in loaded.items() if app in BEFORE and name > BEFORE[app]]
    assert [operation for each in newer for operation in each.operations if not goes_beside(operation)] == []
    assert not goes_beside(migrations.AddField("thing", "a", models.TextField(default=""))), "a default of Django alone"
    assert not goes_beside(migrations.RenameField("thing", "a", "b"))
