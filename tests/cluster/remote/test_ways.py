"""What may be changed in a cluster with an API of its own."""

from __future__ import annotations

import pytest

from cluster import access
from cluster.remote import ways
from cluster.remote.reflection import Phase, Standing
from kube.errors import Forbidden
from kube.resources import JOB_FLOWS, JOBS

VOLCANO = {JOBS.id: Standing(phase=Phase.LIVE), JOB_FLOWS.id: Standing(phase=Phase.ABSENT)}
PLAIN = {JOBS.id: Standing(phase=Phase.ABSENT)}


@pytest.mark.parametrize(
    ("chosen", "standings", "verb", "resource", "words"),
    [
        pytest.param("", VOLCANO, "create", JOBS.id, "", id="Volcano is there"),
        pytest.param("", VOLCANO, "create", JOB_FLOWS.id, "does not serve jobflows", id="a kind is not there"),
        pytest.param("", PLAIN, "create", "pods", "it does not serve Volcano's jobs", id="Volcano is not there"),
        pytest.param("", PLAIN, "list", "pods", "", id="reading is always possible"),
        pytest.param("", PLAIN, "create", "users", "", id="accounts are ours"),
        pytest.param("", PLAIN, "create", "pods/exec", "only show", id="a part of a pod"),
        pytest.param("", {}, "create", JOBS.id, "has not answered yet", id="nothing is known yet"),
        pytest.param("read-only", VOLCANO, "delete", JOBS.id, "VOLCANO_UI_WAY is read-only", id="chosen"),
        pytest.param("beside", PLAIN, "create", JOBS.id, "does not serve jobs.batch.volcano.sh", id="chosen in vain"),
    ],
)
def test_refusal(chosen, standings, verb, resource, words):
    said = ways.permits("dev", chosen, standings).refusal(verb, resource)
    assert words in said
    assert bool(said) is bool(words)


@pytest.mark.parametrize("actor", [access.SYSTEM, access.Actor("somebody")])
def test_what_the_cluster_refuses_nobody_may(actor):
    refused = ways.permits("dev", "read-only", VOLCANO).refusal
    access.refuse(refused)
    try:
        assert not access.allowed(actor, "create", JOBS, "default", owner=actor.name)
        with pytest.raises(Forbidden, match="These pages only show the cluster dev"):
            access.require(actor, "create", JOBS, "default")
    finally:
        access.refuse(lambda verb, resource: "")
