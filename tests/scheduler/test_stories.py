"""What comes of situations, and in which words it is told: golden files in the notation of tests/scheduler/notation.py."""

from __future__ import annotations

import re

import pytest

from kube.resources import PODS
from scheduler.engine.cause import Reason
from scheduler.reasons.message import gist
from scheduler.writes import groups_of
from tests.blocks import GOLDEN, blocks
from tests.tables import cases

from .world import Outcome, Story, World


@blocks("stories/*")
def test_story(block, golden):
    """All that is new after each step."""
    golden(block, Story(block.given).tell, by_line=True)


@blocks("outcomes/*")
def test_outcome(block, golden):
    """Who is where after each step, who has to end, and why others wait, in a word."""
    golden(block, Outcome(block.given).tell, by_line=True)


@pytest.mark.shows("scheduler 3.7/unschedulable", "scheduler 5.2/reasons", "scheduler 5.4/group waits")
@pytest.mark.shows("scheduler 5.4/entry refused", "coscheduling 2/events", "coscheduling 4/cluster autoscaler")
@pytest.mark.shows("scheduler 10.1/8", "scheduler 10.1/19", "scheduler 11/8", "scheduler 11/9")
@pytest.mark.shows("scheduler 5.3/group", "scheduler 5.3/nodes", "scheduler 5.3/causes")
@pytest.mark.shows("scheduler 1.1/resources", "scheduler 2.1/minResources", "scheduler 2.1/room", "scheduler 2.4/entry")
@pytest.mark.shows("scheduler 2.1/priority", "scheduler 5.1/Pending", "scheduler 5.1/Inqueue", "scheduler 10.1/3")
@pytest.mark.shows("groups 3.1/minResources", "scheduler 3.5/entry", "scheduler 3.5/guarantees of others")
@pytest.mark.shows("scheduler 11/4", "scheduler 11/10")
@blocks("waits")
def test_every_group_that_is_not_let_in_or_not_placed_says_why(block, golden):
    """Its pods and an event say the same; after it comes Volcano's text."""

    def said(text):
        world = World(text.replace("\n", ";"))
        world.cycle()
        told = world.told()
        if not told:
            return [world.phase()]
        if "group g 4x2" in text:
            assert world.placed() == ""
            (event,) = [each for each in world.events if each["involvedObject"]["name"] == "g"]
            assert (event["type"], event["reason"]) == ("Warning", "Unschedulable")
            (pod_says,) = world.get(PODS, "g-0")["status"]["conditions"]
            assert (pod_says["status"], pod_says["reason"], pod_says["message"]) == ("False", "Unschedulable", told)
        return [f"{world.phase()}, {world.reason()}: {told}", world.condition()["message"].removeprefix(f"{told} ")]

    golden(block, said)


class Kept(World):
    """A world that notes what is kept of each cycle."""

    kept = ()

    def cycle(self, seconds=0):
        decisions = super().cycle(seconds)
        self.kept = [each for some in groups_of(decisions, self.now) for each in some.decisions]
        assert all(each.at == self.now for each in self.kept)
        return decisions


class Decisions(Story):
    """A story of which it is told what is kept."""

    world_of = Kept

    def seen(self, seconds=0):
        self.world.cycle(seconds)
        for each in self.world.kept:
            where = " ".join(f"{node}={pods}" for node, pods in each.nodes)
            who = f"{each.kind} {each.name}{' for ' if each.other else ''}{each.other} in {each.queue}"
            yield f"{who}: {each.reason}, {each.pods} pods {where}: {each.message}"


@blocks("decisions")
def test_what_is_kept_step_by_step(block, golden):
    golden(block, Decisions(block.given).tell, by_line=True)


def told_in_golden():
    """Return the reasons and what is told of them in the golden files."""
    text = "\n".join(each.read_text() for each in (GOLDEN / "scheduler").glob("**/*.txt"))
    return re.findall(rf"^→ .*?\b({'|'.join(Reason)})[:,] (.*)$", text, re.M)


def test_no_reason_is_left_out():
    """The pods of a group that is not there are told so; it has no status in which a reason could stand."""
    assert set(Reason) == {reason for reason, _ in told_in_golden()} | {Reason.GROUP_NOT_FOUND}


def test_the_gist_has_no_amounts_that_change_as_often_as_others_start_or_end():
    told = [words for _, words in told_in_golden()]
    assert len(told) > 99
    assert [each for each in told if "CPU" in gist(each)] == []


@cases("told, first", {
    "pods exist": ("4 of 8 pods exist; waiting for the others to be created.", "4 of 8 pods exist"),
    "pods fit": ("3 of 8 pods fit; each needs 1 CPU, the most free on one node is 0 CPU (n1).", "of 8 pods fit"),
    "sub-groups fit": (
        "1 of 2 sub-groups fit that must start together; each needs room for 2 pods.",
        "of 2 sub-groups fit that must start together",
    ),
    "a HyperNode": (
        "3 of 4 pods fit at best into one HyperNode of tier 1 (s0), and all must be in one.",
        "of 4 pods fit at best into one HyperNode of tier 1",
    ),
    "room in a queue for some": (
        "Queue a has room for 1 of the 2 pods that must start together: the next needs 2 CPU.",
        "Queue a has room for of the 2 pods that must start together",
    ),
    "a queue's room": ("Waits for room in queue a.b: its minimum needs 2 CPU.", "Waits for room in queue a.b"),
})  # fmt: skip
def test_gist(told, first):
    assert gist(told) == first
