"""Defects put back on purpose, to show that the simulation bites.

    python -m proof.simulation.planted [NAMES] [--hours H] [--seconds S]

plays worlds with one defect after the other until it is found, and prints a
table. Each is a slip that a good engineer could make; a1 to a7 were made once.

This is the one place where product code is replaced: `planted(name)` does it
for a `with` block.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from dataclasses import replace as with_fields
from typing import Any, NamedTuple, TypeAlias, TypeVar
from unittest.mock import patch

from msgspec.structs import replace

from cluster.api.cluster_view import ClusterView
from cluster.controllers.garbage import GarbageState
from cluster.runtime.division import Position
from cluster.runtime.follower import Wanted
from cluster.runtime.registry import Registration
from cluster.store import Change, Group, Store, Stored, Write
from cluster.store.ledger import KeyChange
from cluster.writes import Timer
from jobs.consumers.state import JobEntry, JobsState
from jobs.controller.facts import JobFact, PodFact
from jobs.controller.pending_actions import PendingAction
from jobs.controller.pod_diff import PodDiff
from jobs.crons.plan import Notice, Run
from jobs.lifecycle.dependencies import Dependency
from jobs.lifecycle.situation import Task
from jobs.made.jobs import OwnedJob
from jobs.rules.admission import JobRulesView
from kube.kinds.batch import JobPhase
from kube.kinds.core import Pod as AgentPod
from kube.kinds.flow import Flow
from kube.meta import Object
from kube.usage import GroupUse, QueuedPod
from node.simulator.simulated_pod import Simulated
from node.simulator.stages import Stage
from queues.controller import QueuesState
from queues.state_commands import QueueFact
from scheduler.gangs.gang_layout import PriorityOf
from scheduler.gangs.layout import Layout
from scheduler.policy.policy import TaskTopologies
from scheduler.records.records import Group as PodGroup

Put: TypeAlias = "Callable[[Any, str, Any], Any]"
PLANTS: dict[str, Plant] = {}
T = TypeVar("T")


class Plant(NamedTuple):
    """A defect: what is wrong in words, and what puts it into the product."""

    about: str
    sow: Callable[[Put], None]


def plant(about: str) -> Callable[[Callable[[Put], None]], Callable[[Put], None]]:
    """Put a function into the table under its name.

    It gets `put`, which replaces an attribute and returns what it was.
    """

    def add(sow: Callable[[Put], None]) -> Callable[[Put], None]:
        PLANTS[sow.__name__.replace("_", "-")] = Plant(about, sow)
        return sow

    return add


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Have the product be wrong inside the block."""
    patches: list[Any] = []

    def put(where: Any, attribute: str, value: Any) -> Any:
        before = getattr(where, attribute)
        patches.append(patch.object(where, attribute, value))
        patches[-1].start()
        return before

    try:
        PLANTS[name].sow(put)
        yield
    finally:
        for each in reversed(patches):
            each.stop()


# ---- those that were found by reading


@plant("generateName takes a name that is taken, and creating overwrites what has it")
def a1(put: Put) -> None:
    from cluster.store import Store, sql

    columns = ("uid", "revision", "created", "phase", "queue", "node", "owner", "creator")
    assignments = ", ".join(f"{name} = excluded.{name}" for name in columns)
    put(sql, "INSERT_OBJECT", f"{sql.INSERT_OBJECT} ON CONFLICT (key) DO UPDATE SET {assignments}")
    put(Store, "_used_keys", lambda self, keys: set())


@plant("an owner that was taken away is remembered, and what names him no more goes with him")
def a2(put: Put) -> None:
    from cluster.controllers.garbage import _Work
    from cluster.store import Store, owners, sql, store

    def put_owners(self: Store, cursor: Any, turns: Sequence[KeyChange]) -> None:
        for key, before, after in turns:
            old = owners.beyond_controller(before.resource, before.object) if before else owners.NONE
            new = owners.beyond_controller(after.resource, after.object) if after else owners.NONE
            text = f"{sql.INSERT_OWNER} ON CONFLICT DO NOTHING"
            cursor.executemany(text, [(key, uid) for uid in sorted(new)])
            if after is None:
                cursor.executemany(sql.DELETE_OWNER, [(key, uid) for uid in sorted(old)])

    def dependents(self: _Work, uid: str, after: int) -> tuple[list[Stored], int | None]:
        wanted = self.room
        found = store.dependents(uid, after=after, limit=wanted)
        self.room -= len(found) or 1
        return [each for each in found if each.uid != uid], (found[-1].revision if len(found) == wanted else None)

    put(Store, "_put_owners", put_owners)
    put(_Work, "_dependents", dependents)


@plant("the queue controller counts a pod where its annotation says, not where its group is")
def a3(put: Put) -> None:
    from kube import usage
    from scheduler.snapshot.queue_usage import QueueUsage

    right = put(usage, "queue_of", lambda pod, groups, namespaces: _wish(pod))
    put(QueueUsage, "queue_of", lambda self, pod: right(pod, self.group_queues, self.namespace_queues))


def _wish(pod: QueuedPod) -> str:
    return (pod.wish or "default") if pod.ours else ""


@plant("retention waits for every cursor, also for one that nobody moves")
def a4(put: Put) -> None:
    from cluster.runtime import registry

    put(registry, "has_reader", lambda cursor: True)


@plant("the log is asked what retention removed before it is read, not afterwards")
def a5(put: Put) -> None:
    from cluster.store import log

    check = log.check
    after = log.after

    def early(revision: int, *args: Any, **options: Any) -> list[Change]:
        check(revision, using=options.get("using", "default"))
        with patch.object(log, "check", lambda revision, *, using="default": None):
            return after(revision, *args, **options)

    put(log, "after", early)


@plant("the job controller takes an Aborted job for finished")
def a6(put: Put) -> None:
    from jobs.controller import facts
    from jobs.lifecycle.phases import FINISHED
    from kube.kinds.batch import JobPhase

    put(facts, "FINISHED", FINISHED | {JobPhase.ABORTED})


@plant("the job controller puts what the log tells over what it has read since")
def a7(put: Put) -> None:
    """Names, uids and reading back what was written set most of it right; not what an earlier pod of a name did."""
    from jobs.consumers.state import JobsState

    put(JobsState, "has_read", lambda self, key, revision: False)


# ---- the runner of consumers


@plant("due timers are dropped after new ones are set, so that one set anew is lost")
def timer_lost(put: Put) -> None:
    from cluster.consumers.consumer import Runner

    dropped: list[Any] = []
    drop = put(Runner, "_drop_timers", lambda self, keys: dropped.append(keys))
    set_ = Runner._set_timers

    def set_timers(self: Runner[Any], timers: Sequence[Timer]) -> None:
        set_(self, timers)
        while dropped:
            drop(self, dropped.pop())

    put(Runner, "_set_timers", set_timers)


@plant("a cursor is moved one too far")
def cursor_too_far(put: Put) -> None:
    from cluster.consumers.consumer import Runner

    move = Runner._move_cursor

    def too_far(self: Runner[Any], cursor: Position, now: int) -> None:
        self.delivered += 1
        try:
            move(self, cursor, now)
        finally:
            self.delivered -= 1

    put(Runner, "_move_cursor", too_far)


@plant("whoever moves a cursor does not look whether somebody else did: two leaders")
def two_leaders(put: Put) -> None:
    from cluster.consumers.consumer import Runner

    move = Runner._move_cursor

    def unguarded(self: Runner[Any], cursor: Position, now: int) -> None:
        found = self._read_cursor()
        move(self, with_fields(cursor, generation=found.generation if found else cursor.generation), now)

    put(Runner, "_move_cursor", unguarded)


@plant("a consumer goes on with its old state after an error")
def old_state(put: Put) -> None:
    from cluster.consumers.consumer import Runner

    step = Runner.step

    def lenient(self: Runner[Any]) -> bool:
        previous = self.state
        try:
            return step(self)
        except Exception:
            self.state = previous
            raise

    put(Runner, "step", lenient)


@plant("a consumer plans before it has read back what it wrote")
def own_writes(put: Put) -> None:
    from cluster.consumers.consumer import Runner

    advance = Runner._advance

    def short(self: Runner[T], state: T) -> list[Change]:
        self.written = -1
        return advance(self, state)

    put(Runner, "_advance", short)


@plant("what could not be written is not tried again, also not when it has not been seen in the log for long")
def no_retry(put: Put) -> None:
    """Without the second the job controller would only be a minute late, see `Sent.expires`."""
    from cluster.runtime.retries import Retries
    from jobs.controller import expectations

    put(expectations, "LONGEST_MS", 10**12)
    put(Retries, "timers", lambda self, groups, outcomes, now: [])


@plant("retention removes what a living consumer has not read")
def greedy_retention(put: Put) -> None:
    from cluster.runtime import registry, retention

    horizon = retention._horizon

    def greedy(now: int, source: Store) -> int:
        with patch.object(registry, "has_reader", lambda cursor: False):
            return horizon(now, source)

    put(retention, "_horizon", greedy)


@plant("a log row goes when it is old itself, not when what replaced it is")
def young_history(put: Put) -> None:
    from django.db import connections, transaction

    from cluster.runtime import retention
    from cluster.store import sql

    def step(horizon: int, source: Store) -> tuple[int, bool]:
        with transaction.atomic(using=source.using), connections[source.using].cursor() as cursor:
            sql.lock_head(source.using)
            cursor.execute(
                "DELETE FROM cluster_change WHERE revision <= %s AND revision NOT IN"
                " (SELECT revision FROM cluster_object)",
                [horizon],
            )
            removed = cursor.rowcount
            cursor.execute("UPDATE cluster_log SET compacted = MAX(compacted, %s) WHERE id = 1", [horizon])
            return removed, True

    put(retention, "_step", step)


# ---- jobs


@plant("what was sent for a job is forgotten at once, and not read back before the next plan")
def sent_forgotten(put: Put) -> None:
    """Each of the two is enough: the runner reads its own writes back before it plans, see `Runner._advance`."""
    from jobs.controller.expectations import PendingWrites

    own_writes(put)
    put(PendingWrites, "is_seen", lambda self, position: True)
    put(PendingWrites, "has", lambda self, revision: True)


@plant("what policies ask for is remembered by one process alone")
def asked_forgotten(put: Put) -> None:
    from jobs.controller import pending_actions

    put(pending_actions, "timers", lambda key, known, now: [])


@plant("what a policy asked for stays to be done when it was done")
def asked_again(put: Put) -> None:
    from jobs.consumers import job_controller

    group = job_controller._group

    def kept(state: JobsState, entry: JobEntry, writes: Sequence[Write], now: int) -> Group:
        made = group(state, entry, writes, now)
        return replace(made, timers=(), cancel=())

    put(job_controller, "_group", kept)


@plant("a job that pods are missing from is judged before it is told what happened to them")
def told_late(put: Put) -> None:
    from jobs.consumers.job_controller import JobConsumer

    put(JobConsumer, "lags", lambda self, state, *, is_behind: None)


@plant("a task waits until as many pods are ready as it has itself, not as the task it waits for has")
def wrong_task(put: Put) -> None:
    from jobs.lifecycle import dependencies

    def may_start(
        task: str, wanted: Mapping[str, Dependency], tasks: Mapping[str, Task], ready: Mapping[str, int]
    ) -> bool:
        if task not in wanted:
            return True
        results = (name in tasks and ready.get(name, 0) >= tasks[task].needed for name in wanted[task].names)
        return any(results) if wanted[task].any else all(results)

    put(dependencies, "may_start", may_start)


@plant("a job that is scaled down keeps one pod too many")
def one_too_many(put: Put) -> None:
    from jobs.controller import pod_diff

    compare = pod_diff.compare

    def lenient(job: JobFact, pods: Iterable[PodFact]) -> PodDiff:
        tasks = tuple(replace(task, replicas=task.replicas + 1) for task in job.tasks)
        return compare(replace(job, tasks=tasks), pods)

    put(pod_diff, "compare", lenient)


@plant("a failed pod is counted twice in a job's status")
def counted_twice(put: Put) -> None:
    from jobs.lifecycle.counts import Counts

    fields = Counts.fields

    def twice(self: Counts) -> dict[str, Any]:
        found = fields(self)
        return found | ({"failed": found["failed"] + 1} if "failed" in found else {})

    put(Counts, "fields", twice)


@plant("a Command is carried out on whatever job has the name now")
def any_uid(put: Put) -> None:
    from kube.volcano.commands import CommandFact

    put(CommandFact, "is_for", lambda self, uid: True)


@plant("the end of a finished job is asked for by name alone")
def ttl_by_name(put: Put) -> None:
    from cluster.store import Delete, Group
    from jobs.consumers import job_controller
    from kube.resources import JOBS

    def expiry(timer: Timer) -> Group:
        namespace, name, *_ = timer.key.split("/")
        return Group([Delete(JOBS, namespace, name, propagation="Foreground")])

    put(job_controller, "_expiry", expiry)


@plant("what plugins made for a job is not deleted when the job is over")
def products_left(put: Put) -> None:
    from jobs.controller import plugin_objects

    put(plugin_objects, "end", lambda job, known: ())


@plant("what plugins made for a job is not known to a controller that starts")
def products_unknown(put: Put) -> None:
    from jobs.consumers import state

    put(state, "_remember_plugin_objects", lambda jobs: None)


# ---- what makes jobs


@plant("a flow goes on when a job has ended, however it ended")
def flow_hurries(put: Put) -> None:
    from jobs.flows import plan, steps
    from jobs.lifecycle.phases import FINISHED

    def may_start(step: Flow, made: Mapping[str, OwnedJob], phases: Mapping[str, JobPhase]) -> bool:
        return all(phases.get(target) in FINISHED for target in step.depends_on.targets)

    put(steps, "may_start", may_start)
    put(plan, "_BAD", ())


@plant("a cron job does not note for which time it has made a job")
def time_not_noted(put: Put) -> None:
    from jobs.crons.plan import _Round

    put(_Round, "_note_run", lambda self, run: None)


@plant("a cron job keeps its jobs, however many are wished")
def history_kept(put: Put) -> None:
    from jobs.crons.plan import _Round

    put(_Round, "trim", lambda self: None)


@plant("a cron job asks only about jobs that run when it looks for one that has not ended")
def alone_when_running(put: Put) -> None:
    from jobs.crons.plan import _Round
    from kube.kinds.batch import JobPhase

    start = _Round.start

    def hasty(self: _Round, run: Run, view: JobRulesView, *, is_occupied: bool) -> Notice | None:
        self.active = [job for job in self.active if job.phase is JobPhase.RUNNING]
        return start(self, run, view, is_occupied=is_occupied)

    put(_Round, "start", hasty)


# ---- scheduler and queues


@plant("the scheduler gives a pod's room away when its deletion begins, not when it has ended")
def early_room(put: Put) -> None:
    from scheduler.records import records

    put(records, "HOLDING", records.HOLDING - {records.TaskStatus.RELEASING})


@plant("a gang is placed with one pod less than its minimum")
def gang_short(put: Put) -> None:
    from scheduler.gangs import gang_layout

    lay_out = gang_layout.lay_out

    def short(group: PodGroup, priority_of: PriorityOf, tasks: TaskTopologies | None) -> Layout:
        return lay_out(_Shorter(group), priority_of, tasks)  # type: ignore[arg-type]  # it has all that a group has

    from scheduler.snapshot import snapshot

    put(snapshot, "lay_out", short)


class _Shorter:
    """A pod group whose minimum is one less than it says."""

    def __init__(self, group: PodGroup) -> None:
        self._group = group

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    @property
    def min_member(self) -> int:
        least = self._group.min_member
        return least - 1 if least > 1 else least


@plant("a queue is Closed while groups in it wait for their turn")
def closed_early(put: Put) -> None:
    from queues.rules import states

    put(states, "FINISHED", states.FINISHED | {"Pending"})


@plant("the pods of a group that is moved stay counted in the queue where they were")
def moved_group(put: Put) -> None:
    from kube.usage import Usage, _set_or_drop

    def put_group(self: Usage, key: str, group: GroupUse | None) -> set[str]:
        _set_or_drop(self._groups, key, group)
        _set_or_drop(self._queues, key, group.queue if group else None)
        return self._count_group(key)

    put(Usage, "put_group", put_group)


@plant("a pod group that is deleted stays counted in its queue")
def counted_group(put: Put) -> None:
    from queues import controller

    right = controller._put_group

    def lenient(state: QueuesState, key: str, body: bytes | None) -> None:
        if body is not None:
            right(state, key, body)

    put(controller, "_put_group", lenient)


# ---- the store, quotas, garbage, nodes


@plant("a status is written over whatever it was, without the version that was seen")
def blind_status(put: Put) -> None:
    from node.simulator.simulator import Simulator

    writes = Simulator._writes

    def blind(self: Simulator, pod: Simulated, now_us: int) -> list[Write]:
        found = writes(self, pod, now_us)
        for write in found:
            if hasattr(write, "object"):
                write.object["metadata"].pop("resourceVersion")
        return found

    put(Simulator, "_writes", blind)


@plant("the store takes a status over, whatever version of the object it was made from")
def any_version(put: Put) -> None:
    from cluster.store import strategy

    right = strategy.check_preconditions
    put(strategy, "check_preconditions", lambda resource, old, uid, version: right(resource, old, uid, ""))


@plant("the quota is asked when pods are planned, and not in the transaction that makes them")
def early_quota(put: Put) -> None:
    from cluster.api import quota_room

    put(quota_room, "check", lambda view, group: None)


@plant("pods that end do not make a quota's status be counted again")
def quota_of_the_dead(put: Put) -> None:
    from cluster.controllers import quotas

    put(quotas, "has_ended", lambda change: False)


@plant("what the collector could not write, because somebody was faster, it leaves, and what that one wrote")
def conflict_left(put: Put) -> None:
    from cluster.controllers import garbage
    from cluster.controllers.garbage import _Work
    from cluster.store import Group

    note = garbage._note

    # By itself it does no harm: who was faster has changed the object, and a change has its owners looked at.
    def unmoved(state: GarbageState, change: Change, doubtful: dict[str, None]) -> None:
        note(state, change, {} if change.verb == "MODIFIED" else doubtful)

    def forgetful(right: Callable[..., None]) -> Callable[..., None]:
        def do(self: _Work, *args: Any) -> None:
            right(self, *args)
            self.groups[-1] = Group(self.groups[-1].writes)

        return do

    put(garbage, "_note", unmoved)
    put(_Work, "_delete", forgetful(_Work._delete))
    put(_Work, "_patch", forgetful(_Work._patch))


@plant("a pod that is being deleted can be given a node")
def bound_while_going(put: Put) -> None:
    from cluster.store import strategy

    right = strategy._unbindable
    put(strategy, "_unbindable", lambda metadata, spec, pod: right(_without(metadata, "deletionTimestamp"), spec, pod))


def _without(mapping: Object, name: str) -> Object:
    return {key: value for key, value in mapping.items() if key != name}


@plant("a second deletion puts the time of the first one off")
def deletion_put_off(put: Put) -> None:
    from cluster.store import strategy
    from kube.meta import timestamp

    def mark(metadata: Object, grace: int, now: int) -> None:
        if "deletionTimestamp" not in metadata and "generation" in metadata:
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = timestamp(now + grace * 1000)
        metadata["deletionGracePeriodSeconds"] = grace

    put(strategy, "_mark", mark)


# ---- those who follow the log


@plant("a node's follower goes on from the newest revision instead of from the last that it read")
def skips_ahead(put: Put) -> None:
    from cluster.store import store
    from node.listen import Listener

    read = Listener.read

    def ahead(self: Listener, apply: Callable[[Change], None], reload: Callable[[], None]) -> None:
        read_at = self._read_at
        read(self, apply, reload)
        if self._read_at != read_at:
            self.position = max(self.position, store.revision())

    put(Listener, "read", ahead)


@plant("a node's follower takes a nudge for read before it has read")
def nudge_for_read(put: Put) -> None:
    from cluster import clock
    from node.listen import Listener

    def hear(self: Listener) -> None:
        self.subscription.drain()
        self._read_at = clock.monotonic()
        self.subscribe()

    put(Listener, "hear", hear)


@plant("the follower of watches and live pages goes on from the newest revision")
def watch_skips(put: Put) -> None:
    from cluster.runtime.follower import Follower
    from cluster.store import store

    read = Follower._read

    def ahead(self: Follower, after: int, wanted: Wanted) -> tuple[int, list[Change] | None]:
        position, changes = read(self, after, wanted)
        return max(position, store.revision()), changes

    put(Follower, "_read", ahead)


@plant("an agent that starts again does not look for what runs already")
def agent_forgets(put: Put) -> None:
    from node.agent.agent import Agent

    take = Agent._apply_pod

    def forgetful(self: Agent, pod: AgentPod, revision: int) -> None:
        with patch.object(self.runtime, "adopt", lambda uid: False):
            take(self, pod, revision)

    put(Agent, "_apply_pod", forgetful)


@plant("a second agent does not wait for the end of the first")
def two_agents(put: Put) -> None:
    from cluster import pid_lock

    put(pid_lock, "take", lambda path: path.open("a+"))


# ---- those that the simulation found


@plant("a pod that is taken from its job is looked for among the job's pods")
def group_forgotten(put: Put) -> None:
    from node.agent.agent import Agent

    put(Agent, "_change_group", lambda self, local, before: None)


@plant("after the clock was set back a gang says only when it shows the same time that pods of it are missing")
def gang_waits_for_clock(put: Put) -> None:
    from scheduler.cycle import enqueue, outcomes
    from scheduler.gangs import waits

    def made_until(group: PodGroup, now: int) -> int | None:
        due = group.changed + waits.GRACE_MS
        return due if due > now else None

    for module in (enqueue, outcomes):
        put(module, "made_until", made_until)


@plant("after the clock was set back a queue's counters stay as they are until it shows the same time again")
def queue_waits_for_clock(put: Put) -> None:
    from queues import controller

    def is_due(state: QueuesState, queue: QueueFact, wanted: dict[str, Any], now: int) -> bool:
        if wanted["state"] != queue.status.get("state"):
            return True
        return now - state.written.get(queue.metadata.name, 0) >= controller.PAUSE_MS

    put(controller, "_is_due", is_due)


@plant("after the clock was set back what is used of a quota is counted again only when it shows the same time")
def quota_waits_for_clock(put: Put) -> None:
    from cluster import clock
    from cluster.controllers import status_counter

    class ByTheWall:
        milliseconds = staticmethod(clock.milliseconds)

        @staticmethod
        def monotonic() -> float:
            return clock.milliseconds() / 1000

    put(status_counter, "clock", ByTheWall)


@plant("after the clock was set back simulated pods wait for what would have been the time of their next stage")
def pods_wait_for_clock(put: Put) -> None:
    from cluster import clock
    from node.simulator.simulator import Simulator

    due = Simulator._due

    def by_the_wall(self: Simulator, stage: Stage, pod: Simulated) -> int | None:
        with patch.object(clock, "microseconds", lambda: sys.maxsize):
            return due(self, stage, pod)

    put(Simulator, "_due", by_the_wall)
    put(Simulator, "_follow_clock", lambda self: None)


@plant("after the clock was set back the agent tries a refused container again only when it shows the same time")
def agent_waits_for_clock(put: Put) -> None:
    from node.agent.agent import Agent

    put(Agent, "_check_clock", lambda self: None)


@plant("the agent does not wait at all while the last process of a pod ends that was deleted by force")
def agent_never_rests(put: Put) -> None:
    from node.agent.pod_worker import PodWorker

    step = PodWorker.step

    def restless(self: PodWorker, *args: Any, **options: Any) -> None:
        before = self.wake_us
        step(self, *args, **options)
        if self.gone:
            self.wake_us = before

    put(PodWorker, "step", restless)


@plant("simulated nodes do not look at activeDeadlineSeconds")
def deadline_ignored(put: Put) -> None:
    from node.simulator.simulated_pod import Simulated

    put(Simulated, "deadline_us", property(lambda self: None))


@plant("after a restart of its containers a simulated pod says that its init containers ran only then")
def init_told_anew(put: Put) -> None:
    from node.simulator.simulated_pod import Simulated

    pass_through = Simulated.pass_through

    def anew(self: Simulated, stage: Stage, now_us: int) -> None:
        pass_through(self, stage, now_us)
        self.begun_us = self.started_us

    put(Simulated, "pass_through", anew)


@plant("a simulator that starts again forgets the attempt before the present one")
def attempt_forgotten(put: Put) -> None:
    from node.simulator import simulated_pod

    put(simulated_pod, "_last", lambda known, now_us: None)


@plant("people can make pod groups in queues that take no work")
def group_in_closed(put: Put) -> None:
    from cluster.rules import intake

    check = intake.check
    put(intake, "check", lambda name, what, view: () if what == "PodGroup" else check(name, what, view))


@plant("the scheduler makes groups in closed queues for pods that have none")
def adopted_by_closed(put: Put) -> None:
    from scheduler.cycle import adoptions

    put(adoptions, "_closed_to", lambda snapshot, adoption: None)


@plant("a Command whose target is gone is stored for nobody")
def command_to_nothing(put: Put) -> None:
    from cluster import access
    from cluster.api import rights
    from kube.errors import NotFound

    check = rights._check_command

    def lenient(*args: Any) -> Object | None:
        try:
            return check(*args)
        except NotFound:
            with suppress(NotFound), patch.object(access, "allowed", lambda *args, **options: False):
                check(*args)  # whether he might if it were there
            return None

    put(rights, "_check_command", lenient)


@plant("who closes a closed queue needs the right to edit queues")
def state_said_again(put: Put) -> None:
    from cluster.api import rights

    differs = rights._at_most_state_differs

    def state_differs(old: Object, new: Object) -> bool:
        states = [(queue.get("spec") or {}).get("state") for queue in (old, new)]
        return states[0] != states[1] and differs(old, new)

    put(rights, "_at_most_state_differs", state_differs)


@plant("a Command that names its target as its owner, as vcctl's do, needs the right to edit the target")
def target_as_owner(put: Put) -> None:
    from cluster.api import rights

    check = rights._check_command

    def strict(*args: Any) -> None:
        check(*args)

    put(rights, "_check_command", strict)


@plant("what is made for a job does not say whose it is, and may say that it is anybody's")
def nobodys_pods(put: Put) -> None:
    from jobs.controller import plugin_objects, pods

    for module in (pods, plugin_objects):
        put(module, "noted_creator", lambda job_metadata: {})
    put(pods, "_without_creator", dict)


@plant("nobody has a right on his own pod whose controller is gone")
def controller_gone(put: Put) -> None:
    from cluster.access.ownership import creator_of, referred
    from cluster.api import rights

    def owner_of(obj: Object, view: ClusterView) -> str | None:
        meta = obj["metadata"]
        for reference in meta.get("ownerReferences") or ():
            if reference.get("controller"):
                found = referred(reference, meta.get("namespace") or "", view.get)
                return creator_of(found) if found else None
        return creator_of(obj)

    put(rights, "owner_of", owner_of)


@plant("a job does not miss a pod whose owner reference somebody takes away")
def owner_taken(put: Put) -> None:
    from jobs.consumers import job_controller

    def follow(state: JobsState, change: Change, pod: PodFact, own: str) -> None:
        if change.verb == "DELETED":
            right(state, change, pod, own)

    right = put(job_controller, "_follow_elsewhere", follow)


@plant("the pages of queues do not hear of nodes, although they show what these have room for")
def page_without_nodes(put: Put) -> None:
    from dashboard import cluster_usage
    from kube.resources import NODES

    put(cluster_usage, "WATCHES", [each for each in cluster_usage.WATCHES if each.resource != NODES.id])


@plant("after the clock was set back a dead leader leads on until it shows the same time again")
def leads_on(put: Put) -> None:
    from cluster.runtime.division import Position

    def is_led_by_another(cursor: Position, holder: str, now: int) -> bool:
        return cursor.holder not in ("", holder) and cursor.held_until > now

    put(Position, "is_led_by_another", is_led_by_another)


@plant("a later job of a name is deleted when the time of an earlier one is over")
def time_of_another(put: Put) -> None:
    from jobs.consumers import job_controller

    def by_name(job: JobFact) -> list[Timer]:
        return [replace(timer, key=job.key) for timer in right(job)]

    right = put(job_controller, "_deadline", by_name)


@plant("what is left to do for a finished job is forgotten when the job controller dies")
def left_undone(put: Put) -> None:
    from jobs.consumers import job_controller

    put(job_controller, "_finishes", lambda writes: False)


@plant("a consumer that asks for its next run while Redis is away fails")
def redis_away(put: Put) -> None:
    from cluster.runtime import nudge

    wake = nudge.wake

    def strict(registration: Registration, shard: int, *, delay_s: float = 0) -> None:
        if delay_s:
            wake(registration, shard, delay_s=delay_s)
        else:
            nudge._carrier.queue(registration, shard, 0)

    put(nudge, "wake", strict)


@plant("what was asked of a job that went while no controller ran is looked at in each step")
def asked_of_nobody(put: Put) -> None:
    import msgspec

    from cluster.consumers.consumer import timers_of
    from cluster.writes import Timer
    from jobs.consumers.job_controller import JobConsumer
    from jobs.controller import pending_actions

    load = JobConsumer.load

    def load_all(self: JobConsumer, shard: int, revision: int) -> JobsState:
        state = load(self, shard, revision)
        for timer in timers_of(self.name, shard, pending_actions.PENDING_ACTION):
            state.set_pending_actions(timer.key, pending_actions.read(timer))
        return state

    def at_once(key: str, actions: Sequence[PendingAction], now: int) -> list[Timer]:
        due = min((each.due if each.delay_ms else now + pending_actions.SOON_MS for each in actions), default=0)
        content = {"asked": msgspec.to_builtins(actions)}
        return [Timer(pending_actions.PENDING_ACTION, key, max(due, now + 1), content)] if actions else []

    put(JobConsumer, "load", load_all)
    put(pending_actions, "timers", at_once)


# ---- where the system works on a cluster from elsewhere


@plant("what the API answered is mirrored whatever the watch has told since: what is gone comes back")
def gone_comes_back(put: Put) -> None:
    from cluster.remote.mirroring import reflection

    put(reflection, "is_newer", lambda version, status: True)


@plant("what a list does not name stays in the mirror")
def list_keeps(put: Put) -> None:
    from cluster.remote.mirroring import reflection

    put(reflection, "vanished", lambda stored, listed, versions, update: [])


# ---- playing


@dataclass
class Hunt:
    """What came of playing worlds with a defect."""

    name: str
    found: str = ""  # the invariant, or the error
    text: str = ""
    seed: int = 0
    worlds: int = 0
    hours: float = 0.0
    cpu_s: float = 0.0
    moves: int = 0
    short: int = 0
    shrunk_s: float = 0.0

    @property
    def row(self) -> str:
        """A row of the table."""
        about = PLANTS[self.name].about
        if not self.found:
            return f"| {self.name}: {about} | – | {self.cpu_s:.0f} | {self.hours:.1f} | – |"
        story = f"{self.moves} → {self.short}"
        return f"| {self.name}: {about} | {self.found} | {self.cpu_s:.0f} | {self.hours:.1f} | {story} |"


SECONDS = 240.0  # of CPU, after which a defect is given up
HEAD = "| defect | found by | CPU s to find | cluster-hours | moves → when short |\n|---|---|---|---|---|"


def hunt(name: str, options: argparse.Namespace) -> Hunt:
    """Play worlds with a defect until it is found, or hours or seconds are over; make its story short."""
    import time

    from proof.simulation import director, play, story

    with planted(name):
        hunted, weights = Hunt(name), director.of_worlds(remote=options.remote)
        begun = time.process_time()
        for seed in itertools.count(options.seed or 1):
            played = play.from_seed(seed, min(options.world_hours, options.hours), weights)
            hunted.worlds, hunted.hours = hunted.worlds + 1, hunted.hours + played.hours
            hunted.cpu_s, hunted.seed = time.process_time() - begun, seed
            if played.found:
                break
            if hunted.hours >= options.hours or hunted.cpu_s >= options.seconds:
                return hunted
        assert played.found is not None
        hunted.found, hunted.text, hunted.moves = played.found.kind, played.found.text, len(played.moves)
        if not options.plays:
            return hunted
        until = time.process_time() + options.seconds / 2

        begun = time.process_time()
        short = play.shorten(played, options.plays, lambda: time.process_time() <= until)
        result = replace(short, plant=name, about=PLANTS[name].about)
        hunted.short, hunted.shrunk_s = len(result.moves), time.process_time() - begun
        options.keep.mkdir(parents=True, exist_ok=True)
        (options.keep / f"{name}.json").write_bytes(story.encode(result) + b"\n")
        return hunted


def tell(hunted: Hunt) -> int:
    """Say what came of it, in words and as a line of JSON; 1 when nothing was found."""
    lines = (
        f"{hunted.found or 'nothing'}: {hunted.text}",
        f"{hunted.worlds} worlds up to seed {hunted.seed}, {hunted.hours:.1f} cluster-hours,"
        f" {hunted.cpu_s:.0f} CPU s; {hunted.moves} moves became {hunted.short} in {hunted.shrunk_s:.0f} s",
        json.dumps(asdict(hunted)),
    )
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0 if hunted.found else 1


def main() -> None:
    """Hunt each in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m proof.simulation.planted", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PLANTS)}")
    parser.add_argument("--hours", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--remote", action="store_true", help="in worlds that are remote, and in no others")
    options = parser.parse_args()
    sys.stdout.write(HEAD + "\n")
    for name in options.names or PLANTS:
        bounds = ["--hours", str(options.hours), "--seconds", str(options.seconds)]
        bounds += ["--remote"] * options.remote
        command = [sys.executable, "-m", "proof.simulation", "--plant", name, *bounds]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        if done.returncode not in (0, 1) or not lines:
            raise SystemExit(f"{name}: {done.stderr}")
        sys.stdout.write(Hunt(**json.loads(lines[-1])).row + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
