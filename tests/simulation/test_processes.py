"""Processes of a world keep apart as those of the system do."""

from __future__ import annotations

import random

import pytest

from proof.simulation.parts.broker import Broker
from proof.simulation.parts.machine import Processes
from proof.simulation.parts.processes import NodeAgent
from proof.simulation.parts.virtual import VirtualClock


@pytest.fixture
def agents(tmp_path):
    machine, broker = Processes(random.Random(1)), Broker(VirtualClock())
    found = [NodeAgent(name, machine, tmp_path, broker) for name in ("agent", "agent+2")]
    yield found
    for each in found:
        each.die()


def test_second_agent_waits_for_the_end_of_the_first(agents):
    first, second = agents
    assert first.is_ready
    assert not second.is_ready
    assert second.due is None
    second.step()  # it waits: whatever the first does meanwhile, also nothing
    assert second.works is None


def test_agent_that_dies_is_followed_at_once(agents):
    first, second = agents
    assert first.is_ready
    first.die()
    assert second.is_ready


def test_agent_that_dies_while_it_waits_leaves_the_other_alone(agents):
    first, second = agents
    assert first.is_ready
    second.die()
    assert first.is_ready
