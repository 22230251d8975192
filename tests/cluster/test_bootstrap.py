"""Versions, and the few objects with which every cluster begins."""

import subprocess
import sys

import pytest
from django.conf import settings
from django.core.management import call_command

from apiserver import health
from cluster.bootstrap import bootstrap
from cluster.rules import first_limits
from cluster.store import Delete, Patch, store
from cluster.version import VERSION, is_newer
from kube.resources import LIMIT_RANGES, NAMESPACES, PRIORITY_CLASSES, QUEUES
from tests.cluster.rules.known import admit
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)
LIMITS = first_limits.of_machine("default", 8, 16 << 30)


@pytest.mark.parametrize(("newer", "older"), [("0.2.0", "0.1.0"), ("0.10.0", "0.9.9"), ("1.0.1", "1"), ("0.1.0", "")])
def test_versions_have_an_order(newer, older):
    assert is_newer(newer, older)
    for one, other in ((older, newer), (newer, newer), ("1.0", "1"), ("1.0.0rc1", "1.0.0"), ("nonsense", older)):
        assert not is_newer(one, other)


def test_the_command_pages_and_the_api_say_the_version(admin_client):
    command = [sys.executable, "manage.py", "--version"]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=True)
    assert done.stdout == f"volcano-ui {VERSION}\n"
    assert f"volcano-ui {VERSION}" in admin_client.get("/access/").content.decode()
    assert health.VERSION.endswith(f"+volcano-ui.{VERSION}")


@pytest.mark.shows("scheduler 1.6/built-in queues")
def test_bootstrap_makes_namespaces_queues_and_priority_classes_once():
    assert len(bootstrap()) == 9
    assert [n.name for n in store.find(NAMESPACES)] == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert {q.name: q.object["status"]["state"] for q in store.find(QUEUES)} == {"default": "Open", "root": "Open"}
    assert {q.object["spec"]["dequeueStrategy"] for q in store.find(QUEUES)} == {"traverse"}
    values = {"master-pri": 1000, "system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
    assert {c.name: c.object["value"] for c in store.find(PRIORITY_CLASSES)} == values
    store.write(Patch(QUEUES, "", "default", {"spec": {"weight": 7}}))
    before = store.revision()
    assert bootstrap(LIMITS) == [], "a cluster of an older version gets no limits"
    assert store.revision() == before


def test_limits_are_made_with_their_namespace_and_changed_or_deleted_for_good():
    assert "limitranges/default-limits" in bootstrap(LIMITS)
    bounds = [{"type": "Container", "defaultRequest": {"cpu": "1"}}]
    store.write(Patch(LIMIT_RANGES, "default", "default-limits", {"spec": {"limits": bounds}}))
    assert bootstrap(LIMITS) == []
    assert store.get(LIMIT_RANGES, "default", "default-limits").object["spec"]["limits"] == bounds
    store.write(Delete(LIMIT_RANGES, "default", "default-limits"))
    assert bootstrap(LIMITS) == []
    assert store.find(LIMIT_RANGES) == []


def test_command_says_what_it_made_for_this_machine(capsys):
    call_command("bootstrap")
    assert "queues/default" in capsys.readouterr().out
    (found,) = store.find(LIMIT_RANGES)
    (bounds,) = found.object["spec"]["limits"]
    assert (found.namespace, bounds["defaultRequest"]) == ("default", {"cpu": "100m", "memory": "128Mi"})
    call_command("bootstrap")
    assert capsys.readouterr().out == "Everything is there.\n"


@cases("cpus, memory, most", {
    "one processor": (1, 512 << 20, {"memory": "256Mi"}),
    "two": (2, 24 << 30, {"memory": "12288Mi"}),
    "eight": (8, 16 << 30, {"memory": "8192Mi", "cpu": "7"}),
    "never below the request": (1, 100 << 20, {"memory": "128Mi"}),
})  # fmt: skip
def test_a_container_that_says_nothing_cannot_take_the_whole_machine(cpus, memory, most):
    (bounds,) = first_limits.of_machine("default", cpus, memory)["spec"]["limits"]
    assert bounds["default"] == most
    assert admit(LIMIT_RANGES, first_limits.of_machine("default", cpus, memory)).causes == ()
