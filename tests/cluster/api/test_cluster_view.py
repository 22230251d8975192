"""What the view of rules reads, and how often it asks the database."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster.api.cluster_view import ClusterView
from cluster.store import Create, store
from kube.resources import LEASES, NAMESPACES, NODES

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("count", [0, 1, 50])
def test_machines_are_the_nodes_with_a_lease_of_their_own_read_once(count):
    store.write(Create(NAMESPACES, {"metadata": {"name": "kube-node-lease"}}))
    names = [f"n{number:02}" for number in range(count)]
    for name in (*names, "sim-1", "sim-2"):
        store.write(Create(NODES, {"metadata": {"name": name}}))
    for name in (*names, "simulated-nodes"):
        store.write(Create(LEASES, {"metadata": {"name": name, "namespace": "kube-node-lease"}}))
    view = ClusterView()
    with CaptureQueriesContext(connection) as asked:
        for _ in range(3):
            assert [each["metadata"]["name"] for each in view.machines()] == names
    assert len(asked) == 2
