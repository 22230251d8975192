"""What pod groups may ask of the network and of their sub-groups (reference: volcano-queue-podgroup-cli §3.7)."""

from __future__ import annotations

import pytest

from kube.kept_room import RELEASED
from kube.resources import POD_GROUPS

from .known import causes, of, queue

BOTH = {"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"}


def group(**spec):
    return of(POD_GROUPS, spec={"minMember": 1, **spec})


@pytest.mark.shows("groups 3.7/two tiers")
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"networkTopology": BOTH}, [("spec.networkTopology", "FieldValueForbidden")], id="two highest tiers"),
        pytest.param(
            {"subGroupPolicy": [{"name": "a"}, {"name": "b", "networkTopology": BOTH}]},
            [("spec.subGroupPolicy[1].networkTopology", "FieldValueForbidden")], id="two highest tiers of sub-groups",
        ),
        pytest.param(
            {"subGroupPolicy": [{"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}]},
            [("spec.subGroupPolicy[0].labelSelector", "FieldValueInvalid")], id="a selector that cannot be read",
        ),
        pytest.param({"networkTopology": {"highestTierAllowed": 0}}, [], id="one highest tier"),
        pytest.param({"subGroupPolicy": [{"name": "a", "matchLabelKeys": ["b"]}]}, [], id="sub-groups by a label"),
    ],
)  # fmt: skip
def test_an_arrangement_is_judged_at_its_fields(spec, expected):
    assert causes(POD_GROUPS, group(**spec), None, queue("default")) == expected


@pytest.mark.parametrize(
    ("written", "is_refused"),
    [
        pytest.param("2026-01-01T12:00:00Z", False, id="whole seconds"),
        pytest.param("2026-01-01T12:00:00.123456Z", False, id="parts of a second"),
        pytest.param("2026-01-01T14:00:00+02:00", False, id="another zone"),
        pytest.param("now", True, id="a word"),
        pytest.param("", True, id="nothing"),
        pytest.param("1767225600", True, id="a number"),
    ],
)
def test_when_room_was_given_back_is_a_time(written, is_refused):
    made = group()
    made["metadata"]["annotations"] = {RELEASED: written}
    found = causes(POD_GROUPS, made, None, queue("default"))
    assert found == ([(f"metadata.annotations[{RELEASED}]", "FieldValueInvalid")] if is_refused else [])
