"""What stands of kept room in the status of a group, whoever wrote it; who gets it: tests/golden/scheduler/stories/reservations.txt."""

import copy

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kube.meta import timestamp
from kube.resources import POD_GROUPS
from kube.volcano import reserved_room
from kube.volcano.reserved_room import Reservation
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
    assert reserved.reservation_of(reserved.written(reservation, START)) == reservation
    conditions = reserved.ended(reservation, START, in_vain=True)
    assert reserved.reservation_of(conditions) is None
    assert reserved.given_back_of(conditions) == reserved.ReleasedReservation(START, reservation.hold)


def test_a_reservation_that_an_earlier_version_wrote_in_words_alone_is_planned_anew_or_ends():
    here = World(FULL, "group big 2x500m ago=300")

    def forget():
        big = copy.deepcopy(here.get(POD_GROUPS, "big"))
        big["status"]["conditions"] = [
            each for each in big["status"]["conditions"] if each["type"] != reserved_room.DATA
        ]
        here.put((POD_GROUPS, big))

    here.cycle()
    forget()
    assert not here.snapshot.groups.reserved
    here.cycle(60)
    assert here.snapshot.groups.reserved["ns/big"].made == here.now
    forget()
    here.put("-pod a-0")
    here.cycle()
    assert here.condition("big", reserved_room.CONDITION)["reason"] == reserved.ENDED


@given(st.text(max_size=80))
def test_what_somebody_else_wrote_there_raises_nothing(text):
    for each in reserved.written(Reservation(START, 1000), START):
        reserved.reservation_of([replace(each, message=text)])
        reserved.given_back_of([replace(each, message=text, status="False", reason=reserved.GIVEN_BACK)])


@cases("message", {
    "more pods than there are numbers for": f'{{"made":0,"hold":3600000,"places":[[["n0",{10**30}]]]}}',
    "less than no pods": '{"made":0,"hold":3600000,"places":[[["n0",-4]]]}',
    "without end": f'{{"made":{START},"hold":{10**13},"places":[[["n0",1]]]}}',
})  # fmt: skip
def test_a_reservation_that_somebody_made_up_stops_no_cycle(message):
    """Whoever may write the status of a group in one namespace writes something there."""
    here = World(FULL, "group big 1x4 ago=300; queue b; group fine 1x1 queue=b; node n2 1 pods:99")
    made = copy.deepcopy(here.get(POD_GROUPS, "big"))
    condition = {"type": reserved_room.DATA, "status": "True", "reason": reserved.KEPT, "message": message}
    made["status"]["conditions"] = [condition | {"lastTransitionTime": timestamp(START)}]
    here.put((POD_GROUPS, made))
    here.cycle()
    assert "fine-0" in here.where()
    assert reserved.reservation_of(here.snapshot.groups["ns/big"].conditions).hold <= LONGEST_MS
