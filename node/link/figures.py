"""The latest use that a linked node has reported: validated, and a file for every process of the server."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated, Any

import msgspec

from cluster import clock
from node import usage
from node.link import presence
from node.shim.shim import write_json

log = logging.getLogger(__name__)
# Scheduler and pages reckon with these, and must not stumble over what a number of floating point cannot hold.
Whole = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Measured = Annotated[float, msgspec.Meta(ge=-1e18, le=1e18)]
Amounts = tuple[Whole, Whole, Whole]  # nanocores, bytes, the window in ms


class _ReportedFigures(msgspec.Struct):
    """The figures of `node.usage`, as far as they are taken from another machine."""

    containers: list[tuple[str, str, Whole, Whole, Whole]] = []
    machine: Amounts | None = None
    devices: dict[str, dict[str, dict[str, Measured]]] = {}


class Figures:
    """The figures of one node. Its name and the time are set here: it reports for itself alone, and its clock may be wrong."""

    def __init__(self, data: Path, node: str) -> None:
        self._file = presence.directory(data, node) / presence.USAGE
        self._node = node

    def store(self, reported: dict[str, Any]) -> None:
        """Store what a node has reported; figures of another shape are dropped with a warning."""
        if not reported:
            return
        try:
            accepted = msgspec.convert(reported, _ReportedFigures)
            figures = {**msgspec.to_builtins(accepted), "node": self._node, "at": clock.milliseconds()}
            write_json(str(self._file), figures)
        except (msgspec.ValidationError, OSError) as error:
            log.warning("what node %s uses is not known: %s", self._node, error)


def read(data: Path, node: str, now: int) -> dict[str, Any]:
    """Return the latest figures of a node, {} when there are none that still mean something."""
    return usage.read_file(presence.directory(data, node) / presence.USAGE, now)
