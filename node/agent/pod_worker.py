"""One pod on this node: its state in the agent, and the step that brings it closer to its spec."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kube.kinds.core import Pod
from kube.quantity import QuantityError
from node.agent.probing import Probing
from node.agent.runtime import Runtime
from node.attempt import UNHEALTHY
from node.containers import prepare
from node.containers.context import NodeContext
from node.containers.images import ImageWaits
from node.pods.cluster import AWAY
from node.pods.environment import ConfigError
from node.pods.events import ContainerEvent
from node.rules.lifecycle import Decision, Refusal, Start, decide
from node.status import PodAddress, Waiting

RETRY_US = 1_000_000  # after something that a container needs was missing
HOLD_US = 50_000  # a start is confirmed within milliseconds: wait for that instead of writing twice
GONE_GRACE_S = 2.0  # for a pod that was deleted by force: its object is gone, nobody waits


@dataclass(slots=True)
class PodWorker:
    """A pod bound to this node."""

    pod: Pod
    revision: int
    address: PodAddress
    refusal: Refusal | None
    problems: dict[str, Waiting] = field(default_factory=dict)
    retry_us: int = 0
    hold_us: int = 0
    wake_us: int | None = None
    status: dict[str, Any] = field(default_factory=dict)  # what should be in the store
    written: dict[str, Any] = field(default_factory=dict)  # what was last accepted by the store
    over: bool = False
    lost: str = ""  # why the node takes it away
    gone: bool = False  # the object is no more
    probing: Probing | None = None  # None where no container has a probe
    events: list[ContainerEvent] = field(default_factory=list)  # events that are to be written

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    def step(self, runtime: Runtime, context: NodeContext, now_us: int, *, starting: bool) -> None:
        """Start and stop what is due and work out the status; starting is off while the node shuts down."""
        if self.gone:
            runtime.stop(self.uid, "Deleted", GONE_GRACE_S)
            self.over = not runtime.active(self.uid)
            self.wake_us = None  # a descriptor will report its end
            return
        for name in runtime.runs(self.uid):
            if message := runtime.refused(self.uid, name):
                self.problems[name] = Waiting("RunContainerError", message)
                self.retry_us = now_us + RETRY_US
        self._probe(runtime, now_us)
        decision = self._decide(runtime, now_us)
        if decision.start and starting and now_us >= self.retry_us:
            self._start(decision, runtime, context, now_us)
            decision = self._decide(runtime, now_us)
        if decision.stop is not None:
            runtime.stop(self.uid, decision.stop.reason, decision.stop.grace_s)
        self.status = decision.status
        self.over, self.lost = decision.over, decision.lost
        probe_us = self.probing.wake_us if self.probing is not None else None
        wake_times = [decision.wake_us, self.retry_us if self.problems else None, self.hold_us or None, probe_us]
        self.wake_us = min(
            (wake_us for wake_us in wake_times if wake_us is not None and wake_us > now_us), default=None
        )
        if context.images is not None:
            self.events += context.images.events(self.uid)
        context.devices.describe(self.pod, self.status)

    def _decide(self, runtime: Runtime, now_us: int) -> Decision:
        runs = runtime.runs(self.uid)
        if self.probing is not None:
            runs = self.probing.with_health(self.pod, runs)
        return decide(self.pod, runs, self.address, now_us, refusal=self.refusal, problems=self.problems)

    def _probe(self, runtime: Runtime, now_us: int) -> None:
        """Run the probes that are due, and end the containers that have failed theirs."""
        if self.probing is None:
            return
        self.probing.with_health(self.pod, runtime.runs(self.uid))
        for check in self.probing.due_checks(self.pod, self.address.pod_ip, now_us):
            runtime.check(check)
        for ending in self.probing.endings(self.pod):
            runtime.stop(self.uid, UNHEALTHY, ending.grace_s, ending.container)
        self.events += self.probing.events
        self.probing.events = []

    def _start(self, decision: Decision, runtime: Runtime, context: NodeContext, now_us: int) -> None:
        """Order every start that is due."""
        self.problems.clear()
        for start in decision.start:
            problem = self._order(start, runtime, context)
            if problem is not None:
                self.problems[start.container.name] = problem
                self.retry_us = now_us + RETRY_US
            else:
                self.hold_us = now_us + HOLD_US

    def _order(self, start: Start, runtime: Runtime, context: NodeContext) -> Waiting | None:
        try:
            order = prepare.order(self.pod, start, self.address, context)
            runtime.start(self.uid, start.container.name, order)
        except ImageWaits as waits:
            return Waiting(waits.reason, str(waits))
        except ConfigError as error:
            return Waiting("CreateContainerConfigError", str(error))
        except (ValueError, QuantityError, *AWAY) as error:
            return Waiting("CreateContainerConfigError", str(error))
        except OSError as error:
            return Waiting(
                "CreateContainerError", f"{error.strerror or error}: {error.filename or 'starting the container'}"
            )
        if context.images is not None:
            context.images.started(self.pod, start.container)
        return None

    @property
    def should_delete(self) -> bool:
        """Whether the object is to be deleted now: it is marked for that, or the machine has ended the pod."""
        return self.over and bool(self.lost or self.pod.metadata.deletion_timestamp)

    @property
    def unwritten(self) -> bool:
        """Whether there is something that the store does not have yet."""
        if self.gone:
            return False
        return self.status != self.written or self.should_delete or bool(self.events)

    def due(self, now_us: int) -> bool:
        """Whether to write now what is unwritten, or to wait for a start that is about to be confirmed."""
        if not self.unwritten or self.over or now_us >= self.hold_us:
            return self.unwritten
        containers = (*self.status["containerStatuses"], *self.status.get("initContainerStatuses", ()))
        return not any("waiting" in status["state"] and status["name"] not in self.problems for status in containers)
