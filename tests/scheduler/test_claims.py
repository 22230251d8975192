"""On a cluster whose volumes are made by others, pods wait until what they claim is bound, and say for which claim."""

from __future__ import annotations

import pytest

from kube import resources
from tests.tables import cases

from .world import World, group, node, pod, queue


def claim(name, phase, namespace="ns"):
    return resources.CLAIMS, {"metadata": {"name": name, "namespace": namespace}, "status": {"phase": phase}}


def using(name):
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def world(*objects, heeds_claims=True):
    return World(node("n"), queue(), group(minimum=2), *objects, heeds_claims=heeds_claims)


@pytest.mark.shows("scheduler 3.7/volumes")
@cases("volumes, waits_for", {
    "not bound": (using("pending"), "pending"),
    "lost": (using("lost"), "lost"),
    "not there": (using("missing"), "missing"),
    "of another namespace": (using("elsewhere"), "elsewhere"),
    "bound": (using("bound"), ""),
    "no claim": ([{"name": "scratch", "emptyDir": {}}], ""),
    "made for the pod": ([{"name": "own", "ephemeral": {"volumeClaimTemplate": {}}}], "g-1-own"),
    "unreadable": ([{"name": "data", "persistentVolumeClaim": 7}], "volumes that cannot be read"),
})  # fmt: skip
def test_gang_waits_for_the_claims_of_its_pods(volumes, waits_for):
    claims = [
        claim("pending", "Pending"),
        claim("lost", "Lost"),
        claim("bound", "Bound"),
        claim("elsewhere", "Bound", "other"),
    ]
    played = world(*claims, pod("g-0"), pod("g-1", volumes=volumes))
    played.cycle()
    if not waits_for:
        assert len(played.where()) == 2
        return
    assert played.where() == {}
    assert played.condition()["reason"] == "ClaimNotBound"
    assert played.condition()["message"].startswith(f"The claim {waits_for} has no volume yet.")


def test_gang_starts_when_its_claim_is_bound_and_again_waits_when_that_is_gone():
    played = world(claim("data", "Pending"), pod("g-0"), pod("g-1", volumes=using("data")))
    played.cycle()
    played.put(claim("data", "Bound"))
    played.remove(resources.CLAIMS, "data")
    played.cycle()
    assert played.where() == {}
    played.put(claim("data", "Bound"))
    played.cycle()
    assert len(played.where()) == 2


@pytest.mark.shows("scheduler 3.7/volumes")
def test_nodes_of_ours_make_what_is_claimed():
    played = world(pod("g-0"), pod("g-1", volumes=using("missing")), heeds_claims=False)
    played.cycle()
    assert len(played.where()) == 2
