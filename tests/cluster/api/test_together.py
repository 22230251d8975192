"""Creations that several ask for at once: one transaction, and to each what it would have got alone."""

from __future__ import annotations

import copy
import itertools
import os
import random
import signal
import subprocess
import sys

import pytest
from django.db import DatabaseError

from cluster import access, api
from cluster.api import admission
from cluster.api.cluster_view import ClusterView
from cluster.backend import Creation
from cluster.models import AuditEntry
from cluster.store import Stored, store
from kube.errors import AlreadyExists, Forbidden, Invalid, ServiceUnavailable
from kube.resources import BATCH_JOBS, CONFIGMAPS, JOBS, PODS, QUEUES, RESOURCE_QUOTAS
from proof.systems.system import PROJECT
from tests.cluster.rules.known import pod_spec

from .conftest import config_map, job, queue

SCRIPT = """
import os, signal, sys
import django
django.setup()
from django.core.management import call_command
from cluster import access, api
from cluster.api import admission
from cluster.backend import Creation
from cluster.store import Create, store
from kube.resources import CONFIGMAPS, NAMESPACES

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

call_command("migrate", verbosity=0)
store.write(Create(NAMESPACES, {"metadata": {"name": "default"}, "status": {"phase": "Active"}}))
store.listeners.clear()
if sys.argv[1] == "before":
    admission.register(CONFIGMAPS, bound=lambda obj, *_: die() if obj["metadata"]["name"] == "m3" else [])
else:
    store.listeners.append(die)
maps = [{"metadata": {"name": f"m{n}", "namespace": "default"}} for n in range(4)]
api.create_each([Creation(access.CONSOLE, CONFIGMAPS, one) for one in maps])
"""
COUNT = """
import django
django.setup()
from cluster.models import AuditEntry
from cluster.store import store
from kube.resources import CONFIGMAPS
print(len(store.find(CONFIGMAPS)), AuditEntry.objects.count(), store.revision(), len(store.changes(0)))
"""


def kinds(outcomes):
    return [one.name if isinstance(one, Stored) else type(one) for one in outcomes]


def deeds():
    rows = AuditEntry.objects.order_by("id")
    return list(rows.values_list("actor", "verb", "namespace", "name", "outcome", "count", "message"))


def creations(*wanted, resource=JOBS):
    return [Creation(actor, resource, obj) for actor, obj in wanted]


@pytest.fixture
def rules(monkeypatch):
    """Rules that a test registers go away with it."""
    monkeypatch.setattr(admission, "_rules", copy.deepcopy(admission._rules))


@pytest.fixture
def people(cluster, person):
    return person("alice", default="submitter"), person("bob", other="submitter")


def test_each_stands_or_fails_for_itself_in_order(people):
    alice, bob = people
    before = store.revision()
    outcomes = api.create_each(
        creations(
            (alice, job("a")),
            (bob, job("b", "other")),
            (bob, job("c")),
            (alice, job("Bad Name")),
            (bob, job("b", "other")),
            (alice, job("d")),
            (alice, job("e", queue="none")),
            (alice, job("f", "nowhere")),
        )
    )
    assert kinds(outcomes) == ["a", "b", Forbidden, Invalid, AlreadyExists, "d", Invalid, Forbidden]
    assert [(c.name, c.revision) for c in store.changes(before)] == [
        ("a", before + 1), ("b", before + 2), ("d", before + 3),
    ]  # fmt: skip


def test_each_gets_what_it_would_have_got_alone(people):
    alice, bob = people
    wanted = [(alice, "a"), (alice, "Bad Name"), (bob, "c"), (alice, "a"), (alice, "d")]
    alone = [attempt(*creations((actor, job(name)))) for actor, name in wanted]
    rows, answers = deeds(), [told(one) for one in alone]
    for stored in store.find(JOBS):
        api.delete(access.SYSTEM, JOBS, stored.namespace, stored.name, propagation="Background")
    AuditEntry.objects.all().delete()
    outcomes = api.create_each(creations(*((actor, job(name)) for actor, name in wanted)))
    assert [told(one) for one in outcomes] == answers
    # A refusal is written after what was done, when both are of one transaction.
    assert sorted(deeds()) == sorted(rows)


def attempt(one):
    try:
        return api.create(one.actor, one.resource, one.object)
    except Exception as error:
        return error


def told(outcome):
    """What a client sees of an outcome, but for what is another with each attempt."""
    if not isinstance(outcome, Stored):
        return str(outcome)
    meta = {
        key: value
        for key, value in outcome.object["metadata"].items()
        if key not in ("uid", "resourceVersion", "creationTimestamp")
    }
    return {**outcome.object, "metadata": meta}


def test_what_came_while_the_lock_was_waited_for_is_stored_with_it(people):
    alice, bob = people
    before = store.revision()
    late = creations((bob, job("b")), (bob, job("c", "other")))
    outcomes = api.create_each(creations((alice, job("a"))), lambda: late)
    assert kinds(outcomes) == ["a", Forbidden, "c"]
    assert [change.name for change in store.changes(before)] == ["a", "c"]


def test_the_cluster_is_asked_once_for_all(people, django_assert_max_num_queries):
    alice, _ = people
    with django_assert_max_num_queries(20):
        outcomes = api.create_each(creations(*((alice, job(f"x{n}")) for n in range(100))))
    assert all(isinstance(one, Stored) for one in outcomes)


def test_nobody_gets_past_a_quota_together(cluster):
    spec = {"hard": {"pods": "2"}}
    api.create(access.SYSTEM, RESOURCE_QUOTAS, {"metadata": {"name": "q", "namespace": "default"}, "spec": spec})
    pods = [{"metadata": {"name": f"p{n}", "namespace": "default"}, "spec": pod_spec()} for n in range(3)]
    outcomes = api.create_each(creations(*((access.SYSTEM, pod) for pod in pods), resource=PODS))
    assert kinds(outcomes) == ["p0", "p1", Forbidden]


def test_what_rules_look_at_is_stored_before_the_next_is_judged(cluster):
    system = access.SYSTEM
    wanted = [(system, queue("parent")), (system, queue("child", parent="parent")), (system, queue("parent"))]
    assert kinds(api.create_each(creations(*wanted, resource=QUEUES))) == ["parent", "child", AlreadyExists]


def test_a_rule_that_breaks_on_one_hurts_no_other(people, rules):
    alice, _ = people

    def breaks(obj, old, view):
        if obj["metadata"]["name"] == "broken":
            raise ZeroDivisionError
        return []

    admission.register(JOBS, validate=breaks)
    outcomes = api.create_each(creations(*((alice, job(name)) for name in ("a", "broken", "b"))))
    assert kinds(outcomes) == ["a", ZeroDivisionError, "b"]
    assert [row[3] for row in deeds()] == ["a", "b"]


def test_when_the_transaction_breaks_each_is_done_alone(people, rules):
    alice, bob = people
    tries = []

    def breaks_together(obj, old, view):
        tries.append(obj["metadata"]["name"])
        if tries.count("b") == 1 and obj["metadata"]["name"] == "b":
            raise DatabaseError("something of one object that the database does not take")
        return []

    admission.register(JOBS, validate=breaks_together)
    before = store.revision()
    outcomes = api.create_each(creations((alice, job("a")), (alice, job("b")), (bob, job("c")), (alice, job("d"))))
    assert kinds(outcomes) == ["a", "b", Forbidden, "d"]
    assert tries == ["a", "b", "a", "b", "d"]
    assert store.revision() == before + 3
    assert [(row[3], row[4]) for row in deeds()] == [
        ("a", "done"), ("b", "done"), ("c", "denied"), ("d", "done"),
    ]  # fmt: skip


def test_on_a_full_disk_all_are_told_and_nothing_is_stored(cluster, full_disk):
    maps = [config_map(f"m{n}", text="x" * 100_000) for n in range(3)]
    outcomes = api.create_each(creations(*((access.SYSTEM, one) for one in maps), resource=CONFIGMAPS))
    assert kinds(outcomes) == [ServiceUnavailable] * 3
    assert store.find(CONFIGMAPS) == []


@pytest.mark.parametrize(("moment", "expected"), [("before", "0 0 1 1"), ("after", "4 4 5 5")])
def test_a_process_that_is_killed_leaves_all_or_nothing(tmp_path, moment, expected):
    """The figures: objects, audit rows, newest revision, rows of the log; the namespace is one of the last two."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "volcano_ui.settings", "VOLCANO_UI_DATA": str(tmp_path)}
    died = subprocess.run([sys.executable, "-c", SCRIPT, moment], cwd=PROJECT, env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    left = subprocess.run(
        [sys.executable, "-c", COUNT], cwd=PROJECT, env=environment, check=True, capture_output=True, text=True
    )
    assert left.stdout.split() == expected.split()


class TheSameTwice(random.Random):
    """Chance that draws one name twice, and then another."""

    letters = itertools.chain("bbbbb", "bbbbb", itertools.repeat("c"))

    def choice(self, seq):
        return next(self.letters)


def test_names_that_are_generated_in_one_transaction_differ(cluster, monkeypatch):
    """What is judged together is not stored yet when the next name is chosen."""
    monkeypatch.setattr(store, "random", TheSameTwice())
    view = ClusterView()
    names = [view.free_name(BATCH_JOBS, "default", "a-") for _ in range(2)]
    assert names == ["a-bbbbb", "a-ccccc"]
