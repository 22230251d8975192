"""Who works on a cluster, what is planned and sent there, and what is waited for."""

import pytest

from cluster import clock
from cluster.models import Cursor
from cluster.remote import outcomes, recorder
from cluster.remote.dispatch.progress import Progress
from cluster.remote.dispatch.sending import AT_ONCE, Pace
from cluster.remote.dispatch.verdicts import Again, Done
from cluster.remote.in_place import InPlace
from cluster.remote.leader_election import election, lease
from cluster.remote.leader_election.election import MARGIN_MS, Leadership
from cluster.remote.leader_election.lease import DURATION_S, ObservedLease
from cluster.remote.mirroring import kinds, reflection
from cluster.remote.mirroring.reflection import Step, Update
from cluster.runtime import division, registry
from cluster.store import store
from cluster.writes import Delete, Group, Mirror, Patch
from kube.errors import ServiceUnavailable, TooManyRequests
from kube.resources import CONFIGMAPS, PODS, SECRETS, SERVICES
from tests import builders
from tests.blocks import blocks
from tests.cluster.objects import of_values
from tests.tables import cases

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def in_place(settings):
    settings.WAY = "in-place"
    recorder.claim("https://one")


def pod(name, version="8", node=None, **fields):
    return builders.pod(name, namespace="d", uid=f"u-{name}", resourceVersion=version, nodeName=node, **fields)


def test_only_who_leads_plans_and_only_from_whole_kinds_and_controllers_of_kubernetes_do_not_run():
    backend, queues = InPlace(), registry.get("queues")
    leads = Leadership("me", "me/0", clock.milliseconds() + 60_000)
    assert not backend.may_plan(queues, 0, store)
    election.note(leads)
    assert not backend.may_plan(queues, 0, store), "nothing was listed"
    recorder.record([Update(kind, Step.LISTED, version="9") for kind in queues.resources])
    assert backend.may_plan(queues, 0, store)
    election.note(Leadership("me", "me/0", clock.milliseconds()))
    assert not backend.may_plan(queues, 0, store), "the Lease may be somebody else's by now"
    assert backend.may_plan(registry.get("history"), 0, store), "history only reads"
    running = {each.name for each in registry.every() if backend.runs(each)}
    assert running == {"jobs", "queues", "scheduler", "jobflows", "cronjobs", "hypernodes", "history"}


def test_what_others_have_seen_to_is_passed_and_the_rest_is_heard():
    for name, position in (("queues/0", 3), ("jobs/0", 12), ("history/0", 3)):
        Cursor.objects.create(name=name, position=position, generation=1)
    division.skip(["queues/0", "jobs/0"], 10, store.using)
    found = {each.name: (each.position, each.generation) for each in Cursor.objects.all()}
    assert found == {"queues/0": (10, 2), "jobs/0": (12, 1), "history/0": (3, 1)}


def test_more_is_mirrored_where_controllers_work_and_of_secrets_no_content_and_another_way_lists_all_again(settings):
    assert {SERVICES, SECRETS} <= set(recorder.followed())
    assert CONFIGMAPS.id not in kinds.selectors(works=True)
    assert CONFIGMAPS.id in kinds.selectors(works=False)
    secret = {**pod("s"), "data": {"key": "c2VjcmV0"}}
    assert "data" not in recorder.confirm(SECRETS, [secret])[0].object
    event = reflection.read_event(SECRETS, {"type": "ADDED", "object": secret}, after="1")
    assert "data" not in event.write.object
    recorder.choose()
    recorder.record([Update(PODS, Step.LISTED, version="9")])
    recorder.choose()
    assert recorder.statuses([PODS])[PODS.id].version == "9"
    settings.WAY = "beside"
    recorder.choose()
    assert recorder.statuses([PODS])[PODS.id].version == ""


BIND = Patch(PODS, "d", "a", {"spec": {"nodeName": "n"}}, "binding", uid="u-a")
DELETE = Delete(PODS, "d", "a", uid="u-a")


@cases("write, verdict, after, is_waited_for", {
    "unbound here": (BIND, Done(), pod("a"), True),
    "bound here": (BIND, Done(), pod("a", "9", "n"), False),
    "still here": (DELETE, Done(), pod("a"), True),
    "said to be ending": (DELETE, Done(pod("a", "9")), pod("a"), False),
    "gone": (Delete(PODS, "d", "a", uid="u-z"), Done(), pod("a"), False),
})  # fmt: skip
def test_what_no_answer_shows_is_waited_for(write, verdict, after, is_waited_for):
    recorder.record([Update(PODS, Step.PAGE, writes=(Mirror(PODS, after),))])
    progress = Progress(Group([write]))
    progress.note_sent(0)
    progress.note_verdict(0, verdict)
    assert outcomes.unseen([progress], store) is is_waited_for


def test_pace_obeys_a_busy_server_and_tries_a_silent_one_alone():
    pace = Pace()
    assert pace.room(0.0, 2) == AT_ONCE - 2
    pace.note_verdict(Again(TooManyRequests("slowly"), may_be_done=False, after_s=7.0), 10.0)
    assert [pace.room(10.0, 0), pace.room(16.9, 0), pace.room(17.1, 0)] == [0, 0, AT_ONCE]
    pace.note_verdict(Again(ServiceUnavailable("away"), is_away=True), 20.0)
    assert pace.room(20.0, 0) == 0
    assert [pace.room(29.0, 0), pace.room(29.0, 1)] == [1, 0]
    pace.note_verdict(Done(), 29.0)
    assert pace.room(29.0, 0) == AT_ONCE


MOMENT = "2026-11-23T12:00:00.000000Z"


def held(by, version="7"):
    spec = {"holderIdentity": by, "leaseDurationSeconds": DURATION_S, "acquireTime": "then"}
    return {"metadata": {"name": lease.NAME, "namespace": "n", "resourceVersion": version}, "spec": spec}


def test_lease_is_seen_from_the_moment_in_which_it_changed():
    first = lease.observe(None, held("other"), 100.0)
    assert lease.observe(first, held("other"), 110.0) is first
    assert lease.observe(first, held("other", "8"), 110.0).since == 110.0
    assert lease.observe(first, None, 110.0) == ObservedLease("", "", DURATION_S, 110.0)


@blocks("turns", folder="cluster")
def test_turn(block, golden):
    golden(block, of_values(lambda now, *sight: lease.turn(ObservedLease(*sight), "me", now)))


def test_term_lasts_while_nobody_else_has_the_lease():
    first = lease.content("n", "me", MOMENT, None)
    first["metadata"]["resourceVersion"] = "1"
    renewed = lease.content("n", "me", "later", first)
    assert renewed["spec"]["renewTime"] == "later"
    assert lease.term_of(renewed) == lease.term_of(first)
    assert renewed["metadata"]["resourceVersion"] == "1", "nobody may have written it meanwhile"
    taken = lease.content("n", "other", "later still", renewed | {"metadata": first["metadata"]})
    back = lease.content("n", "me", MOMENT, taken)
    assert [each["spec"]["leaseTransitions"] for each in (first, renewed, taken, back)] == [0, 0, 1, 2]
    assert lease.term_of(back) != lease.term_of(first)


def of_volcano(part, phase="Running"):
    return builders.pod(f"volcano-{part}-7d9f", labels={"app": f"volcano-{part}"}, status={"phase": phase})


def test_volcano_at_work_hinders_us_and_one_that_is_gone_does_not():
    leases = {"vc-scheduler": ObservedLease("7", "host_uuid", 15, 10.0), "volcano": ObservedLease()}
    text = lease.hindrance(leases, 20.0)
    assert "(host)" in text
    assert "VOLCANO_UI_WAY" in text
    assert lease.hindrance(leases, 25.0) == ""


@cases("pods, working", {
    "none": ([], ""),
    "scheduler": ([of_volcano("scheduler")], "(volcano-scheduler)"),
    "both": ([of_volcano("scheduler"), of_volcano("controller")], "(volcano-controller, volcano-scheduler)"),
    "about to run": ([of_volcano("scheduler", "Pending")], "(volcano-scheduler)"),
    "ended": ([of_volcano("scheduler", "Failed"), of_volcano("controller", "Succeeded")], ""),
    "its webhooks": ([of_volcano("admission")], ""),
    "without labels": ([{"metadata": {"name": "plain"}}], ""),
})  # fmt: skip
def test_volcano_without_leases_hinders_us_while_its_pods_are_there(pods, working):
    """Its installer starts it with --leader-elect=false."""
    leases = lease.running(pods, 100.0)
    assert working in lease.hindrance(leases, 100.0)
    assert bool(lease.hindrance(leases, 100.0)) == bool(working)
    assert lease.hindrance(leases, 100.0 + DURATION_S) == "", "its pods are gone"
    later = lease.running(pods, 102.0)
    assert all(leases[name].version != later[name].version for name in leases), "each look is news of who works"


def test_nothing_is_sent_that_might_arrive_in_the_time_of_somebody_else():
    leadership = Leadership("me", "me/0", until=100_000)
    assert leadership.is_held(100_000 - MARGIN_MS - 1)
    assert not leadership.is_held(100_000 - MARGIN_MS)
    assert not Leadership(hindrance="another one").is_held(0)
