"""Shares over many cycles: whoever wants more comes to its part, however late, while running jobs end."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import count

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kube.resources import POD_GROUPS, PODS

from .world import World, group, pod, priority_class, queue

CPUS = 8
CYCLES = 12
LEAVES = ("a", "b", "c", "d")
PARENTS = {"c": "team", "d": "team", "team": "root", "a": "root", "b": "root"}
some_weights = st.fixed_dictionaries({name: st.integers(1, 6) for name in PARENTS})


class Life(World):
    """A world with a job controller that makes pods, and jobs of one CPU that end some cycles after their start."""

    def __init__(self, weights, lasts, **more):
        tree = [
            queue(name, parent=above, weight=weights[name], **more.get(name, {})) for name, above in PARENTS.items()
        ]
        super().__init__("node n0..1 4 pods:99", priority_class("high", 9), *tree)
        self.lasts, self.count, self.numbers = lasts, 0, count()
        self.queues = {}  # job → its queue
        self.ends = {}  # job → the cycle after which it ends

    def ask(self, where, jobs, urgency=""):
        """Submit jobs to a queue."""
        for _ in range(jobs):
            name = f"j{next(self.numbers):04}"
            self.queues[name] = where
            asked = {"queue": where, "phase": "Pending", "priorityClassName": urgency}
            self.put(group(name, minResources={"cpu": "1"}, created=f"2026-01-01T00:{self.count:02}:00Z", **asked))

    def step(self):
        """Let jobs end that are due, let others in, make their pods, and place them."""
        self.count += 1
        for name in [name for name, at in self.ends.items() if at <= self.count]:
            self.remove(PODS, f"{name}-0")
            self.remove(POD_GROUPS, name)
            del self.ends[name], self.queues[name]
        self.cycle(seconds=1)
        for name in self.inside():
            if ("pods", "ns", f"{name}-0") not in self.objects:
                self.put(pod(f"{name}-0", name))
        self.cycle()
        for name in (bound.removesuffix("-0") for bound in self.where()):
            if name not in self.ends:
                self.ends[name] = self.count + self.lasts[len(self.ends) % len(self.lasts)]

    def use(self):
        """Return how many CPUs the pods of each queue use."""
        return Counter(self.queues[each.removesuffix("-0")] for each in self.where())

    def waiting(self, where):
        """Return how many jobs of a queue have not started; those that run can end all at once."""
        return sum(each == where and name not in self.ends for name, each in self.queues.items())


def by_weight(name, weights):
    """Return a queue's part of the cluster when everybody wants more."""
    if name == "root":
        return Fraction(CPUS)
    beside = sum(weights[each] for each, parent in PARENTS.items() if parent == PARENTS[name])
    return by_weight(PARENTS[name], weights) * weights[name] / beside


some_lasts = st.lists(st.integers(1, 4), min_size=1, max_size=5)
relaxed = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.shows("scheduler 3.5/levels")
@relaxed
@given(some_weights, some_lasts, st.permutations(LEAVES), st.sampled_from(["", "high"]))
def test_every_queue_comes_to_its_share_however_late_and_whatever_the_backlog_of_others(weights, lasts, order, urgency):
    """The first queue asks for everything, urgently; the others come one after the other."""
    life = Life(weights, lasts)
    for number, where in enumerate(order):
        life.ask(where, CPUS, urgency if number == 0 else "")
        life.step()
    for _ in range(CYCLES):
        life.step()
        for where in LEAVES:  # nobody runs out of jobs
            life.ask(where, CPUS - life.waiting(where))
    used = life.use()
    assert sum(used.values()) == CPUS
    assert all(used[where] >= math.floor(by_weight(where, weights)) - 2 for where in LEAVES)


@pytest.mark.shows("scheduler 3.5/guarantees of others", "queues 1.2/guarantee")
@relaxed
# A pod of `b` waits for its victim on the node that has the free processor.
@example({"a": 1, "b": 4, "c": 1, "d": 1, "team": 1}, [4], 1, 0, "c")
# A pod of `b` waits for its victim, and would be placed on the free processor of another node when that is gone.
@example({"a": 1, "b": 3, "c": 1, "d": 1, "team": 1}, [4, 4, 1, 1, 4], 1, 0, "c")
@given(some_weights, some_lasts, st.integers(1, 3), st.integers(0, 2), st.sampled_from(LEAVES))
def test_what_is_guaranteed_is_there_at_once(weights, lasts, guarantee, above, where):
    """However much the others run and want, a guaranteed amount is free for its queue in the cycle in which it asks."""
    kept = {where: guarantee, "team": above + guarantee}
    life = Life(weights, lasts, **{name: {"guarantee": {"resource": {"cpu": str(cpu)}}} for name, cpu in kept.items()})
    for other in LEAVES:
        if other != where:
            life.ask(other, CPUS)
    for _ in range(3):
        life.step()
    assert life.use()[where] == 0
    life.ask(where, guarantee)
    life.step()
    assert life.use()[where] == guarantee


@relaxed
@given(some_weights, some_lasts, st.lists(st.tuples(st.sampled_from(LEAVES), st.integers(1, 5)), max_size=5))
def test_nobody_waits_for_ever_while_running_jobs_end(weights, lasts, asked):
    """All that was asked for has run in the end, in as many cycles as the cluster needs for it."""
    life = Life(weights, lasts)
    for where, jobs in asked:
        life.ask(where, jobs)
        life.step()
    for _ in range(CYCLES):
        life.step()
    assert not life.queues
