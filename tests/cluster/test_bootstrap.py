"""Every cluster begins with the same few objects."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from cluster.bootstrap import bootstrap
from cluster.store import Patch, store
from kube.resources import NAMESPACES, PRIORITY_CLASSES, QUEUES

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.shows("scheduler 1.6/built-in queues")
def test_bootstrap_makes_namespaces_queues_and_priority_classes():
    bootstrap()
    assert [n.name for n in store.find(NAMESPACES)] == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    assert {q.name: q.object["status"]["state"] for q in store.find(QUEUES)} == {
        "default": "Open",
        "root": "Open",
    }
    assert {c.name: c.object["value"] for c in store.find(PRIORITY_CLASSES)} == {
        "master-pri": 1000,
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }


def test_second_bootstrap_changes_nothing():
    assert len(bootstrap()) == 9
    store.write(Patch(QUEUES, "", "default", {"spec": {"weight": 7}}))
    before = store.revision()
    assert bootstrap() == []
    assert store.revision() == before


def test_command_says_what_it_made(capsys):
    call_command("bootstrap")
    assert "queues/default" in capsys.readouterr().out
    call_command("bootstrap")
    assert capsys.readouterr().out == "Everything is there.\n"
