"""The plugin tdm: nodes that are lent out at certain times of the day."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.resources import PODS
from scheduler.policy.zones import DAY_MS, MINUTE_MS, Window
from tests.campaign import examples
from tests.tables import cases

from .world import START, World, configuration

ZONE = "volcano.sh/revocable-zone"
CONF = "actions: enqueue, allocate\ntiers: [{plugins: [{name: tdm, arguments: {%s}%s}]}]"


def at(hour, minute=0, *, day=1):
    return int(datetime.datetime(2027, 1, day, hour, minute, tzinfo=datetime.UTC).timestamp() * 1000)


NOON = at(12)


def world(*objects, now=NOON, zones="tdm.revocable-zone.z: '10:00-14:00'", flags=""):
    one = World(f"node own; node lent {ZONE}=z", configuration(CONF % (zones, flags)), *objects)
    one.now = now
    return one


REVOCABLE = "pod g-0 group=g owned ~revocable-zone=*"
PLAIN = "pod g-0 group=g owned"


@pytest.mark.shows("scheduler 1.3/revocable-zone", "scheduler 3.11 tdm/tdm.revocable-zone.ZONE")
@pytest.mark.shows("scheduler 3.11 tdm/over midnight", "scheduler 3.11 tdm/who", "scheduler 3.11 tdm/preferred")
@cases("one, options, expected", {
    "one that may be revoked, while it is open": (REVOCABLE, {}, "lent"),
    "before it opens": (REVOCABLE, {"now": at(9, 59)}, "own"),
    "when it opens": (REVOCABLE, {"now": at(10)}, "lent"),
    "when it closes": (REVOCABLE, {"now": at(14)}, "own"),
    "one that says nothing": (PLAIN, {}, "own"),
    "the name of a zone is no star": (f"{PLAIN} ~revocable-zone=z", {}, "own"),
    "preemptable by its own word": (f"{PLAIN} ~preemptable=true", {}, "lent"),
    "not preemptable": (f"{PLAIN} ~preemptable=false", {}, "own"),
    "over midnight": (REVOCABLE, {"zones": "tdm.revocable-zone.z: '22:00-06:00'", "now": at(3)}, "lent"),
    "without a time": (REVOCABLE, {"zones": "tdm.revocable-zone.other: '00:00-23:59'"}, "own"),
    "of a time that is none": (REVOCABLE, {"zones": "tdm.revocable-zone.z: noon"}, "own"),
    "all day": (REVOCABLE, {"zones": "tdm.revocable-zone.z: '8:00-8:00'"}, "lent"),
    "switched off": (PLAIN, {"flags": ", enablePredicate: false"}, "lent"),
    "pods of one group that differ": (f"{REVOCABLE}; pod g-1 group=g owned", {}, "own"),
})  # fmt: skip
def test_where_a_pod_goes(one, options, expected):
    here = world("group g 1/0x1", one, "pod r @own" if expected == "own" else "", **options)
    here.cycle()
    assert set(here.bound.values()) == {expected}


@cases("one, now, words, wake", {
    "closed": (REVOCABLE, at(9), "1 is in the revocable zone z, which is closed now.", at(10)),
    "for others": (PLAIN, at(12), "1 is in the revocable zone z, which is for pods that may be revoked.", at(14)),
})  # fmt: skip
def test_why_pods_wait_and_until_when(one, now, words, wake):
    here = world("-node own; group g 1/0x1", one, now=now)
    decisions = here.cycle()
    assert (here.reason(), here.told()) == ("RevocableZone", f"No node takes these pods now: {words}")
    assert decisions.wake == wake


def test_a_zone_that_opens_takes_those_who_waited():
    here = world("-node own; group g 1/0x1", REVOCABLE, now=at(9))
    here.now = here.cycle().wake
    here.cycle()
    assert here.where() == {"g-0": "lent"}


def lent(says="", count=3, **options):
    """A group of pods on the lent node, and one on the other."""
    pods = f"pod g-0..{count - 1} group=g owned ~revocable-zone=* @lent; pod g-own group=g owned ~revocable-zone=* @own"
    return world(f"group g 1/0x1 phase=Running {says}", pods, **options)


@pytest.mark.shows("scheduler 3.11 tdm/tdm.evict.period", "scheduler 3.11 tdm/jdb")
@cases("says, rounds", {
    "one at a time": ("", [1, 1, 1]),
    "so many may be absent": ("jdb-max-unavailable=2", [2, 1]),
    "a share may be absent": ("jdb-max-unavailable=50%", [2, 1]),
    "so many must be there": ("jdb-min-available=2", [2]),
    "all must be there": ("jdb-min-available=4", []),
})  # fmt: skip
def test_when_a_zone_closes_its_pods_end_some_at_a_time(says, rounds):
    here = lent(says, now=at(14))
    found = []
    for _ in range(5):
        before = here.now
        decisions = here.cycle()
        assert all(each.pod.node == "lent" for each in decisions.evictions)
        assert here.cycle().evictions == []  # not again before the period is over
        if decisions.evictions:
            found.append(len(decisions.evictions))
            here.gone()
        here.now = before + MINUTE_MS
    assert found == rounds


@cases("plugins, ended", {"pdb is listed": (", {name: pdb}", ["g-0", "g-1"]), "it is not": ("", ["g-1", "g-2"])})
def test_where_pdb_is_listed_no_pod_ends_that_a_budget_protects(plugins, ended):
    here = lent("jdb-max-unavailable=2", now=at(14))
    here.put(configuration(CONF % ("tdm.revocable-zone.z: '10:00-14:00'", "}" + plugins.rstrip("}"))))
    here.put("pod g-2 group=g owned ~revocable-zone=* @lent app=kept ready; budget b minAvailable=1 +app=kept")
    here.cycle()
    assert here.going() == ended


def test_pods_are_told_why_they_end():
    here = lent(count=1, now=at(14))
    here.cycle()
    (told,) = [each["message"] for each in here.events if each["reason"] == "Evict"]
    assert told == "Its node lent is in the revocable zone z, which is closed now."
    (condition,) = here.get(PODS, "g-0")["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "RevocableZoneClosed")


@cases("options", {
    "while it is open": {"now": at(13, 59)},
    "switched off": {"now": at(14), "flags": ", enabledVictim: false"},
})  # fmt: skip
def test_nobody_ends(options):
    assert lent(**options).cycle().evictions == []


@pytest.mark.shows("scheduler 3.11 tdm/tdm.evict.period")
def test_it_is_looked_again_when_the_zone_closes_and_then_each_period():
    here = lent(now=at(12), zones="tdm.revocable-zone.z: '10:00-14:00', tdm.evict.period: 5m")
    wakes = []
    for _ in range(5):
        here.now = here.cycle().wake
        wakes.append(here.now)
        here.gone()
    assert wakes == [at(14), at(14, 5), at(14, 10), at(14, 15), at(10, day=2)]


def test_who_must_stay_does_and_is_asked_after_no_more_often():
    staying = f"{REVOCABLE} ~preemptable=false @lent"
    decisions = world("group g 1/0x1 phase=Running", staying, now=at(14)).cycle()
    assert decisions.evictions == []
    assert decisions.wake == at(14, 1)


minutes = st.integers(0, 24 * 60 - 1)


@pytest.mark.shows("scheduler 3.11 tdm/over midnight")
@examples(300)
@given(minutes, minutes, st.integers(0, 3 * DAY_MS))
def test_a_window_is_what_a_clock_on_the_wall_says(start, end, passed):
    window, now = Window(start * MINUTE_MS, end * MINUTE_MS), START + passed
    clock = datetime.datetime.fromtimestamp(now / 1000, tz=datetime.UTC)
    shown = clock.hour * 60 + clock.minute
    expected = start <= shown < end if start < end else shown >= start or shown < end
    assert window.is_open(now) == expected
    change = window.changes(now)
    assert now < change <= now + DAY_MS
    if start != end:
        assert window.is_open(change) != expected
        assert window.is_open(change - 1) == expected
