"""What an agent asks of the machine's processes: `node.agent.shims`, or whoever stands in for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from node.agent.checks import Check, Checked
from node.attempt import Run
from node.shim.order import Order

UNSETTLED_S = 0.02  # how often an attempt is looked at whose shim was found before it said anything


class Runtime(Protocol):
    """All attempts on a machine. They outlive the agent: the next one adopts them."""

    def uids(self) -> list[str]:
        """Return the pods of which there is anything, in order."""

    def adopt(self, uid: str) -> bool:
        """Take over what an earlier agent started for a pod; tell whether any of it is alive."""

    def runs(self, uid: str) -> Mapping[str, Run]:
        """Return the run of each container of a pod that was ever started."""

    def active(self, uid: str) -> bool:
        """Whether anything of a pod runs or may be about to."""

    def start(self, uid: str, container: str, order: Order) -> None:
        """Order an attempt, which begins once however often it is ordered; OSError when it cannot be had."""

    def refused(self, uid: str, container: str) -> str:
        """Return why the last order was not carried out, once; empty when it was."""

    def stop(self, uid: str, reason: str, grace_s: float, container: str = "") -> None:
        """Ask everything of a pod, or one container, to end; asked again, it can only be sooner."""

    def check(self, check: Check) -> None:
        """Ask a probe of a container that runs; the answer is in `checked` when it has come."""

    def checked(self) -> list[Checked]:
        """Return the answers that have come since the last call."""

    def settle(self) -> set[str]:
        """Learn what has become of attempts since the last call; return their pods."""

    @property
    def unsettled(self) -> bool:
        """Whether settle() is to be called soon, although nothing may be heard."""

    def forget(self, uid: str) -> None:
        """Drop what is remembered of a pod of which nothing runs."""

    def clean(self, living: Collection[str], running: Collection[str]) -> None:
        """Remove what nobody keeps of pods that do not run; living are those that the store has."""
