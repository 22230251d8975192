"""What may be changed in a cluster with an API of its own: the ways of working with it, and what each permits.

read-only  nothing may be changed
in-place   our controllers and scheduler do there what Volcano's do elsewhere; only by choice
beside     Volcano's own controllers and scheduler run there; people change here what people write, and
           nothing is written that controllers own
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from cluster.remote.mirroring.reflection import KindStatus, Phase
from kube import resources
from kube.resources import JOBS

READERS = frozenset({"history"})  # consumers that write nothing into the cluster, and run beside all
WRITERS = frozenset(
    {"jobs", "queues", "scheduler", "jobflows", "cronjobs", "hypernodes"}
)  # those that run where controllers of ours work
READS = frozenset({"get", "list", "watch"})
_BUILT_IN = frozenset(kind.id for kind in resources.ALL)


class Way(StrEnum):
    """How these pages work with the cluster; the values are those of VOLCANO_UI_WAY."""

    READ_ONLY = "read-only"
    BESIDE = "beside"
    IN_PLACE = "in-place"


class Permits(NamedTuple):
    """What a cluster lets us change: the way, whether somebody chose it, and the kinds that are not served there."""

    cluster: str
    way: Way
    is_chosen: bool
    has_answered: bool
    absent: frozenset[str]

    def refusal(self, verb: str, resource: str) -> str:
        """Say why nobody may do a verb to a resource (its id, perhaps with a subresource) here; "" when somebody may.

        What is no kind of the cluster, such as accounts of these pages, is not its business.
        """
        if verb in READS or not is_of_cluster(resource):
            return ""
        if not self.has_answered:
            return f"The cluster {self.cluster} has not answered yet, so nothing can be changed there."
        if self.way is Way.READ_ONLY:
            why = "VOLCANO_UI_WAY is read-only" if self.is_chosen else "it does not serve Volcano's jobs"
            return f"These pages only show the cluster {self.cluster}, because {why}. Change it with kubectl."
        if resource.partition("/")[0] in self.absent:
            return f"The cluster {self.cluster} does not serve {resource.partition('/')[0]}."
        return ""


def permits(cluster: str, chosen: str, statuses: Mapping[str, KindStatus]) -> Permits:
    """Return what a cluster permits, given VOLCANO_UI_WAY ("" to go by what it serves) and the status of its kinds."""
    absent = frozenset(kind for kind, status in statuses.items() if status.phase is Phase.ABSENT)
    has_volcano = JOBS.id in statuses and JOBS.id not in absent
    way = Way(chosen) if chosen else Way.BESIDE if has_volcano else Way.READ_ONLY
    return Permits(cluster, way, bool(chosen), JOBS.id in statuses, absent)


def is_of_cluster(resource: str) -> bool:
    """Say whether a resource, perhaps with a subresource, is of a cluster, and not of these pages alone as accounts are."""
    base = resource.partition("/")[0]
    return base in _BUILT_IN or any(kind.id == base for kind in resources.custom())
