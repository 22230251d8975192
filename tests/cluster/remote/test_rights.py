"""What a person may do in another cluster: by its rules as they come and go, while it is away, in what is shown, offered and done."""

import hypothesis.strategies as st
import pytest
from django.contrib.auth.models import Group, User
from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cluster import access, clock
from cluster.access.roles import EVERYWHERE
from cluster.models import RoleBinding
from cluster.remote import recorder
from cluster.remote.door import access_rules, server, viewer
from cluster.remote.door.access_rules import Question
from cluster.remote.door.reviews import Unanswered
from cluster.remote.door.viewer import Reviews, Viewer
from cluster.remote.http.request import Impersonation
from cluster.store import store
from cluster.writes import Mirror
from kube.errors import ApiError, Forbidden
from kube.resources import COMMANDS, JOBS, NAMESPACES, NODES, PODS, QUEUES
from proof.harness.clocks import ManualClock
from tests import builders, campaign
from tests.blocks import blocks
from tests.cluster.objects import as_yaml, of_values
from tests.cluster.remote import servers
from tests.cluster.remote.servers import Grants, deciding
from tests.tables import cases

pytestmark = pytest.mark.django_db


def rule_of(verbs, groups, resources, **more):
    return {"verbs": verbs, "apiGroups": groups, "resources": resources, **more}


def read(*rules, **status):
    return access_rules.read({"status": {"resourceRules": list(rules), **status}})


FUNCTIONS = {
    "what a rule allows": lambda rule, verb, kind, *place: read(rule_of(*rule)).allow(
        Question(verb, kind, *(place or "d"))
    ),
    "a rule about names": lambda rule, names, *asked: read(rule_of(*rule, resourceNames=names)).allow(Question(*asked)),
    "a namespace lies in itself": lambda *asked: str(viewer.question(*asked)),
}


@blocks("rights", folder="cluster")
def test_what_is_asked_and_allowed(block, golden):
    golden(block, of_values(FUNCTIONS[block.title]))


def test_answer_without_rules_allows_nothing_and_one_without_all_says_so():
    assert not read().allow(Question("get", PODS.id, "d"))
    assert not access_rules.read({"status": {"resourceRules": None}}).rules
    assert read().are_complete
    assert not read(incomplete=True, evaluationError="webhook").are_complete


words = st.lists(st.sampled_from(["get", "list", "*", "", "pods", "pods/log", "*/log", "apps"]), max_size=3)
rules = st.builds(rule_of, words, words, words)


@given(
    st.lists(rules, max_size=4), rules, st.sampled_from(["get", "list"]), st.sampled_from(["pods", "pods/log", "deployments.apps"])
)  # fmt: skip
def test_another_rule_takes_nothing_away(some, more, verb, resource):
    question = Question(verb, resource, "d")
    assert read(*some, more).allow(question) == (read(*some).allow(question) or read(more).allow(question))


NAMES = ["a", "b", "c"]
KINDS = (JOBS.id, PODS.id)


class Cluster:
    """A cluster that is asked about one person, without HTTP between."""

    def __init__(self):
        self.grants = Grants()
        self.failure = None
        self.viewer = Viewer("ada", Reviews(self.rules, self.access))

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
        self.grants.give("ada", namespace, *(servers.rule(verbs, kind) for kind in kinds or KINDS))

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


def test_what_is_given_is_there_at_once_for_who_opens_it_in_lists_within_a_minute_and_asked_once_for_a_page(cluster):
    assert cluster.lists() == frozenset()
    cluster.give("b")
    cluster.clock.move(viewer.FRESH_S + 1)
    assert cluster.lists() == frozenset(), "many namespaces are not asked about again and again"
    assert cluster.allows("list", JOBS.id, "b")
    assert cluster.lists() == {"b"}
    cluster.give("c")
    cluster.clock.move(viewer.QUIET_S)
    assert cluster.lists() == {"b", "c"}
    cluster.grants.review_count = 0
    cluster.clock.move(viewer.QUIET_S + 1)
    for _ in range(30):
        cluster.lists()
        cluster.allows("list", JOBS.id, "b")
    questions = 1 + len(NAMES)  # everywhere, and in each namespace
    assert cluster.grants.review_count == questions * (2 if cluster.grants.is_incomplete else 1)


def test_of_very_many_namespaces_some_and_the_opened_are_asked_about_and_who_may_do_the_same_is_shown_the_same(
    moved_clock, monkeypatch
):
    monkeypatch.setattr(viewer, "MAX_NAMESPACES", 2)
    cluster = Cluster()
    for name in NAMES:
        cluster.give(name)
    assert cluster.lists() == {"a", "b"}
    assert cluster.allows("list", JOBS.id, "c")
    assert cluster.lists() == {"a", "b", "c"}
    one, two, other = Cluster(), Cluster(), Cluster()
    one.give("a")
    two.give("a")
    other.give("b")
    assert one.viewer.scope(NAMES) == two.viewer.scope(NAMES) != other.viewer.scope(NAMES)


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


def ids(text):
    """Return kinds of ours by their plurals, or what is no kind."""
    id_by_plural = {each.id.partition(".")[0]: each.id for each in (JOBS, QUEUES, NODES, NAMESPACES, COMMANDS)}
    return [
        each.replace(base, id_by_plural.get(base, base), 1)
        for each in text.split(",")
        for base in [each.partition("/")[0]]
    ]


class Permissions:
    """What a person gets there, a line a question: may, need, where, somewhere; "-" is everywhere, or a kind of the cluster."""

    def __init__(self, reviews, actor):
        self.reviews, self.actor, self.scopes = reviews, actor, []
        grants = reviews.grants
        self.deeds = {
            "take": grants.take,
            "after": lambda seconds: reviews.clock.move(float(seconds)),
            "fail": lambda code, *words: setattr(reviews, "refused", (int(code), " ".join(words))),
            "answer": lambda: setattr(reviews, "refused", None),
            "incomplete": lambda: setattr(grants, "is_incomplete", True),
            "role": lambda role: RoleBinding(user_id=actor.user_id, namespace=EVERYWHERE, role=role).save(),
            "may": lambda verb, kind, place: access.allowed(actor, verb, *ids(kind), place, owner="ada"),
            "need": lambda verb, kind, *where: access.require(actor, verb, *ids(kind), *where) or "yes",
            "where": lambda verb, kind: access.namespaces(actor, *ids(kind), verb),
            "somewhere": lambda verb, kind: access.somewhere(actor, verb, *ids(kind)),
        }

    def tell(self, line):
        verb, *words = ("" if word == "-" else word for word in line.split())
        try:
            found = (self.deeds.get(verb) or getattr(self, verb))(*words)
        except ApiError as error:
            found = f"{type(error).__name__}: {error.message}"
        found = sorted(found) if isinstance(found, frozenset) else found
        return [] if found is None else [as_yaml(found)]

    def give(self, who, namespace, verbs, kinds, *names):
        rule = servers.rule(verbs.replace(",", " "), *ids(kinds))
        self.reviews.grants.give(who, namespace, {**rule, "resourceNames": list(names)} if names else rule)

    def deactivate(self):
        user = User.objects.get(pk=self.actor.user_id)
        user.is_active = False
        user.save()

    def heard(self):
        """Who was asked about since this was last asked."""
        found, self.reviews.requests = self.reviews.requests, []
        return [f"{user} {groups}" for user, groups in found]

    def scope(self):
        self.scopes.append(access.scope(self.actor))
        return "the same" if self.scopes[-2:-1] == self.scopes[-1:] else "another"


@blocks("permissions", folder="cluster")
def test_what_a_person_may_do_there(block, golden, reviews, ada, settings):
    settings.IMPERSONATE_USER_PREFIX = "oidc:" if "refusal" in block.title else ""
    golden(block, Permissions(reviews, ada).tell)


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


def test_parts_of_the_system_act_as_the_user_of_the_kubeconfig_and_who_is_deactivated_as_nobody(reviews, ada):
    assert access.allowed(access.SYSTEM, "delete", JOBS, "team-a")
    assert server.acting_as(access.CONSOLE) is None
    assert reviews.requests == []
    Permissions(reviews, ada).deactivate()
    with pytest.raises(Forbidden):
        server.acting_as(ada)
