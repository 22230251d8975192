"""The attempts that run on this machine: starting and stopping them, and their ends as descriptors report them.

It is the agent's `Runtime`. The disk has the attempts, and each that runs has a shim.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from cluster import clock
from node import attempts, shim_claims
from node.agent.checks import Check, CheckResult, Checks
from node.attempt import NEVER_RAN, UNKNOWN_REASON, Attempt, AttemptState, Run
from node.containers.control_groups import ControlGroups
from node.containers.engine_sweep import EngineSweep
from node.containers.networks import Networks
from node.containers.spawn import Spawner
from node.paths import Layout
from node.shim import linux
from node.shim.order import Order
from node.shim.shim import write_json
from node.usage import Container
from node.volumes import retention


@dataclass(slots=True)
class Handle:
    """One attempt that may run, and the descriptors that report its start and end."""

    uid: str
    container: str
    directory: Path
    notice: int = -1  # the pipe of the start, until something was read from it
    process: int = -1  # the shim's pidfd
    shim: int = 0  # its process id, as long as it may be alive
    root: int | None = None  # see `attempts.root_of`
    stop_at: float | None = None  # when a stop that was requested turns to force


@dataclass(slots=True)
class Shims:
    """All attempts on this machine, by the disk and their shims: a `Runtime`."""

    layout: Layout
    spawner: Spawner
    selector: selectors.BaseSelector
    key: str = ""  # of the node: its shims answer no request without it
    sweep: EngineSweep | None = None
    networks: Networks | None = None  # where containers have networks of their own
    groups: ControlGroups | None = None
    _runs: dict[str, dict[str, Run]] = field(default_factory=dict)
    _handles: dict[tuple[str, str], Handle] = field(default_factory=dict)
    _refusals: dict[tuple[str, str], str] = field(default_factory=dict)
    _unsettled: set[tuple[str, str]] = field(default_factory=set)
    _changed: set[str] = field(default_factory=set)  # pods
    _checks: Checks | None = None  # the first probe makes it

    def uids(self) -> list[str]:
        """Return the pods that have a directory, in order."""
        try:
            return sorted(one.name for one in self.layout.pods.iterdir())
        except FileNotFoundError:
            return []

    def runs(self, uid: str) -> Mapping[str, Run]:
        return self._runs.get(uid, {})

    def active(self, uid: str) -> bool:
        return any(run.current is not None and run.current.active for run in self.runs(uid).values())

    def directory(self, uid: str, container: str) -> Path | None:
        """Return the directory of a container's running attempt, None when none runs."""
        handle = self._handles.get((uid, container))
        return handle.directory if handle is not None else None

    def directory_of_any(self, uid: str) -> Path | None:
        """Return the directory of a running attempt of a pod, None when none runs."""
        return next((handle.directory for handle in self._handles.values() if handle.uid == uid and handle.shim), None)

    def running(self) -> list[Container]:
        """Return the containers that have a shim; other threads may ask."""
        containers = []
        for handle in list(self._handles.values()):
            if handle.root is None:
                handle.root = attempts.root_of(handle.directory)
            if handle.shim:
                containers.append(Container(handle.uid, handle.container, handle.shim, handle.root or 0))
        return containers

    def adopt(self, uid: str) -> bool:
        for container in attempts.containers(self.layout, uid):
            directory = self.layout.container(uid, container)
            attempts.withdraw(directory)
            run, shim = attempts.run_of(directory, clock.microseconds())
            if run.current is None:
                continue
            self._runs.setdefault(uid, {})[container] = run
            if run.current.reason == UNKNOWN_REASON:
                self._clear_up(uid, container, run.current)
            if shim:
                handle = Handle(uid, container, directory / str(run.current.number))
                self._handles[uid, container] = handle
                self._watch(handle, shim)
        return self.active(uid)

    def start(self, uid: str, container: str, order: Order) -> None:
        """Hand an attempt to the spawner; OSError when it, or the network, cannot be had."""
        handle = Handle(uid, container, Path(order.directory))
        network = self.networks.of(order.network) if self.networks and order.network else None
        handle.notice = self.spawner.start(order._replace(key=self.key), network)
        self.selector.register(handle.notice, selectors.EVENT_READ, handle)
        self._handles[uid, container] = handle
        previous = self.runs(uid).get(container, NEVER_RAN).current
        attempt = Attempt(int(handle.directory.name), AttemptState.ORDERED, order.streak)
        self._runs.setdefault(uid, {})[container] = Run(attempt, previous)
        self._refusals.pop((uid, container), None)

    def refused(self, uid: str, container: str) -> str:
        return self._refusals.pop((uid, container), "")

    def stop(self, uid: str, reason: str, grace_s: float, container: str = "") -> None:
        kill_at = clock.monotonic() + grace_s
        for name in [container] if container else self.runs(uid):
            handle = self._handles.get((uid, name))
            if handle is None or (handle.stop_at is not None and handle.stop_at <= kill_at):
                continue
            if handle.process < 0 and (shim := shim_claims.shim_of(handle.directory)):
                self._watch(handle, shim)  # the hook after its start has not ended
            if handle.process < 0:
                continue
            write_json(f"{handle.directory}/stop.json", {"reason": reason, "grace": grace_s})
            handle.stop_at = kill_at
            try:
                signal.pidfd_send_signal(handle.process, signal.SIGTERM)
            except ProcessLookupError:  # it has ended; its descriptor will say so
                pass

    def check(self, check: Check) -> None:
        if self._checks is None:
            self._checks = Checks(self.key)
            self.selector.register(self._checks.reader, selectors.EVENT_READ, None)
        self._checks.start(check, self.directory(check.uid, check.container))

    def check_results(self) -> list[CheckResult]:
        return self._checks.results() if self._checks is not None else []

    def on_ready(self, handle: Handle) -> None:
        """Read a descriptor of an attempt; settle() returns its pod."""
        refusal = ""
        if handle.notice >= 0:
            with contextlib.suppress(BlockingIOError):  # nothing yet: the other descriptor was ready, for its end
                refusal = os.read(handle.notice, 8192).decode(errors="replace").partition("refused ")[2].strip()
            self._close(handle)
        self._refresh(handle, refusal)
        self._changed.add(handle.uid)

    def settle(self) -> set[str]:
        """Read again the attempts whose start is not confirmed and whose shim has no descriptor.

        Return their pods, and those of which a descriptor was ready.
        """
        keys, self._unsettled = self._unsettled, set()
        changed, self._changed = self._changed, set()
        for key in keys:
            if key in self._handles:
                self._refresh(self._handles[key], "")
        return changed | {uid for uid, _ in keys}

    @property
    def unsettled(self) -> bool:
        """Whether there are attempts whose start is not confirmed and whose shim has no descriptor."""
        return bool(self._unsettled)

    def forget(self, uid: str) -> None:
        self._runs.pop(uid, None)
        if self.groups:
            self.groups.forget(uid)

    def clean(self, living: Collection[str], running: Collection[str]) -> None:
        """Remove scratch directories and logs as the settings say (see `retention.clean`)."""
        most_bytes = settings.LOG_MEGABYTES << 20
        retention.clean(self.layout, living, running, days=settings.LOG_DAYS, most_bytes=most_bytes)
        if self.sweep:
            self.sweep.start()
        if self.networks:
            self.networks.tidy()
        if self.groups:
            self.groups.sweep(running)

    def close(self) -> None:
        """Close every descriptor; what runs goes on."""
        for handle in self._handles.values():
            self._close(handle)
        self._handles.clear()
        if self.networks:
            self.networks.close()
        if self._checks is not None:
            self.selector.unregister(self._checks.reader)
            self._checks.close()
            self._checks = None

    def _refresh(self, handle: Handle, refusal: str) -> None:
        uid, container = handle.uid, handle.container
        run = self._runs[uid][container]
        stored = attempts.read(handle.directory, clock.microseconds())
        if stored is None:  # nothing was started, so the container is where it was before
            self._drop(handle)
            self._refusals[uid, container] = refusal or "The process that starts containers was killed."
            self._runs[uid][container], _ = attempts.run_of(handle.directory.parent, clock.microseconds())
            return
        self._runs[uid][container] = Run(stored.attempt, run.last)
        if stored.attempt.reason == UNKNOWN_REASON:
            self._clear_up(uid, container, stored.attempt)
        if stored.shim:
            self._watch(handle, stored.shim)
        else:
            self._drop(handle)

    def _watch(self, handle: Handle, shim: int) -> None:
        if handle.process < 0:
            try:
                handle.process = os.pidfd_open(shim)
            except ProcessLookupError:
                self._unsettled.add((handle.uid, handle.container))
                return
            self.selector.register(handle.process, selectors.EVENT_READ, handle)
            handle.shim = shim
        current = self._runs[handle.uid][handle.container].current
        ordered = current is not None and current.state is AttemptState.ORDERED
        if ordered or not linux.start_ticks(shim):
            self._unsettled.add((handle.uid, handle.container))

    def _clear_up(self, uid: str, container: str, attempt: Attempt) -> None:
        if not (self.groups and self.groups.end(uid, container, attempt.number)):
            attempts.kill_leftovers({f"process://{uid}/{container}/{attempt.number}"})
        if self.sweep:
            self.sweep.remove(self.layout.attempt(uid, container, attempt.number))

    def _drop(self, handle: Handle) -> None:
        self._close(handle)
        self._handles.pop((handle.uid, handle.container), None)

    def _close(self, handle: Handle) -> None:
        for fd in (handle.notice, handle.process):
            if fd >= 0:
                self.selector.unregister(fd)
                os.close(fd)
        handle.notice = handle.process = -1
