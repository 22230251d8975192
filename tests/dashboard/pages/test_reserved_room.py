"""Who keeps room, on overview, queue, node and job, and who may give it back from there."""

import pytest

from cluster import clock
from cluster.api import backend
from cluster.models import AuditEntry
from cluster.remote.backend import Remote
from cluster.remote.in_place import InPlace
from cluster.store import Patch, store
from kube.meta import moment_of, now_text, parse_time
from kube.resources import JOBS, POD_GROUPS
from kube.volcano import reserved_room
from kube.volcano.reserved_room import Reservation
from tests.builders import job, owner, pod_group
from tests.dashboard.pages.conftest import page, put, reader
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")

PLACES = ((("one", 1), ("sim-1", 2)),)
REQUESTS = ((("cpu", 1000), ("memory", 2 << 30)),)
PAGES = ("/", "/queues/vision/", "/nodes/one/")
ROOM = ("/ overview-room", "/queues/vision/ queue-room", "/nodes/one/ node-room node-use")
HOUR_MS = 3_600_000


def keep(
    name="big", namespace="team-a", *,
    queue="vision", creator="sam", places=PLACES, requests=REQUESTS, expected=None, later=None,
):  # fmt: skip
    """Have a job for which room is kept; return its pod group."""
    notes, since = {"ui.volcano.sh/created-by": creator}, clock.milliseconds()
    pending = {"phase": "Pending", "message": "It waits."}
    made = job(name, namespace=namespace, annotations=notes, queue=queue, minAvailable=3, status={"state": pending})
    (stored,) = put((JOBS, made))
    data = reserved_room.data(Reservation(since, HOUR_MS, expected, places, requests, later))
    condition = {"type": reserved_room.DATA, "status": "True", "reason": "RoomKept", "message": data}
    (group,) = put((POD_GROUPS, pod_group(
        f"{name}-{stored.uid}", 3, namespace=namespace, annotations=notes, queue=queue,
        ownerReferences=[{**owner(made), "uid": stored.uid}],
        status={"phase": "Inqueue", "conditions": [{**condition, "lastTransitionTime": now_text(since)}]},
    )))  # fmt: skip
    return group


def release_of(group):
    return f"/room/{group.namespace}/{group.name}/release/"


def released(group):
    annotations = store.get(POD_GROUPS, group.namespace, group.name).object["metadata"]["annotations"]
    return annotations.get(reserved_room.RELEASED)


@cases("expected, until", {
    "nobody knows when it starts": (None, HOUR_MS), "it starts soon": (600_000, HOUR_MS),
    "it starts late": (7_200_000, 7_500_000),
})  # fmt: skip
def test_the_overview_says_who_keeps_what_where_since_when_and_until_when(admin, moved_clock, reads, expected, until):
    now = clock.milliseconds()
    keep(expected=expected and now + expected, later=now + until if until > HOUR_MS else None)
    reads(admin, ROOM[0])
    message = f"given back at {moment_of(now + until):%Y-%m-%d %H:%M:%S} UTC if it has not started by then"
    assert message in page(admin, "/").text(id="overview-room")


def test_queues_above_and_nodes_say_what_is_kept_and_not_for_whom_to_who_may_not_see_it(admin, alice, reads):
    beside = [f"/queues/{name}/ queue-room" for name in ("research", "root", "default")]
    reads(admin, *ROOM, *beside)
    keep()
    reads(admin, *ROOM, *beside, "/jobs/team-a/big/ job-why")
    keep("more", places=((("one", 5),),))
    reads(admin, ROOM[2])
    keep("first", places=(), requests=())
    keep("old", requests=())
    keep("many", places=(tuple((f"n{number}", 1) for number in range(6)),))
    reads(admin, ROOM[0])
    keep("secret", "team-b")
    for address in (*ROOM[:2], *(f"/?namespace={namespace} overview-room" for namespace in ("team-a", "team-b"))):
        reads(alice, address)


@cases("role, name, may", {
    "who created the job": ("submitter", "sam", True), "another submitter": ("submitter", "somebody", False),
    "an operator": ("operator", "olga", True), "an administrator": ("administrator", "ada", True),
    "a viewer": ("viewer", "vera", False),
})  # fmt: skip
def test_the_button_is_for_whoever_may_change_the_group(role, name, may):
    group, browser = keep(), reader(name, role, "team-a")
    for address in (*PAGES, "/jobs/team-a/big/"):
        assert (release_of(group) in page(browser, address).actions()) == may, address
    answer = browser.post(release_of(group), {"next": "/queues/vision/"})
    assert (answer.status_code, answer["Location"]) == (302, "/queues/vision/")
    assert (released(group) is not None) == may
    message = "The room that was kept for big is given back." if may else "It takes the role operator in team-a"
    assert message in page(browser, "/").text(id="toasts")


def test_released_room_is_nowhere_any_more_and_that_is_audited(operator, reads):
    group = keep()
    before = clock.milliseconds()
    operator.post(release_of(group), {"uid": group.uid})
    assert before <= parse_time(released(group)) <= clock.milliseconds()
    reads(operator, *ROOM)
    (entry,) = AuditEntry.objects.filter(resource=POD_GROUPS.id, name=group.name)
    assert (entry.actor, entry.verb, entry.outcome) == ("olga", "patch", "done")


def test_only_the_group_that_was_seen_is_meant_and_only_while_room_is_kept_for_it(operator):
    group, other = keep(), keep("other")
    operator.post(release_of(group), {"uid": "another"})
    assert released(group) is None
    store.write(Patch(POD_GROUPS, "team-a", group.name, {"status": {"conditions": []}}, "status"))
    operator.post(release_of(group), {"uid": group.uid})
    assert released(group) is None
    assert "no room is kept for it any more" in page(operator, "/").text(id="toasts")
    operator.post(release_of(other), {"uid": ""})
    assert released(other)


@cases("way, is_offered", {"its own scheduler works": (Remote(), False), "ours works": (InPlace(), True)})
def test_the_button_stands_where_our_scheduler_works(admin, monkeypatch, way, is_offered):
    group = keep()
    monkeypatch.setattr(backend, "runs", way.runs)
    assert (release_of(group) in page(admin, "/").actions()) == is_offered
