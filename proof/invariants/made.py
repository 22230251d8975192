"""The jobs of flows and cron jobs are made when it is their turn, once each (reference: volcano-queue-podgroup-cli §7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Generic, TypeVar

from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import CRONS, FLOWS, JOBS, Cron, Flow, Job, key_of

Maker = TypeVar("Maker", Flow, Cron)
FINISHED = ("Completed", "Failed", "Terminated")
BAD = ("Failed", "Terminated")
MAKERS = {FLOWS: "JobFlow", CRONS: "CronJob"}


class Made(Invariant, Generic[Maker]):
    """A rule about the jobs of objects of one kind."""

    of = ""
    read_as: type[Maker]
    kinds: tuple[str, ...] | None = (JOBS,)

    def made_for(self, step: Step) -> tuple[Job, str, Maker] | None:
        """Return a job, and the name and the object that it was made for; None when there is none of this kind any more."""
        job = step.seen
        if type(job) is not Job or (controller := job.metadata.controller) is None:
            return None
        if controller.kind != MAKERS[self.of]:
            return None
        found = self.picture.things[self.of].get(f"{step.change.namespace}/{controller.name}")
        if not isinstance(found, self.read_as) or found.metadata.uid != controller.uid:
            return None
        return job, controller.name, found

    def jobs_of(self, key: str, maker: Maker) -> dict[str, Job]:
        """Return the jobs of an object that are there, by their names."""
        prefix = f"{key.partition('/')[0]}/"
        return {
            name.removeprefix(prefix): job
            for name, job in self.picture.jobs.items()
            if name.startswith(prefix)
            and type(job) is Job
            and job.metadata.controller is not None
            and job.metadata.controller.uid == maker.metadata.uid
        }

    def makers(self) -> Iterator[tuple[str, Maker]]:
        """Yield the objects of the kind that are not being deleted, with their keys."""
        for key, maker in self.picture.things[self.of].items():
            if isinstance(maker, self.read_as) and not maker.metadata.deletion_timestamp:
                yield key, maker


class OncePerTime(Made[Cron]):
    """Source: reference §7.3; docs of jobs/crons/plan.py: the job's name is made of the time, which the status notes."""

    name = "each time has one job"
    meaning = "A cron job makes at most one job for a time, also when that one is deleted, or whoever made it dies."
    of = CRONS
    read_as = Cron

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        # Uid of a cron job → the times for which it has made jobs.
        self._made: defaultdict[str, set[str]] = defaultdict(set)

    def take(self, step: Step) -> None:
        if step.change.verb != "ADDED" or (made := self.made_for(step)) is None:
            return
        job, _, cron = made
        time, uid = job.scheduled, cron.metadata.uid
        if time and time in self._made[uid]:
            raise self.broken(key_of(step.change), f"is made for {time} a second time")
        self._made[uid].add(time)


class Alone(Made[Cron]):
    """Source: reference §7.3, concurrencyPolicy Forbid and Replace.

    Jobs that somebody made by hand come when he likes. A policy that has just
    been changed may not have been known.
    """

    name = "jobs of a cron job meet as it allows"
    meaning = "With Forbid no job is made while another runs on; with Replace the other one is deleted first."
    of = CRONS
    read_as = Cron
    kinds = (JOBS, CRONS)

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._changed: dict[str, int] = {}  # key of a cron job → when its spec was last another one

    def take(self, step: Step) -> None:
        if step.change.resource == CRONS:
            if type(step.before) is Cron and type(step.seen) is Cron and step.before.spec != step.seen.spec:
                self._changed[step.key] = self.picture.at
            return
        if step.change.verb != "ADDED" or (made := self.made_for(step)) is None or not made[0].scheduled:
            return
        _, maker, cron = made
        key = f"{step.change.namespace}/{maker}"
        if self.picture.is_recent(self._changed.get(key, 0)):
            return
        if cron.spec.suspend:
            raise self.broken(key_of(step.change), "is made while its cron job is suspended")
        for name, job in self.jobs_of(key, cron).items():
            if name == step.change.name or job.phase in FINISHED or not job.scheduled:
                continue
            policy = cron.spec.concurrency_policy
            if policy == "Forbid" or (policy == "Replace" and not job.metadata.deletion_timestamp):
                raise self.broken(key_of(step.change), f"is made beside {name}, and the policy is {policy}")


class History(Made[Cron]):
    """Source: reference §7.3: history limits, and status.active. A job that is being deleted counts no more."""

    name = "cron job tells of its jobs"
    meaning = "At rest a cron job has no more jobs that ended than its limits say, and names those that have not."
    of = CRONS
    read_as = Cron

    def settle(self, now: int) -> None:
        for key, cron in self.makers():
            jobs = {name: job for name, job in self.jobs_of(key, cron).items() if not job.metadata.deletion_timestamp}
            for phases, most in (
                (("Completed",), cron.spec.successful_jobs_history_limit),
                (BAD, cron.spec.failed_jobs_history_limit),
            ):
                ended = [name for name, job in jobs.items() if job.phase in phases]
                if len(ended) > most:
                    raise self.broken(
                        f"{CRONS}/{key}", f"keeps {len(ended)} jobs in {' or '.join(phases)}, {most} are wished"
                    )
            active = sorted(name for name, job in jobs.items() if job.phase not in FINISHED)
            reported = sorted(
                each.name for each in cron.status.active if f"{key.partition('/')[0]}/{each.name}" in self.picture.jobs
            )
            reported = [name for name in reported if name in jobs]
            if reported != active:
                raise self.broken(f"{CRONS}/{key}", f"names {reported} as active, and there are {active}")


class InTurn(Made[Flow]):
    """Source: reference §7.1: a job waits for its targets, which must have completed unless a probe asks for less.

    What a flow wants may be changed while it is looked at.
    """

    name = "jobs of a flow come in turn"
    meaning = "A job of a flow is made after those that it waits for have completed, and not again once it has ended."
    of = FLOWS
    read_as = Flow

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        # Uid of a flow → name of a job → phase in which it ended.
        self._ended: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def take(self, step: Step) -> None:
        made = self.made_for(step)
        if made is None:
            return
        job, name, flow = made
        ended = self._ended[flow.metadata.uid]
        if step.after is not None and job.phase in FINISHED:
            ended[step.change.name] = job.phase
        if step.change.verb != "ADDED":
            return
        if step.change.name in ended:
            raise self.broken(key_of(step.change), f"is made again, and was {ended[step.change.name]}")
        wanted = next((each for each in flow.spec.flows if f"{name}-{each.name}" == step.change.name), None)
        if wanted is None:
            raise self.broken(key_of(step.change), f"is made, and is no job of the flow {name}")
        for target in wanted.depends_on.targets:
            if wanted.depends_on.probe is None and ended.get(f"{name}-{target}") != "Completed":
                raise self.broken(key_of(step.change), f"is made, and {name}-{target} has not completed")

    def settle(self, now: int) -> None:
        for key, flow in self.makers():
            name, ended = key.partition("/")[2], self._ended[flow.metadata.uid]
            outcomes = {each.name: ended.get(f"{name}-{each.name}") for each in flow.spec.flows}
            expected = ""
            if any(phase in BAD for phase in outcomes.values()):
                expected = "Failed"
            elif all(phase == "Completed" for phase in outcomes.values()):
                expected = "Succeed"
            phase = flow.status.state.phase
            if expected and phase != expected:
                raise self.broken(f"{FLOWS}/{key}", f"is {phase or 'new'}, and its jobs ended as {outcomes}")
            if phase == "Succeed" and flow.spec.job_retain_policy == "delete":
                left = [n for n, job in self.jobs_of(key, flow).items() if not job.metadata.deletion_timestamp]
                if left:
                    raise self.broken(f"{FLOWS}/{key}", f"has succeeded, and {left[0]} is not deleted")


INVARIANTS = (OncePerTime, Alone, History, InTurn)
