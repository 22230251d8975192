from __future__ import annotations

import pytest

from cluster.rules.leases import LEASE_S, PLACE_ANNOTATION, other_place
from kube.meta import timestamp
from tests.tables import cases

NOW = 1_800_000_000_000
THERE = "host:/there"


@cases("place, age_s, other", {
    "lives": (THERE, 1, THERE),
    "just so": (THERE, LEASE_S - 1, THERE),
    "its clock is ahead": (THERE, -5, THERE),
    "silent": (THERE, LEASE_S, ""),
    "ours": ("host:/here", 1, ""),
    "has stopped in order": ("", 1, ""),
    "says nothing": (None, 1, ""),
})  # fmt: skip
def test_another_agent_lives_while_its_lease_is_fresh(place, age_s, other):
    annotations = {} if place is None else {PLACE_ANNOTATION: place}
    lease = {"metadata": {"annotations": annotations}, "spec": {"renewTime": timestamp(NOW - age_s * 1000)}}
    assert other_place(lease, "host:/here", NOW) == other


@pytest.mark.parametrize("renewed", [None, "", "soon"])
def test_a_lease_that_was_never_renewed_is_nobodys(renewed):
    lease = {"metadata": {"annotations": {PLACE_ANNOTATION: THERE}}, "spec": {"renewTime": renewed}}
    assert other_place(lease, "host:/here", NOW) == ""
