"""Who works on a cluster."""

from __future__ import annotations

import pytest

from cluster.remote import lease
from cluster.remote.election import MARGIN_MS, Leadership
from cluster.remote.lease import DURATION_S, Sight

MOMENT = "2026-11-23T12:00:00.000000Z"


def held(by, version="7", **spec):
    return {
        "metadata": {"name": lease.NAME, "namespace": "n", "resourceVersion": version},
        "spec": {"holderIdentity": by, "leaseDurationSeconds": DURATION_S, "acquireTime": "then", **spec},
    }


def test_lease_is_seen_from_the_moment_in_which_it_changed():
    first = lease.seen(None, held("other"), 100.0)
    assert lease.seen(first, held("other"), 110.0) is first
    assert lease.seen(first, held("other", "8"), 110.0).since == 110.0
    assert lease.seen(first, None, 110.0) == Sight("", "", DURATION_S, 110.0)


@pytest.mark.parametrize(
    ("sight", "now", "turn"),
    [
        (Sight(), 0.0, "create"),
        (Sight("7", "me", 15, 0.0), 100.0, "renew"),
        (Sight("7", "other", 15, 0.0), 14.9, "wait"),
        (Sight("7", "other", 15, 0.0), 15.0, "take"),
        (Sight("7", "other", 60, 0.0), 30.0, "wait"),
        (Sight("7", "", 15, 0.0), 1.0, "take"),
    ],
    ids=["none", "mine", "kept", "left", "kept for longer", "given back"],
)
def test_turn(sight, now, turn):
    assert lease.turn(sight, "me", now) == turn


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


def test_volcano_at_work_hinders_us_and_one_that_is_gone_does_not():
    kept = {"vc-scheduler": Sight("7", "host_uuid", 15, 10.0), "volcano": Sight()}
    text = lease.hindrance(kept, 20.0)
    assert "(host)" in text
    assert "VOLCANO_UI_WAY" in text
    assert lease.hindrance(kept, 25.0) == ""


def pod(app, phase="Running"):
    return {"metadata": {"name": f"{app}-7d9f", "labels": {"app": app}}, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("pods", "working"),
    [
        ([], ""),
        ([pod("volcano-scheduler")], "(volcano-scheduler)"),
        ([pod("volcano-scheduler"), pod("volcano-controller")], "(volcano-controller, volcano-scheduler)"),
        ([pod("volcano-scheduler", "Pending")], "(volcano-scheduler)"),
        ([pod("volcano-scheduler", "Failed"), pod("volcano-controller", "Succeeded")], ""),
        ([pod("volcano-admission")], ""),
        ([{"metadata": {"name": "plain"}}], ""),
    ],
    ids=["none", "scheduler", "both", "about to run", "ended", "its webhooks", "without labels"],
)
def test_volcano_without_leases_hinders_us_while_its_pods_are_there(pods, working):
    """Its installer starts it with --leader-elect=false."""
    kept = lease.running(pods, 100.0)
    assert working in lease.hindrance(kept, 100.0)
    assert bool(lease.hindrance(kept, 100.0)) == bool(working)
    assert lease.hindrance(kept, 100.0 + DURATION_S) == "", "its pods are gone"


def test_each_look_at_a_pod_is_news_of_who_works():
    first, second = (lease.running([pod("volcano-scheduler")], now) for now in (100.0, 102.0))
    assert first["volcano-scheduler"].version != second["volcano-scheduler"].version


def test_nothing_is_sent_that_might_arrive_in_the_time_of_somebody_else():
    leadership = Leadership("me", "me/0", until=100_000)
    assert leadership.is_held(100_000 - MARGIN_MS - 1)
    assert not leadership.is_held(100_000 - MARGIN_MS)
    assert not Leadership(hindrance="another one").is_held(0)
