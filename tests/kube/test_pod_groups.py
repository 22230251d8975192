"""Whose a pod group is, and what room is kept for it, read from the stored group."""

from __future__ import annotations

import json

from kube import kept_room
from kube.kept_room import KeptRoom, Reservation
from kube.meta import now_text
from kube.pod_groups import job_of
from tests.tables import parts

MADE = 1_767_225_600_000
UID = "0b0e3f0e-6f2a-4c3e-9d5c-2f3a4b5c6d7e"
PLACES = ((("n1", 2), ("n2", 4)), (), (("n2", 1),))
REQUESTS = ((("cpu", 2000), ("memory", 4 << 30)), (), (("cpu", 500), ("nvidia.com/gpu", 1)))
KEPT = Reservation(MADE, 3_600_000, MADE + 600_000, PLACES, REQUESTS)
TEXT = (
    "Kept for 1h0m0s at most; expected at 2026-01-01T00:10:00.000000Z; on n1: 2, n2: 4 / - / n2: 1; "
    "each cpu: 2, memory: 4Gi / - / cpu: 500m, nvidia.com/gpu: 1"
)


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


@parts("kube/groups")
def test_what_a_group_says_is_read_and_what_it_does_not_say_is_not_made_up(part):
    def until(text):
        reservation = read(group(text)).reservation
        assert kept_room.message(reservation) == text
        return reservation.until - MADE

    def on_nodes(text):
        found = read(group(text))
        return found and found.on_nodes()

    part.check({"jobs of groups": job_of, "until when": until, "rooms that are kept on nodes": on_nodes}[part.title])


def test_nothing_is_kept_where_nothing_can_be_read():
    given_back = group(annotations={kept_room.RELEASED: now_text(MADE)})
    for made in (
        group(status="False"),
        given_back,
        *({**group(), "status": each} for each in ({}, {"conditions": "Reserved"})),
    ):
        assert read(made) is None
