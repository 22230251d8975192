"""Jobs of any kind, to which anything may happen at any moment, live as the reference says, and come to an end.

`tests.jobs.lifecycle` has what may happen (`world`), what a job does (`reference`), and the judge of what it did (`witness`).
"""

from __future__ import annotations

import itertools
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cluster import clock
from cluster.runtime import consumer
from cluster.store import store
from jobs.controller import plan, ssh_keys
from jobs.plugins.contract import KeyPair
from proof.harness.clocks import ManualClock
from proof.invariants import INVARIANTS, Judge
from proof.simulation.planted import planted
from tests.campaign import EXAMPLES, scaled
from tests.jobs.lifecycle import reference, specs
from tests.jobs.lifecycle.witness import Witness
from tests.jobs.lifecycle.world import World, is_going, node_of, phase_of

pytestmark = pytest.mark.django_db(transaction=True)
START_US = 1_767_225_600_000_000
NAMES = st.sampled_from(("x", "x", "x", "y"))
WHICH = st.integers(0, 5)
COMMANDS = (*specs.ACTIONS, "Jump")
OUT_OF_SCOPE = (
    "nodes",
    "gangs",
    "queues",
    "quotas",
    "waiting",
)  # of nodes, scheduler and queues, which are played here
RULES = [each.name for each in INVARIANTS if each.__module__.rpartition(".")[2] not in OUT_OF_SCOPE]


class LifecycleMachine(RuleBasedStateMachine):
    """One or two jobs, people, a scheduler and nodes, and a controller that may die."""

    @initialize(spec=specs.specs(), room=st.sampled_from((plan.ROOM, plan.ROOM, 2)), far=st.integers(0, 3))
    def begin(self, spec, room, far):
        self.batch, self.room = consumer.BATCH, plan.reconcile.__kwdefaults__
        plan.reconcile.__kwdefaults__ = {**self.room, "room": room}
        self.keys = ssh_keys.use(lambda: KeyPair("private", "public"))
        self.chance, numbers = (store.uids, store.random), itertools.count(1)
        store.uids, store.random = lambda: f"00000000-0000-4000-8000-{next(numbers):012x}", Random(1)
        self.manual = ManualClock(START_US)
        self.real = clock.use(self.manual)
        self.judge, self.witness = Judge(only=RULES, lag_ms=0), Witness()
        self.world = World(self.manual, self.witness)
        self.submit("x", spec)
        for _ in range(far):
            self.all_goes_well()

    def teardown(self):
        if not hasattr(self, "world"):
            return
        try:
            self.come_to_an_end()
        finally:
            clock.use(self.real)
            ssh_keys.use(self.keys)
            store.uids, store.random = self.chance
            consumer.BATCH, plan.reconcile.__kwdefaults__ = self.batch, self.room

    # ---- people

    def submit(self, name, spec):
        obj = specs.submitted(name, spec)
        if obj is not None:
            self.world.submit(obj)

    @rule(name=NAMES, spec=specs.specs())
    def submits(self, name, spec):
        self.submit(name, spec)

    @rule(name=NAMES, actions=st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=2))
    def commands(self, name, actions):
        for action in actions:
            self.world.command(name, action)

    @rule(name=NAMES, task=WHICH, replicas=st.integers(0, 4))
    def scales(self, name, task, replicas):
        self.world.scale(name, task, replicas)

    @rule(name=NAMES, propagation=st.sampled_from(("Background", "Foreground")))
    def deletes(self, name, propagation):
        self.world.delete_job(name, propagation)

    @rule(name=NAMES, spec=specs.specs(), action=st.sampled_from((None, *COMMANDS)))
    def makes_anew(self, name, spec, action):
        """A job is deleted, and another has its name at once; what was asked of the first is not for the second."""
        if action:
            self.world.command(name, action)
        self.world.delete_job(name, "Background")
        self.submit(name, spec)

    @rule(which=WHICH, grace=st.sampled_from((None, 0)))
    def deletes_a_pod(self, which, grace):
        for pod in self.one(which):
            self.world.delete_pod(pod, grace)

    # ---- scheduler and nodes

    @rule()
    def all_goes_well(self):
        """Pods are made, get their nodes and begin."""
        self.world.settle()
        self.world.admit()
        self.world.settle()
        self.world.bind()
        for pod in self.world.pods(lambda pod: node_of(pod) and phase_of(pod) == "Pending" and not is_going(pod)):
            self.world.begin(pod)
        self.world.settle()

    @rule()
    def admits(self):
        self.world.admit()

    @rule(which=WHICH, phase=st.sampled_from(("Unknown", "Unknown", "Pending", "Running")))
    def tells_of_a_group(self, which, phase):
        groups = self.world.groups()
        if groups:
            self.world.tell_group(groups[which % len(groups)], phase)

    @rule()
    def binds(self):
        self.world.bind()

    @rule(which=WHICH)
    def pod_begins(self, which):
        for pod in self.one(which, lambda pod: node_of(pod) and phase_of(pod) == "Pending"):
            self.world.begin(pod)

    @rule(which=WHICH, code=st.sampled_from((0, *specs.CODES)), number=st.integers(1, 3))
    def pods_end(self, which, code, number):
        for pod in self.one(which, lambda pod: node_of(pod) and phase_of(pod) in reference.ALIVE, number):
            self.world.end(pod, code)

    @rule(which=WHICH)
    def container_is_started_again(self, which):
        for pod in self.one(which, lambda pod: phase_of(pod) == "Running"):
            self.world.restart_container(pod)

    @rule(node=st.sampled_from(("n0", "n1")))
    def node_is_lost(self, node):
        self.world.lose(node)

    @rule()
    def pods_go(self):
        self.world.sweep()

    # ---- the controller

    @rule()
    def works(self):
        self.world.settle()

    @rule()
    def takes_one_step(self):
        self.world.step()

    @rule(batch=st.sampled_from((1, 2, 5, 4000)))
    def reads_at_once(self, batch):
        self.world.read_at_once(batch)

    @rule()
    def starts_anew(self):
        self.world.start_anew()

    @rule(at=st.integers(0, 40))
    def dies(self, at):
        self.world.step_dying(at)

    @rule()
    def dies_before_its_commit(self):
        self.world.step_uncommitted()

    @rule(which=WHICH, code=st.sampled_from((0, 1, 3)), deleted=st.booleans())
    def is_interrupted(self, which, code, deleted):
        """A pod ends or is deleted between the plan and its commit."""

        def happens():
            for pod in self.one(which):
                if deleted:
                    self.world.delete_pod(pod, 0)
                elif node_of(pod) and phase_of(pod) in reference.ALIVE:
                    self.world.end(pod, code)

        self.world.step_interrupted(happens)
        # What has just happened was not known when it was planned.
        self.judge.set_lag(1000)
        self.the_log_is_right()
        self.judge.set_lag(0)

    @rule(seconds=st.sampled_from((1, 31, 61, 601, -45, -3600)))
    def time_passes(self, seconds):
        self.world.move(seconds)

    # ---- what must be

    @invariant()
    @precondition(lambda self: hasattr(self, "world"))
    def the_log_is_right(self):
        self.witness.others()
        for change in store.changes(self.judge.revision):
            self.judge.take(change)

    @rule()
    def comes_to_rest(self):
        """Nothing more happens for two minutes, and the clock shows the right time again."""
        self.world.catch_up()
        for _ in range(3):
            self.world.move(40)
            self.world.settle()
        self.world.sweep()
        self.world.settle()
        self.the_log_is_right()
        now = clock.milliseconds()
        self.judge.settle(now)
        self.witness.rest(now)

    def one(self, which, wanted=lambda pod: True, number=1):
        """Return some of the pods that are wanted, from one on."""
        pods = self.world.pods(wanted)
        return (pods[which % len(pods) :] + pods)[: min(number, len(pods))] if pods else []

    def come_to_an_end(self):
        """Faults are over, the scheduler admits everything and all pods run to their end: so do all jobs, or say why not."""
        self.world.read_at_once(4000)
        self.world.catch_up()
        for _ in range(12):
            before = store.revision()
            self.all_goes_well()
            for pod in self.world.pods(lambda pod: phase_of(pod) == "Running" and not is_going(pod)):
                self.world.end(pod, 0)
            self.world.move(700)
            self.comes_to_rest()
            if store.revision() == before:
                break
        else:
            raise AssertionError("there is no end to it")
        for life in self.witness.lives.values():
            assert self.is_over(life), f"{life.key} is {life.phase}: {life.status['state']}"

    def is_over(self, life):
        state = life.status.get("state", {})
        if life.deleting or life.phase in reference.FINISHED:
            return True
        if life.phase == "Aborted":
            return "Resume it" in state["message"]
        if reference.replicas_of(life.spec) == 0:
            return "0 replicas" in state["message"]
        return state["reason"] == "WaitingForTasks" and "No pod is left" in state["message"]


def play(**fields):
    fields = {"phases": [Phase.generate], "database": None, "deadline": None, **fields}
    chosen = settings(stateful_step_count=25, suppress_health_check=list(HealthCheck), **fields)
    run_state_machine_as_test(LifecycleMachine, settings=chosen)


@pytest.mark.campaign
def test_jobs_live_as_the_reference_says():
    """The same lives in each run of the tests, and others in each campaign."""
    play(max_examples=scaled(EXAMPLES, 1500), derandomize=scaled(True, False))


# Of the defects that the simulation knows, those that this machine finds within a few dozen examples.
FOUND = (
    "wrong-task", "any-uid", "one-too-many", "told-late", "asked-again", "counted-twice", "products-left", "no-retry",
)  # fmt: skip


@pytest.mark.campaign
@pytest.mark.parametrize("defect", scaled(FOUND[:1], FOUND))
def test_it_finds_what_is_wrong(defect):
    with planted(defect), pytest.raises(AssertionError):
        play(max_examples=300, derandomize=not scaled(False, True), report_multiple_bugs=False)
