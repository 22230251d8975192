"""Decisions are found by what people ask for, and go when they are old or too many."""

from __future__ import annotations

import pytest
from django.conf import settings

from cluster.store import decisions
from cluster.store.decisions import Filters
from cluster.writes import Decision

NOW = 1_800_000_000_000


def made(at, name="g", **more):
    fields = {"kind": "bind", "reason": "MinimumFits", "namespace": "ns", "queue": "q", "pods": 2, "message": "…"}
    return Decision(**{"at": NOW + at, "name": name, **fields, **more})


BOUND = made(0, "train-1", nodes=(("n-1", 1), ("n-10", 1)))
REFUSED = made(1, "train-1", kind="refuse", reason="QueueLimit", queue="other")
EVICTED = made(2, "low_a", kind="evict", reason="preempt", namespace="team", other="ns/train-1", nodes=(("n-10", 2),))
ALL = [EVICTED, REFUSED, BOUND]


@pytest.fixture
def kept(store):
    decisions.put([BOUND, REFUSED, EVICTED], using=store.using)
    return store


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        pytest.param({}, ALL, id="all, newest first"),
        pytest.param({"namespaces": {"ns"}}, [REFUSED, BOUND], id="namespaces"),
        pytest.param({"namespaces": "team"}, [EVICTED], id="namespace"),
        pytest.param({"namespaces": frozenset()}, [], id="no namespace is nobody's"),
        pytest.param({"namespaces": "ns", "name": "train-1", "kind": "bind"}, [BOUND], id="group and kind"),
        pytest.param({"name": "train"}, [], id="a part is no name"),
        pytest.param({"queue": "other"}, [REFUSED], id="queue"),
        pytest.param({"node": "n-1"}, [BOUND], id="node, not one that begins alike"),
        pytest.param({"node": "n-10"}, [EVICTED, BOUND], id="node"),
        pytest.param({"node": "1"}, [], id="a part is no node"),
        pytest.param({"text": "RAIN"}, [REFUSED, BOUND], id="part of the name"),
        pytest.param({"text": "w_"}, [EVICTED], id="what is no pattern"),
        pytest.param({"text": "%"}, [], id="nor this"),
        pytest.param({"since": NOW + 1, "until": NOW + 2}, [REFUSED], id="time"),
    ],
)
def test_decisions_are_found(kept, filters, found):
    shown = decisions.find(Filters(**filters), limit=10, using=kept.using)
    assert [each.decision for each in shown] == found
    assert sum(decisions.count(Filters(**filters), using=kept.using).values()) == len(found)


def test_pages_follow_each_other(kept):
    pages = [decisions.find(Filters(), limit=2, offset=offset, using=kept.using) for offset in (0, 2)]
    assert [each.decision for page in pages for each in page] == ALL


@pytest.mark.parametrize(
    ("namespaces", "found"),
    [
        pytest.param(None, (["ns", "team"], ["other", "q"]), id="all"),
        pytest.param({"ns"}, (["ns"], ["other", "q"]), id="of a namespace"),
        pytest.param(frozenset(), ([], []), id="of none"),
    ],
)
def test_filters_have_the_values_that_decisions_have(kept, namespaces, found):
    about = Filters(namespaces=namespaces)
    assert tuple(decisions.values(each, about, using=kept.using) for each in ("namespace", "queue")) == found


def test_old_ones_go(kept):
    day = settings.DECISION_DAYS * decisions.DAY_MS
    assert decisions.expire(1e12, now=NOW + 1 + day, using=kept.using) == 1
    assert [each.decision for each in decisions.find(Filters(), limit=9, using=kept.using)] == [EVICTED, REFUSED]


def test_too_many_go_however_young(kept, monkeypatch):
    monkeypatch.setattr(decisions, "MOST", 2)
    assert decisions.expire(1e12, now=NOW, using=kept.using) == 1
    assert [each.decision for each in decisions.find(Filters(), limit=9, using=kept.using)] == [EVICTED, REFUSED]


def test_a_queue_may_have_any_name(store):
    decisions.put([made(0, queue="q" * 300)], using=store.using)
    assert len(decisions.find(Filters(), limit=1, using=store.using)[0].decision.queue) == 253
