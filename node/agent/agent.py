"""The agent: runs the pods that are bound to this machine, and says in the store how they are doing.

One thread, one loop. It waits on descriptors (the store's nudges, the starts
and ends of containers, signals) and on the soonest time that something is
due, then brings every pod concerned one step further and writes what changed
in one commit. It keeps nothing that the store and the disk do not have:
killed at any moment, the next agent goes on where this one was.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import time
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import Error as DatabaseError
from msgspec import ValidationError

from cluster import clock
from cluster.runtime.outage import Outage
from cluster.store import Change, Delete, Group, Patch, Stored, store
from kube.errors import ApiError
from kube.kinds.core import Pod
from kube.kinds.pod import ENDED
from kube.meta import ObjectMeta
from kube.resources import CONFIGMAPS, PODS, SECRETS
from node.agent import hosts, machine, prepare, retention
from node.agent.lifecycle import start_of
from node.agent.pod_worker import Local
from node.agent.prepare import Means
from node.agent.runtime import UNSETTLED_S, Handle, Runtime
from node.agent.server import Port
from node.agent.spawn import Spawner
from node.attempt import SHUTDOWN
from node.listen import Listener, Subscription
from node.lookup import StoreLookup, refused
from node.paths import Layout
from node.status import Place
from node.usage import Sampler

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from cluster.store import Write

WATCHED = (PODS, CONFIGMAPS, SECRETS)
FAULT_RETRY_US = 10_000_000
RETRY_S = 0.5  # after the database refused a write
SHUTDOWN_GRACE_S = 4.0  # `up` gives the agent five seconds
SHUTDOWN_S = 4.8
CLEAN_S = 600.0
log = logging.getLogger(__name__)


class Agent:
    """The node agent of one machine."""

    def __init__(self, data: Path, *, name: str = "", mounts: str = "") -> None:
        self.layout = Layout(data)
        self.selector = selectors.DefaultSelector()
        self.spawner = Spawner()
        self.runtime = Runtime(self.layout, self.spawner, self.selector)
        self.machine = machine.Machine(data, name, mounts or self.spawner.probe(self.layout.root / "probe"))
        self.sampler = Sampler(self.layout, self.machine.name, self.runtime.running)
        self.means = Means(self.layout, StoreLookup(), self.machine.mounts, self.machine.allocatable)
        self.listener = Listener(WATCHED, Subscription(self.selector))
        self.port = Port(data)
        self.selector.register(self.port.socket, selectors.EVENT_READ, self.port)
        self.pods: dict[str, Local] = {}
        self.peers: dict[str, dict[str, tuple[Pod, str]]] = {}  # by job: its pods and their addresses
        self.dirty: set[str] = set()
        self.stopping = False
        self.write_again_at = 0.0
        self.outage = Outage("the node's work with the database", log)
        self.clean_at = clock.monotonic() + CLEAN_S / 10

    def run(self) -> None:
        """Work until a signal asks for the end; then end what runs, record it, and return."""
        wake = self._catch_signals()
        self._until_answered(self.machine.announce)
        self._until_answered(self.load)
        self.sampler.start()
        log.info("agent ready: node %s, volumes %s", self.machine.name, self.machine.mounts)
        while not self.stopping:
            self.turn()
        self.shut_down()
        os.close(wake)

    def _catch_signals(self) -> int:
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self.selector.register(reader, selectors.EVENT_READ, None)
        return writer

    def _on_signal(self, *_: object) -> None:
        self.stopping = True

    def _until_answered(self, ask: Any) -> None:
        """Do something that needs the database, however long that is away."""
        while not self.stopping:
            try:
                ask()
                self.outage.over()
                return
            except DatabaseError as error:
                refused(self.outage, "the database does not answer", error)
                time.sleep(RETRY_S)

    def load(self) -> None:
        """Take on every pod of this node, and adopt or end what an earlier agent left running."""
        found = self._look_anew()
        for uid in self._uids_on_disk():
            if uid not in self.pods and self.runtime.adopt(uid):
                self._take_over_orphan(uid, found.get(uid))
        self.dirty |= set(self.pods)

    def _look_anew(self) -> dict[str, Stored]:
        """Learn of every pod of this node as it is, by uid; go on in the log from there."""
        with store.reading() as revision:
            found = {stored.uid: stored for stored in store.find(PODS, node=self.machine.name)}
        for uid, local in self.pods.items():
            local.gone = uid not in found
            self.dirty.add(uid)
        for stored in found.values():
            self._take_body(stored)
        self.listener.position = revision
        return found

    def _uids_on_disk(self) -> list[str]:
        try:
            return [one.name for one in self.layout.pods.iterdir()]
        except FileNotFoundError:
            return []

    def _take_over_orphan(self, uid: str, stored: Stored | None) -> None:
        """A pod that has ended or is gone for the store, but of which something runs: it is only to be stopped."""
        pod = stored.read(Pod) if stored else Pod(metadata=ObjectMeta(uid=uid))
        place = Place(pod.status.pod_ip, self.machine.address, start_of(pod, clock.microseconds()))
        self._add(uid, Local(pod, stored.revision if stored else 0, place, None, gone=stored is None))

    def _add(self, uid: str, local: Local) -> None:
        self.pods[uid] = local
        self.peers.setdefault(hosts.group_of(local.pod), {})[uid] = (local.pod, local.place.pod_ip)

    def _take_body(self, source: Stored | Change) -> None:
        try:
            pod = source.read(Pod)
        except ValidationError as error:
            log.error("pod %s cannot be read and is left alone: %s", source.key, error)
            return
        if pod.spec.node_name == self.machine.name:
            self._take(pod, source.revision)

    def _take(self, pod: Pod, revision: int) -> None:
        """Learn of a pod, or of its newest version."""
        uid = pod.metadata.uid
        local = self.pods.get(uid)
        if local is not None:
            if revision > local.revision:
                local.pod, local.revision = pod, revision
                self.dirty.add(uid)
            return
        if pod.status.phase in ENDED and not pod.metadata.deletion_timestamp:
            return
        taken = {one.place.pod_ip for one in self.pods.values()}
        address = pod.status.pod_ip or hosts.address(uid, taken)
        place = Place(address, self.machine.address, start_of(pod, clock.microseconds()))
        self._add(uid, Local(pod, revision, place, prepare.refusal(pod, self.layout)))
        self.runtime.adopt(uid)
        self.dirty.add(uid)

    def turn(self) -> None:
        """Wait for the next thing to happen and handle it."""
        self._wait(self._timeout())
        self._read_changes()
        self._step()
        self._write()
        self._beat()
        self._clean()

    def _timeout(self) -> float:
        now = clock.monotonic()
        dues = [self.listener.due() - now, self.machine.due - now, self.clean_at - now]
        if self.runtime.unsettled:
            dues.append(UNSETTLED_S)
        wakes = [local.wake_us for local in self.pods.values() if local.wake_us is not None]
        if wakes:
            dues.append((min(wakes) - clock.microseconds()) / 1e6)
        if self.dirty:
            dues.append(max(0.0, self.write_again_at - now))
        return max(0.0, min(dues))

    def _wait(self, timeout: float) -> None:
        self.listener.subscribe()
        for key, _ in self.selector.select(timeout):
            if isinstance(key.data, Handle):
                self.dirty.add(self.runtime.on_ready(key.data))
            elif key.data is self.port:
                self.port.answer(self.runtime)
            elif key.data is self.listener.subscription:
                self.listener.hear()
            else:
                os.read(key.fd, 512)
        if self.runtime.unsettled:
            self.dirty |= self.runtime.settle()
        now = clock.microseconds()
        self.dirty |= {
            uid for uid, one in self.pods.items() if one.wake_us is not None and one.wake_us <= now
        }

    def _read_changes(self) -> None:
        try:
            self.listener.read(self._apply, self._reload)
        except DatabaseError as error:
            refused(self.outage, "the log could not be read", error)

    def _reload(self) -> None:
        """History before the agent's position is gone: any pod, ConfigMap and Secret may have changed."""
        self._look_anew()
        for local in self.pods.values():
            self._config_changed(local)

    def _apply(self, change: Change) -> None:
        if change.resource != PODS.id:
            for each in self.pods.values():
                if each.pod.metadata.namespace == change.namespace:
                    self._config_changed(each, change.name)
        elif change.verb == "DELETED":
            local = self.pods.get(change.uid)
            if local is not None:
                local.gone = True
                self.dirty.add(change.uid)
        elif change.uid in self.pods or self.machine.needle in change.body:
            self._take_body(change)

    def _config_changed(self, local: Local, name: str = "") -> None:
        """A ConfigMap or Secret ("" for any): a pod that waits for it tries again, a mounted one gets its new content."""
        if local.gone:
            return
        if local.problems:
            local.retry_us = 0
            self.dirty.add(local.uid)
        elif self.runtime.active(local.uid) and (not name or prepare.mentions(local.pod, name)):
            prepare.refresh_volumes(local.pod, local.place, self.means)

    def _step(self) -> None:
        now = clock.microseconds()
        self._write_hosts()
        for uid in list(self.dirty):
            local = self.pods.get(uid)
            if local is None:
                continue
            try:
                local.step(self.runtime, self.means, now, starting=not self.stopping)
            except Exception:
                # One pod that nobody foresaw must not keep the others from running.
                log.exception(
                    "pod %s/%s: a step failed", local.pod.metadata.namespace, local.pod.metadata.name
                )
                local.wake_us = now + FAULT_RETRY_US
                continue
            if local.over and not local.unwritten:
                self._forget(uid)

    def _write_hosts(self) -> None:
        """Write the hosts file of every job that has a pod among those concerned."""
        for group in {hosts.group_of(self.pods[uid].pod) for uid in self.dirty if uid in self.pods}:
            try:
                hosts.write(self.layout.hosts / group, hosts.render(self.peers[group].values()))
            except OSError as error:
                log.warning("hosts file of %s not written: %s", group, error)

    def _forget(self, uid: str) -> None:
        """Drop a pod of which nothing runs; its name stays for its peers until it is deleted."""
        local = self.pods.pop(uid)
        self.runtime.forget(uid)
        group = hosts.group_of(local.pod)
        if local.gone or local.pod.metadata.deletion_timestamp:
            self.peers[group].pop(uid, None)
        if not any(hosts.group_of(one.pod) == group for one in self.pods.values()):
            del self.peers[group]
            (self.layout.hosts / group).unlink(missing_ok=True)

    def _write(self) -> None:
        """Commit every status that changed, all in one transaction."""
        now = clock.microseconds()
        due = [self.pods[uid] for uid in self.dirty if uid in self.pods and self.pods[uid].due(now)]
        if due and clock.monotonic() >= self.write_again_at:
            try:
                outcomes = store.commit([Group(self._writes(local)) for local in due])
            except DatabaseError as error:
                refused(self.outage, "statuses not written", error)
                self.write_again_at = clock.monotonic() + RETRY_S
                return
            for local, outcome in zip(due, outcomes, strict=True):
                self._written(local, outcome)
        elif due:
            return
        self.dirty.clear()

    def _writes(self, local: Local) -> list[Write]:
        meta = local.pod.metadata
        writes: list[Write] = []
        if local.status != local.written:
            # Merging keeps what others write into a status; what this node no longer says must go.
            cleared = {"reason": None, "message": None, "initContainerStatuses": None}
            patch = {"status": {**cleared, **local.status}}
            seen = meta.resource_version
            writes.append(Patch(PODS, meta.namespace, meta.name, patch, "status", uid=meta.uid, version=seen))
        if local.over and meta.deletion_timestamp:
            writes.append(Delete(PODS, meta.namespace, meta.name, uid=meta.uid, grace=0))
        return writes

    def _written(self, local: Local, outcome: list[Stored] | ApiError) -> None:
        if isinstance(outcome, ApiError):
            # Somebody else changed the pod meanwhile; the log has it, and the next step starts from that.
            log.info("status of %s not written: %s", local.pod.metadata.name, outcome)
            local.written = {}
            self.listener.hurry()
            return
        local.written = local.status
        if local.over:
            self._forget(local.uid)
        else:
            local.pod, local.revision = outcome[0].read(Pod), outcome[0].revision

    def _beat(self) -> None:
        try:
            if self.machine.beat():
                self.outage.over()
        except DatabaseError as error:
            refused(self.outage, "heartbeat not written", error)

    def _clean(self) -> None:
        if clock.monotonic() < self.clean_at:
            return
        self.clean_at = clock.monotonic() + CLEAN_S
        try:
            living = {stored.uid for stored in store.find(PODS, node=self.machine.name)}
            days, most = settings.LOG_DAYS, settings.LOG_MEGABYTES << 20
            retention.clean(self.layout, living, set(self.pods), days=days, most_bytes=most)
        except (DatabaseError, OSError) as error:
            log.warning("old logs not removed, trying again later: %s", error)

    def shut_down(self) -> None:
        """End every container: in order at first, by force after four seconds; record how they ended."""
        deadline = clock.monotonic() + SHUTDOWN_S
        for uid in self.pods:
            self.runtime.stop(uid, SHUTDOWN, SHUTDOWN_GRACE_S)
        while clock.monotonic() < deadline and (self.dirty or self._any_active()):
            self._wait(min(0.2, self._timeout()))
            for uid in self._active_pods():
                self.runtime.stop(uid, SHUTDOWN, SHUTDOWN_GRACE_S)
            self._step()
            self._write()
        try:
            self.machine.depart()
        except DatabaseError as error:
            log.warning("the node's end was not recorded: %s", error)
        self.close()

    def close(self) -> None:
        """Let go of every descriptor and of the spawner; containers are left as they are."""
        self.sampler.stop()
        self.listener.close()
        self.port.close()
        self.runtime.close()
        self.spawner.close()
        self.selector.close()

    def _active_pods(self) -> Iterable[str]:
        return [uid for uid in self.pods if self.runtime.active(uid)]

    def _any_active(self) -> bool:
        return bool(self._active_pods())
