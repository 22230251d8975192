"""What is written down of another cluster beside its objects, and what is kept of an answer."""

from __future__ import annotations

import pytest

from cluster.models import MirroredCluster, MirroredKind
from cluster.remote import recorder
from cluster.remote.reflection import News, Phase, Step
from cluster.store import store
from cluster.writes import Mirror
from kube.kinds.pod import Pod
from kube.resources import PODS, SECRETS

pytestmark = pytest.mark.django_db


def pod(name, version="8"):
    return {"metadata": {"name": name, "namespace": "d", "uid": f"uid-{name}", "resourceVersion": version}}


@pytest.fixture(autouse=True)
def claimed():
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
    writes = tuple(Mirror(PODS, pod(name)) for name in "ab")
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
    recorder.record([News(PODS, Step.PAGE, writes=(Mirror(PODS, {**pod("a"), "status": status}),))])
    (stored,) = store.find(PODS)
    (container,) = stored.read(Pod).status.container_statuses
    assert (container.state.terminated.exit_code, container.state.terminated.started_at) == (137, "")
    assert "startTime" not in stored.object["status"]


def test_object_that_cannot_be_mirrored_does_not_keep_the_others_out():
    broken = {"metadata": {"name": "x", "namespace": "d", "uid": "", "resourceVersion": "8"}}
    recorder.record([News(PODS, Step.PAGE, writes=(Mirror(PODS, broken), Mirror(PODS, pod("a"))))])
    assert [one.name for one in store.find(PODS)] == ["a"]


def test_kind_that_is_gone_takes_its_objects_with_it():
    recorder.record([News(PODS, Step.PAGE, writes=(Mirror(PODS, pod("a", "99")),)), News(PODS, Step.ABSENT)])
    assert recorder.standings()[PODS.id].phase is Phase.ABSENT
    # What is newer than nothing is gone all the same.
    assert store.find(PODS) == []


def test_answer_of_a_kind_that_is_not_mirrored_is_not_kept():
    (answered,) = recorder.confirm(SECRETS, [pod("s")])
    assert (answered.name, answered.revision) == ("s", 0)
    assert store.find(SECRETS) == []
