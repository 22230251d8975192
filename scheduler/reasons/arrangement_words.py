"""Sentences about arranged gangs: their network topology, and pods that start in sub-groups."""

from __future__ import annotations

from scheduler.engine.cause import Arrangement, Cause


def network_topology(cause: Cause) -> str:
    """Return the sentence when no HyperNode has room for all pods."""
    about = cause.arrangement
    if about is None or not about.is_limited:
        return "The pods find no room close enough together."
    if not about.is_known:
        return f"No HyperNode has the tier {about.tier_name}, in one of which the pods must be; choose a tier that there is."
    if cause.started:
        return (
            f"{cause.fit} of {cause.needed} pods have a node; the others must be with them in {_one(about)}, "
            "and there is no room for another."
        )
    if about.placed:
        return (
            f"{about.placed} of the pods have nodes that are not together in {_one(about)}, "
            "so there is no place for the others; restart the job to place all anew."
        )
    if not about.hyper_node:
        return f"The pods must be in {_one(about)}, and there is none; allow a higher tier, or have one made."
    if cause.never:
        return (
            f"This can never start: all its pods must be in {_one(about)}, and none has room for {cause.needed} of them "
            "even with empty nodes; allow a higher tier."
        )
    return f"{cause.fit} of {cause.needed} pods fit at best into {_one(about)} ({about.hyper_node}), and all must be in one."


def sub_groups(cause: Cause) -> str:
    """Return the sentence when too few sub-groups find room as a whole."""
    about = cause.arrangement
    if about is None:
        return "Too few of its sub-groups fit as a whole."
    pods = f"{about.size} {'pod' if about.size == 1 else 'pods'}"
    where = f" in {_one(about)}" if about.is_limited else ""
    if about.is_limited and not about.is_known:
        return f"No HyperNode has the tier {about.tier_name}, in one of which each sub-group must be; choose a tier that there is."
    if cause.started:
        return (
            f"{cause.fit} of {cause.needed} pods have a node; sub-group {about.group} of the others starts only whole, "
            f"with {pods} at once{where}."
        )
    if about.wanted:
        return f"{about.have} of {about.wanted} sub-groups fit that must start together; each needs room for {pods} at once{where}."
    return f"{cause.fit} of {cause.needed} pods fit in whole sub-groups; each sub-group needs room for {pods} at once{where}."


def _one(about: Arrangement) -> str:
    """Return `one HyperNode of tier 2 or lower`."""
    if about.tier_name:
        return f"one HyperNode of tier {about.tier_name} or lower"
    return (
        f"one HyperNode of tier {about.highest} or lower" if about.highest else f"one HyperNode of tier {about.highest}"
    )
