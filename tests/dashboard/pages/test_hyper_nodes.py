"""The page about the network between nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.pages.hyper_nodes import tree
from kube.resources import HYPER_NODES
from kube.topology import Domain
from tests.dashboard.pages.conftest import node, page, pod, put

pytestmark = pytest.mark.usefixtures("cluster")


def hyper_node(name, tier, *members, kind="Node", tier_name=""):
    listed = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in members]
    spec = {"tier": tier, "members": listed, **({"tierName": tier_name} if tier_name else {})}
    return HYPER_NODES, {"metadata": {"name": name}, "spec": spec}


def cells(browser, address):
    """Return what stands in each row of the list."""
    body = page(browser, address).one(id="table-rows")
    return [[" ".join(" ".join(cell.itertext()).split()) for cell in row] for row in body if row.tag == "tr"]


def test_a_cluster_without_hyper_nodes_says_what_they_are_for_and_the_page_of_nodes_leads_there(admin, stranger):
    shown = page(admin, "/network/").text(tag="main")
    assert "There are no HyperNodes" in shown
    assert "Jobs ask with networkTopology to be in one of them" in shown
    assert "/network/" in [a.get("href") for a in page(admin, "/nodes/").all(tag="a")]
    assert stranger.get("/network/").status_code == 403


def test_hyper_nodes_are_shown_as_a_tree_with_what_is_taken_on_their_nodes(admin):
    put(node("far", ready=False), pod("p", node="far", cpu="2"))
    put(
        hyper_node("row", 2, "rack-a", "rack-b", kind="HyperNode"),
        hyper_node("rack-b", 1, "far", "gone", tier_name="rack"),
        hyper_node("rack-a", 1, "one"),
    )
    rows = cells(admin, "/network/")
    assert [row[0] for row in rows] == ["row", "rack-a", "rack-b"]
    assert rows[2][3].startswith("2 of 8")
    assert [row[2] for row in rows] == ["2 1 ready", "1", "1 0 ready"]
    assert rows[2][1] == "1 rack"
    assert rows[2][-1] == "There is no node gone."
    assert [row[0] for row in cells(admin, "/network/?q=ack")] == ["rack-a", "rack-b"]
    shown = page(admin, "/network/")
    (current,) = [a for a in shown.all(tag="a") if a.get("aria-current") == "page"]
    assert current.get("href") == "/nodes/"
    assert "All 0" not in " ".join(shown.text(tag="main").split())


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
