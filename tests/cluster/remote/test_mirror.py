"""How a kind of another cluster is followed, what is written down of it, and how fresh a mirror is said to be."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cluster import clock
from cluster.models import MirroredCluster, MirroredKind
from cluster.remote import election, freshness, recorder, reflection
from cluster.remote.election import Leadership
from cluster.remote.freshness import Freshness, Word
from cluster.remote.reflection import News, Phase, Standing, Step
from cluster.remote.target import Target
from cluster.remote.webhooks import keeper
from cluster.remote.webhooks.hooks import Address
from cluster.store import store
from cluster.writes import Mirror
from kube.errors import Cause, Expired, Forbidden, InternalError, NotFound, Timeout, TooManyRequests, Unauthorized
from kube.kinds.pod import Pod
from kube.resources import JOBS, NODES, PODS, SECRETS
from tests.builders import pod
from tests.tables import cases

NOW = 5000
LIVE = Standing("7", phase=Phase.LIVE, since=1000)
LOADING = Standing("", phase=Phase.LOADING, since=1000)
AWAY = Standing("7", phase=Phase.AWAY, since=1000, reason="a")
ANEW = Standing("", anew=True, phase=Phase.LOADING, since=1000)
GONE = Standing("", anew=True, phase=Phase.ABSENT, since=NOW)


def news(step, **fields):
    return News(PODS, step, **fields)


@cases("before, heard, after", {
    "a list begins anew": (LIVE, news(Step.BEGUN), replace(LOADING, since=NOW)),
    "a page is counted": (LOADING, news(Step.PAGE, writes=(None, None)), replace(LOADING, objects_read=2)),
    "a whole list settles which versions count": (ANEW, news(Step.LISTED, version="9"), replace(LIVE, version="9", since=NOW)),
    "a change": (LIVE, news(Step.CHANGED, version="8"), replace(LIVE, version="8")),
    "away keeps where to go on": (LIVE, news(Step.AWAY, reason="a"), replace(AWAY, since=NOW)),
    "away for another reason is away since the first": (AWAY, news(Step.AWAY, reason="b"), replace(AWAY, reason="b")),
    "watched again": (AWAY, news(Step.WATCHED), replace(LIVE, since=NOW)),
    "a kind that is gone begins anew should it come back": (LIVE, news(Step.ABSENT), GONE),
})  # fmt: skip
def test_standing_after_news(before, heard, after):
    assert reflection.standing_after(before, heard, NOW) == after


def line(verb, version="8"):
    return {"type": verb, "object": pod(uid="u", resourceVersion=version)}


@cases("event, deleted, version, error", {
    "added": (line("ADDED"), False, "8", None),
    "modified": (line("MODIFIED"), False, "8", None),
    "deleted": (line("DELETED"), True, "8", None),
    "bookmark": (line("BOOKMARK", "9"), None, "9", None),
    "versions went back": (line("BOOKMARK", "6"), None, "", reflection.GoneBack),
    "expired in the stream": ({"type": "ERROR", "object": Expired("").status()}, None, "", Expired),
    "another error": ({"type": "ERROR", "object": {"code": 500}}, None, "", InternalError),
})  # fmt: skip
def test_line_of_a_watch(event, deleted, version, error):
    found = reflection.read_event(PODS, event, after="7")
    assert found.version == version
    assert (found.write.deleted if found.write else None) is deleted
    assert type(found.error) is (error or type(None))


@cases("error, what", {
    "410": (Expired(""), "list"),
    "versions went back": (reflection.GoneBack(""), "list anew"),
    "a version of the future": (Timeout.too_large_resource_version(9, 7), "list anew"),
    "that, told by its cause": (Timeout("x", causes=[Cause("ResourceVersionTooLarge", "Too large", "")]), "list anew"),
    "504": (Timeout.of("busy"), "again"),
    "429": (TooManyRequests(""), "again"),
    "404": (NotFound(), "absent"),
    "403": (Forbidden(""), "refused"),
    "401, until the kubeconfig has another token": (Unauthorized(""), "again"),
    "500": (InternalError(""), "again"),
})  # fmt: skip
def test_what_follows_an_error(error, what):
    assert reflection.after_error(error) == what


@cases("version, anew, gone", {
    "older than the list": ("5", False, ["x"]),
    "as old as the list": ("9", False, ["x"]),
    "made after the list": ("10", False, []),
    "versions count for nothing": ("10", True, ["x"]),
})  # fmt: skip
def test_what_a_list_does_not_name_is_gone_unless_it_is_newer(version, anew, gone):
    listed = news(Step.LISTED, version="9", uids=frozenset("y"), anew=anew)
    stored = {"x": "d/x", "y": "d/y"}
    assert reflection.vanished(stored, listed.uids, {"y": "3", "x": version}, listed) == gone


@cases("standing, is_news", {
    "newer than what was heard": (Standing("7"), True),
    "heard already": (Standing("8"), False),
    "heard already, and more": (Standing("9"), False),
    "while a list is read": (Standing(""), True),
    "while versions count for nothing": (Standing("", anew=True), False),
})  # fmt: skip
def test_answer_of_the_api_is_news(standing, is_news):
    assert reflection.is_news("8", standing) is is_news


@cases("standing, is_whole", {
    "never heard of": (None, False),
    "being read": (LOADING, False),
    "live": (LIVE, True),
    "away": (AWAY, True),
    "begun anew": (replace(LIVE, anew=True), False),
    "not served": (Standing(phase=Phase.ABSENT), True),
})  # fmt: skip
def test_kind_is_whole_once_it_was_listed(standing, is_whole):
    standings = {} if standing is None else {PODS.id: standing}
    assert reflection.not_whole(standings, [PODS.id]) == ([] if is_whole else [PODS.id])


@pytest.mark.parametrize(
    ("failures", "luck", "seconds"),
    [(1, 0, 0.125), (1, 1, 0.25), (3, 1, 1.0), (6, 1, 8.0), (1000, 1, 8.0), (1000, 0, 4.0)],
)
def test_wait_grows_to_its_limit(failures, luck, seconds):
    assert reflection.wait_s(failures, luck) == seconds


def mirrored(name, version="8", **fields):
    return pod(name, uid=f"uid-{name}", resourceVersion=version, **fields)


@pytest.fixture(autouse=True)
def claimed(db):
    recorder.claim("https://one")


def test_another_cluster_at_the_address_has_all_listed_anew():
    recorder.record([News(PODS, Step.LISTED, version="9")])
    assert recorder.identify("first")
    assert recorder.identify("first")
    assert recorder.identify(""), "one that does not let us see who it is counts as the same"
    assert MirroredKind.objects.get().version == "9"
    assert not recorder.identify("second")
    assert (MirroredKind.objects.get().version, MirroredKind.objects.get().anew) == ("", True)
    assert recorder.identify("second")


def test_away_counts_from_the_first_time_and_is_over_with_an_answer():
    recorder.silent("one")
    since = recorder.cluster().away
    recorder.silent("two")
    assert (recorder.cluster().away, recorder.cluster().reason) == (since, "two")
    recorder.heard()
    known = MirroredCluster.objects.get()
    assert (known.away, known.reason) == (0, "")
    assert known.heard


def test_objects_and_the_version_that_they_reach_are_written_together():
    writes = tuple(Mirror(PODS, mirrored(name)) for name in "ab")
    recorder.record([News(PODS, Step.BEGUN), News(PODS, Step.PAGE, writes=writes)])
    assert recorder.standings()[PODS.id].objects_read == 2
    recorder.record([News(PODS, Step.LISTED, version="9", uids=frozenset({"uid-a"}))])
    assert [one.name for one in store.find(PODS)] == ["a"]
    standing = recorder.standings()[PODS.id]
    assert (standing.version, standing.phase) == ("9", Phase.LIVE)


def test_null_of_a_time_that_is_not_there_is_absent_for_readers():
    """Kubernetes writes one where a container has ended that never began, in events and in pods of templates."""
    ended = {"terminated": {"exitCode": 137, "startedAt": None, "finishedAt": "2026-01-01T00:00:00Z"}}
    status = {"containerStatuses": [{"name": "main", "image": "any", "state": ended}], "startTime": None}
    recorder.record([News(PODS, Step.PAGE, writes=(Mirror(PODS, mirrored("a", status=status)),))])
    (stored,) = store.find(PODS)
    (container,) = stored.read(Pod).status.container_statuses
    assert (container.state.terminated.exit_code, container.state.terminated.started_at) == (137, "")
    assert "startTime" not in stored.object["status"]


def test_object_that_cannot_be_mirrored_does_not_keep_the_others_out():
    writes = (Mirror(PODS, pod("x", uid="", resourceVersion="8")), Mirror(PODS, mirrored("a")))
    recorder.record([News(PODS, Step.PAGE, writes=writes)])
    assert [one.name for one in store.find(PODS)] == ["a"]


def test_kind_that_is_gone_takes_its_objects_with_it():
    recorder.record([News(PODS, Step.PAGE, writes=(Mirror(PODS, mirrored("a", "99")),)), News(PODS, Step.ABSENT)])
    assert recorder.standings()[PODS.id].phase is Phase.ABSENT
    # What is newer than nothing is gone all the same.
    assert store.find(PODS) == []


def test_answer_of_a_kind_that_is_not_mirrored_is_not_kept():
    (answered,) = recorder.confirm(SECRETS, [mirrored("s")])
    assert (answered.name, answered.revision) == ("s", 0)
    assert store.find(SECRETS) == []


HEARD = 1_800_000_000_000
ABSENT = Standing(phase=Phase.ABSENT)


def cluster(heard=HEARD, away=0, reason=""):
    return MirroredCluster(server="https://x", heard=heard, away=away, reason=reason)


def refused(since, reason="no"):
    return Standing(phase=Phase.REFUSED, since=since, reason=reason)


def away(since):
    return Standing(phase=Phase.AWAY, since=since, reason="timed out")


@cases("known, standings, said", {
    "nothing": (None, {}, (Word.LOADING, 0, "it has not answered yet")),
    "live": (cluster(), {PODS: LIVE}, (Word.LIVE,)),
    "answers, and nothing is listed": (cluster(), {}, (Word.LOADING,)),
    "loading": (cluster(), {PODS: replace(LOADING, objects_read=3500), JOBS: LIVE}, (Word.LOADING, 0, "pods, 3,500 objects so far")),
    "away": (cluster(away=7, reason="connection refused"), {PODS: LIVE}, (Word.AWAY, 7, "connection refused")),
    "nobody follows": (cluster(HEARD - 30_000), {PODS: LIVE}, (Word.UNKNOWN, HEARD - 30_000, "the program “mirror” does not run")),
    "a kind may not be read": (cluster(), {PODS: refused(5), JOBS: LIVE}, (Word.PARTLY, 5, "pods: no")),
    "nothing may be read": (cluster(), {PODS: refused(6), NODES: refused(5, "nodes is forbidden"), JOBS: ABSENT}, (Word.REFUSED, 5, "nodes is forbidden")),
    "who refuses is there": (cluster(), {PODS: away(4), NODES: refused(5)}, (Word.REFUSED, 5, "no")),
    "no kind answers": (cluster(), {PODS: away(6)}, (Word.AWAY, 6, "timed out")),
    "a kind is not there": (cluster(), {PODS: LIVE, JOBS: ABSENT}, (Word.LIVE,)),
})  # fmt: skip
def test_worst_that_is_known_counts(known, standings, said):
    found = freshness.judge("dev", known, {kind.id: each for kind, each in standings.items()}, HEARD)
    assert found == Freshness("dev", *said)


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


@cases("heard, away, begun, is_followed", {
    "of late, whoever heard it": (-1_000, 0, 0, True),
    "since it began": (-1_000, 0, -2_000, True),
    "by the one before": (-3_000, 0, -2_000, False),
    "long ago": (-30_000, 0, 0, False),
    "missed since it began": (-60_000, -1_000, -2_000, True),
    "missed by the one before": (-60_000, -50_000, -2_000, False),
    "still missed when it has asked": (-60_000, -50_000, -5_000, True),
})  # fmt: skip
def test_a_mirror_has_reported_only_what_it_has_found_itself(heard, away, begun, is_followed):
    known = cluster(HEARD + heard, HEARD + away if away else 0)
    assert freshness.is_followed(known, HEARD + begun if begun else 0, HEARD) == is_followed
