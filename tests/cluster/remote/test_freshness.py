"""How fresh a mirror is said to be."""

from __future__ import annotations

import pytest

from cluster import clock
from cluster.models import MirroredCluster
from cluster.remote import election, freshness, recorder
from cluster.remote.election import Leadership
from cluster.remote.freshness import Freshness, Word
from cluster.remote.reflection import Phase, Standing
from cluster.remote.target import Target
from cluster.remote.webhooks import keeper
from cluster.remote.webhooks.hooks import Address
from kube.resources import JOBS, NODES, PODS

NOW = 100_000
LIVE = Standing(phase=Phase.LIVE, since=1)


def cluster(heard=NOW, away=0, reason=""):
    return MirroredCluster(server="https://x", heard=heard, away=away, reason=reason)


@pytest.mark.parametrize(
    ("known", "standings", "said"),
    [
        pytest.param(None, {}, Freshness("dev", Word.LOADING, why="it has not answered yet"), id="nothing"),
        pytest.param(cluster(), {PODS.id: LIVE}, Freshness("dev", Word.LIVE), id="live"),
        pytest.param(cluster(), {}, Freshness("dev", Word.LOADING), id="answers, and nothing is listed"),
        pytest.param(
            cluster(),
            {PODS.id: Standing(phase=Phase.LOADING, objects_read=3500), JOBS.id: LIVE},
            Freshness("dev", Word.LOADING, why="pods, 3,500 objects so far"),
            id="loading",
        ),
        pytest.param(
            cluster(away=7, reason="connection refused"),
            {PODS.id: LIVE},
            Freshness("dev", Word.AWAY, 7, "connection refused"),
            id="away",
        ),
        pytest.param(
            cluster(heard=NOW - 30_000),
            {PODS.id: LIVE},
            Freshness("dev", Word.UNKNOWN, NOW - 30_000, "the program “mirror” does not run"),
            id="nobody follows",
        ),
        pytest.param(
            cluster(),
            {PODS.id: Standing(phase=Phase.REFUSED, since=5, reason="no"), JOBS.id: LIVE},
            Freshness("dev", Word.PARTLY, 5, "pods: no"),
            id="a kind may not be read",
        ),
        pytest.param(
            cluster(),
            {
                PODS.id: Standing(phase=Phase.REFUSED, since=6, reason="pods is forbidden"),
                NODES.id: Standing(phase=Phase.REFUSED, since=5, reason="nodes is forbidden"),
                JOBS.id: Standing(phase=Phase.ABSENT),
            },
            Freshness("dev", Word.REFUSED, 5, "nodes is forbidden"),
            id="nothing may be read",
        ),
        pytest.param(
            cluster(),
            {
                PODS.id: Standing(phase=Phase.AWAY, since=4, reason="timed out"),
                NODES.id: Standing(phase=Phase.REFUSED, since=5, reason="nodes is forbidden"),
            },
            Freshness("dev", Word.REFUSED, 5, "nodes is forbidden"),
            id="who refuses is there",
        ),
        pytest.param(
            cluster(),
            {PODS.id: Standing(phase=Phase.AWAY, since=6, reason="timed out")},
            Freshness("dev", Word.AWAY, 6, "timed out"),
            id="no kind answers",
        ),
        pytest.param(
            cluster(),
            {PODS.id: LIVE, JOBS.id: Standing(phase=Phase.ABSENT)},
            Freshness("dev", Word.LIVE),
            id="a kind is not there",
        ),
    ],
)
def test_worst_that_is_known_counts(known, standings, said):
    assert freshness.judge("dev", known, standings, NOW) == said


@pytest.mark.django_db
def test_who_works_there_is_said_where_that_should_be_us(settings):
    settings.TARGET = Target("dev", "https://dev", "")
    recorder.claim("https://dev")
    assert freshness.leading() == ""
    settings.WAY = "in-place"
    assert freshness.leading() == "Nobody has been found to work there yet."
    election.note(Leadership(hindrance="Volcano works there."))
    assert freshness.leading() == "Volcano works there."
    election.note(Leadership("me", "me/0", clock.milliseconds() + 60_000))
    assert "of these pages work there" in freshness.leading()


@pytest.mark.django_db
def test_what_keeps_the_webhooks_from_being_asked_is_said(settings):
    settings.TARGET, settings.WAY = Target("dev", "https://dev", ""), "in-place"
    recorder.claim("https://dev")
    election.note(Leadership("me", "me/0", clock.milliseconds() + 60_000))
    keeper.note("secrets is forbidden")
    assert "webhooks" not in freshness.leading(), "there are none"
    settings.WEBHOOKS = Address("192.0.2.7", 9443)
    assert freshness.leading().endswith("webhooks of these pages cannot be kept up: secrets is forbidden.")
    keeper.note("")
    assert freshness.leading().endswith("of these pages work there.")


@pytest.mark.parametrize(
    ("heard", "away", "begun", "followed"),
    [
        pytest.param(-1_000, 0, 0, True, id="of late, whoever heard it"),
        pytest.param(-1_000, 0, -2_000, True, id="since it began"),
        pytest.param(-3_000, 0, -2_000, False, id="by the one before"),
        pytest.param(-30_000, 0, 0, False, id="long ago"),
        pytest.param(-60_000, -1_000, -2_000, True, id="missed since it began"),
        pytest.param(-60_000, -50_000, -2_000, False, id="missed by the one before"),
        pytest.param(-60_000, -50_000, -5_000, True, id="still missed when it has asked"),
    ],
)
def test_a_mirror_has_reported_only_what_it_has_found_itself(heard, away, begun, followed):
    now = 1_800_000_000_000
    cluster = MirroredCluster(heard=now + heard, away=now + away if away else 0)
    assert freshness.is_followed(cluster, now + begun if begun else 0, now) == followed
