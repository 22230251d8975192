"""The page of all decisions: found by what people ask for, and only what they may see."""

from __future__ import annotations

import pytest

from cluster.access import SYSTEM
from cluster.api import backend
from cluster.remote.backend import Remote
from cluster.store import decisions
from cluster.writes import Decision
from dashboard.live import topics
from kube.resources import POD_GROUPS
from tests.dashboard.pages.conftest import Page, admin, alice, cluster, operator, page  # noqa: F401
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")
UID = "0b0e3f0e-6f2a-4c3e-9d5c-2f3a4b5c6d7e"
T = 1_780_000_000_000
PAGE = "/queues/-/scheduler/decisions/"


@pytest.fixture(autouse=True)
def _decided(cluster):  # noqa: F811
    decisions.put(
        [
            Decision(T, "refuse", "QueueLimit", "default", f"train-{UID}", "research", 2, "No room."),
            Decision(T + 60_000, "bind", "MinimumFits", "default", f"train-{UID}", "research", 2, "Got nodes.", nodes=[("n1", 2)]),
            Decision(T + 120_000, "evict", "preempt", "team-a", "loose", "vision", 1, "Went.", f"default/train-{UID}", [("n2", 1)]),
        ]
    )  # fmt: skip


def reasons(client, query=""):
    return [
        next(word for word in ("QueueLimit", "MinimumFits", "preempt") if word in row) for row in rows(client, query)
    ]


def rows(client, query=""):
    shown = page(client, PAGE + query)
    return [shown.text(id=each) for each in shown.rows()]


def test_decisions_stand_newest_first_and_lead_to_jobs(admin):  # noqa: F811
    assert reasons(admin) == ["preempt", "MinimumFits", "QueueLimit"]
    first, second, _ = rows(admin)
    assert "Evicted team-a / loose vision 1 preempt Went. See that job n2" in first
    assert "Bound default / train research 2 MinimumFits Got nodes. n1 ×2" in second
    assert '/jobs/default/train/"' in admin.get(PAGE).content.decode()


@cases("query, found", {
    "kind": ("?kind=Waits", ["QueueLimit"]),
    "queue": ("?queue=vision", ["preempt"]),
    "namespace": ("?namespace=default", ["MinimumFits", "QueueLimit"]),
    "node": ("?node=n1", ["MinimumFits"]),
    "job": ("?q=train", ["MinimumFits", "QueueLimit"]),
    "time": ("?from=2026-05-28T20:27&to=2026-05-28T20:28", ["MinimumFits"]),
    "what there is not": ("?kind=Nonsense", ["preempt", "MinimumFits", "QueueLimit"]),
})  # fmt: skip
def test_they_are_found(admin, query, found):  # noqa: F811
    assert reasons(admin, query) == found


def test_filters_offer_what_all_decisions_have_and_not_what_the_page_shows(admin):  # noqa: F811
    shown = page(admin, f"{PAGE}?per=25&q=loose")
    for name, some in (("namespace", ["default", "team-a"]), ("queue", ["research", "vision"])):
        (field,) = shown.all(tag="select", name=name)
        assert [each.get("value") for each in field.findall(".//option")][1:] == some


def test_a_reader_sees_those_of_his_namespaces(alice):  # noqa: F811
    assert reasons(alice) == ["preempt"]


def test_where_another_scheduler_works_there_is_no_such_page(admin, monkeypatch):  # noqa: F811
    monkeypatch.setattr(backend, "runs", Remote().runs)
    assert admin.get(PAGE).status_code == 404


def test_new_decisions_come_by_themselves(admin):  # noqa: F811
    name, params = topics.parse("queues:decisions")
    parts = topics.find(name)(topics.TopicRequest(SYSTEM, params))
    assert POD_GROUPS.id in {each.resource for each in parts.watches}
    assert len(parts.order) == 3
