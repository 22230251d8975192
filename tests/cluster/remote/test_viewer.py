"""What one person may do: however rights come and go and the cluster is away, nothing that was taken away lasts."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from cluster import access, clock
from cluster.remote import viewer
from cluster.remote.access_rules import Question, read
from cluster.remote.reviews import Unanswered
from cluster.remote.viewer import Asking, Viewer
from kube.errors import Forbidden
from kube.resources import JOBS, NAMESPACES, PODS
from proof.harness.clocks import ManualClock
from tests.campaign import scaled
from tests.cluster.remote import review_server
from tests.cluster.remote.review_server import Grants

NAMES = ["a", "b", "c"]
KINDS = (JOBS.id, PODS.id)


class Cluster:
    """A cluster that is asked about one person, without HTTP between."""

    def __init__(self):
        self.grants = Grants()
        self.failure = None
        self.viewer = Viewer("ada", Asking(self.rules, self.access))

    def rules(self, namespace):
        self.check()
        return read(self.grants.all_rules(["ada"], namespace))

    def access(self, question):
        self.check()
        return self.grants.allows(["ada"], question)

    def check(self):
        if self.failure:
            raise self.failure

    def give(self, namespace, verbs="list", *kinds):
        self.grants.give("ada", namespace, *(review_server.rule(verbs, kind) for kind in kinds or KINDS))

    def allows(self, verb, resource, namespace):
        return self.viewer.allows(viewer.question(verb, resource, namespace))

    def lists(self, resource=JOBS.id, names=NAMES):
        return self.viewer.namespaces("list", resource, names)


@pytest.fixture(params=["rules", "questions"])
def cluster(request, moved_clock):
    made = Cluster()
    made.grants.is_incomplete = request.param == "questions"
    made.clock = moved_clock
    return made


def test_namespaces_are_those_that_may_be_listed(cluster):
    cluster.give("b")
    assert cluster.lists() == {"b"}
    assert not cluster.allows("list", JOBS.id, "a")
    cluster.give("")
    cluster.clock.move(viewer.FRESH_S + 1)
    assert cluster.lists() is access.ALL


def test_what_is_taken_away_is_gone_after_some_seconds_everywhere(cluster):
    cluster.give("b")
    before = cluster.lists(), cluster.viewer.scope(NAMES)
    cluster.grants.take("ada", "b")
    cluster.clock.move(viewer.FRESH_S + 1)
    assert cluster.lists() == frozenset() != before[0]
    assert not cluster.allows("list", JOBS.id, "b")
    assert cluster.viewer.scope(NAMES) != before[1]


def test_what_is_given_is_there_at_once_for_who_opens_it_and_in_lists_within_a_minute(cluster):
    assert cluster.lists() == frozenset()
    cluster.give("b")
    cluster.clock.move(viewer.FRESH_S + 1)
    assert cluster.lists() == frozenset(), "many namespaces are not asked about again and again"
    assert cluster.allows("list", JOBS.id, "b")
    assert cluster.lists() == {"b"}
    cluster.give("c")
    cluster.clock.move(viewer.QUIET_S)
    assert cluster.lists() == {"b", "c"}


def test_page_asks_dozens_of_times_and_the_cluster_hears_of_each_thing_once(cluster):
    cluster.give("b")
    for _ in range(30):
        cluster.lists()
        cluster.allows("list", JOBS.id, "b")
    questions = 1 + len(NAMES)  # everywhere, and in each namespace
    assert cluster.grants.asked == questions * (2 if cluster.grants.is_incomplete else 1)


def test_last_answers_count_while_the_cluster_is_away(cluster):
    cluster.give("b")
    assert cluster.lists() == {"b"}
    asked = viewer.question("list", JOBS.id, "b")
    assert cluster.viewer.allows(asked)
    assert cluster.viewer.is_fresh(asked)
    scope = cluster.viewer.scope(NAMES)
    cluster.failure = Unanswered("connection refused")
    cluster.clock.move(3600)
    assert cluster.lists() == {"b"}
    assert cluster.viewer.allows(asked)
    assert not cluster.viewer.is_fresh(asked)
    assert cluster.viewer.scope([*NAMES, "new"]) == scope
    with pytest.raises(Unanswered):
        cluster.allows("list", JOBS.id, "elsewhere")


def test_nothing_is_known_of_somebody_before_the_first_answer(cluster):
    cluster.failure = Unanswered("connection refused")
    with pytest.raises(Unanswered):
        cluster.lists()
    assert cluster.viewer.scope(NAMES) == cluster.viewer.scope([])


def test_cluster_that_refuses_to_tell_allows_nothing_and_says_why(moved_clock):
    cluster = Cluster()
    cluster.failure = Forbidden("cannot impersonate")
    assert cluster.lists() == frozenset()
    asked = viewer.question("list", JOBS.id, "b")
    assert not cluster.viewer.allows(asked)
    assert cluster.viewer.refusal(asked) == "cannot impersonate"


def test_of_very_many_namespaces_some_are_asked_about_and_those_that_are_opened(moved_clock, monkeypatch):
    monkeypatch.setattr(viewer, "MOST_NAMESPACES", 2)
    cluster = Cluster()
    for name in NAMES:
        cluster.give(name)
    assert cluster.lists() == {"a", "b"}
    assert cluster.allows("list", JOBS.id, "c")
    assert cluster.lists() == {"a", "b", "c"}


def test_people_who_may_do_the_same_are_shown_the_same(moved_clock):
    one, two, other = Cluster(), Cluster(), Cluster()
    for each in (one, two):
        each.give("a")
    other.give("b")
    assert one.viewer.scope(NAMES) == two.viewer.scope(NAMES) != other.viewer.scope(NAMES)


@pytest.mark.parametrize(
    ("asked", "question"),
    [
        pytest.param(("get", NAMESPACES.id, "a"), Question("get", NAMESPACES.id, "a", "a"), id="one"),
        pytest.param(("list", NAMESPACES.id, "a"), Question("get", NAMESPACES.id, "a", "a"), id="one of a list"),
        pytest.param(("list", NAMESPACES.id, ""), Question("list", NAMESPACES.id, ""), id="all"),
        pytest.param(("create", NAMESPACES.id, "a"), Question("create", NAMESPACES.id, ""), id="a new one"),
        pytest.param(("delete", NAMESPACES.id, "a"), Question("delete", NAMESPACES.id, "a", "a"), id="deletion"),
        pytest.param(("create", JOBS.id, "a"), Question("create", JOBS.id, "a"), id="something in it"),
    ],
)  # fmt: skip
def test_namespace_lies_in_itself(asked, question):
    assert viewer.question(*asked) == question


class Machine(RuleBasedStateMachine):
    """Rights come and go, time passes, the cluster is away: nothing is allowed that was not within FRESH_S before."""

    def __init__(self):
        super().__init__()
        self.clock = ManualClock()
        self.before = clock.use(self.clock)
        self.cluster = Cluster()
        self.history = [(0.0, frozenset())]  # from when on which (namespace, kind) were granted
        self.away_since = None

    def teardown(self):
        clock.use(self.before)

    @property
    def granted(self):
        return self.history[-1][1]

    def change(self, granted):
        self.cluster.grants.held.clear()
        for namespace, kind in granted:
            self.cluster.give(namespace, "list", kind)
        self.history.append((self.clock.seconds, frozenset(granted)))

    def once(self):
        """What was granted at some moment at which the cluster could tell it and an answer still counts."""
        now = self.clock.seconds if self.away_since is None else self.away_since
        begin = now - viewer.FRESH_S
        ends = [at for at, _ in self.history[1:]] + [float("inf")]
        return {pair for (_, granted), end in zip(self.history, ends, strict=True) if end >= begin for pair in granted}

    @rule(namespace=st.sampled_from(["", *NAMES]), kind=st.sampled_from(KINDS))
    def grant(self, namespace, kind):
        self.change(self.granted | {(namespace, kind)})

    @rule(number=st.integers(0, 20))
    def revoke(self, number):
        if self.granted:
            ordered = sorted(self.granted)
            self.change(self.granted - {ordered[number % len(ordered)]})

    @rule(seconds=st.sampled_from([1, 4, 6, 30, 61]))
    def wait(self, seconds):
        self.clock.move(seconds)

    @rule(is_away=st.booleans())
    def go_away(self, is_away):
        self.cluster.failure = Unanswered("away") if is_away else None
        if is_away and self.away_since is None:
            self.away_since = self.clock.seconds
        elif not is_away:
            self.away_since = None

    @rule(is_incomplete=st.booleans())
    def tell_rules(self, is_incomplete):
        self.cluster.grants.is_incomplete = is_incomplete

    @rule(namespace=st.sampled_from(NAMES), kind=st.sampled_from(KINDS))
    def ask(self, namespace, kind):
        try:
            allowed = self.cluster.allows("list", kind, namespace)
        except Unanswered:
            assert self.away_since is not None
            return
        assert not allowed or self.once() & {("", kind), (namespace, kind)}

    @invariant()
    def lists_nothing_else(self):
        for kind in KINDS:
            try:
                found = self.cluster.lists(kind)
            except Unanswered:
                assert self.away_since is not None
                continue
            once = self.once()
            if found is access.ALL:
                assert ("", kind) in once
            else:
                assert found <= {name for name in NAMES if once & {("", kind), (name, kind)}}

    @rule()
    def given_rights_come(self):
        """After a minute of answers, lists show all that is granted and nothing else."""
        if self.away_since is not None:
            return
        self.clock.move(viewer.QUIET_S + 1)
        for kind in KINDS:
            wanted = {namespace for namespace, one in self.granted if one == kind}
            assert self.cluster.lists(kind) == (access.ALL if "" in wanted else wanted)


@pytest.mark.campaign
def test_nothing_lasts_that_was_taken_away():
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=scaled(60, 3000),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
