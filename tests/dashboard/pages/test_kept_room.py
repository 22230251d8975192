"""Who keeps room, on overview, queue, node and job, and who may give it back from there."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cluster import clock
from cluster.api import backend
from cluster.models import AuditEntry
from cluster.remote.backend import Remote
from cluster.remote.in_place import InPlace
from cluster.store import Patch, store
from kube import kept_room
from kube.kept_room import Reservation
from kube.meta import now_text, parse_time
from kube.resources import JOBS, POD_GROUPS
from tests.builders import job, owner, pod_group
from tests.dashboard.pages.conftest import page, put, reader
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")

PLACES = ((("one", 1), ("sim-1", 2)),)
REQUESTS = ((("cpu", 1000), ("memory", 2 << 30)),)
PAGES = ("/", "/queues/vision/", "/nodes/one/")


def keep(
    name="big", namespace="team-a", *,
    queue="vision", creator="sam", places=PLACES, requests=REQUESTS, expected=None, later=None,
):  # fmt: skip
    """Have a job for which room is kept; return its pod group."""
    notes, since = {"ui.volcano.sh/created-by": creator}, clock.milliseconds()
    pending = {"phase": "Pending", "message": "It waits."}
    made = job(name, namespace=namespace, annotations=notes, queue=queue, minAvailable=3, status={"state": pending})
    (stored,) = put((JOBS, made))
    said = kept_room.message(Reservation(since, 3_600_000, expected, places, requests, later))
    condition = {"type": "Reserved", "status": "True", "reason": "RoomKept", "message": said}
    (group,) = put((POD_GROUPS, pod_group(
        f"{name}-{stored.uid}", 3, namespace=namespace, annotations=notes, queue=queue,
        ownerReferences=[{**owner(made), "uid": stored.uid}],
        status={"phase": "Inqueue", "conditions": [{**condition, "lastTransitionTime": now_text(since)}]},
    )))  # fmt: skip
    return group


def panel(browser, address):
    part = {"/": "overview-room", "/nodes/one/": "node-room"}.get(address, "queue-room")
    return page(browser, address).text(id=part)


def release_of(group):
    return f"/room/{group.namespace}/{group.name}/release/"


def released(group):
    annotations = store.get(POD_GROUPS, group.namespace, group.name).object["metadata"]["annotations"]
    return annotations.get(kept_room.RELEASED)


@pytest.mark.parametrize("address", [*PAGES, "/queues/research/", "/queues/default/"])
def test_nothing_is_said_where_nothing_is_kept(admin, address):
    assert panel(admin, address) == ""


@cases("expected, until", {
    "nobody knows when it starts": (None, 3_600_000),
    "it starts soon": (600_000, 3_600_000),
    "it starts late": (7_200_000, 7_500_000),
})  # fmt: skip
def test_the_overview_says_who_keeps_what_where_since_when_and_until_when(admin, monkeypatch, expected, until):
    now = clock.milliseconds()
    monkeypatch.setattr(clock, "milliseconds", lambda: now)
    keep(expected=expected and now + expected, later=now + until if until > 3_600_000 else None)
    said = datetime.fromtimestamp((now + until) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    shown = panel(admin, "/")
    assert "team-a / big queue vision 3 CPU, 6 GiB memory on one , sim-1 since" in shown
    assert ("expected to start at" in shown) == bool(expected)
    assert f"; given back at {said} if it has not started by then" in shown


@cases("address, is_said", {
    "its queue": ("/queues/vision/", True),
    "the queue above": ("/queues/research/", True),
    "root": ("/queues/root/", True),
    "another queue": ("/queues/default/", False),
})  # fmt: skip
def test_a_queue_says_what_is_kept_for_it_and_for_those_below(admin, address, is_said):
    keep()
    assert ("3 CPU, 6 GiB memory on one" in panel(admin, address)) == is_said


def test_a_node_says_what_is_kept_on_it_and_tells_it_apart_from_what_is_idle(admin):
    keep()
    shown = page(admin, "/nodes/one/")
    assert "team-a / big queue vision 1 CPU, 2 GiB memory since" in shown.text(id="node-room")
    assert "CPU 6 of 8, 1 of the rest kept" in shown.text(id="node-use")
    assert "Pods 3 of 110, 1 of the rest kept" in shown.text(id="node-use")
    keep("more", places=((("one", 5),),))
    assert "CPU 6 of 8, 2 of the rest kept" in page(admin, "/nodes/one/").text(id="node-use")


def test_a_place_in_line_and_what_an_earlier_version_wrote_are_said_as_far_as_they_are_known(admin):
    keep(places=(), requests=())
    keep("old", requests=())
    keep("many", places=(tuple((f"n{number}", 1) for number in range(6)),))
    shown = panel(admin, "/")
    assert "team-a / big queue vision is first in line" in shown
    assert "team-a / old queue vision 3 pods on one" in shown
    assert "6 CPU, 12 GiB memory on n0 , n1 , n2 , n3 and 2 more nodes" in shown


def test_who_may_not_see_a_namespace_is_told_how_much_is_kept_and_not_for_whom(alice):
    keep("secret", "team-b")
    for address in ("/", "/queues/vision/"):
        shown = panel(alice, address)
        assert "A job of a namespace that you may not see queue vision 3 CPU, 6 GiB memory on 2 nodes" in shown
        assert "secret" not in shown
    for namespace in ("team-a", "team-b"):
        assert page(alice, f"/?namespace={namespace}").text(id="overview-room") == ""
    keep()
    assert "big" in page(alice, "/?namespace=team-a").text(id="overview-room")


def test_that_room_is_kept_is_not_told_as_why_a_job_waits_in_the_words_of_its_status(admin):
    keep()
    shown = page(admin, "/jobs/team-a/big/").text(id="job-why")
    assert "It waits." in shown
    assert "Kept for" not in shown


# Releasing


@cases("role, name, may", {
    "who created the job": ("submitter", "sam", True),
    "another submitter": ("submitter", "somebody", False),
    "an operator": ("operator", "olga", True),
    "an administrator": ("administrator", "ada", True),
    "a viewer": ("viewer", "vera", False),
})  # fmt: skip
def test_the_button_is_for_whoever_may_change_the_group(role, name, may):
    group, browser = keep(), reader(name, role, "team-a")
    for address in (*PAGES, "/jobs/team-a/big/"):
        assert (release_of(group) in page(browser, address).actions()) == may, address
    answer = browser.post(release_of(group), {"next": "/queues/vision/"})
    assert (answer.status_code, answer["Location"]) == (302, "/queues/vision/")
    assert (released(group) is not None) == may
    said = "The room that was kept for big is given back." if may else "It takes the role operator in team-a"
    assert said in page(browser, "/").text(id="toasts")


def test_released_room_is_nowhere_any_more_and_that_is_audited(operator):
    group = keep()
    before = clock.milliseconds()
    operator.post(release_of(group), {"uid": group.uid})
    assert before <= parse_time(released(group)) <= clock.milliseconds()
    assert [panel(operator, address) for address in PAGES] == ["", "", ""]
    (entry,) = AuditEntry.objects.filter(resource=POD_GROUPS.id, name=group.name)
    assert (entry.actor, entry.verb, entry.outcome) == ("olga", "patch", "done")


@cases("uid", {
    "another group of the name": "another",
    "none said": "",
})  # fmt: skip
def test_only_the_group_that_was_seen_is_meant(operator, uid):
    group = keep()
    operator.post(release_of(group), {"uid": uid})
    assert (released(group) is None) == bool(uid)


def test_only_the_group_that_was_seen_is_meant_and_only_while_room_is_kept_for_it(operator):
    group = keep()
    operator.post(release_of(group), {"uid": "another"})
    assert released(group) is None
    store.write(Patch(POD_GROUPS, "team-a", group.name, {"status": {"conditions": []}}, "status"))
    operator.post(release_of(group), {"uid": group.uid})
    assert released(group) is None
    assert "no room is kept for it any more" in page(operator, "/").text(id="toasts")
    other = keep("other")
    operator.post(release_of(other), {"uid": ""})
    assert released(other)


@cases("way, is_offered", {
    "a cluster whose own scheduler works": (Remote(), False),
    "a cluster on which ours works": (InPlace(), True),
})  # fmt: skip
def test_the_button_stands_where_our_scheduler_works(admin, monkeypatch, way, is_offered):
    group = keep()
    monkeypatch.setattr(backend, "runs", way.runs)
    assert (release_of(group) in page(admin, "/").actions()) == is_offered
