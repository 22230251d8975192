"""The mode of a test, and the consumers that it runs by hand."""

from __future__ import annotations

import contextlib
from contextlib import contextmanager

from django.test import override_settings

from cluster.runtime import consumer, nudge
from proof.modes.in_place import InPlaceMode
from proof.simulation.broker import Broker
from proof.simulation.virtual import VirtualClock


class EmbeddedMode:
    """Consumers work on the store."""

    name = "embedded"

    def __init__(self):
        self.cluster = contextlib.nullcontext()

    def ours(self):
        """A block in which the store is that of the consumers."""
        return contextlib.nullcontext()

    def step(self, runner, step):
        """Take a step of a consumer; tell whether there may be more."""
        return step()

    def failing(self, share, choices):
        """A block in which requests fail: there are none."""
        return contextlib.nullcontext()

    def is_settled(self):
        """Whether nothing that was planned is on its way: always so, as a plan is a transaction."""
        return True


_mode = EmbeddedMode()


class Runner(consumer.Runner):
    """One shard of a consumer, which the test runs by hand in its mode."""

    def step(self):
        return _mode.step(self, super().step)


def others():
    """What somebody else does in the cluster, in a block in the middle of a consumer's step."""
    return _mode.cluster


@contextmanager
def using(name):
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
