"""Random clusters at rest: nobody waits for what nobody uses (`scheduler.idle`), and whoever waits is told amounts that are so."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.store import Change
from kube.meta import timestamp
from kube.resources import POD_GROUPS, PODS
from kube.usage import VOLCANO_ALONE
from proof.invariants import amounts, idle
from proof.invariants.invariant import Broken
from proof.invariants.picture import Picture
from scheduler.cycle import cycle, idle_room
from scheduler.cycle.cycle import _Cycle
from scheduler.cycle.reservations import Reservations
from scheduler.engine import sentence
from scheduler.engine.accounts import Account
from scheduler.engine.overlap import Overlap
from scheduler.engine.place import Placer
from scheduler.idle import judge
from scheduler.idle.reader import KINDS, WAITING, Reader
from scheduler.snapshot.snapshot import Snapshot

from .world import World, group, keeping, node, pod, priority_class, queue

PARENTS = {"default": "root", "team": "root", "a": "team", "b": "team", "vip": "root", "root": ""}
LEAVES = ("default", "a", "b", "vip")
QUIET = 5  # cycles by which nothing is changed: more than the five minutes after which room is kept


class Cluster(World):
    """A world with a controller that makes the pods of groups that were let in. Those that are evicted go, and are made again."""

    def __init__(self, nodes, queues=None, jobs=()):
        tree = [queue(name, parent=parent, **(queues or {}).get(name, {})) for name, parent in PARENTS.items()]
        made = [node(f"n{number}", **each) for number, each in enumerate(nodes)]
        super().__init__(priority_class("high", 9), *made, *tree)
        self.jobs = {}  # name → how many pods are made, and what each of them asks for
        for number, job in enumerate(jobs):
            self.ask(f"j{number:02}", **job)

    def ask(self, name, *, where="default", pods=1, cpu=1, high=False, zone="", never=False, bare=False):
        """Submit a job. A zone may be none that a node has; never: one of its pods is not made; bare: it says not what it needs in all."""
        spec = {"nodeSelector": {"zone": zone}} if zone else {}
        self.jobs[name] = pods - never, {"cpu": str(cpu), **spec}
        amounts = {"cpu": str(pods * cpu), "pods": str(pods)}
        again = {"requests.cpu": amounts["cpu"], "count/pods": amounts["pods"]}  # as quotas spell it
        asked = {} if bare else {"minResources": {**amounts, **again}}
        asked["minTaskMember"] = {"main": pods}
        urgency = {"priorityClassName": "high"} if high else {}
        created = timestamp(self.now)
        self.put(group(name, pods, queue=where, phase="Pending", created=created, **asked, **urgency))

    def finish(self, name):
        """Let a job end."""
        for number in range(self.jobs.pop(name)[0]):
            if ("pods", "ns", f"{name}-{number}") in self.objects:
                self.remove(PODS, f"{name}-{number}")
        self.remove(POD_GROUPS, name)

    def turn(self, seconds):
        """Make pods, and let a cycle decide after some seconds; tell whether anything came of it."""
        before = json.dumps([*self.objects.values()])
        for name, (pods, spec) in self.jobs.items():
            is_in = self.status(name).get("phase") != "Pending"
            for number in range(pods) if is_in else ():
                if ("pods", "ns", f"{name}-{number}") not in self.objects:
                    kind, made = pod(f"{name}-{number}", name, role="main", **spec)
                    made["metadata"]["creationTimestamp"] = timestamp(self.now)
                    self.put((kind, made))
        self.cycle(seconds)
        self.gone()
        return before != json.dumps([*self.objects.values()])

    def rest(self):
        """Go on for some minutes, and judge whenever nothing changes."""
        quiet = 0
        for _ in range(40):
            quiet = 0 if self.turn(100 if quiet else 11) else quiet + 1
            if quiet:
                picture = self.judge()
            if quiet == QUIET:
                self.judge_by_the_watch(idle.world_of(picture))
                return

    def judge(self):
        """Ask the naive checker; return what it was told from."""
        picture = Picture()
        for revision, ((kind, namespace, name), obj) in enumerate(self.objects.items(), 1):
            known = {"uid": name, "resourceVersion": str(revision), **obj["metadata"]}
            body = json.dumps({**obj, "metadata": known}).encode()
            picture.take(Change(revision, kind, namespace, name, name, "ADDED", self.now, body))
        for invariant in (*idle.INVARIANTS, *amounts.INVARIANTS):
            invariant(picture).settle(self.now)
        return picture

    def judge_by_the_watch(self, read):
        """Ask the checker what it says of the same cluster as the product reads it."""
        known = Reader(1, VOLCANO_ALONE, heeds_claims=False)
        for (kind, namespace, name), obj in self.objects.items():
            if kind in {each.id for each in KINDS}:
                body = json.dumps(obj).encode()
                known.take(Change(1, kind, namespace, name, name, "ADDED", self.now, body), gone=False)
        world = known.world()
        assert world.nodes == read.nodes
        assert {key: group._replace(ready=(), pods=()) for key, group in world.groups.items()} == {
            key: group._replace(ready=(), pods=()) for key, group in read.groups.items() if group.phase in WAITING
        }
        told = [group for group in world.groups.values() if judge.is_about_room(world, group)]
        assert [*judge.startable(world, told)] == []


def zoned(cpu, zone):
    return {"cpu": str(cpu), "pods": 99, "labels": {"zone": zone}}


some_nodes = st.lists(st.builds(zoned, st.integers(1, 8), st.sampled_from("ab")), min_size=1, max_size=4)
some_limits = st.sampled_from([{}, {}, {"capability": {"cpu": "4"}}, {"capability": {"cpu": "9"}}])
some_kept = st.sampled_from([{}, {}, keeping(1), keeping(3)])
some_queues = st.fixed_dictionaries(
    {name: st.builds(lambda a, b: {**a, **b}, some_limits, some_kept) for name in ("a", "b", "vip")}
)
some_jobs = st.lists(
    st.fixed_dictionaries({
        "where": st.sampled_from(LEAVES), "pods": st.integers(1, 4), "cpu": st.integers(1, 9),
        "high": st.sampled_from([False, False, True]), "zone": st.sampled_from(["", "", "", "a", "typo"]),
        "never": st.sampled_from([False, False, False, True]), "bare": st.booleans(),
    }),
    min_size=1, max_size=9,
)  # fmt: skip
relaxed = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@relaxed
@given(some_nodes, some_queues, some_jobs, some_jobs, st.lists(st.integers(0, 17), max_size=6))
def test_nobody_waits_for_what_nobody_uses(nodes, queues, jobs, later, ends):
    cluster = Cluster(nodes, queues, jobs)
    cluster.rest()
    for number, job in enumerate(later):
        cluster.ask(f"k{number:02}", **job)
    cluster.rest()
    for name in sorted(cluster.jobs):
        if int(name[1:]) in ends:
            cluster.finish(name)
    cluster.rest()


def job(pods=1, cpu=1, where="default", **more):
    return {"where": where, "pods": pods, "cpu": cpu, **more}


A, B, SMALL_B = zoned(8, "a"), zoned(8, "b"), zoned(3, "b")
FULL_A = (job(1, 8, zone="a"), job(1, 8, zone="a"), job(1, 8, zone="a"))  # the first runs, the others wait for its node


def sums_alone(put):
    put(_Cycle, "may_start", lambda self, group: True)
    put(_Cycle, "entrants", lambda self, ordered, answers: [])


def no_second_look(put):
    put(_Cycle, "entrants", lambda self, ordered, answers: [])


def pods_are_always_about_to_be_made(put):
    for module in (cycle, idle_room):
        put(module, "made_until", lambda group, now: now + 1)


def second_look_ends_with_the_first_who_does_not_fit(put):
    take = idle_room._Room.take
    put(idle_room._Room, "take", lambda self, group: not self._failed and take(self, group))


def kept_room_counts_beside_pods(put):
    put(Overlap, "take_off", lambda self, on: None)


def room_is_kept_on_every_node(put):
    resume = Reservations.resume

    def resumed(self):
        resume(self)
        if self.standing:
            np.clip(self._cluster.free, None, 0, out=self._cluster.free)

    put(Reservations, "resume", resumed)


def guarantee_counts_beside_its_use(put):
    def hold(self, column, change):
        for account in self.line:
            account.held[column] += change

    put(Account, "_hold", hold)


def ceilings_bind_queues_beside(put):
    rooms = Account.rooms

    def narrow(self, column):
        for account, room in rooms(self, column):
            beside = [each for each in account.below if each not in self.line]
            yield account, min([room, *(max(each.ceiling[column] - each.held[column], 0) for each in beside)])

    put(Account, "rooms", narrow)


def every_queue_is_first_in_first_out(put):
    begin = Account.__init__
    put(Account, "__init__", lambda self, *args, **named: begin(self, *args, **{**named, "fifo": True}))


def large_gangs_are_not_tried(put):
    may_fit = Placer._may_fit
    put(Placer, "_may_fit", lambda self, gang: sum(b.count for b in gang.bins) < 3 and may_fit(self, gang))


def pods_that_are_gone_count(put):
    use = Snapshot._use
    put(Snapshot, "_use", lambda self, pod, sign: use(self, pod, sign) if sign > 0 else None)


@pytest.mark.parametrize(
    ("plant", "case"),
    [
        (sums_alone, ([A, A], {}, [job(4, 3, zone="typo")], [job(1, 8, "vip")], [])),
        (sums_alone, ([A, A, A], {}, [job(3, 5, zone="typo"), job(2, 4, never=True)], [job(1, 8, "vip")], [])),
        (no_second_look, ([A, B], {}, FULL_A, [job(1, 8)], [])),
        (pods_are_always_about_to_be_made, ([A, B], {}, [job(4, 4, never=True)], [job(1, 8)], [])),
        (second_look_ends_with_the_first_who_does_not_fit, ([A, B], {}, FULL_A, [job(2, 8), job(1, 8)], [])),
        (kept_room_counts_beside_pods, ([A, A, SMALL_B], {"vip": keeping(1)}, [job(2, 5, zone="a"), job(2, 8)], [job(1, 2)], [])),
        (room_is_kept_on_every_node, ([A, A, SMALL_B], {}, [job(2, 5, zone="a"), job(2, 8)], [job(1, 2)], [])),
        (guarantee_counts_beside_its_use, ([A], {"vip": keeping(3)}, [job(1, 3, "vip")], [job(1, 5)], [])),
        (ceilings_bind_queues_beside, ([A, A], {"vip": {"capability": {"cpu": "4"}}}, [job(1, 4, "vip")], [job(1, 8)], [])),
        (every_queue_is_first_in_first_out, ([A, SMALL_B], {}, FULL_A[:2], [job(1, 2)], [])),
        (large_gangs_are_not_tried, ([A], {}, [job(3, 2)], [], [])),
        (pods_that_are_gone_count, ([A], {"vip": {"capability": {"cpu": "4"}}}, [job(1, 4, "vip")], [job(), job(1, 4, "vip")], [0])),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)  # fmt: skip
def test_it_finds_what_kept_clusters_idle_and_its_kin(plant, case, monkeypatch):
    ask = test_nobody_waits_for_what_nobody_uses.hypothesis.inner_test
    ask(*case)
    plant(monkeypatch.setattr)
    with pytest.raises(Broken, match="there is idle room"):
        ask(*case)


def test_it_finds_amounts_that_are_not_so(monkeypatch):
    """As once was told: what only those pods need that do not fit, beside what those leave that would."""
    case = [A], {"vip": keeping(2)}, [job(1, 1), job(3, 2, bare=True)], [], []
    ask = test_nobody_waits_for_what_nobody_uses.hypothesis.inner_test
    ask(*case)
    monkeypatch.setattr(sentence, "_part_that_fits", lambda cause: "")
    with pytest.raises(Broken, match="waiting names true amounts"):
        ask(*case)
