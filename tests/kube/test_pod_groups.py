"""Whose a pod group is, and what room is kept for it, read from the stored group."""

from __future__ import annotations

import json

from kube import kept_room
from kube.kept_room import KeptRoom, Reservation
from kube.meta import now_text
from kube.pod_groups import job_of
from tests.tables import cases

MADE = 1_767_225_600_000
UID = "0b0e3f0e-6f2a-4c3e-9d5c-2f3a4b5c6d7e"
PLACES = ((("n1", 2), ("n2", 4)), (), (("n2", 1),))
REQUESTS = ((("cpu", 2000), ("memory", 4 << 30)), (), (("cpu", 500), ("nvidia.com/gpu", 1)))
KEPT = Reservation(MADE, 3_600_000, MADE + 600_000, PLACES, REQUESTS)
TEXT = (
    "Kept for 1h0m0s at most; expected at 2026-01-01T00:10:00.000000Z; on n1: 2, n2: 4 / - / n2: 1; "
    "each cpu: 2, memory: 4Gi / - / cpu: 500m, nvidia.com/gpu: 1"
)


@cases("name, job", {
    "of a job": (f"train-{UID}", "train"),
    "a name with dashes": (f"a.b-c-{UID}", "a.b-c"),
    "no uid": (f"train-{UID[:-1]}", ""),
    "made for pods without one": (f"podgroup-{UID}", ""),
    "made by hand": ("mine", ""),
    "no name": (f"-{UID}", ""),
})  # fmt: skip
def test_a_group_is_called_by_its_job(name, job):
    assert job_of(name) == job


def group(message=TEXT, *, status="True", annotations=None, queue="q", since=MADE):
    condition = {
        "type": "Reserved", "status": status, "message": message, "reason": "RoomKept", "lastTransitionTime": now_text(since)
    }  # fmt: skip
    metadata = {"namespace": "ns", "name": f"train-{UID}", "uid": "u", "annotations": annotations}
    conditions = [{"type": "Unschedulable", "status": "True"}, condition]
    return {"metadata": metadata, "spec": {"queue": queue}, "status": {"conditions": conditions}}


def read(made):
    return kept_room.kept_for("ns", f"train-{UID}", json.dumps(made).encode())


def test_what_is_kept_is_read_from_the_group_that_it_is_kept_for():
    found = read(group(annotations={"ui.volcano.sh/created-by": "alice"}))
    assert found == KeptRoom("ns", f"train-{UID}", "u", "q", "train", "alice", KEPT)
    assert kept_room.message(KEPT) == TEXT
    assert found.on_nodes() == {
        "n1": {"cpu": 4000, "memory": 8 << 30, "pods": 2},
        "n2": {"cpu": 8500, "memory": 16 << 30, "nvidia.com/gpu": 1, "pods": 5},
    }
    assert found.total() == {"cpu": 12_500, "memory": 24 << 30, "nvidia.com/gpu": 1, "pods": 7}
    released = {kept_room.RELEASED: now_text(MADE - 1)}
    assert read(group(annotations=released)).reservation == KEPT, "after other room was given back"


@cases("said, until", {
    "for its time": ("Kept for 5m0s at most", MADE + 300_000),
    "expected sooner": ("Kept for 5m0s at most; expected at 2026-01-01T00:04:00.000000Z", MADE + 300_000),
    "expected late": (
        "Kept for 5m0s at most, or until 2026-01-01T01:05:00.000000Z; expected at 2026-01-01T01:00:00.000000Z",
        MADE + 3_900_000),
})  # fmt: skip
def test_until_when_it_is_kept_at_most(said, until):
    reservation = read(group(said)).reservation
    assert reservation.until == until
    assert kept_room.message(reservation) == said


@cases("message, on_nodes", {
    "a place in line": ("Kept for 5m0s at most", {}),
    "by a version that did not write how much": ("Kept for 5m0s at most; on n1: 2", {"n1": {"pods": 2}}),
    "of some tasks alone": ("Kept for 5m0s at most; on n1: 2 / n1: 1; each cpu: 1", {"n1": {"cpu": 2000, "pods": 3}}),
})  # fmt: skip
def test_what_is_not_said_is_not_made_up(message, on_nodes):
    assert read(group(message)).on_nodes() == on_nodes


@cases("made", {
    "that is over": group(status="False"),
    "other words": group("Given back after 1h0m0s"),
    "no number of pods": group("Kept for 5m0s at most; on n1: many"),
    "no amount": group("Kept for 5m0s at most; on n1: 2; each cpu: much"),
    "half an amount": group("Kept for 5m0s at most; on n1: 2; each cpu"),
    "no conditions": {**group(), "status": {"conditions": "Reserved"}},
    "nothing": {**group(), "status": {}},
    "given back": group(annotations={kept_room.RELEASED: now_text(MADE)}),
})  # fmt: skip
def test_nothing_is_kept_where_nothing_can_be_read(made):
    assert read(made) is None
