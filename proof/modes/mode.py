"""The mode of a test, and the consumers that it runs by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from random import Random
from typing import Any, TypeVar

from django.test import override_settings

from cluster.consumers import consumer
from cluster.runtime import nudge
from proof.modes.in_place import InPlaceMode
from proof.simulation.parts.broker import Broker
from proof.simulation.parts.virtual import VirtualClock

State = TypeVar("State")


class EmbeddedMode:
    """Consumers work on the store."""

    name = "embedded"

    def __init__(self) -> None:
        self.cluster: AbstractContextManager[object] = contextlib.nullcontext()

    def ours(self) -> AbstractContextManager[object]:
        """A block in which the store is that of the consumers."""
        return contextlib.nullcontext()

    def step(self, runner: consumer.Runner[Any], step: Callable[[], bool]) -> bool:
        """Take a step of a consumer; tell whether there may be more."""
        return step()

    def failing(self, share: float, choices: Random) -> AbstractContextManager[object]:
        """A block in which requests fail: there are none."""
        return contextlib.nullcontext()

    def is_settled(self) -> bool:
        """Whether nothing that was planned is on its way: always so, as a plan is a transaction."""
        return True


_mode: EmbeddedMode | InPlaceMode = EmbeddedMode()


class Runner(consumer.Runner[State]):
    """One shard of a consumer, which the test runs by hand in its mode."""

    def step(self) -> bool:
        return _mode.step(self, super().step)


def others() -> AbstractContextManager[object]:
    """What somebody else does in the cluster, in a block in the middle of a consumer's step."""
    return _mode.cluster


@contextmanager
def using(name: str) -> Iterator[EmbeddedMode | InPlaceMode]:
    """The mode of a name, for the length of the block."""
    global _mode
    before = _mode
    with contextlib.ExitStack() as stack:
        if name == InPlaceMode.name:
            stack.enter_context(override_settings(WAY="in-place"))
            stack.callback(nudge.use, nudge.use(Broker(VirtualClock())))
            _mode = stack.enter_context(contextlib.closing(InPlaceMode()))
        try:
            yield _mode
        finally:
            _mode = before
