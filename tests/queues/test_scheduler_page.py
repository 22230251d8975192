"""The page of the scheduler: what is in force, changing it, and what became of it."""

from __future__ import annotations

import pytest

from cluster.access import SYSTEM
from cluster.api import backend
from cluster.models import AuditEntry
from cluster.remote.backend import Remote
from cluster.store import Patch, store
from dashboard.live import topics
from kube.resources import CONFIGMAPS, NAMESPACES
from queues.scheduler import words
from queues.scheduler.versions import difference
from scheduler.policy.configuration import read
from scheduler.policy.policy import DEFAULT
from tests.dashboard.pages.conftest import Page, admin, alice, cluster, operator, page, reader  # noqa: F401
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")
ADDRESS = "/queues/-/scheduler/"
PLACE = ("volcano-system", "volcano-scheduler-configmap")
GOOD = "actions: enqueue, allocate\ntiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: 2}}]}]"


def stored():
    return store.get(CONFIGMAPS, *PLACE).object


def text():
    return stored()["data"]["volcano-scheduler.conf"]


def version(browser, address=ADDRESS):
    return page(browser, address).one(id="id_version").get("value") or ""


def save(browser, what, **more):
    values = {"text": what, "version": version(browser), "do": "save", **more}
    return browser.post(ADDRESS, values)


@pytest.mark.shows("scheduler 4.1/nothing")
def test_what_it_begins_with_is_what_holds_without_it():
    assert read(words.STARTER).policy == DEFAULT
    assert not [each for each in read(words.STARTER).warnings if each.line]


def test_without_a_configuration_the_page_says_what_holds_and_offers_to_write_one(admin):  # noqa: F811
    shown = page(admin, ADDRESS)
    assert "the defaults hold" in shown.text(tag="main")
    assert "1.2 times the cluster" in shown.text(id="in-force")
    assert shown.one(id="id_text").text.strip() == words.STARTER.strip()
    assert shown.one(id="versions").get("hidden") is not None


def test_saving_makes_the_namespace_and_the_config_map(admin):  # noqa: F811
    answer = save(admin, GOOD.replace("\n", "\r\n"))
    assert answer["Location"] == ADDRESS
    assert text() == GOOD
    assert store.find(NAMESPACES, name="volcano-system")
    shown = page(admin, ADDRESS)
    assert "2 times the cluster" in shown.text(id="in-force")
    assert shown.one(id="id_text").text.strip() == GOOD
    assert AuditEntry.objects.filter(name=PLACE[1], verb="create", actor="admin").exists()


@pytest.mark.parametrize("do", ["check", "save"])
def test_what_cannot_be_used_is_said_with_its_line_and_not_stored(admin, do):  # noqa: F811
    save(admin, GOOD)
    shown = Page(save(admin, "tiers: []\nactions: alocate", do=do))
    assert "Line 2. There is no action alocate. Did you mean allocate?" in shown.text(id="findings")
    assert shown.one(id="id_text").text.strip() == "tiers: []\nactions: alocate"
    assert text() == GOOD
    assert shown.status == (422 if do == "save" else 200)
    assert bool(shown.text(id="id_text_error")) == (do == "save")


def test_a_check_stores_nothing_and_shows_what_saving_changes(admin):  # noqa: F811
    save(admin, GOOD)
    shown = Page(save(admin, GOOD.replace("2", "3"), do="check"))
    assert text() == GOOD
    body = shown.text(id="editor")
    assert "− tiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: 2}}]}]" in body
    assert "+ tiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: 3}}]}]" in body


def test_what_has_no_effect_is_said_and_stored(admin):  # noqa: F811
    save(admin, "actions: allocate, shuffle")
    assert "Line 1. shuffle moves no pod without the plugin rescheduling." in page(admin, ADDRESS).text(id="findings")


@cases("actions, words", {
    "neither": ("allocate", "for nobody"),
    "preempt": ("allocate, preempt", "for more urgent jobs of their queue"),
    "reclaim": ("allocate, reclaim", "for queues that have less than they deserve"),
    "both": ("allocate, preempt, reclaim", "of their queue, and for queues that have less"),
})  # fmt: skip
def test_it_says_for_whom_running_pods_are_evicted(admin, actions, words):  # noqa: F811
    save(admin, f"actions: {actions}")
    assert words in page(admin, ADDRESS).text(id="in-force")


@cases("text, words", {
    "by default": ("actions: allocate, reclaim", "run for at least 5 min before they are evicted again"),
    "for longer": ("actions: allocate, reclaim\nconfigurations: [{name: reclaim, arguments: {minRuntime: 1h}}]",
        "run for at least 1 h before they are evicted again for another queue"),
    "switched off": ("actions: allocate, reclaim\nconfigurations: [{name: reclaim, arguments: {minRuntime: 0}}]",
        "are evicted like others"),
})  # fmt: skip
def test_it_says_how_long_what_was_evicted_runs_at_least(admin, text, words):  # noqa: F811
    save(admin, text)
    assert words in page(admin, ADDRESS).text(id="in-force")


@cases("text, words", {
    "by default": ("actions: allocate", "waited 5 min; nobody uses it meanwhile"),
    "backfill": ("actions: allocate, backfill", "jobs that end in time may use it meanwhile"),
    "never": ("actions: allocate\ntiers: [{plugins: [{name: gang, arguments: {reservation-wait: never}}]}]",
        "for no job, however long smaller ones keep it waiting"),
})  # fmt: skip
def test_it_says_for_whom_room_is_kept(admin, text, words):  # noqa: F811
    save(admin, text)
    assert words in page(admin, ADDRESS).text(id="in-force")


def test_two_who_edit_do_not_overwrite_each_other(admin):  # noqa: F811
    mine = version(admin)
    save(admin, GOOD)
    for seen in (mine, version(admin)):
        shown = save(admin, "actions: allocate", version=seen)
        if seen == mine:
            assert "Somebody changed the configuration" in Page(shown).text(id="editor")
            assert text() == GOOD
    assert text() == "actions: allocate"
    late = Page(save(admin, GOOD, version=mine or "1"))
    assert late.status == 422
    assert text() == "actions: allocate"


def test_going_back_to_the_defaults_and_to_an_earlier_version(admin):  # noqa: F811
    save(admin, GOOD)
    save(admin, "actions: allocate")
    admin.post(f"{ADDRESS}reset/", {"version": version(admin)})
    assert not store.find(CONFIGMAPS, namespace=PLACE[0], name=PLACE[1])
    shown = page(admin, ADDRESS)
    assert "the defaults hold" in shown.text(tag="main")
    rows = [row for row in shown.all(tag="tr") if (row.get("id") or "").startswith("version-")]
    assert len(rows) == 3
    again = [link.get("href") for link in shown.all(tag="a") if "again=" in (link.get("href") or "")]
    oldest = page(admin, again[-1].partition("#")[0])
    assert oldest.one(id="id_text").text.strip() == GOOD
    save(admin, oldest.one(id="id_text").text)
    assert "2 times the cluster" in page(admin, ADDRESS).text(id="in-force")
    assert len(list(page(admin, ADDRESS).all(tag="details"))) >= 3


def test_a_reset_of_what_somebody_changed_meanwhile_is_refused(admin):  # noqa: F811
    save(admin, GOOD)
    mine = version(admin)
    save(admin, "actions: allocate")
    admin.post(f"{ADDRESS}reset/", {"version": mine})
    assert text() == "actions: allocate"


def test_one_that_cannot_be_used_is_shown_beside_the_one_that_holds(admin):  # noqa: F811
    save(admin, GOOD)
    store.write(Patch(CONFIGMAPS, *PLACE, {"data": {"volcano-scheduler.conf": "actions: x"}}))
    shown = page(admin, ADDRESS)
    assert "cannot be used; the one before it holds. Line 1: There is no action x." in shown.text(tag="main")
    assert "2 times the cluster" in shown.text(id="in-force")
    assert "it could not be used" in shown.text(id="versions")


def test_who_may_not_change_it_reads_it(admin, operator):  # noqa: F811
    save(admin, GOOD)
    shown = page(operator, ADDRESS)
    assert shown.one(id="id_text") is None
    assert "overcommit-factor: 2" in shown.text(id="editor")
    assert "admin" in shown.text(id="versions")
    assert operator.post(ADDRESS, {"text": GOOD, "version": "1"}).status_code == 403
    operator.post(f"{ADDRESS}reset/", {"version": ""})
    assert text() == GOOD


def test_who_reads_nothing_there_sees_no_page_and_no_way_to_it(alice, operator):  # noqa: F811
    assert page(alice, ADDRESS).status == 403
    links = [[link.get("href") for link in page(each, "/queues/").all(tag="a")] for each in (alice, operator)]
    assert [ADDRESS in each for each in links] == [False, True]


def test_viewers_are_not_told_who_changed_it(admin):  # noqa: F811
    save(admin, GOOD)
    viewer = reader("vera", "viewer")
    assert "admin" not in page(viewer, ADDRESS).text(id="versions")


def test_where_another_scheduler_works_there_is_no_page(admin, monkeypatch):  # noqa: F811
    monkeypatch.setattr(backend, "runs", Remote().runs)
    assert page(admin, ADDRESS).status == 404
    assert ADDRESS not in [link.get("href") for link in page(admin, "/queues/").all(tag="a")]


def test_the_page_is_live(admin):  # noqa: F811
    """A part of the topic is what the page shows; it hears of this config map alone."""
    topic = topics.find("queues:scheduler")
    request = topics.TopicRequest(SYSTEM, topics.parse("queues:scheduler")[1])
    save(admin, GOOD)
    told = topic(request)
    assert [(watch.resource, watch.namespace, watch.name) for watch in told.watches] == [("configmaps", *PLACE)]
    assert "2 times the cluster" in told.parts["in-force"]
    shown = page(admin, ADDRESS)
    assert all(shown.one(id=part) is not None for part in told.parts)
    assert shown.one(data_live="queues:scheduler") is not None


def test_strangers_log_in_first(client):
    assert client.get(ADDRESS)["Location"].startswith("/login/")


@pytest.mark.parametrize("strange", ["", "\0", "<script>alert(1)</script>", "a: &a [*a, *a]", "🚀" * 10, "x" * 70_000])
def test_strange_texts_are_said_to_be_that(admin, strange):  # noqa: F811
    answer = save(admin, strange)
    assert answer.status_code == 422
    assert b"<script>alert(1)" not in answer.content
    assert not store.find(NAMESPACES, name=PLACE[0])


def test_an_unknown_version_is_the_stored_one(admin):  # noqa: F811
    save(admin, GOOD)
    for number in ("0", "x", "-1"):
        assert page(admin, f"{ADDRESS}?again={number}").one(id="id_text").text.strip() == GOOD


@cases("old, new, expected", {
    "a line": ("a\nb", "a\nc", [(" ", "a"), ("-", "b"), ("+", "c")]),
    "all of it": ("", "a", [("+", "a")]),
    "nothing": ("a", "a", []),
    "lines like signs": ("-- a", "++ a", [("-", "-- a"), ("+", "++ a")]),
    "too long": ("a\n" * 600, "b\n" * 600, []),
})  # fmt: skip
def test_differences(old, new, expected):
    assert difference(old, new) == expected
