"""How a kind of another cluster is followed, what is written down of it, and how fresh a mirror is said to be."""

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec.structs import asdict

from cluster import clock
from cluster.models import MirroredCluster, MirroredKind
from cluster.remote import freshness, recorder
from cluster.remote.http.target import Target
from cluster.remote.leader_election import election
from cluster.remote.leader_election.election import Leadership
from cluster.remote.mirroring import reflection
from cluster.remote.mirroring.reflection import KindStatus, Phase, Step, Update
from cluster.remote.webhooks import keeper
from cluster.remote.webhooks.hooks import Address
from cluster.store import store
from cluster.writes import Mirror
from kube import errors
from kube.errors import Cause, Timeout
from kube.kinds.pod import Pod
from kube.resources import JOBS, NODES, PODS, SECRETS
from tests import campaign
from tests.blocks import blocks
from tests.builders import of, pod
from tests.cluster.objects import of_values
from tests.cluster.remote.model_server import MIRRORED, ModelServer, forget
from tests.cluster.remote.model_server import Mirror as Follower

NOW = 5000
LIVE = KindStatus("7", phase=Phase.LIVE, since=1000)
LOADING = KindStatus("", phase=Phase.LOADING, since=1000)
AWAY = KindStatus("7", phase=Phase.AWAY, since=1000, reason="a")
ANEW = KindStatus("", anew=True, phase=Phase.LOADING, since=1000)


STANDINGS = {"live": LIVE, "loading": LOADING, "away": AWAY, "anew": ANEW}


def update(step, **fields):
    return Update(PODS, step, **fields)


def after(before, step, fields):
    found = reflection.status_after(STANDINGS[before], update(Step[step], **fields), NOW)
    return " ".join(f"{name}={value}" for name, value in asdict(found).items() if value != getattr(KindStatus(), name))


def event(text):
    """What a line of a watch means after version 7: the version, whether the object is gone, an error."""
    found = reflection.read_event(PODS, text, after="7")
    return [found.version, found.write and found.write.deleted, found.error and type(found.error).__name__]


def gone(version, anew):
    listed = update(Step.LISTED, version="9", uids=frozenset("y"), anew=anew)
    return reflection.vanished({"x": "d/x", "y": "d/y"}, listed.uids, {"y": "3", "x": version}, listed)


ERRORS = {
    "GoneBack": reflection.GoneBack, "TooLarge": Timeout.too_large_resource_version, "Busy": Timeout.of,
    "Caused": lambda text: Timeout(text, causes=[Cause("ResourceVersionTooLarge", "Too large", "")]),
}  # fmt: skip
FUNCTIONS = {
    "a standing after news": after,
    "a line of a watch": event,
    "what a list does not name is gone unless it is newer": gone,
    "what follows an error": lambda name, *about: reflection.after_error(
        (ERRORS.get(name) or getattr(errors, name))(*about)
    ),
    "an answer of the API is news": lambda version, anew: reflection.is_newer("8", KindStatus(version, anew=anew)),
    "a kind is whole once it was listed": lambda found: (
        not reflection.incomplete({} if found is None else {PODS.id: KindStatus(**found)}, [PODS.id])
    ),
    "how long is waited after failures": reflection.wait_s,
    "a mirror has reported only what it has found itself": lambda heard, away, begun: freshness.is_followed(
        cluster(LAST_CONTACT + heard, away and LAST_CONTACT + away), begun and LAST_CONTACT + begun, LAST_CONTACT
    ),
}


@blocks("mirror", folder="cluster")
def test_what_is_made_of_what_is_heard(block, golden):
    golden(block, of_values(FUNCTIONS[block.title]))


def mirrored(name, version="8", **fields):
    return pod(name, uid=f"uid-{name}", resourceVersion=version, **fields)


@pytest.fixture(autouse=True)
def claimed(db):
    recorder.claim("https://one")


def test_another_cluster_at_the_address_has_all_listed_anew():
    recorder.record([Update(PODS, Step.LISTED, version="9")])
    assert recorder.identify("first")
    assert recorder.identify("first")
    assert recorder.identify(""), "one that does not let us see who it is counts as the same"
    assert MirroredKind.objects.get().version == "9"
    assert not recorder.identify("second")
    assert (MirroredKind.objects.get().version, MirroredKind.objects.get().anew) == ("", True)
    assert recorder.identify("second")


def test_away_counts_from_the_first_time_and_is_over_with_an_answer():
    recorder.note_silence("one")
    since = recorder.cluster().away
    recorder.note_silence("two")
    assert (recorder.cluster().away, recorder.cluster().reason) == (since, "two")
    recorder.note_answer()
    stored = MirroredCluster.objects.get()
    assert (stored.away, stored.reason) == (0, "")
    assert stored.heard


def test_null_of_a_time_that_is_not_there_is_absent_for_readers():
    """Kubernetes writes one where a container has ended that never began, in events and in pods of templates."""
    ended = {"terminated": {"exitCode": 137, "startedAt": None, "finishedAt": "2026-01-01T00:00:00Z"}}
    status = {"containerStatuses": [{"name": "main", "image": "any", "state": ended}], "startTime": None}
    recorder.record([Update(PODS, Step.PAGE, writes=(Mirror(PODS, mirrored("a", status=status)),))])
    (stored,) = store.find(PODS)
    (container,) = stored.read(Pod).status.container_statuses
    assert (container.state.terminated.exit_code, container.state.terminated.started_at) == (137, "")
    assert "startTime" not in stored.object["status"]


def test_object_that_cannot_be_mirrored_keeps_no_other_out_and_a_kind_that_is_gone_takes_its_objects_with_it():
    writes = (Mirror(PODS, pod("x", uid="", resourceVersion="8")), Mirror(PODS, mirrored("a")))
    recorder.record([Update(PODS, Step.PAGE, writes=writes)])
    assert [one.name for one in store.find(PODS)] == ["a"]
    recorder.record([Update(PODS, Step.PAGE, writes=(Mirror(PODS, mirrored("a", "99")),)), Update(PODS, Step.ABSENT)])
    assert recorder.statuses()[PODS.id].phase is Phase.ABSENT
    # What is newer than nothing is gone all the same.
    assert store.find(PODS) == []


def test_answer_of_a_kind_that_is_not_mirrored_is_not_kept():
    (answered,) = recorder.confirm(SECRETS, [mirrored("s")])
    assert (answered.name, answered.revision) == ("s", 0)
    assert store.find(SECRETS) == []


LAST_CONTACT = 1_800_000_000_000


def cluster(heard=LAST_CONTACT, away=0, reason=""):
    return MirroredCluster(server="https://x", heard=heard, away=away, reason=reason)


def judged(fields, standings):
    """How fresh a mirror is of which something was heard, by the standings of its kinds."""
    observed = None if fields is None else cluster(**{**fields, "heard": LAST_CONTACT + fields.get("heard", 0)})
    kinds = {"pods": PODS, "jobs": JOBS, "nodes": NODES}
    made = {kinds[name].id: KindStatus(**{**each, "phase": Phase(each["phase"])}) for name, each in standings.items()}
    found = freshness.judge("dev", observed, made, LAST_CONTACT)
    since = found.since - LAST_CONTACT if found.since > 10**9 else found.since
    return f"{found.word.name} {since} {found.why}".strip()


@blocks("freshness", folder="cluster")
def test_worst_that_is_known_counts(block, golden):
    golden(block, of_values(judged))


def test_who_works_there_and_what_keeps_the_webhooks_from_being_asked_is_said(settings):
    settings.TARGET = Target("dev", "https://dev", "")
    recorder.claim("https://dev")
    assert freshness.leading() == ""
    settings.WAY = "in-place"
    assert freshness.leading() == "Nobody has been found to work there yet."
    election.note(Leadership(hindrance="Volcano works there."))
    assert freshness.leading() == "Volcano works there."
    election.note(Leadership("me", "me/0", clock.milliseconds() + 60_000))
    assert freshness.leading().endswith("of these pages work there.")
    keeper.note("secrets is forbidden")
    assert "webhooks" not in freshness.leading(), "there are none"
    settings.WEBHOOKS = Address("192.0.2.7", 9443)
    assert freshness.leading().endswith("webhooks of these pages cannot be kept up: secrets is forbidden.")
    keeper.note("")
    assert freshness.leading().endswith("of these pages work there.")


NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
VALUES = st.integers(0, 9)


class MirrorMachine(RuleBasedStateMachine):
    """Model: the server. What people change here may be confirmed at once, late, or never."""

    def mirrored(self):
        return {one.name: one.object for one in store.find(PODS)}

    @initialize()
    def start(self):
        forget(*MIRRORED)
        self.server = ModelServer()
        self.server.page = 2
        self.backup = None
        self.answers = []
        self.mirror_is_killed()

    @rule()
    def mirror_is_killed(self):
        self.mirror = Follower(self.server, [PODS])

    @rule(name=NAMES, value=VALUES)
    def others_write(self, name, value):
        self.server.put("pods", of(PODS, name, namespace="d", value=value))

    @rule(name=NAMES, value=VALUES)
    def people_write_here(self, name, value):
        self.others_write(name, value)
        self.answers.append(self.server.objects["pods", name])

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def answer_is_confirmed(self, data):
        answer = self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))
        recorder.confirm(PODS, [answer])

    @precondition(lambda self: self.server.objects)
    @rule(data=st.data())
    def others_delete(self, data):
        self.server.remove(*data.draw(st.sampled_from(sorted(self.server.objects))))

    @rule()
    def server_forgets(self):
        self.server.forgotten = self.server.version

    @rule()
    def server_is_backed_up(self):
        self.backup = (dict(self.server.objects), self.server.version)

    @precondition(lambda self: self.backup)
    @rule()
    def server_is_restored(self):
        """It goes on with versions that nobody has seen, as etcd's manual advises."""
        # What was answered before is of a time that never was.
        self.answers.clear()
        self.server.restore(self.backup[0], self.server.version + 1000)

    @precondition(lambda self: self.backup)
    @rule()
    def server_is_restored_in_place(self):
        """The server's restart cuts every watch; who was there and comes back before it caught up sees that it is behind."""
        self.all_is_well_for_a_while()
        self.answers.clear()
        self.server.restore(self.backup[0], min(self.backup[1], self.server.version))
        self.mirror.hear()

    @rule(lines=st.integers(0, 3))
    def next_answer_is_cut(self, lines):
        self.server.cut_after = lines

    @rule(reachable=st.booleans(), readable=st.booleans())
    def network_or_right_goes_or_comes(self, reachable, readable):
        self.server.reachable, self.server.readable = reachable, readable

    @precondition(lambda self: not (self.server.reachable and self.server.readable))
    @rule()
    def server_is_silent_for_a_while(self):
        """Then the mirror says why, however often it has asked."""
        self.server.cut_after = None
        for _ in range(3):
            self.mirror.hear()
        status = recorder.statuses([PODS])[PODS.id]
        assert status.phase is (Phase.REFUSED if self.server.reachable else Phase.AWAY)

    @rule()
    def mirror_listens_once(self):
        self.mirror.listen()

    @rule(part=st.integers(0, 10))
    def updates_are_recorded(self, part):
        self.mirror.record(part)

    @rule()
    def all_is_well_for_a_while(self):
        """Then the mirror is the server, whatever was before."""
        self.server.reachable, self.server.readable, self.server.cut_after = True, True, None
        for _ in range(3):
            self.mirror.listen()
        self.mirror.record()
        assert self.mirrored() == self.server.all("pods")
        status = recorder.statuses([PODS])[PODS.id]
        assert (status.phase, status.version) == (Phase.LIVE, str(self.server.version))
        for answer in self.answers:
            recorder.confirm(PODS, [answer])
        assert self.mirrored() == self.server.all("pods"), "nothing comes back"

    teardown = all_is_well_for_a_while


@pytest.mark.campaign
def test_mirror_becomes_what_the_server_has():
    campaign.play(MirrorMachine, 30, 3000, steps=30)
