"""What stands of kept room in the status of a group, whoever wrote it; who gets it: tests/golden/scheduler/stories/reservations.txt."""

from __future__ import annotations

import copy
import dataclasses

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kube.meta import timestamp
from kube.resources import POD_GROUPS
from kube.volcano.kept_room import Reservation
from scheduler.gangs import reserved
from scheduler.policy.arguments import LONGEST_MS
from tests.tables import cases

from .world import START, World

FULL = "node n0..1 pods:99; queue default reclaimable=false; group a 4x1 @n0; group b 4x1 @n1"
some_places = st.lists(
    st.lists(st.tuples(st.from_regex(r"[a-z0-9]([-.a-z0-9]{0,20}[a-z0-9])?", fullmatch=True), st.integers(1, 9999)), max_size=3).map(tuple),
    max_size=3,
).map(tuple)  # fmt: skip
some_times = st.integers(0, 4_000_000_000_000)
some_amounts = st.dictionaries(st.sampled_from(("cpu", "memory", "nvidia.com/gpu")), st.integers(1, 10**12), max_size=3)
some_requests = st.lists(some_amounts.map(lambda each: tuple(sorted(each.items()))), max_size=3).map(tuple)
held = st.integers(1, 10**12)


@given(
    st.builds(Reservation, some_times, held, st.none() | some_times, some_places, some_requests, st.none() | some_times)
)
def test_what_is_written_is_read(reservation):
    if not any(reservation.requests):
        reservation = dataclasses.replace(reservation, requests=())
    again = reserved.reservation_of([reserved.written(reservation, START)])
    if any(reservation.places):
        assert again == reservation
    else:
        assert again == dataclasses.replace(reservation, places=again.places, requests=again.requests)
        assert not any(again.places)


def test_how_much_each_pod_asks_for_is_written_where_it_was_not():
    """As an earlier version wrote it."""
    here = World(FULL, "group big 2x500m ago=300")
    here.cycle()
    made = copy.deepcopy(here.get(POD_GROUPS, "big"))
    (condition,) = (each for each in made["status"]["conditions"] if each["type"] == reserved.TYPE)
    assert condition["message"] == "Kept for 1h0m0s at most; on n0: 2; each cpu: 500m"
    condition["message"] = condition["message"].partition("; each")[0]
    here.put((POD_GROUPS, made))
    here.cycle()
    assert here.condition("big", reserved.TYPE)["message"].endswith("; on n0: 2; each cpu: 500m")


@given(st.text(max_size=80))
def test_what_somebody_else_wrote_there_raises_nothing(text):
    condition = reserved.written(Reservation(START, 1000), START)
    reserved.reservation_of([replace(condition, message=text)])
    reserved.given_back_of([replace(condition, message=text, status="False", reason=reserved.GIVEN_BACK)])


@cases("message", {
    "more pods than there are numbers for": f"Kept for 1h0m0s at most; on n0: {10**30}",
    "less than no pods": "Kept for 1h0m0s at most; on n0: -4",
    "without end": f"Kept for {10**30}h at most; on n0: 1",
})  # fmt: skip
def test_a_reservation_that_somebody_made_up_stops_no_cycle(message):
    """Whoever may write the status of a group in one namespace writes something there."""
    here = World(FULL, "group big 1x4 ago=300; queue b; group fine 1x1 queue=b; node n2 1 pods:99")
    made = copy.deepcopy(here.get(POD_GROUPS, "big"))
    condition = {"type": reserved.TYPE, "status": "True", "reason": reserved.KEPT, "message": message}
    made["status"]["conditions"] = [condition | {"lastTransitionTime": timestamp(START)}]
    here.put((POD_GROUPS, made))
    here.cycle()
    assert "fine-0" in here.where()
    assert reserved.reservation_of(here.snapshot.groups["ns/big"].conditions).hold <= LONGEST_MS
