"""When plans are made and sent on another cluster, and what is waited for."""

from __future__ import annotations

import pytest

from cluster import clock
from cluster.models import Cursor
from cluster.remote import carried, election, kinds, recorder, reflection
from cluster.remote.election import Leadership
from cluster.remote.in_place import InPlace
from cluster.remote.progress import Progress
from cluster.remote.reflection import News, Phase, Standing, Step
from cluster.remote.sending import AT_ONCE, Pace
from cluster.remote.verdicts import Again, Done
from cluster.runtime import division, registry
from cluster.store import store
from cluster.writes import Delete, Group, Mirror, Patch
from kube.errors import ServiceUnavailable, TooManyRequests
from kube.resources import CONFIGMAPS, PODS, SECRETS, SERVICES

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def in_place(settings):
    settings.WAY = "in-place"
    recorder.claim("https://one")


def pod(name, version="8", node=""):
    metadata = {"name": name, "namespace": "d", "uid": f"u-{name}", "resourceVersion": version}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}}


@pytest.mark.parametrize(
    ("standing", "is_whole"),
    [
        (None, False),
        (Standing(phase=Phase.LOADING), False),
        (Standing("7", phase=Phase.LIVE), True),
        (Standing("7", phase=Phase.AWAY), True),
        (Standing("7", anew=True, phase=Phase.LIVE), False),
        (Standing(phase=Phase.ABSENT), True),
    ],
    ids=["never heard of", "being read", "live", "away", "begun anew", "not served"],
)
def test_kind_is_whole_once_it_was_listed(standing, is_whole):
    standings = {} if standing is None else {PODS.id: standing}
    assert reflection.not_whole(standings, [PODS.id]) == ([] if is_whole else [PODS.id])


def test_only_who_leads_plans_and_only_from_whole_kinds():
    backend, queues = InPlace(), registry.get("queues")
    leads = Leadership("me", "me/0", clock.milliseconds() + 60_000)
    assert not backend.may_plan(queues, 0, store)
    election.note(leads)
    assert not backend.may_plan(queues, 0, store), "nothing was listed"
    recorder.record([News(kind, Step.LISTED, version="9") for kind in queues.resources])
    assert backend.may_plan(queues, 0, store)
    election.note(Leadership("me", "me/0", clock.milliseconds()))
    assert not backend.may_plan(queues, 0, store), "the Lease may be somebody else's by now"
    assert backend.may_plan(registry.get("history"), 0, store), "history only reads"


def test_controllers_of_kubernetes_do_not_run():
    running = {each.name for each in registry.every() if InPlace().runs(each)}
    assert running == {"jobs", "queues", "scheduler", "jobflows", "cronjobs", "hypernodes", "history"}


def test_what_others_have_seen_to_is_passed_and_the_rest_is_heard():
    for name, position in (("queues/0", 3), ("jobs/0", 12), ("history/0", 3)):
        Cursor.objects.create(name=name, position=position, generation=1)
    division.skip(["queues/0", "jobs/0"], 10, store.using)
    found = {each.name: (each.position, each.generation) for each in Cursor.objects.all()}
    assert found == {"queues/0": (10, 2), "jobs/0": (12, 1), "history/0": (3, 1)}


def test_more_is_mirrored_where_controllers_work_and_of_secrets_no_content():
    assert {SERVICES, SECRETS} <= set(recorder.followed())
    assert CONFIGMAPS.id not in kinds.selectors(works=True)
    assert CONFIGMAPS.id in kinds.selectors(works=False)
    secret = {**pod("s"), "data": {"key": "c2VjcmV0"}}
    assert "data" not in recorder.confirm(SECRETS, [secret])[0].object
    event = reflection.read_event(SECRETS, {"type": "ADDED", "object": secret}, after="1")
    assert "data" not in event.write.object


def test_another_way_has_all_listed_again(settings):
    recorder.choose()
    recorder.record([News(PODS, Step.LISTED, version="9")])
    recorder.choose()
    assert recorder.standings([PODS])[PODS.id].version == "9"
    settings.WAY = "beside"
    recorder.choose()
    assert recorder.standings([PODS])[PODS.id].version == ""


BIND = Patch(PODS, "d", "a", {"spec": {"nodeName": "n"}}, "binding", uid="u-a")


@pytest.mark.parametrize(
    ("write", "verdict", "after", "is_waited_for"),
    [
        (BIND, Done(), pod("a"), True),
        (BIND, Done(), pod("a", "9", "n"), False),
        (Delete(PODS, "d", "a", uid="u-a"), Done(), pod("a"), True),
        (Delete(PODS, "d", "a", uid="u-a"), Done(pod("a", "9")), pod("a"), False),
        (Delete(PODS, "d", "a", uid="u-z"), Done(), pod("a"), False),
    ],
    ids=["unbound here", "bound here", "still here", "said to be ending", "gone"],
)
def test_what_no_answer_shows_is_waited_for(write, verdict, after, is_waited_for):
    recorder.record([News(PODS, Step.PAGE, writes=(Mirror(PODS, after),))])
    progress = Progress(Group([write]))
    progress.sent(0)
    progress.heard(0, verdict)
    assert carried.unseen([progress], store) is is_waited_for


def test_pace_obeys_a_busy_server_and_tries_a_silent_one_alone():
    pace = Pace()
    assert pace.room(0.0, 2) == AT_ONCE - 2
    pace.heard(Again(TooManyRequests("slowly"), may_be_done=False, after_s=7.0), 10.0)
    assert [pace.room(10.0, 0), pace.room(16.9, 0), pace.room(17.1, 0)] == [0, 0, AT_ONCE]
    pace.heard(Again(ServiceUnavailable("away"), is_away=True), 20.0)
    assert pace.room(20.0, 0) == 0
    assert [pace.room(29.0, 0), pace.room(29.0, 1)] == [1, 0]
    pace.heard(Done(), 29.0)
    assert pace.room(29.0, 0) == AT_ONCE
