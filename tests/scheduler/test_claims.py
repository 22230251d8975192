"""On a cluster whose volumes are made by others, pods wait until what they claim is bound, and say for which claim."""

from __future__ import annotations

import pytest

from kube import resources
from tests.tables import cases

from .world import World, pod


def claim(name, phase, namespace="ns"):
    return resources.CLAIMS, {"metadata": {"name": name, "namespace": namespace}, "status": {"phase": phase}}


def using(name):
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


CLAIMS = [claim("pending", "Pending"), claim("lost", "Lost"), claim("bound", "Bound"), claim("other", "Bound", "other")]


def world(volumes, *, heeds_claims=True):
    return World("node n; group g 2/1x1", *CLAIMS, pod("g-1", volumes=volumes), heeds_claims=heeds_claims)


@pytest.mark.shows("scheduler 3.7/volumes")
@cases("volumes, waits_for", {
    "not bound": (using("pending"), "pending"),
    "lost": (using("lost"), "lost"),
    "not there": (using("missing"), "missing"),
    "of another namespace": (using("other"), "other"),
    "bound": (using("bound"), ""),
    "no claim": ([{"name": "scratch", "emptyDir": {}}], ""),
    "made for the pod": ([{"name": "own", "ephemeral": {"volumeClaimTemplate": {}}}], "g-1-own"),
    "unreadable": ([{"name": "data", "persistentVolumeClaim": 7}], "volumes that cannot be read"),
})  # fmt: skip
def test_gang_waits_for_the_claims_of_its_pods(volumes, waits_for):
    played = world(volumes)
    played.cycle()
    assert played.placed() == ("" if waits_for else "g n n")
    if waits_for:
        assert played.condition()["reason"] == "ClaimNotBound"
        assert played.told().startswith(f"The claim {waits_for} has no volume yet.")


def test_gang_starts_when_its_claim_is_bound_and_again_waits_when_that_is_gone():
    played = world(using("pending"))
    played.cycle()
    played.put(claim("pending", "Bound"))
    played.remove(resources.CLAIMS, "pending")
    played.cycle()
    assert played.placed() == ""
    played.put(claim("pending", "Bound"))
    played.cycle()
    assert played.placed() == "g n n"


@pytest.mark.shows("scheduler 3.7/volumes")
def test_nodes_of_ours_make_what_is_claimed():
    played = world(using("missing"), heeds_claims=False)
    played.cycle()
    assert played.placed() == "g n n"
