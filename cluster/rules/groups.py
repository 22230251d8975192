"""What pod groups ask of the network and of their sub-groups (reference: volcano-queue-podgroup-cli §3.1, §3.7), and that room is given back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.rules.checks import RulesView, check_selector
from kube import lenient
from kube.errors import Cause, forbidden, invalid
from kube.meta import Object, parse_time
from kube.volcano.reserved_room import RELEASED


def validate(group: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with the arrangement of a pod group, and with when its room was given back."""
    causes = [*_check_release(group), *_check_network(lenient.mapping(group, "spec"), "spec")]
    for number, policy in enumerate(lenient.sequence(group, "spec", "subGroupPolicy")):
        path = f"spec.subGroupPolicy[{number}]"
        causes += _check_network(policy, path)
        causes += check_selector(lenient.mapping(policy, "labelSelector"), f"{path}.labelSelector")
    return causes


def _check_release(group: Object) -> Iterator[Cause]:
    written = lenient.mapping(group, "metadata", "annotations").get(RELEASED)
    if not isinstance(written, str):
        return
    try:
        parse_time(written)
    except ValueError:
        detail = (
            "must be the time at which the room that is kept for the group is given back; write the present"
            " one like 2026-01-01T12:00:00Z, as `date -u +%FT%TZ` does."
        )
        yield invalid(f"metadata.annotations[{RELEASED}]", written, detail)


def _check_network(owner: Any, path: str) -> Iterator[Cause]:
    topology = lenient.mapping(owner, "networkTopology")
    if topology.get("highestTierAllowed") is not None and topology.get("highestTierName"):
        detail = "highestTierAllowed and highestTierName must not be specified at the same time; remove one."
        yield forbidden(f"{path}.networkTopology", detail)
