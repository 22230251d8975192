"""The actions that a job is asked to carry out, whoever asks (reference: volcano-job §3.4).

People ask by Commands; policies ask when something happens to a pod or when a pod waits for too long.
`jobs.controller.plan` carries out all of them in the same way.
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

EXECUTED = "ExecuteAction"  # the reason of the event about an action that no Command asked for


class Target(Struct, frozen=True):
    """The part of a job that an action is about: a task, a pod, or a partition of the task.

    Actions on the whole job ignore all three. A targeted action whose name is missing here affects no pod.
    """

    task: str = ""
    pod: str = ""
    partition: int | None = None


class Request(Struct, frozen=True, kw_only=True):
    """One action that is asked for."""

    action: Action | None  # None: a Command named something that is not an action of a job
    why: str  # who asked, or what happened, in a sentence for people
    by: Requester | None = None
    target: Target = Target()
    source: CommandFact | None = None  # the Command, deleted in the same transaction; None: a policy asks
    firing: PolicyFiring | None = None  # of the policy that asks

    @property
    def reason(self) -> str:
        """The reason of the event that tells people of the request."""
        return EXECUTED if self.source is None else REASON


def pods_named(requests: Iterable[Request], job: JobFact, pods: Iterable[PodFact]) -> list[PodFact]:
    """Return the pods that restarts of tasks, pods or partitions are about."""
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
    """Return the requests to carry out in one round: the first alone, or all leading restarts of parts of the job.

    In Volcano the first of several such restarts makes the job Restarting, and the next ones only end their pods;
    carrying them out together has the same effect.
    """
    if requests and requests[0].action in TARGETED:
        return list(takewhile(lambda request: request.action in TARGETED, requests))
    return requests[:1]
