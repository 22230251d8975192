"""What pod groups may ask of the network and of their sub-groups (reference: volcano-queue-podgroup-cli §3.7)."""

from __future__ import annotations

import pytest

from kube.kept_room import RELEASED
from kube.resources import POD_GROUPS
from tests.tables import cases

from .known import causes, of, queue

BOTH = {"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"}


def group(**spec):
    return of(POD_GROUPS, spec={"minMember": 1, **spec})


@pytest.mark.shows("groups 3.7/two tiers")
@cases("spec, expected", {
    "two highest tiers": ({"networkTopology": BOTH}, [("spec.networkTopology", "FieldValueForbidden")]),
    "two highest tiers of sub-groups": ({"subGroupPolicy": [{"name": "a"}, {"name": "b", "networkTopology": BOTH}]},
        [("spec.subGroupPolicy[1].networkTopology", "FieldValueForbidden")]),
    "a selector that cannot be read": ({"subGroupPolicy": [{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]},
        [("spec.subGroupPolicy[0].labelSelector", "FieldValueInvalid")]),
    "one highest tier": ({"networkTopology": {"highestTierAllowed": 0}}, []),
    "sub-groups by a label": ({"subGroupPolicy": [{"name": "a", "matchLabelKeys": ["b"]}]}, []),
})  # fmt: skip
def test_an_arrangement_is_judged_at_its_fields(spec, expected):
    assert causes(POD_GROUPS, group(**spec), None, queue("default")) == expected


@cases("written, is_refused", {
    "whole seconds": ("2026-01-01T12:00:00Z", False),
    "parts of a second": ("2026-01-01T12:00:00.123456Z", False),
    "another zone": ("2026-01-01T14:00:00+02:00", False),
    "a word": ("now", True),
    "nothing": ("", True),
    "a number": ("1767225600", True),
})  # fmt: skip
def test_when_room_was_given_back_is_a_time(written, is_refused):
    made = group()
    made["metadata"]["annotations"] = {RELEASED: written}
    found = causes(POD_GROUPS, made, None, queue("default"))
    assert found == ([(f"metadata.annotations[{RELEASED}]", "FieldValueInvalid")] if is_refused else [])
