"""What a shim needs of its container, however that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from node.shim.launch import Ending, Streams


class ContainerRuntime(Protocol):
    """One container, from its start to its end. Its processes are below the shim, or below `root`."""

    root: int  # the container's first process where that is not below the shim, or not alone there; else 0
    is_bound: (
        bool  # whether the kernel enforces its limits of memory and processes, so that the shim need not check them
    )
    id: str  # its engine's id for it; "" where there is no engine

    def start(self, streams: Streams) -> int:
        """Run the command; return the child of the shim that ends when the container does. LaunchError when it cannot."""

    def signal(self, number: int) -> None:
        """Send a signal to the container's main process, or to its group."""

    def kill(self) -> dict[int, int]:
        """End everything; return the wait statuses of children that were collected meanwhile."""

    def clear(self) -> dict[int, int]:
        """End what the command left behind, and remove what there was for it; return wait statuses as kill()."""

    def ending(self, status: int) -> Ending:
        """Return how the container ended, of which start()'s child ended with a wait status."""

    def processes(self) -> list[int]:
        """Return the processes that count towards the container's limits."""

    def execute(self, argv: Sequence[str], streams: Streams, env: dict[str, str]) -> int:
        """Run one more command in the container; return the child of the shim that ends when it does."""

    def of_command(self, pid: int) -> list[int]:
        """Return the processes of a command that execute() began."""
