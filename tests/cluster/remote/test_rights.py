"""What a person may do in another cluster: by its rules as they come and go, while it is away, in what is shown, offered and done."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from django.contrib.auth.models import Group, User
from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cluster import access, clock
from cluster.access.roles import EVERYWHERE
from cluster.api.rights import QUEUE_STATE
from cluster.models import RoleBinding
from cluster.remote import access_rules, recorder, server, viewer
from cluster.remote.access_rules import Question
from cluster.remote.authorizer import AWAY_S
from cluster.remote.request import Impersonation
from cluster.remote.reviews import Unanswered
from cluster.remote.viewer import Asking, Viewer
from cluster.store import store
from cluster.writes import Mirror
from kube.errors import Forbidden, ServiceUnavailable
from kube.resources import COMMANDS, JOBS, NAMESPACES, NODES, PODS, QUEUES
from proof.harness.clocks import ManualClock
from tests import builders, campaign
from tests.cluster.remote import review_server
from tests.cluster.remote.review_server import Grants, deciding
from tests.tables import cases

pytestmark = pytest.mark.django_db


def rule_of(verbs, groups, resources, **more):
    return {"verbs": verbs, "apiGroups": groups, "resources": resources, **more}


def read(*rules, **status):
    return access_rules.read({"status": {"resourceRules": list(rules), **status}})


VOLCANO = [JOBS.group]
EVERYTHING = rule_of(["*"], ["*"], ["*"])


def get(*resources, groups=("",), **more):
    return rule_of(["get"], list(groups), list(resources), **more)


@cases("given, asked, is_allowed", {
    "named": (get("jobs", groups=VOLCANO), ("get", JOBS.id), True),
    "another verb": (get("jobs", groups=VOLCANO), ("list", JOBS.id), False),
    "patch is no update": (rule_of(["update"], VOLCANO, ["jobs"]), ("patch", JOBS.id), False),
    "another group": (get("jobs", groups=["batch"]), ("get", JOBS.id), False),
    "the core group": (get("pods"), ("get", PODS.id), True),
    "another resource": (get("cronjobs", groups=VOLCANO), ("get", JOBS.id), False),
    "everything": (EVERYTHING, ("delete", QUEUES.id), True),
    "everything has parts": (EVERYTHING, ("get", "pods/log"), True),
    "a part is not the whole": (get("pods"), ("get", "pods/log"), False),
    "the whole is no part": (get("pods/log"), ("get", "pods"), False),
    "a part": (get("pods/log"), ("get", "pods/log"), True),
    "the part of anything": (get("*/log"), ("get", "pods/log"), True),
    "another part": (get("*/log"), ("get", "pods/exec"), False),
    "one object only": (get("pods", resourceNames=["a"]), ("get", "pods"), False),
    "that object": (get("pods", resourceNames=["a"]), ("get", "pods", "", "a"), True),
    "no name stands for all": (get("pods", resourceNames=["*"]), ("get", "pods", "", "a"), False),
    "an empty rule": (rule_of([], [], []), ("get", "pods"), False),
    "nulls": (rule_of(None, None, None), ("get", "pods"), False),
})  # fmt: skip
def test_rule(given, asked, is_allowed):
    question = Question(asked[0], asked[1], *(asked[2:] or ("d",)))
    assert read(given).allow(question) is is_allowed


def test_answer_without_rules_allows_nothing_and_one_without_all_says_so():
    assert not read().allow(Question("get", PODS.id, "d"))
    assert not access_rules.read({"status": {"resourceRules": None}}).rules
    assert read().are_complete
    assert not read(incomplete=True, evaluationError="webhook").are_complete


words = st.lists(st.sampled_from(["get", "list", "*", "", "pods", "pods/log", "*/log", "apps"]), max_size=3)
rules = st.builds(rule_of, words, words, words)


@given(
    st.lists(rules, max_size=4),
    rules,
    st.sampled_from(["get", "list"]),
    st.sampled_from(["pods", "pods/log", "deployments.apps"]),
)
def test_another_rule_takes_nothing_away(some, more, verb, resource):
    asked = Question(verb, resource, "d")
    assert read(*some, more).allow(asked) == (read(*some).allow(asked) or read(more).allow(asked))


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
        return access_rules.read(self.grants.all_rules(["ada"], namespace))

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
    one.give("a")
    two.give("a")
    other.give("b")
    assert one.viewer.scope(NAMES) == two.viewer.scope(NAMES) != other.viewer.scope(NAMES)


@cases("asked, question", {
    "one": (("get", NAMESPACES.id, "a"), Question("get", NAMESPACES.id, "a", "a")),
    "one of a list": (("list", NAMESPACES.id, "a"), Question("get", NAMESPACES.id, "a", "a")),
    "all": (("list", NAMESPACES.id, ""), Question("list", NAMESPACES.id, "")),
    "a new one": (("create", NAMESPACES.id, "a"), Question("create", NAMESPACES.id, "")),
    "deletion": (("delete", NAMESPACES.id, "a"), Question("delete", NAMESPACES.id, "a", "a")),
    "something in it": (("create", JOBS.id, "a"), Question("create", JOBS.id, "a")),
})  # fmt: skip
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
    campaign.play(Machine, 60, 3000, steps=25)


@pytest.fixture
def reviews(tmp_path, settings, moved_clock):
    """A cluster with two namespaces that decides; its clock stands."""
    recorder.claim("https://one")
    for name in ("team-a", "team-b"):
        store.write(Mirror(NAMESPACES, builders.namespace(name, uid=f"uid-{name}", resourceVersion="8")))
    with deciding(tmp_path, settings, moved_clock) as running:
        yield running


@pytest.fixture
def ada(reviews):
    user = User.objects.create_user("ada", password="x")
    user.groups.add(Group.objects.create(name="speech"))
    return access.for_user(user)


def test_the_clusters_roles_decide_about_its_objects_and_ours_about_the_rest(reviews, ada):
    RoleBinding.objects.create(user_id=ada.user_id, namespace=EVERYWHERE, role="administrator")
    assert not access.allowed(ada, "create", JOBS, "team-a")
    assert access.namespaces(ada, JOBS) == frozenset()
    assert access.allowed(ada, "create", "users", "")
    assert access.namespaces(ada, "audit") is access.ALL
    reviews.grants.give("ada", "team-a", review_server.rule("list create", JOBS.id))
    reviews.clock.move(viewer.FRESH_S + 1)
    assert access.allowed(ada, "create", JOBS, "team-a")
    assert not access.allowed(ada, "delete", JOBS, "team-a", owner="ada"), "nobody owns anything there"
    assert access.namespaces(ada, JOBS) == {"team-a"}
    assert access.namespaces(ada, JOBS, "create") == {"team-a"}
    assert access.somewhere(ada, "create", JOBS)
    assert not access.somewhere(ada, "delete", JOBS)


def test_one_is_known_there_by_the_names_of_account_and_groups(reviews, ada, settings):
    reviews.grants.give("speech", "team-b", review_server.rule("list", JOBS.id))
    assert access.namespaces(ada, JOBS) == {"team-b"}
    assert set(map(str, reviews.heard)) == {str(("ada", ["speech"]))}


ADA = Impersonation("ada", ("speech",))


@cases("group, user_prefix, group_prefix, expected", {
    "prefixes stand before names": ("", "oidc:", "idp:", Impersonation("oidc:ada", ("idp:speech",))),
    "a group of the system is not passed on": ("system:masters", "", "", ADA),
    "nor one of service accounts": ("system:serviceaccounts:kube-system", "", "", ADA),
    "nor one that would pass for another": (" speech", "", "", ADA),
    "nor one that a prefix makes one of the system's": ("stem:masters", "", "sy", Impersonation("ada", ("syspeech",))),
})  # fmt: skip
def test_names_are_passed_on_with_their_prefixes(ada, settings, group, user_prefix, group_prefix, expected):
    if group:
        User.objects.get(pk=ada.user_id).groups.add(Group.objects.create(name=group))
    settings.IMPERSONATE_USER_PREFIX, settings.IMPERSONATE_GROUP_PREFIX = user_prefix, group_prefix
    assert server.impersonation(ada) == expected


def test_who_is_deactivated_is_nobody_there(reviews, ada):
    reviews.grants.give("ada", "", review_server.rule("*", JOBS.id))
    assert access.allowed(ada, "list", JOBS, "")
    user = User.objects.get(pk=ada.user_id)
    user.is_active = False
    user.save()
    assert not access.allowed(ada, "list", JOBS, "")
    assert access.namespaces(ada, JOBS) == frozenset()
    with pytest.raises(Forbidden):
        server.acting_as(ada)


def test_parts_of_the_system_act_as_the_user_of_the_kubeconfig(reviews):
    assert access.allowed(access.SYSTEM, "delete", JOBS, "team-a")
    assert server.acting_as(access.CONSOLE) is None
    assert reviews.heard == []


def test_refusal_says_what_who_where_and_whom_to_ask(reviews, ada, settings):
    settings.IMPERSONATE_USER_PREFIX = "oidc:"
    where = 'User "oidc:ada" cannot create resource "jobs" in API group "batch.volcano.sh" in the namespace "team-a"'
    with pytest.raises(
        Forbidden, match=rf"{where}\. The cluster dev decides this; ask who administers it for a role there"
    ):
        access.require(ada, "create", JOBS, "team-a", "train")


def test_right_to_one_object_counts_for_that_object(reviews, ada):
    reviews.grants.give("ada", "team-a", {**review_server.rule("delete", JOBS.id), "resourceNames": ["train"]})
    access.require(ada, "delete", JOBS, "team-a", "train")
    with pytest.raises(Forbidden):
        access.require(ada, "delete", JOBS, "team-a", "other")
    assert not access.allowed(ada, "delete", JOBS, "team-a")


def test_queue_is_closed_by_who_may_create_commands_where_those_to_queues_lie(reviews, ada):
    assert not access.allowed(ada, "update", QUEUE_STATE, "")
    reviews.grants.give("ada", "default", review_server.rule("create", COMMANDS.id))
    reviews.clock.move(viewer.FRESH_S + 1)
    assert access.allowed(ada, "update", QUEUE_STATE, "")


def test_what_lies_in_no_namespace_asks_about_none_and_namespaces_are_seen_by_who_may_get_them(reviews, ada):
    reviews.grants.give("ada", "team-a", review_server.rule("list", NODES.id, NAMESPACES.id))
    reviews.grants.give("ada", "team-b", review_server.rule("get", NAMESPACES.id))
    reviews.grants.give("ada", "", review_server.rule("list", QUEUES.id))
    assert access.namespaces(ada, NODES) == frozenset()
    assert access.namespaces(ada, QUEUES) is access.ALL
    assert len(reviews.heard) == 1
    assert access.namespaces(ada, NAMESPACES) == {"team-b"}


def test_cluster_that_is_away_shows_what_was_and_lets_nothing_be_changed(reviews, ada):
    reviews.grants.give("ada", "team-a", review_server.rule("list get create", JOBS.id))
    assert access.namespaces(ada, JOBS) == {"team-a"}
    before = access.scope(ada)
    reviews.refused = 503, "starting"
    reviews.clock.move(3600)
    assert access.namespaces(ada, JOBS) == {"team-a"}
    assert access.scope(ada) == before
    access.require(ada, "get", JOBS, "team-a", "train")
    with pytest.raises(ServiceUnavailable, match=r"starting.*nothing was changed. Try again later"):
        access.require(ada, "create", JOBS, "team-a", "train")
    with pytest.raises(ServiceUnavailable, match="not known yet"):
        access.allowed(access.for_user(User.objects.create_user("bob")), "list", JOBS, "team-a")
    reviews.refused = None
    reviews.clock.move(AWAY_S + 0.1)
    access.require(ada, "create", JOBS, "team-a", "train")


@cases("code, is_away", {
    "an expired token": (401, True),
    "overload": (429, True),
    "a defect": (500, True),
    "no right to impersonate": (403, False),
})  # fmt: skip
def test_cluster_that_fails_is_away_and_not_asked_for_each_button(reviews, ada, code, is_away):
    reviews.grants.give("ada", "", review_server.rule("*", JOBS.id))
    assert access.allowed(ada, "list", JOBS, "team-a")
    reviews.refused = code, "pages cannot impersonate"
    reviews.clock.move(viewer.FRESH_S + 1)
    assert access.allowed(ada, "list", JOBS, "team-a") is is_away
    reviews.heard.clear()
    assert access.allowed(ada, "list", JOBS, "team-a") is is_away
    assert reviews.heard == []
    if not is_away:
        with pytest.raises(Forbidden, match="does not tell what ada may do: pages cannot impersonate"):
            access.require(ada, "list", JOBS, "team-a")


def test_cluster_with_webhooks_is_asked_each_question_by_itself(reviews, ada):
    reviews.grants.is_incomplete = True
    reviews.grants.give("ada", "team-b", review_server.rule("list get", JOBS.id, f"{JOBS.id}/status"))
    assert access.namespaces(ada, JOBS) == {"team-b"}
    assert access.allowed(ada, "get", f"{JOBS.id}/status", "team-b")
    assert not access.allowed(ada, "delete", JOBS, "team-b")
    before = access.scope(ada)
    reviews.grants.take("ada", "team-b")
    reviews.clock.move(viewer.FRESH_S + 1)
    assert access.scope(ada) != before
    assert access.namespaces(ada, JOBS) == frozenset()
