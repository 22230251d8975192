"""The agent: runs the pods that are bound to its machine, and writes their statuses to the store.

Whenever something has happened or is due, it brings every pod concerned one
step further and writes what changed in one commit. It has no state that the
store and the disk do not have: killed at any moment, the next agent goes on
where this one was. Waiting is the daemon's part (see `node.agent.daemon`).
"""

from __future__ import annotations

import logging

from msgspec import ValidationError

from cluster import clock
from cluster.runtime.outage import Outage
from cluster.store import Change, Create, Delete, Group, Patch, Stored, Write
from kube.errors import ApiError
from kube.kinds.core import Pod
from kube.kinds.meta import ObjectMeta
from kube.kinds.pod import ENDED
from kube.resources import EVENTS, PODS
from node.agent.machine import Machine, Occupied
from node.agent.pod_worker import PodWorker
from node.agent.probing import Probing
from node.agent.runtime import UNSETTLED_S, Runtime
from node.attempt import EVICTED, SHUTDOWN, AttemptState
from node.containers import hosts, prepare
from node.containers.context import NodeContext
from node.containers.device_holders import DeviceHolders
from node.containers.images import Images
from node.containers.user_ranges import UserRanges
from node.faults import Faults
from node.paths import Layout
from node.pods import events
from node.pods.cluster import AWAY, Cluster, Dismissed
from node.pods.lookup import refused
from node.rules.lifecycle import Refusal, start_of
from node.status import PodAddress
from node.volumes import claims
from node.volumes.storage_watch import StorageWatch

FAULT_RETRY_US = 10_000_000
RETRY_S = 0.5  # after a write that the cluster did not answer
SHUTDOWN_GRACE_S = 4.0  # `up` gives the agent five seconds
CLEAN_S = 600.0
CLOCK_STEP_US = 1_000_000  # a smaller step back is an adjustment, by which nothing waits noticeably longer
log = logging.getLogger(__name__)


class Agent:
    """The node agent of one machine.

    Call `begin`, then `work` when a descriptor is ready or `patience` is over;
    at the end `depart`, and where pods are to end `stop_all` and `wind_down` until nothing is left.
    """

    def __init__(
        self, layout: Layout, machine: Machine, runtime: Runtime, cluster: Cluster, images: Images | None = None
    ) -> None:
        self.layout = layout
        self.cluster = cluster
        self.machine = machine
        self.runtime = runtime
        self.devices = DeviceHolders(layout, machine.devices)
        self.storage = StorageWatch(layout)
        self.images = images
        self.context = NodeContext(
            layout,
            cluster.lookup,
            machine.wall,
            machine.reach,
            machine.allocatable,
            self.devices,
            UserRanges(layout.root / "users.json"),
            machine.engine,
            machine.groups,
            images,
        )
        self.listener = cluster.listener
        self.pods: dict[str, PodWorker] = {}
        self.peers: dict[str, dict[str, tuple[Pod, str]]] = {}  # by job: its pods and their addresses
        self.dirty: set[str] = set()
        self.stopping = False
        self.is_dismissed = False  # the cluster has no such node any more, or it is another agent's
        self.epoch_us = _epoch_us()
        self.write_again_at = 0.0
        self.outage = Outage("the node's work with the cluster", log)
        self.faults = Faults("removing what pods and claims left", log)
        self.clean_at = clock.monotonic() + CLEAN_S / 10

    def begin(self) -> None:
        """Announce the machine and take on its pods; to be called again when the cluster does not answer, or after Occupied."""
        claims.begin(self.layout)
        self.machine.take_lease()
        self.machine.announce()
        self.load()

    def load(self) -> None:
        """Take on every pod of this node, and adopt or end what an earlier agent left running."""
        stored_pods = self._relist()
        for uid in self.runtime.uids():
            if uid not in self.pods and self.runtime.adopt(uid):
                self._take_over_orphan(uid, stored_pods.get(uid))
        self.dirty |= set(self.pods)

    def _relist(self) -> dict[str, Stored]:
        """Read every pod of this node, and go on in the log from there; return them by uid."""
        revision, pods = self.cluster.pods(self.machine.name)
        stored_pods = {stored.uid: stored for stored in pods}
        for uid, worker in self.pods.items():
            worker.gone = uid not in stored_pods
            self.dirty.add(uid)
        for stored in stored_pods.values():
            self._apply_object(stored)
        self.listener.position = revision
        return stored_pods

    def _take_over_orphan(self, uid: str, stored: Stored | None) -> None:
        """A pod that has ended or is gone for the store, but of which something runs: it is only to be stopped."""
        pod = stored.read(Pod) if stored else Pod(metadata=ObjectMeta(uid=uid))
        address = PodAddress(pod.status.pod_ip, self.machine.address, start_of(pod, clock.microseconds()))
        self._add(uid, PodWorker(pod, stored.revision if stored else 0, address, None, gone=stored is None))

    def _add(self, uid: str, worker: PodWorker) -> None:
        self.pods[uid] = worker
        self.devices.take_over(uid)
        self.storage.watch(worker.pod)
        self._join_group(worker)

    def _join_group(self, worker: PodWorker) -> None:
        peers = self.peers.setdefault(hosts.group_of(worker.pod), {})
        peers[worker.uid] = (worker.pod, worker.address.pod_ip)

    def _change_group(self, worker: PodWorker, old_group: str) -> None:
        """Move a pod whose controller has changed to its new group: its peers by name are others now."""
        self.peers[old_group].pop(worker.uid, None)
        self._drop_group(old_group)
        self._join_group(worker)

    def _drop_group(self, group: str) -> None:
        """Remove a job of which no pod is left here."""
        if not any(hosts.group_of(worker.pod) == group for worker in self.pods.values()):
            self.peers.pop(group, None)
            (self.layout.hosts / group).unlink(missing_ok=True)

    def _apply_object(self, source: Stored | Change) -> None:
        try:
            pod = source.read(Pod)
        except ValidationError as error:
            log.error("pod %s cannot be read and is left alone: %s", source.key, error)
            return
        if pod.spec.node_name == self.machine.name:
            self._apply_pod(pod, source.revision)

    def _apply_pod(self, pod: Pod, revision: int) -> None:
        """Take on a new pod, or the newest version of one."""
        uid = pod.metadata.uid
        worker = self.pods.get(uid)
        if worker is not None:
            if revision > worker.revision:
                old_group = hosts.group_of(worker.pod)
                worker.pod, worker.revision = pod, revision
                if hosts.group_of(pod) != old_group:
                    self._change_group(worker, old_group)
                self.dirty.add(uid)
            return
        if pod.status.phase in ENDED and not pod.metadata.deletion_timestamp:
            return
        addresses = {other.address.pod_ip for other in self.pods.values()}
        address = pod.status.pod_ip or self.machine.pod_address(uid, addresses)
        pod_address = PodAddress(address, self.machine.address, start_of(pod, clock.microseconds()))
        refusal = prepare.refusal(pod, self.layout, self.machine.engine)
        self._add(uid, PodWorker(pod, revision, pod_address, refusal, probing=Probing(pod) or None))
        self.runtime.adopt(uid)
        self.dirty.add(uid)

    def work(self) -> None:
        """Handle all that has happened or is due; what fails because the cluster is away is tried again later."""
        try:
            self._beat()  # first: an agent that was stopped for long may have lost the node to another, and starts nothing
            self._collect()
            self._read_changes()
            self._step()
            self._write()
            self._clean()
        except (Dismissed, Occupied) as error:
            self.leave_cluster(error)

    def leave_cluster(self, why: Dismissed | Occupied) -> None:
        """Start and write nothing any more; end whatever runs here of any pod, as nobody else can."""
        log.error("this agent is no node of the cluster any more, and ends what runs here: %s", why)
        self.is_dismissed = self.stopping = True
        for uid in self.runtime.uids():
            if uid not in self.pods and self.runtime.adopt(uid):
                self._take_over_orphan(uid, None)

    def patience(self) -> float:
        """Return for how many seconds nothing is due."""
        now = clock.monotonic()
        delays = [self.listener.due() - now, self.machine.due - now, self.clean_at - now]
        if self.runtime.unsettled:
            delays.append(UNSETTLED_S)
        wake_times = [worker.wake_us for worker in self.pods.values() if worker.wake_us is not None]
        if wake_times:
            delays.append((min(wake_times) - clock.microseconds()) / 1e6)
        if self.dirty:
            delays.append(max(0.0, self.write_again_at - now))
        return max(0.0, min(delays))

    def _collect(self) -> None:
        """Mark the pods of which something has happened or is due."""
        self.dirty |= self.runtime.settle()
        self._check_clock()
        for uid, message in self.storage.excess().items():
            if uid in self.pods and self.pods[uid].refusal is None:
                self.pods[uid].refusal = Refusal(EVICTED, message)
                self.dirty.add(uid)
        for result in self.runtime.check_results():
            uid = result.check.uid
            if uid in self.pods and (probing := self.pods[uid].probing) is not None:
                probing.record(self.pods[uid].pod, result)
                self.dirty.add(uid)
        # Their image has come, or is being pulled.
        for uid in self.images.take_changed() if self.images else ():
            if uid in self.pods:
                self.pods[uid].retry_us = 0
                self.dirty.add(uid)
        now = clock.microseconds()
        self.dirty |= {uid for uid, worker in self.pods.items() if worker.wake_us is not None and worker.wake_us <= now}

    def _check_clock(self) -> None:
        """When the wall clock was set back, step every pod: what waits for a time would wait too long."""
        before, self.epoch_us = self.epoch_us, _epoch_us()
        if self.epoch_us < before - CLOCK_STEP_US:
            for worker in self.pods.values():
                worker.retry_us = worker.hold_us = 0
            self.dirty |= set(self.pods)

    def _read_changes(self) -> None:
        try:
            self.listener.read(self._apply, self._reload)
        except AWAY as error:
            refused(self.outage, "the log could not be read", error)

    def _reload(self) -> None:
        """History before the agent's position is gone: any pod, ConfigMap and Secret may have changed."""
        self._relist()
        for worker in self.pods.values():
            self._config_changed(worker)

    def _apply(self, change: Change) -> None:
        if change.resource != PODS.id:
            for other in self.pods.values():
                if other.pod.metadata.namespace == change.namespace:
                    self._config_changed(other, change.name)
        elif change.verb == "DELETED":
            worker = self.pods.get(change.uid)
            if worker is not None:
                worker.gone = True
                self.dirty.add(change.uid)
        elif change.uid in self.pods or self.machine.needle in change.body:
            self._apply_object(change)

    def _config_changed(self, worker: PodWorker, name: str = "") -> None:
        """A ConfigMap or Secret ("" for any): a pod that waits for it tries again, a mounted one gets its new content."""
        if worker.gone:
            return
        if worker.problems:
            worker.retry_us = 0
            self.dirty.add(worker.uid)
        elif self.runtime.active(worker.uid) and (not name or prepare.mentions(worker.pod, name)):
            prepare.refresh_volumes(worker.pod, worker.address, self.context)

    def _step(self) -> None:
        now = clock.microseconds()
        for group in {hosts.group_of(self.pods[uid].pod) for uid in self.dirty if uid in self.pods}:
            try:
                hosts.write(self.layout.hosts / group, hosts.render(self.peers[group].values()))
            except OSError as error:
                log.warning("hosts file of %s not written: %s", group, error)
        for uid in sorted(self.dirty):
            worker = self.pods.get(uid)
            if worker is None:
                continue
            try:
                worker.step(self.runtime, self.context, now, starting=not self.stopping)
            except Exception:
                # A fault with one pod must not stop the others.
                log.exception("pod %s/%s: a step failed", worker.pod.metadata.namespace, worker.pod.metadata.name)
                worker.wake_us = now + FAULT_RETRY_US
                continue
            if worker.over and not worker.unwritten:
                self._forget(uid)

    def _forget(self, uid: str) -> None:
        """Drop a pod of which nothing runs; its name stays for its peers until it is deleted."""
        worker = self.pods.pop(uid)
        self.runtime.forget(uid)
        self.devices.release(uid)
        self.storage.forget(uid)
        if self.images:
            self.images.forget(uid)
        group = hosts.group_of(worker.pod)
        if worker.gone or worker.should_delete:
            self.peers[group].pop(uid, None)
        self._drop_group(group)

    def _write(self) -> None:
        """Commit every status that changed, all together."""
        if self.is_dismissed:
            self.dirty.clear()
            return
        now = clock.microseconds()
        due = [self.pods[uid] for uid in sorted(self.dirty) if uid in self.pods and self.pods[uid].due(now)]
        if due and clock.monotonic() >= self.write_again_at:
            try:
                outcomes = self.cluster.commit([Group(self._writes(worker)) for worker in due])
            except AWAY as error:
                refused(self.outage, "statuses not written", error)
                self.write_again_at = clock.monotonic() + RETRY_S
                return
            for worker, outcome in zip(due, outcomes, strict=True):
                self._on_written(worker, outcome)
        elif due:
            return
        self.dirty.clear()

    def _writes(self, worker: PodWorker) -> list[Write]:
        meta, pending = worker.pod.metadata, list(worker.events)
        writes: list[Write] = []
        if worker.status != worker.written:
            # Merging leaves what others write into a status; what this node no longer reports must go.
            patch = {"status": {"reason": None, "message": None, **worker.status}}
            version = meta.resource_version
            writes.append(Patch(PODS, meta.namespace, meta.name, patch, "status", uid=meta.uid, version=version))
            writes += events.writes(self.cluster, worker.pod, worker.status, clock.milliseconds())
            pending += events.failed_hooks(worker.pod, self.runtime.runs(worker.uid))
        distinct = {
            (event.reason, event.message): event for event in pending
        }  # the same of two containers is written once
        writes += [
            events.event_write(self.cluster, worker.pod, event, clock.milliseconds()) for event in distinct.values()
        ]
        if worker.lost and worker.over:
            writes.append(Create(EVENTS, events.lost(worker.pod, worker.lost, clock.milliseconds())))
        if worker.should_delete:
            writes.append(Delete(PODS, meta.namespace, meta.name, uid=meta.uid, grace=0))
        return writes

    def _on_written(self, worker: PodWorker, outcome: list[Stored] | ApiError) -> None:
        if isinstance(outcome, ApiError):
            # The pod was changed meanwhile; the log has it, and the next step starts from that.
            log.info("status of %s not written: %s", worker.pod.metadata.name, outcome)
            worker.written = {}
            self.listener.hurry()
            return
        has_status = worker.status != worker.written
        worker.written, worker.events = worker.status, []
        if worker.over:
            self._forget(worker.uid)
        elif has_status:
            worker.pod, worker.revision = outcome[0].read(Pod), outcome[0].revision

    def _beat(self) -> None:
        try:
            if self.machine.beat():
                self.outage.over()
        except AWAY as error:
            refused(self.outage, "heartbeat not written", error)

    def _clean(self) -> None:
        if clock.monotonic() < self.clean_at:
            return
        self.clean_at = clock.monotonic() + CLEAN_S
        try:
            living = {stored.uid for stored in self.cluster.pods(self.machine.name)[1]}
            self.runtime.clean(living, set(self.pods))
            claims.clean(self.layout, self.pods, self.cluster.lookup)
        except Dismissed:
            raise
        except AWAY as error:
            log.warning("old logs not removed, trying again later: %s", error)
        except Exception as error:
            # Whatever it is: what is left over stops no pod from running.
            self.faults.note(error)

    def stop_all(self) -> None:
        """Ask every pod to end, because the cluster on this machine stops."""
        for uid in self.pods:
            self.runtime.stop(uid, SHUTDOWN, SHUTDOWN_GRACE_S)

    def wind_down(self) -> None:
        """After `stop_all`, record what has ended, and stop what was about to start."""
        self._collect()
        for uid in self._active_pods():
            self.runtime.stop(uid, SHUTDOWN, SHUTDOWN_GRACE_S)
        self._step()
        self._write()

    @property
    def is_done(self) -> bool:
        """Whether nothing runs, and nothing is left to write."""
        return not self.dirty and not self._active_pods()

    @property
    def is_certain(self) -> bool:
        """Whether each attempt that was ordered has begun or was refused, so that the disk shows all that is left running."""
        return not any(
            run.current is not None and run.current.state is AttemptState.ORDERED
            for uid in self.pods
            for run in self.runtime.runs(uid).values()
        )

    def depart(self) -> None:
        """Start nothing any more, and write to the store that the machine stops in order."""
        self.stopping = True
        if self.is_dismissed:
            return
        try:
            self.machine.depart()
        except (*AWAY, Dismissed, Occupied) as error:
            log.warning("the node's end was not recorded: %s", error)

    def _active_pods(self) -> list[str]:
        return [uid for uid in self.pods if self.runtime.active(uid)]


def _epoch_us() -> int:
    """Return what the wall clock showed when the monotonic one was at zero."""
    return clock.microseconds() - round(clock.monotonic() * 1_000_000)
