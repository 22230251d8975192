"""The simulator: runs pods on simulated nodes by the clock, thousands in one process.

Pods wait in a heap for the time of their next stage. What is due is taken in
batches and written in one commit; so is what a commit brings forth at once.
The statuses are made by the same code as a real node's. There is no state that
the store does not have: a simulator that was killed goes on from the statuses.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from django.db import Error as DatabaseError
from msgspec import ValidationError

from cluster import clock
from cluster.runtime.outage import Outage
from cluster.store import Change, Delete, Group, Stored, Update, Write, store
from kube.errors import ApiError
from kube.kinds.core import Node, Pod
from kube.kinds.pod import ENDED
from kube.resources import CONFIGMAPS, NODES, PODS
from node.listen import Listener, RedisSubscription, Subscription
from node.pods.lookup import refused
from node.simulator import stages
from node.simulator.fleet import Fleet, Size
from node.simulator.simulated_pod import Simulated
from node.simulator.stages import Stage
from node.simulator.start_gate import Holds, hold_of
from node.simulator.start_together import Gatherings

BATCH = 1000  # status writes in one commit
RETRY_S = 0.5
MAX_STAGES = 8  # stages that a pod may pass at once; more would be a circle in the stage files
log = logging.getLogger(__name__)


class Simulator:
    """All simulated nodes and their pods.

    `run` works until a signal comes. A caller with another way to wait calls
    `begin`, then `work` when the log has changes or `patience` is over, and
    passes a subscription of its own.
    """

    def __init__(
        self,
        count: int,
        size: Size | None = None,
        directory: Path | None = None,
        subscription: Subscription | None = None,
    ) -> None:
        self.fleet = Fleet(count, size or Size())
        self.stages: Sequence[Stage] = stages.load(directory or stages.DEFAULT)
        self.selector = selectors.DefaultSelector()
        self.listener = Listener((PODS, NODES, CONFIGMAPS), subscription or RedisSubscription(self.selector))
        self.pods: dict[str, Simulated] = {}
        self.gatherings = Gatherings()
        self.holds = Holds()
        self.heap: list[tuple[int, int, str]] = []
        self.turns = itertools.count(1)
        self.own: set[int] = set()  # revisions that this process wrote: nothing to learn from them
        self.stopping = False
        self.write_again_at = 0.0
        self.set_back = clock.SetBack()
        self.outage = Outage("the fleet's work with the database", log)

    def run(self) -> None:
        """Work until a signal asks for the end."""
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self.selector.register(reader, selectors.EVENT_READ)
        while not self.stopping:
            try:
                self.begin()
                break
            except DatabaseError as error:
                refused(self.outage, "the database does not answer", error)
                time.sleep(RETRY_S)
        log.info("simulator ready: %d nodes", self.fleet.count)
        while not self.stopping:
            self.turn()
        try:
            self.fleet.depart()
        except DatabaseError as error:
            log.warning("the fleet's end was not recorded: %s", error)
        self.listener.close()
        self.selector.close()

    def _on_signal(self, *_: object) -> None:
        self.stopping = True

    def begin(self) -> None:
        """Bring the fleet up, and take on its pods where their statuses say they are."""
        self.fleet.announce()
        self._relist()

    def _relist(self) -> None:
        """Read every pod and node, ConfigMaps when a pod is held for one; go on in the log from there."""
        with store.reading() as revision:
            stored_pods = {stored.uid: stored for stored in store.find(PODS)}
            nodes = store.find(NODES)
        self.holds = Holds()
        self.gatherings.retain(stored_pods)
        for uid in self.pods.keys() - stored_pods.keys():
            del self.pods[uid]
        for stored in nodes:
            self.fleet.observe(stored.name, stored.read(Node))
        for stored in stored_pods.values():
            self._apply_object(stored)
        self.own = {own for own in self.own if own > revision}
        self.listener.position = revision
        self._gather()

    def turn(self) -> None:
        """Wait for the next thing to happen and handle it."""
        self._wait(self.patience())
        self.work()

    def work(self) -> None:
        """Handle all that has happened or is due; what the database refuses is left for later."""
        self._follow_clock()
        try:
            self._read_changes()
            while self._play():
                pass
            self.fleet.lose()
            if self.fleet.beat():
                self.outage.over()
        except DatabaseError as error:
            refused(self.outage, "the database refused", error)
            self.write_again_at = clock.monotonic() + RETRY_S

    def _follow_clock(self) -> None:
        """Have pods wait no longer when the wall clock was set back."""
        if back_us := self.set_back.since_last_look():
            log.info("the clock was set back by %.0f s", back_us / 1e6)
            for uid, simulated in self.pods.items():
                simulated.since_us -= back_us
                self._schedule(uid, simulated, clock.microseconds())

    def patience(self) -> float:
        """Return for how many seconds nothing is due."""
        now = clock.monotonic()
        delays = [self.listener.due() - now, self.fleet.due - now]
        delays += [due - now for due in self.fleet.loss_due.values()]
        if self.heap:
            delays.append(max((self.heap[0][0] - clock.microseconds()) / 1e6, self.write_again_at - now))
        return max(0.0, min(delays))

    def _wait(self, timeout: float) -> None:
        self.listener.subscribe()
        for key, _ in self.selector.select(timeout):
            if key.data is self.listener.subscription:
                self.listener.hear()
            else:
                os.read(key.fd, 512)

    def _read_changes(self) -> None:
        self.listener.read(self._apply, self._relist)
        self._gather()

    def _apply(self, change: Change) -> None:
        if change.revision in self.own:
            self.own.discard(change.revision)
        elif change.resource == NODES.id:
            if change.verb != "DELETED" and self.fleet.observe(change.name, change.read(Node)):
                self._wake(lambda pod: pod.spec.node_name == change.name)
        elif change.resource == CONFIGMAPS.id:
            if self.holds.observe(change):
                self._wake(lambda pod: hold_of(pod) == change.key)
        elif change.verb == "DELETED":
            self.pods.pop(change.uid, None)
            self.gatherings.leave(change.uid)
        else:
            simulated = self.pods.get(change.uid)
            if simulated is None or simulated.revision < change.revision:
                self._apply_object(change)

    def _wake(self, concerns: Callable[[Pod], bool]) -> None:
        for uid, simulated in self.pods.items():
            if concerns(simulated.pod):
                self._schedule(uid, simulated, clock.microseconds())

    def _apply_object(self, source: Stored | Change) -> None:
        try:
            self._apply_pod(source.read(Pod), source.revision)
        except ValidationError as error:
            log.error("pod %s cannot be read and is left alone: %s", source.key, error)

    def _apply_pod(self, pod: Pod, revision: int) -> None:
        """Take on a new pod, or the newest version of one."""
        uid = pod.metadata.uid
        self.gatherings.observe(pod)
        if pod.spec.node_name not in self.fleet.addresses:
            return
        simulated = self.pods.get(uid)
        if pod.status.phase in ENDED and not pod.metadata.deletion_timestamp:
            self.pods.pop(uid, None)
            return
        if simulated is None:
            simulated = self.pods[uid] = Simulated.of(pod, revision, clock.microseconds())
        else:
            simulated.pod, simulated.revision, simulated.phase = pod, revision, pod.status.phase
        self._schedule(uid, simulated, clock.microseconds())

    def _gather(self) -> None:
        """Schedule the pods of jobs that have come together: their clocks begin."""
        now_us = clock.microseconds()
        for uid in self.gatherings.begin(now_us):
            if uid in self.pods:
                self._schedule(uid, self.pods[uid], now_us)

    def _schedule(self, uid: str, simulated: Simulated, now_us: int) -> None:
        """Put a pod into the heap for its next stage; what was planned before is void."""
        simulated.turn = next(self.turns)
        simulated.stage, due = self._next(simulated)
        if due is not None:
            heapq.heappush(self.heap, (due, simulated.turn, uid))
        if len(self.heap) > 2 * len(self.pods) + 1000:
            # Drop entries that are void, so that plans for next year do not pile up.
            turns = {one.turn for one in self.pods.values()}
            self.heap = [entry for entry in self.heap if entry[1] in turns]
            heapq.heapify(self.heap)

    def _next(self, simulated: Simulated) -> tuple[Stage | None, int | None]:
        """Return the next stage of a pod, and when it is due; None for a time that is not determined yet."""
        if simulated.removed or simulated.pod.spec.node_name in self.fleet.lost:
            return None, None
        stage = stages.match(self.stages, simulated.staged)
        due = self._due(stage, simulated) if stage else None
        deadline = simulated.deadline_us
        if deadline is not None and (due is None or deadline < due):
            return stages.DEADLINE_STAGE, deadline
        return stage, due

    def _due(self, stage: Stage, simulated: Simulated) -> int | None:
        annotations = simulated.pod.metadata.annotations
        begins = [simulated.since_us]
        if stages.waits_for_job(stage.delay, annotations):
            begins.append(self.gatherings.began(simulated.pod) or 0)
        if stage.delay.wait_for_job and (hold := hold_of(simulated.pod)):
            begins.append(self.holds.since_us(hold) or 0)
        if not all(begins):
            return None
        # What began in the future, because the clock was set back since, counts from now.
        return min(max(begins), clock.microseconds()) + stages.delay_us(stage.delay, annotations)

    def _play(self) -> bool:
        """Pass every pod that is due through its stages and write that; return whether there may be more."""
        now_us = clock.microseconds()
        if clock.monotonic() < self.write_again_at:
            return False
        due: list[tuple[str, Simulated]] = []
        while self.heap and self.heap[0][0] <= now_us and len(due) < BATCH:
            _, turn, uid = heapq.heappop(self.heap)
            simulated = self.pods.get(uid)
            if simulated is not None and simulated.turn == turn and simulated.pod.spec.node_name not in self.fleet.lost:
                due.append((uid, simulated))
        if due:
            for _, simulated in due:
                self._pass_stages(simulated, now_us)
            try:
                outcomes = store.commit([Group(self._writes(simulated, now_us)) for _, simulated in due])
            except DatabaseError:
                for uid, simulated in due:
                    self._restore(uid, simulated, now_us)
                raise
            for (uid, simulated), outcome in zip(due, outcomes, strict=True):
                self._on_written(uid, simulated, outcome, now_us)
            self._gather()
        return len(due) == BATCH

    def _pass_stages(self, simulated: Simulated, now_us: int) -> None:
        """Pass a pod through the stage that is due, and through those that then are due at once."""
        for _ in range(MAX_STAGES):
            if simulated.stage is None:
                return
            simulated.pass_through(simulated.stage, now_us)
            simulated.stage, due = self._next(simulated)
            if due is None or due > now_us:
                return

    def _writes(self, simulated: Simulated, now_us: int) -> list[Write]:
        meta = simulated.pod.metadata
        if simulated.pod.status.phase in ENDED:
            return [Delete(PODS, meta.namespace, meta.name, uid=meta.uid, grace=0)]
        status = simulated.status(self.fleet.addresses[simulated.pod.spec.node_name], now_us)
        # Replacing the status is much cheaper than merging it, and the version makes sure that nothing is lost.
        named = {
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        }
        writes: list[Write] = [Update(PODS, {"metadata": named, "status": status}, "status")]
        if simulated.removed:
            writes.append(Delete(PODS, meta.namespace, meta.name, uid=meta.uid, grace=0))
        return writes

    def _restore(self, uid: str, simulated: Simulated, now_us: int) -> None:
        """Reset a pod to its stored status, as nothing was written: what was due stays due."""
        self.pods[uid] = restored = Simulated.of(simulated.pod, simulated.revision, now_us)
        self._schedule(uid, restored, now_us)

    def _on_written(self, uid: str, simulated: Simulated, outcome: list[Stored] | ApiError, now_us: int) -> None:
        if isinstance(outcome, ApiError):
            # Somebody else changed the pod meanwhile; the log has it, and the pod goes on from that.
            self._restore(uid, simulated, now_us)
            self.listener.hurry()
            return
        simulated.pod, simulated.revision = outcome[0].read(Pod), outcome[0].revision
        if simulated.revision > self.listener.position:
            self.own.add(simulated.revision)
        self.gatherings.observe(simulated.pod)
        if simulated.removed or simulated.phase in ENDED:
            self.pods.pop(uid, None)
        else:
            self._schedule(uid, simulated, now_us)
