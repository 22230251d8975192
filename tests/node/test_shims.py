"""What the agent knows of attempts: on real shims, heard through their descriptors."""

from __future__ import annotations

import selectors

import pytest

from node.agent.shims import Shims
from node.paths import Layout
from node.shim.order import Order
from proof.escapes.attempts import PATH
from proof.harness.waiting import until

UID, NAME = "uid", "main"


@pytest.fixture
def shims(attempts):
    with selectors.DefaultSelector() as selector:
        shims = Shims(Layout(attempts.root), attempts.spawner, selector)
        yield shims
        shims.close()


def order(shims, number, script):
    """Order an attempt of the container in a directory that is there."""
    directory = shims.layout.attempt(UID, NAME, number)
    directory.mkdir(parents=True)
    give(shims, directory, script)


def give(shims, directory, script):
    shims.start(UID, NAME, Order(str(directory), ["sh", "-c", script], {"PATH": PATH}, "/"))


def settled(shims):
    """Listen until nothing of the container runs or is about to; return its run."""

    def listen():
        for key, _ in shims.selector.select(0.02):
            shims.on_ready(key.data)
        shims.settle()
        return not shims.active(UID) and not shims.unsettled

    until(listen, every_s=0)
    return shims.runs(UID)[NAME]


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_after_an_order_that_was_refused_the_container_is_where_it_was_before(shims, before):
    known = None
    for number in range(before):
        order(shims, number, f"exit {number + 1}")
        known = settled(shims)
    # Without its directory no shim can carry it out.
    give(shims, shims.layout.attempt(UID, NAME, before), "true")
    run = settled(shims)
    assert shims.refused(UID, NAME)
    codes = [each and each.exit_code for each in run]
    assert codes == [before or None, before - 1 if before > 1 else None]
    assert known is None or run == known
