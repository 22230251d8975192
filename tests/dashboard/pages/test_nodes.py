"""Nodes, their devices and the network between them."""

from __future__ import annotations

import json

import html5lib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import clock
from cluster.rules.node import node_devices
from cluster.rules.node.node_devices import NodeDevice
from dashboard.pages import nodes
from dashboard.pages.hyper_nodes import tree
from kube.resources import HYPER_NODES
from kube.volcano.topology import Domain
from tests.dashboard.pages.conftest import node, page, pod, put


@pytest.mark.parametrize("is_mirror", [False, True], ids=["embedded", "another cluster"])
def test_kind_of_nodes_is_offered_where_there_are_kinds(is_mirror):
    spec = nodes.spec(is_mirror=is_mirror)
    assert ("kind" in [each.name for each in spec.filters]) is not is_mirror
    assert ("Kind" in [each.title for each in spec.columns]) is not is_mirror
    row = nodes.row_html("n", "Ready", False, "2026-01-01T00:00:00Z", ((0, 1),) * 3, is_mirror=is_mirror)
    read = html5lib.parse(f"<table>{row}</table>", namespaceHTMLElements=False)
    assert len([each for each in read.iter() if each.tag in ("th", "td")]) == len(spec.columns)


def test_a_simulated_node_says_who_may_come(cluster, alice, reads):
    reads(alice, "/nodes/sim-1/ node-head", "/nodes/one/ node-head")


LICENCE = "example.org/licence"


@pytest.fixture
def equipped(cluster, settings, tmp_path):
    """A node with devices: one of a pod in team-a, one of a pod in team-b, one of a pod that has ended, one gone."""
    settings.DATA = tmp_path
    listed = [NodeDevice(LICENCE, each, "", each == "gone") for each in ("blue", "red", "green", "gone")]
    resource, made = node("gpu-1")
    made["metadata"]["annotations"][node_devices.ANNOTATION] = node_devices.written(listed)
    put((resource, made), holding("mine-0", "blue"), holding("theirs-0", "red", namespace="team-b"))
    put(holding("was-0", "green", phase="Succeeded"))
    return tmp_path


def holding(name, device, **options):
    resource, made = pod(name, node="gpu-1", **options)
    has = node_devices.status({LICENCE: [device]}, gone=[])
    made["status"]["containerStatuses"] = [{"name": "c", node_devices.STATUS_FIELD: has}]
    return resource, made


def test_devices_are_shown_with_who_has_them_and_their_figures_as_far_as_they_are_known(equipped, admin, alice, reads):
    reads(admin, "/nodes/gpu-1/ node-use", "/nodes/one/ node-use")
    reads(alice, "/nodes/gpu-1/ node-use")
    assert "theirs" not in page(alice, "/nodes/gpu-1/").answer.content.decode()
    figures = {"blue": {"use": 0.37, "memory": 3 << 30, "memoryTotal": 40 << 30, "temperature": 41.4}}
    usage = {"node": "gpu-1", "at": clock.milliseconds(), "containers": [], "devices": {LICENCE: figures}}
    (equipped / "node").mkdir()
    (equipped / "node" / "usage.json").write_text(json.dumps(usage))
    reads(admin, "/nodes/gpu-1/ node-use")


def hyper_node(name, tier, *members, kind="Node", tier_name=""):
    listed = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members]
    return HYPER_NODES, {"metadata": {"name": name}, "spec": {"tier": tier, "members": listed, "tierName": tier_name}}


def test_hyper_nodes_are_shown_as_a_tree_with_what_is_taken_on_their_nodes(cluster, admin, stranger, reads):
    assert "Jobs ask with networkTopology to be in one of them" in page(admin, "/network/").text(tag="main")
    assert page(admin, "/nodes/").one(tag="a", href="/network/") is not None
    assert stranger.get("/network/").status_code == 403
    put(node("far", ready=False), pod("p", node="far", cpu="2"))
    put(
        hyper_node("row", 2, "rack-a", "rack-b", kind="HyperNode"),
        hyper_node("rack-b", 1, "far", "gone", tier_name="rack"),
        hyper_node("rack-a", 1, "one"),
    )
    reads(admin, "/network/ rows", "/network/?q=ack names")
    document = page(admin, "/network/")
    assert document.one(tag="a", aria_current="page").get("href") == "/nodes/"
    assert "All 0" not in document.text(tag="main")


@given(st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(0, 3), st.sets(st.sampled_from("abcdef")))))
def test_each_is_shown_once_and_below_one_that_has_it(written):
    domains = [
        Domain(name, tier, "", (), tuple(sorted(b for b in below if b in written and written[b][0] < tier)), ())
        for name, (tier, below) in written.items()
    ]
    lines = list(tree(domains))
    assert sorted(domain.name for domain, _ in lines) == sorted(written)
    path: list[Domain] = []
    for domain, depth in lines:
        del path[depth:]
        assert len(path) == depth
        assert not path or domain.name in path[-1].below
        path.append(domain)
