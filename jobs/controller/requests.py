"""What a job is asked to do, whoever asks (reference: volcano-job §3.4).

People ask, by Commands, and policies, when something happens to a pod or when
one waits for too long. `jobs.controller.plan` carries all of them out the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from msgspec import Struct

from jobs.controller.facts import JobFact, PodFact
from jobs.lifecycle.phases import TARGETED
from jobs.lifecycle.policy_firings import PolicyFiring
from jobs.lifecycle.requester import Requester
from kube.kinds.batch import Action
from kube.volcano.commands import REASON, CommandFact

EXECUTED = "ExecuteAction"  # the reason of the event that tells of an action nobody issued a Command for


class Target(Struct, frozen=True):
    """The names that an action may be about: of a task, a pod, a partition of the task.

    Actions on the whole job look at none of them. Where the name that a
    targeted action looks for is missing, it is about no pod.
    """

    task: str = ""
    pod: str = ""
    partition: int | None = None


class Request(Struct, frozen=True, kw_only=True):
    """One action that is asked for."""

    action: Action | None  # None: what was asked for is no action of a job
    why: str  # who asked, or what happened, in a sentence for people
    by: Requester | None = None
    target: Target = Target()
    source: CommandFact | None = None  # deleted together with what it asks for
    firing: PolicyFiring | None = None  # of the policy that asks

    @property
    def reason(self) -> str:
        """The reason of the event that tells people of the request."""
        return EXECUTED if self.source is None else REASON


def pods_named(requests: Iterable[Request], job: JobFact, pods: Iterable[PodFact]) -> list[PodFact]:
    """Return the pods that restarts of parts of a job are about."""
    names, tasks = set(), set()
    partitions: set[tuple[str, int | None]] = set()
    for request in requests:
        target = request.target
        if request.action is Action.RESTART_POD:
            names.add(target.pod)
        elif request.action is Action.RESTART_TASK:
            tasks.add(target.task)
        elif target.partition is not None:
            partitions.add((target.task, target.partition))
    return [
        pod
        for pod in pods
        if pod.name in names
        or (pod.task in tasks and pod.task)
        or (partitions and (pod.task, job.partition_of(pod)) in partitions)
    ]


def together(requests: Sequence[Request]) -> Sequence[Request]:
    """Return the requests that are carried out in one round: the first, and parts of a job at once.

    In Volcano the first of several restarts of parts makes the job Restarting,
    and those that follow only end their pods; together they do the same.
    """
    if requests and requests[0].action in TARGETED:
        return list(takewhile(lambda request: request.action in TARGETED, requests))
    return requests[:1]
