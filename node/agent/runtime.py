"""What an agent needs of the machine's processes: `node.agent.shims`, or a stand-in for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from node.agent.checks import Check, CheckResult
from node.attempt import Run
from node.shim.order import Order

UNSETTLED_S = 0.02  # between reads of an attempt whose shim was found before it reported anything


class Runtime(Protocol):
    """All attempts on a machine. They outlive the agent: the next one adopts them."""

    def uids(self) -> list[str]:
        """Return the pods of which there is anything, in order."""

    def adopt(self, uid: str) -> bool:
        """Take over what an earlier agent started for a pod; return whether any of it is alive."""

    def runs(self, uid: str) -> Mapping[str, Run]:
        """Return the run of each container of a pod that was ever started."""

    def active(self, uid: str) -> bool:
        """Whether anything of a pod runs or may be about to."""

    def start(self, uid: str, container: str, order: Order) -> None:
        """Order an attempt, which begins once however often it is ordered; OSError when it cannot be had."""

    def refused(self, uid: str, container: str) -> str:
        """Return why the last order was not carried out, once; empty when it was."""

    def stop(self, uid: str, reason: str, grace_s: float, container: str = "") -> None:
        """Ask everything of a pod, or one container, to end; a later call can only bring the end forward."""

    def check(self, check: Check) -> None:
        """Run a probe of a container; its result is in `check_results` when it has come."""

    def check_results(self) -> list[CheckResult]:
        """Return the results of probes that have come since the last call."""

    def settle(self) -> set[str]:
        """Read what has become of attempts since the last call; return their pods."""

    @property
    def unsettled(self) -> bool:
        """Whether settle() is to be called soon, although no descriptor may become ready."""

    def forget(self, uid: str) -> None:
        """Drop the state of a pod of which nothing runs."""

    def clean(self, living: Collection[str], running: Collection[str]) -> None:
        """Remove what pods that do not run have left for too long; living are those that the store has."""
