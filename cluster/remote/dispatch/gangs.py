"""What is taken back of a gang that could not be bound whole: pure functions.

A half gang must hold no nodes. A pod cannot be unbound, so those that were bound are deleted, marked first as their
job's controller marks pods: no policy takes that for an eviction, and the controller makes them again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cluster.remote.dispatch.verdicts import Done, Verdict
from cluster.writes import Group, Patch, Write, removal


def bound(group: Group, verdicts: Mapping[int, Verdict]) -> list[Patch]:
    """Return the bindings of a group that were made."""
    return [write for number in _bound(group, verdicts) if isinstance(write := group.writes[number], Patch)]


def _bound(group: Group, verdicts: Mapping[int, Verdict]) -> set[int]:
    """Return the indexes of the bindings that were made."""
    return {
        index
        for index, write in enumerate(group.writes)
        if isinstance(write, Patch) and write.subresource == "binding" and isinstance(verdicts.get(index), Done)
    }


def is_whole(group: Group, verdicts: Mapping[int, Verdict]) -> bool:
    """Say whether the bindings that were made fulfil the minima of a gang: those of its tasks as well as its own."""
    done = _bound(group, verdicts)
    return all(sum(index in done for index in each.among) >= each.need for each in group.minima)


def rollback_writes(
    group: Group, verdicts: Mapping[int, Verdict], unknown: Collection[int], ended: Collection[str]
) -> list[Write]:
    """Return the writes that take back the bindings of a group that has failed, if they are too few for its gang.

    unknown are the indexes of writes that may have been carried out, though no answer came: their pods go as well,
    since a pod that holds no node is soon made again. ended are the uids of pods that have run to their end since: what
    they did counts, and they hold nothing.
    """
    if is_whole(group, verdicts):
        return []
    done = bound(group, verdicts)
    perhaps = bound(group, {number: Done() for number in unknown})
    return removal([write for write in (*done, *perhaps) if write.uid not in ended])
