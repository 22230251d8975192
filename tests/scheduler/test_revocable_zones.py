"""The plugin tdm: nodes that are lent out at certain times of the day."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import resources
from scheduler.engine.message import people
from scheduler.policy.zones import DAY_MS, MINUTE_MS, Window
from tests.campaign import examples
from tests.tables import cases

from .world import START, World, configuration, group, made, node, pod, queue

ZONE = "volcano.sh/revocable-zone"
CONF = "actions: enqueue, allocate\ntiers: [{plugins: [{name: tdm, arguments: {%s}%s}]}]"


def at(hour, minute=0, *, day=1):
    return int(datetime.datetime(2027, 1, day, hour, minute, tzinfo=datetime.UTC).timestamp() * 1000)


NOON = at(12)


def world(*objects, now=NOON, zones="tdm.revocable-zone.z: '10:00-14:00'", flags=""):
    lent = node("lent", labels={ZONE: "z"})
    one = World(node("own"), lent, queue(), configuration(CONF % (zones, flags)), *objects)
    one.now = now
    return one


def revocable(name, of="g", *, said="*", **more):
    kind, obj = made(name, of, **more)
    obj["metadata"]["annotations"][ZONE] = said
    return kind, obj


def preemptable(name, value):
    kind, obj = made(name, "g")
    obj["metadata"]["annotations"]["volcano.sh/preemptable"] = value
    return kind, obj


@pytest.mark.shows("scheduler 1.3/revocable-zone", "scheduler 3.11 tdm/tdm.revocable-zone.ZONE")
@pytest.mark.shows("scheduler 3.11 tdm/over midnight", "scheduler 3.11 tdm/who", "scheduler 3.11 tdm/preferred")
@cases("one, options, expected", {
    "one that may be revoked, while it is open": (revocable("g-0"), {}, "lent"),
    "before it opens": (revocable("g-0"), {"now": at(9, 59)}, "own"),
    "when it opens": (revocable("g-0"), {"now": at(10)}, "lent"),
    "when it closes": (revocable("g-0"), {"now": at(14)}, "own"),
    "one that says nothing": (made("g-0", "g"), {}, "own"),
    "the name of a zone is no star": (revocable("g-0", said="z"), {}, "own"),
    "preemptable by its own word": (preemptable("g-0", "true"), {}, "lent"),
    "not preemptable": (preemptable("g-0", "false"), {}, "own"),
    "over midnight": (revocable("g-0"), {"zones": "tdm.revocable-zone.z: '22:00-06:00'", "now": at(3)}, "lent"),
    "without a time": (revocable("g-0"), {"zones": "tdm.revocable-zone.other: '00:00-23:59'"}, "own"),
    "of a time that is none": (revocable("g-0"), {"zones": "tdm.revocable-zone.z: noon"}, "own"),
    "all day": (revocable("g-0"), {"zones": "tdm.revocable-zone.z: '8:00-8:00'"}, "lent"),
    "switched off": (made("g-0", "g"), {"flags": ", enablePredicate: false"}, "lent"),
})  # fmt: skip
def test_where_a_pod_goes(one, options, expected):
    full = pod("r", "", "1", node="own" if expected == "own" else "", phase="Running")
    here = world(group(), one, *([full] if expected == "own" else []), **options)
    here.cycle()
    assert here.where()["g-0"] == expected


@pytest.mark.shows("scheduler 3.11 tdm/who")
def test_pods_of_one_group_that_differ_stay_on_own_nodes():
    here = world(group(minimum=2), revocable("g-0"), made("g-1", "g"))
    here.cycle()
    assert set(here.where().values()) == {"own"}


@cases("one, now, words, wake", {
    "closed": (
        revocable("g-0"), at(9), "No node takes these pods now: 1 is in the revocable zone z, which is closed now.",
        at(10),
    ),
    "for others": (
        made("g-0", "g"), at(12),
        "No node takes these pods now: 1 is in the revocable zone z, which is for pods that may be revoked.", at(14),
    ),
})  # fmt: skip
def test_why_pods_wait_and_until_when(one, now, words, wake):
    here = world(group(), one, now=now)
    here.remove(resources.NODES, "own")
    decisions = here.cycle()
    assert people(here.condition()["message"]) == words
    assert here.condition()["reason"] == "RevocableZone"
    assert decisions.wake == wake


def test_a_zone_that_opens_takes_those_who_waited():
    here = world(group(), revocable("g-0"), now=at(9))
    here.remove(resources.NODES, "own")
    here.now = here.cycle().wake
    here.cycle()
    assert here.where() == {"g-0": "lent"}


def lent(*annotations, count=3, **options):
    """A group of pods on the lent node, and one on the other."""
    kind, of = group(minimum=1, phase="Running")
    of["metadata"]["annotations"] = dict(annotations)
    pods = [revocable(f"g-{n}", node="lent", phase="Running") for n in range(count)]
    return world((kind, of), *pods, revocable("g-own", node="own", phase="Running"), **options)


@pytest.mark.shows("scheduler 3.11 tdm/tdm.evict.period", "scheduler 3.11 tdm/jdb")
@cases("annotations, rounds", {
    "one at a time": ([], [1, 1, 1]),
    "so many may be absent": ([("volcano.sh/jdb-max-unavailable", "2")], [2, 1]),
    "a share may be absent": ([("volcano.sh/jdb-max-unavailable", "50%")], [2, 1]),
    "so many must be there": ([("volcano.sh/jdb-min-available", "2")], [2]),
    "all must be there": ([("volcano.sh/jdb-min-available", "4")], []),
})  # fmt: skip
def test_when_a_zone_closes_its_pods_end_some_at_a_time(annotations, rounds):
    here = lent(*annotations, now=at(14))
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


@pytest.mark.parametrize(("plugins", "ended"), [(", {name: pdb}", ["g-0", "g-1"]), ("", ["g-1", "g-2"])])
def test_where_pdb_is_listed_no_pod_ends_that_a_budget_protects(plugins, ended):
    here = lent(("volcano.sh/jdb-max-unavailable", "2"), now=at(14))
    here.put(configuration(CONF % ("tdm.revocable-zone.z: '10:00-14:00'", "}" + plugins.rstrip("}"))))
    kept = here.get(resources.PODS, "g-2")
    kept["metadata"]["labels"] = {"app": "kept"}
    kept["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    budget = {
        "metadata": {"name": "b", "namespace": "ns"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
    }
    here.put((resources.PODS, kept), (resources.DISRUPTION_BUDGETS, budget))
    here.cycle()
    assert here.going() == ended


def test_pods_are_told_why_they_end():
    here = lent(count=1, now=at(14))
    here.cycle()
    assert [each["message"] for each in here.events if each["reason"] == "Evict"] == [
        "Its node lent is in the revocable zone z, which is closed now."
    ]
    (condition,) = here.get(resources.PODS, "g-0")["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "RevocableZoneClosed")


@cases("options", {
    "while it is open": {"now": at(13, 59)},
    "switched off": {"flags": ", enabledVictim: false"},
})  # fmt: skip
def test_nobody_ends(options):
    here = lent(**{"now": at(14)} | options)
    assert here.cycle().evictions == []


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
    kind, staying = revocable("g-0", node="lent", phase="Running")
    staying["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    here = world(group(phase="Running"), (kind, staying), now=at(14))
    decisions = here.cycle()
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
