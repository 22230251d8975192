"""The state of a job in one round: its tasks' sizes, the counts of its pods, and what keeps it waiting."""

from __future__ import annotations

from msgspec import Struct

from jobs.lifecycle.causes import Causes, Failure
from jobs.lifecycle.counts import Counts
from jobs.lifecycle.requester import Requester
from kube.kinds.core import PodPhase


class Task(Struct, frozen=True):
    """The numbers of a task."""

    name: str
    replicas: int
    minimum: int | None  # None: all of them
    partition_size: int = 0  # pods of a partition; 0: the task has none

    @property
    def needed(self) -> int:
        """How many pods of the task count towards the job's minimum."""
        return self.replicas if self.minimum is None else self.minimum


class Situation(Struct, frozen=True, kw_only=True):
    """The input of the phase rules."""

    tasks: tuple[Task, ...]
    counts: Counts
    min_available: int
    min_success: int | None = None
    by: Requester | None = None  # who asked for what the job is doing
    retry_count: int = 0
    max_retry: int = 3
    admitted: bool = True  # the scheduler has admitted the pod group to its queue
    waiting: str = ""  # why the pod group is not placed, in the scheduler's words
    failures: tuple[Failure, ...] = ()  # at most MAX_FAILURES of them
    obstacles: tuple[Failure, ...] = ()  # what keeps bound pods from running; at most MAX_FAILURES of them
    stuck_pods: int = 0  # how many such pods there are
    obstacles_before: Causes = Causes()  # what kept pods from running when they were last ended
    refused: str = ""  # why limit ranges or quotas allow no more pods
    blocked: tuple[str, ...] = ()  # objects of other owners that have the names of objects the pods need from plugins
    waiting_tasks: tuple[str, ...] = ()  # "task b waits for a": why tasks lack pods
    deadlock: str = ""  # why the gang needs pods that are made only once it runs, with the remedy
    foreign_names: tuple[str, ...] = ()  # names of the job's pods that pods of other owners have

    @property
    def replicas(self) -> int:
        return sum(task.replicas for task in self.tasks)

    @property
    def running(self) -> int:
        """How many pods have a running container; the phase rules count pods in phase Running instead, as Volcano does."""
        return self.counts.running - self.counts.idle

    @property
    def all_ended(self) -> bool:
        """Whether every pod that the job wants ran to an end."""
        return self.counts.ended == self.replicas

    @property
    def pods_outside(self) -> int:
        """How many pods are missing because the pod group waits for its queue again, as after an eviction.

        Volcano leaves such a job Running without pods until it is admitted again; here they count as pending pods.
        """
        return 0 if self.admitted else max(self.replicas - self.counts.present, 0)

    @property
    def short_task(self) -> Task | None:
        """A task with fewer successes than its minimum, if the job requires each task's minimum; None for none."""
        if self.min_available < sum(task.needed for task in self.tasks):
            return None
        for task in self.tasks:
            succeeded = self.counts.tasks.get(task.name, {}).get(PodPhase.SUCCEEDED, 0)
            if task.minimum is not None and task.name in self.counts.tasks and succeeded < task.minimum:
                return task
        return None
