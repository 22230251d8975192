"""Many at once, on both databases: what holds in one thread must hold among rivals."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.core.management import call_command
from django.db import connection, connections

from cluster import access, api
from cluster.access import identities, logins
from cluster.backend import Creation
from cluster.claims import Person
from cluster.models import AuditEntry, Identity
from cluster.store import Create, store
from kube import resources
from kube.errors import ApiError, NotFound
from proof.settings import DATA
from tests.database import empty
from volcano_ui import env

from .conftest import config_map, make_user, namespace

RIVALS = 8
WRITERS, TURNS = 16, 5


@pytest.fixture(scope="module")
def schema(postgres_url, django_db_blocker):
    """The settings of a schema of PostgreSQL with our tables, which goes away."""
    with django_db_blocker.unblock(), migrated_schema(postgres_url, "rivals") as values:
        yield values


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, transactional_db):
    """The default database on each back end."""
    if request.param == "sqlite":
        yield
        return
    with emptied_at_the_end(request.getfixturevalue("schema")):
        yield


@contextmanager
def migrated_schema(url, name):
    """Settings of a schema of PostgreSQL with our tables, for the length of the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE_URL", url)
        outside, inside = settings_of(search_path="public"), settings_of(search_path=name)
    with default_database(outside):
        execute(f"CREATE SCHEMA {name}")
    try:
        with default_database(inside):
            call_command("migrate", verbosity=0)
        yield inside
    finally:
        with default_database(outside):
            execute(f"DROP SCHEMA {name} CASCADE")


@contextmanager
def emptied_at_the_end(values):
    """Let a schema that others use after this test be the default database for the length of the block."""
    with default_database(values):
        yield
        empty("default")


def settings_of(search_path):
    connections.databases["rivals"] = env.database(DATA / "unused")
    connections.configure_settings(connections.databases)
    values = connections.databases.pop("rivals")
    values["OPTIONS"] = {**values["OPTIONS"], "options": f"-c search_path={search_path}"}
    return values


@contextmanager
def default_database(values):
    """Let "default" be another database, in every thread, for the length of the block."""
    usual, settings = connections["default"], connections.settings["default"]
    connections.settings["default"] = values
    connections["default"] = connections.create_connection("default")
    try:
        yield
    finally:
        connections["default"].close()
        connections.settings["default"], connections["default"] = settings, usual


def execute(text):
    with connection.cursor() as cursor:
        cursor.execute(text)


def together(deed, rivals=RIVALS):
    """Do deed(number) in so many threads that start at the same moment; return what they return."""
    start = threading.Barrier(rivals)

    def run(number):
        start.wait()
        try:
            return deed(number)
        except ApiError as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(rivals) as threads:
        return list(threads.map(run, range(rivals)))


def test_of_many_who_log_in_at_once_a_link_lets_one_in_guesses_are_all_counted_and_one_user_is_made(database):
    token = logins.login_link("http://h", make_user("bob")).rstrip("/").rpartition("/")[2]
    results = together(lambda _: logins.claim(token, "::1"))
    assert sum(not isinstance(result, NotFound) for result in results) == 1
    assert AuditEntry.objects.filter(verb="login").count() == 1
    results = together(lambda _: logins.attempt("alice", "10.0.0.1", {}))
    assert sum(isinstance(result, ApiError) for result in results) == RIVALS - logins.MOST_FOR_NAME
    alice = Person("https://p", "1", "alice", ("staff",))
    results = together(lambda _: identities.log_in(alice, "::1"))
    assert {getattr(each, "username", each) for each in results} == {"alice"}
    assert Identity.objects.count() == 1


def test_groups_of_many_writers_leave_a_log_without_gaps_that_grows_at_its_end(database):
    store.write(Create(resources.NAMESPACES, namespace("default")))
    user, kind, before = make_user("root", is_superuser=True), resources.CONFIGMAPS, store.revision()
    ended = threading.Event()

    def write(number):
        actor = access.for_user(user)
        for turn in range(TURNS):
            # The one in the middle is wanted by all: one writer gets it.
            names = [f"map-{number}-{turn}", f"shared-{turn}", f"map-{number}-{turn}-b"]
            api.create_each([Creation(actor, kind, config_map(name)) for name in names])

    def read():
        seen = [before]
        try:
            while not (ended.is_set() and store.revision() == seen[-1]):
                seen += [change.revision for change in store.changes(seen[-1], limit=10_000)]
        finally:
            connection.close()
        return seen

    with ThreadPoolExecutor(1) as reader:
        seen = reader.submit(read)
        try:
            together(write, WRITERS)
        finally:
            ended.set()
        assert seen.result() == list(range(before, before + TURNS * (2 * WRITERS + 1) + 1))
    rows = AuditEntry.objects.filter(verb="create")
    assert rows.filter(outcome="refused").count() == TURNS * (WRITERS - 1)
    assert sorted(rows.filter(outcome="done").values_list("revision", flat=True)) == seen.result()[1:]


def test_patches_of_one_object_by_many_all_arrive(database):
    store.write(Create(resources.NAMESPACES, namespace("default")))
    user, kind = make_user("root", is_superuser=True), resources.CONFIGMAPS
    api.create(access.for_user(user), kind, config_map("x"))
    together(lambda n: api.patch(access.for_user(user), kind, "default", "x", {"data": {str(n): "1"}}))
    assert len(store.get(kind, "default", "x").object["data"]) == RIVALS
    assert AuditEntry.objects.filter(verb="patch", outcome="done").count() == RIVALS
