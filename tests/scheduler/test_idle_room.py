"""Random clusters at rest: nobody waits for what nobody uses (`scheduler.idle`), and is told true amounts."""

import json

from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from cluster.store import Change
from kube.meta import timestamp
from kube.resources import POD_GROUPS, PODS
from kube.usage import VOLCANO_ALONE
from proof.invariants import amounts, idle
from proof.invariants.picture import Picture
from scheduler.idle import judge
from scheduler.idle.reader import KINDS, WAITING, Reader
from tests.campaign import examples

from .world import World, group, keeping, node, pod, priority_class, queue

PARENTS = {"default": "root", "team": "root", "a": "team", "b": "team", "vip": "root", "root": ""}
LEAVES = ("default", "a", "b", "vip")
QUIET = 5  # cycles by which nothing is changed: more than the five minutes after which room is kept


class Cluster(World):
    """A world with a controller that makes the pods of groups that were let in, also of those that were evicted."""

    def __init__(self, nodes, queues=None, jobs=()):
        tree = [queue(name, parent=parent, **(queues or {}).get(name, {})) for name, parent in PARENTS.items()]
        made = [node(f"n{number}", **each) for number, each in enumerate(nodes)]
        super().__init__(priority_class("high", 9), *made, *tree)
        self.jobs = {}  # name → how many pods are made, and what each of them asks for
        for number, job in enumerate(jobs):
            self.ask(f"j{number:02}", **job)

    def ask(self, name, *, where="default", pods=1, cpu=1, high=False, zone="", never=False, bare=False):
        """Submit a job. zone: perhaps of no node; never: one of its pods is not made; bare: it states no amounts."""
        self.jobs[name] = pods - never, {"cpu": str(cpu), **({"nodeSelector": {"zone": zone}} if zone else {})}
        amounts = {"cpu": str(pods * cpu), "pods": str(pods)}
        amounts |= {"requests.cpu": amounts["cpu"], "count/pods": amounts["pods"]}  # as quotas spell it
        requirements = {"minTaskMember": {"main": pods}, **({} if bare else {"minResources": amounts})}
        urgency = {"priorityClassName": "high"} if high else {}
        created = timestamp(self.now)
        self.put(group(name, pods, queue=where, phase="Pending", created=created, **requirements, **urgency))

    def finish(self, name):
        """Let a job end."""
        for number in range(self.jobs.pop(name)[0]):
            if ("pods", "ns", f"{name}-{number}") in self.objects:
                self.remove(PODS, f"{name}-{number}")
        self.remove(POD_GROUPS, name)

    def turn(self, seconds):
        """Make pods, and let a cycle decide after some seconds; tell whether anything came of it."""
        before = dict(self.objects)
        for name, (pods, spec) in self.jobs.items():
            is_in = self.status(name).get("phase") != "Pending"
            for number in range(pods) if is_in else ():
                if ("pods", "ns", f"{name}-{number}") not in self.objects:
                    self.put(pod(f"{name}-{number}", name, role="main", created=timestamp(self.now), **spec))
        self.cycle(seconds)
        self.gone()
        return before != self.objects

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
            metadata = {"uid": name, "resourceVersion": str(revision), **obj["metadata"]}
            body = json.dumps({**obj, "metadata": metadata}).encode()
            picture.take(Change(revision, kind, namespace, name, name, "ADDED", self.now, body))
        for invariant in (*idle.INVARIANTS, *amounts.INVARIANTS):
            invariant(picture).settle(self.now)
        return picture

    def judge_by_the_watch(self, read):
        """Ask the checker what it says of the same cluster as the product reads it."""
        reader = Reader(1, VOLCANO_ALONE, heeds_claims=False)
        for (kind, namespace, name), obj in self.objects.items():
            if kind in {each.id for each in KINDS}:
                body = json.dumps(obj).encode()
                reader.take(Change(1, kind, namespace, name, name, "ADDED", self.now, body), gone=False)
        world = reader.world()
        assert (world.nodes, world.used, world.queues) == (read.nodes, read.used, read.queues)
        assert {key: group._replace(ready=(), pods=()) for key, group in world.groups.items()} == {
            key: group._replace(ready=(), pods=()) for key, group in read.groups.items() if group.phase in WAITING
        }
        candidates = [group for group in world.groups.values() if judge.is_about_room(world, group)]
        assert [*judge.startable(world, candidates)] == []


def zoned(cpu, zone):
    return {"cpu": str(cpu), "pods": 99, "labels": {"zone": zone}}


some_nodes = st.lists(st.builds(zoned, st.integers(1, 8), st.sampled_from("ab")), min_size=1, max_size=4)
some_limits = st.sampled_from([{}, {}, {"capability": {"cpu": "4"}}, {"capability": {"cpu": "9"}}])
some_guarantees = st.sampled_from([{}, {}, keeping(1), keeping(3)])
some_queues = st.fixed_dictionaries(
    {name: st.builds(lambda a, b: {**a, **b}, some_limits, some_guarantees) for name in ("a", "b", "vip")}
)
some_jobs = st.lists(
    st.fixed_dictionaries({
        "where": st.sampled_from(LEAVES), "pods": st.integers(1, 4), "cpu": st.integers(1, 9),
        "high": st.sampled_from([False, False, True]), "zone": st.sampled_from(["", "", "", "a", "typo"]),
        "never": st.sampled_from([False, False, False, True]), "bare": st.booleans(),
    }),
    min_size=1, max_size=9,
)  # fmt: skip
relaxed = examples(400, here=20, suppress_health_check=list(HealthCheck))


def job(pods=1, cpu=1, where="default", **more):
    return {"where": where, "pods": pods, "cpu": cpu, **more}


A, B, SMALL_B = zoned(8, "a"), zoned(8, "b"), zoned(3, "b")
FULL_A = [job(1, 8, zone="a"), job(1, 8, zone="a"), job(1, 8, zone="a")]  # the first runs, the others wait for its node
FOUR, THREE = {"capability": {"cpu": "4"}}, [job(2, 5, zone="a"), job(2, 8)]


# What once kept clusters idle, and its kin: who was let in by sums alone, or when nobody came whose pods did not fit; who
# was always about to have his pods made; who did not fit, behind whom nobody was tried; kept room that counted beside pods,
# or on every node; a guarantee that counted beside its use; ceilings that bound queues beside; queues that were all first
# in, first out; large gangs that were not tried; pods that are gone. Then an amount of what only those need who do not fit,
# and a guarantee of which those of lower priority use a part.
@relaxed
@example([A, A], {}, [job(4, 3, zone="typo")], [job(1, 8, "vip")], [])
@example([A, A, A], {}, [job(3, 5, zone="typo"), job(2, 4, never=True)], [job(1, 8, "vip")], [])
@example([A, B], {}, FULL_A, [job(1, 8)], [])
@example([A, B], {}, [job(4, 4, never=True)], [job(1, 8)], [])
@example([A, B], {}, FULL_A, [job(2, 8), job(1, 8)], [])
@example([A, A, SMALL_B], {"vip": keeping(1)}, THREE, [job(1, 2)], [])
@example([A, A, SMALL_B], {}, THREE, [job(1, 2)], [])
@example([A], {"vip": keeping(3)}, [job(1, 3, "vip")], [job(1, 5)], [])
@example([A, A], {"vip": FOUR}, [job(1, 4, "vip")], [job(1, 8)], [])
@example([A, SMALL_B], {}, FULL_A[:2], [job(1, 2)], [])
@example([A], {}, [job(3, 2)], [], [])
@example([A], {"vip": FOUR}, [job(1, 4, "vip")], [job(), job(1, 4, "vip")], [0])
@example([A], {"vip": keeping(2)}, [job(1, 1), job(3, 2, bare=True)], [], [])
@example([zoned(16, "a")], {"vip": keeping(2)}, [job(1, 11, high=True), job(1, 1, "vip")], [job(1, 8, high=True)], [])
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
