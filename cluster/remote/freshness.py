"""How fresh the mirror of a cluster is, for people: its state, and why it is not live."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from django.conf import settings

from cluster import clock
from cluster.models import MirroredCluster
from cluster.remote import recorder
from cluster.remote.leader_election import election
from cluster.remote.mirroring import kinds
from cluster.remote.mirroring.reflection import KindStatus, Phase

FIRST_REQUEST_WITHIN_MS = 5_000  # a mirror that begins has asked the cluster, and missed it if it is away
SILENT_MS = 20_000  # the program hears from the cluster, or misses it, every few seconds


class State(StrEnum):
    """How fresh."""

    LIVE = "live"
    PARTLY = "partly live"
    LOADING = "loading"
    AWAY = "away"
    REFUSED = "may not be read"  # it answers, and lets these pages see nothing
    UNKNOWN = "not followed"
    STOPPED = "not running"  # of one of several clusters, as the others see it


class Freshness(NamedTuple):
    """The name of the cluster, how its picture is, since when (epoch ms, 0 for now), and why in a few words."""

    name: str
    word: State
    since: int = 0
    why: str = ""


def leading() -> str:
    """Say who works on the cluster where that should be us, in a sentence; "" elsewhere."""
    if settings.TARGET is None or not recorder.works():
        return ""
    leadership = election.current()
    if not leadership.is_held(clock.milliseconds()):
        return leadership.hindrance or "Nobody has been found to work there yet."
    text = "The controllers and the scheduler of these pages work there."
    cluster = recorder.cluster() if settings.WEBHOOKS is not None else None
    if cluster is None or not cluster.webhooks:
        return text
    return f"{text} The admission webhooks of these pages cannot be kept up: {cluster.webhooks.rstrip('.')}."


def absence() -> str:
    """Say which of Volcano's programs do not work on a cluster that is theirs; "" where they do, and elsewhere."""
    return "" if settings.TARGET is None or recorder.works() else election.current().hindrance


def judge(name: str, cluster: MirroredCluster | None, statuses: Mapping[str, KindStatus], now: int) -> Freshness:
    """Return how fresh the mirror of a cluster is: the worst of its kinds counts."""
    if cluster is None or not (cluster.heard or cluster.away):
        return Freshness(name, State.LOADING, why="it has not answered yet")
    if cluster.away:
        return Freshness(name, State.AWAY, cluster.away, cluster.reason)
    if now - cluster.heard > SILENT_MS:
        return Freshness(name, State.UNKNOWN, cluster.heard, "the program “mirror” does not run")
    troubled = _in_phase(statuses, Phase.AWAY, Phase.REFUSED)
    if troubled:
        worst = min(troubled.values(), key=lambda each: each.since)
        if troubled.keys() == statuses.keys() - _in_phase(statuses, Phase.ABSENT).keys():
            refused = _in_phase(troubled, Phase.REFUSED)
            worst = min(refused.values(), key=lambda each: each.since, default=worst)
            return Freshness(name, State.REFUSED if refused else State.AWAY, worst.since, worst.reason)
        return Freshness(name, State.PARTLY, worst.since, f"{_plurals(troubled)}: {worst.reason}")
    loading = _in_phase(statuses, Phase.LOADING)
    if loading or not statuses:
        read = sum(each.objects_read for each in loading.values())
        return Freshness(name, State.LOADING, why=f"{_plurals(loading)}, {read:,} objects so far" if loading else "")
    return Freshness(name, State.LIVE)


def is_followed(cluster: MirroredCluster, begun: int, now: int) -> bool:
    """Whether a mirror that began at a time has reached the cluster, or missed it; an earlier mirror's rows do not count.

    That a cluster is still away is not written again.
    """
    if cluster.away:
        return cluster.away >= begun or now - begun >= FIRST_REQUEST_WITHIN_MS
    return cluster.heard >= begun and now - cluster.heard <= SILENT_MS


def _in_phase(statuses: Mapping[str, KindStatus], *phases: Phase) -> dict[str, KindStatus]:
    return {kind: each for kind, each in statuses.items() if each.phase in phases}


def _plurals(statuses: Mapping[str, KindStatus]) -> str:
    return ", ".join(kinds.BY_ID[kind].plural for kind in statuses if kind in kinds.BY_ID)


def current() -> Freshness | None:
    """Return how fresh the mirror of the cluster behind these pages is, None for the embedded one, which is none."""
    if settings.TARGET is None:
        return None
    return judge(
        settings.CLUSTER_NAME or settings.TARGET.name, recorder.cluster(), recorder.statuses(), clock.milliseconds()
    )
