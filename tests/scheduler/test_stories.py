"""What comes of situations, and in which words it is told: golden files in the notation of tests/scheduler/notation.py."""

import copy
import re

import pytest
from msgspec.structs import replace

from kube.resources import POD_GROUPS, PODS
from scheduler.engine.cause import Arrangement, Cause, Reason
from scheduler.reasons import message
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
        explanation = world.message_of()
        if not explanation:
            return [world.phase()]
        if "group g 4x2" in text:
            assert world.placed() == ""
            (event,) = [each for each in world.events if each["involvedObject"]["name"] == "g"]
            assert (event["type"], event["reason"]) == ("Warning", "Unschedulable")
            (pod_says,) = world.get(PODS, "g-0")["status"]["conditions"]
            assert (pod_says["status"], pod_says["reason"], pod_says["message"]) == (
                "False",
                "Unschedulable",
                explanation,
            )
        return [
            f"{world.phase()}, {world.reason()}: {explanation}",
            world.condition()["message"].removeprefix(f"{explanation} "),
        ]

    golden(block, said)


class RecordingWorld(World):
    """A world that notes what is kept of each cycle."""

    recorded = ()

    def cycle(self, seconds=0):
        decisions = super().cycle(seconds)
        self.recorded = [each for some in groups_of(decisions, self.now) for each in some.decisions]
        assert all(each.at == self.now for each in self.recorded)
        return decisions


class Decisions(Story):
    """A story of which it is told what is kept."""

    world_of = RecordingWorld

    def seen(self, seconds=0):
        self.world.cycle(seconds)
        for each in self.world.recorded:
            where = " ".join(f"{node}={pods}" for node, pods in each.nodes)
            who = f"{each.kind} {each.name}{' for ' if each.other else ''}{each.other} in {each.queue}"
            yield f"{who}: {each.reason}, {each.pods} pods {where}: {each.message}"


@blocks("decisions")
def test_what_is_kept_step_by_step(block, golden):
    golden(block, Decisions(block.given).tell, by_line=True)


def golden_messages():
    """Return the reasons and what is told of them in the golden files."""
    text = "\n".join(each.read_text() for each in (GOLDEN / "scheduler").glob("**/*.txt"))
    return re.findall(rf"^→ .*?\b({'|'.join(Reason)})[:,] (.*)$", text, re.M)


def test_no_reason_is_left_out():
    """The pods of a group that is not there are told so; it has no status in which a reason could stand."""
    assert set(Reason) == {reason for reason, _ in golden_messages()} | {Reason.GROUP_NOT_FOUND}


SHORT = Cause(Reason.NOT_ENOUGH_RESOURCES, fit=1, needed=4, resource="cpu", requested=2000, free=500, free_node="a")
ARRANGED = Cause(Reason.NETWORK_TOPOLOGY, fit=1, needed=4, arrangement=Arrangement(highest=1, hyper_node="rack-a"))


@cases("cause, other, is_immediate", {
    "more pods fit": (SHORT, {"fit": 3}, False),
    "another resource is short": (SHORT, {"resource": "memory", "free": 1, "free_node": "b"}, False),
    "it has more pods": (SHORT, {"needed": 8}, True),
    "more of its pods have nodes": (replace(SHORT, started=True), {"fit": 3}, True),
    "more of its pods exist": (replace(SHORT, reason=Reason.NOT_ENOUGH_TASKS), {"fit": 3}, True),
    "another HyperNode has most room": (ARRANGED, {"fit": 2, "arrangement": Arrangement(1, hyper_node="b")}, False),
    "others go first": (replace(SHORT, reason=Reason.ROOM_KEPT), {"keeping": (("second", 1),)}, True),
})  # fmt: skip
def test_of_a_cause_only_other_amounts_wait(cause, other, is_immediate):
    new = replace(cause, **other)
    assert (message.gist(cause) != message.gist(new)) == is_immediate
    assert message.gist(message.read(message.data(new))) == message.gist(new)


def test_the_cause_stands_as_data_while_pods_wait_also_beyond_a_minimum():
    here = World("node n0 1; queue default; group g 1/2x1; group none 0/2x9")
    here.cycle()
    assert (here.cause("g").started, here.cause("none").reason) == (True, Reason.NEVER_FITS)
    written = here.writes
    here.cycle()
    assert here.writes == written
    here.put("node n1 9; node n2 9; node n3 9")
    here.cycle()
    assert {here.cause("g"), here.condition("g", message.CAUSE)} == {None}


def test_a_group_with_a_minimum_of_none_says_no_longer_what_it_waited_for():
    here = World("node n0 1; queue default; group g 0/2x9; conf enqueue")
    here.cycle()
    assert here.reason("g") == Reason.NOT_ALLOCATING
    here.put("conf enqueue, allocate")
    here.cycle()
    assert (here.reason("g"), here.cause("g").reason) == ("", Reason.NEVER_FITS)


@cases("number, theirs, expected", {
    "words of another scheduler": (0, {"message": "2/2 tasks …", "transitionID": "theirs"}, "2/2 tasks …"),
    "data of a later version": (1, {"message": '{"reason":"Later"}'}, "This can never start: "),
})  # fmt: skip
def test_what_others_wrote_since_has_no_cause_and_gives_way_once(number, theirs, expected):
    here = World("node n0 1; queue default; group g 2x1")
    here.cycle()
    group = copy.deepcopy(here.get(POD_GROUPS, "g"))
    group["status"]["conditions"][number] |= theirs
    here.put((POD_GROUPS, group))
    assert (here.cause("g"), here.message_of("g")[: len(expected)]) == (None, expected)
    here.cycle(60)
    assert here.cause("g").reason == Reason.NEVER_FITS
    written = here.writes
    here.cycle(60)
    assert here.writes == written
