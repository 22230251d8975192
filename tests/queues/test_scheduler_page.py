"""The page of the scheduler: what is in force, in words, changing it, and what became of it; and that of its decisions.

That both are live is asked in tests/actions.
"""

import pytest

from cluster.api import backend
from cluster.models import AuditEntry
from cluster.remote.backend import Remote
from cluster.store import Patch, decisions, store
from cluster.writes import Decision
from kube.resources import CONFIGMAPS, NAMESPACES
from queues.scheduler import words
from queues.scheduler.versions import difference
from scheduler.policy.configuration import read
from scheduler.policy.policy import DEFAULT
from tests.blocks import blocks
from tests.dashboard.pages.conftest import Page, page, reader
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")
ADDRESS = "/queues/-/scheduler/"
DECISIONS = f"{ADDRESS}decisions/"
CONFIG_MAP_KEY = ("volcano-system", "volcano-scheduler-configmap")
GOOD = "actions: enqueue, allocate\ntiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: 2}}]}]"
LATER = "actions: allocate"
RECLAIM = "actions: allocate, reclaim\nconfigurations: [{name: reclaim, arguments: {minRuntime: %s}}]"
GANG = "actions: allocate\ntiers: [{plugins: [{name: gang, arguments: {reservation-wait: never}}]}]"
UID = "0b0e3f0e-6f2a-4c3e-9d5c-2f3a4b5c6d7e"
T = 1_780_000_000_000


def plugin_text(line, *, measures_load=True):
    title, _, plugin = line.partition(": ")
    text = f"actions: allocate, shuffle\ntiers: [{{plugins: [{{{plugin}}}]}}]"
    policy = read(text).policy if plugin.strip() else DEFAULT
    return [each.text for each in words.policy_facts(policy, measures_load=measures_load) if each.title == title]


@blocks("scheduler", folder="pages")
def test_what_is_said(block, golden):
    golden(block, plugin_text, by_line=True)


def test_where_nobody_measures_the_load_the_page_says_so():
    unmeasured = "are not told from others: nobody measures the load of this cluster's nodes for this scheduler"
    assert plugin_text("Busy nodes: name: usage", measures_load=False) == [unmeasured]


@pytest.mark.shows("scheduler 4.1/nothing")
def test_what_it_begins_with_is_what_holds_without_it():
    assert read(words.STARTER).policy == DEFAULT
    assert not [each for each in read(words.STARTER).warnings if each.line]


@cases("old, new, expected", {
    "a line": ("a\nb", "a\nc", [(" ", "a"), ("-", "b"), ("+", "c")]),
    "all of it": ("", "a", [("+", "a")]),
    "nothing": ("a", "a", []),
    "lines like signs": ("-- a", "++ a", [("-", "-- a"), ("+", "++ a")]),
    "too long": ("a\n" * 600, "b\n" * 600, []),
})  # fmt: skip
def test_differences(old, new, expected):
    assert difference(old, new) == expected


def text():
    return store.get(CONFIGMAPS, *CONFIG_MAP_KEY).object["data"]["volcano-scheduler.conf"]


def version(browser):
    return page(browser, ADDRESS).one(id="id_version").get("value") or ""


def save(browser, what, **more):
    return browser.post(ADDRESS, {"text": what, "version": version(browser), "do": "save", **more})


def links(browser, address):
    return [link.get("href") or "" for link in page(browser, address).all(tag="a")]


def test_saving_makes_the_namespace_and_the_config_map(admin, reads):
    document = page(admin, ADDRESS)
    assert "the defaults hold" in document.text(tag="main")
    reads(admin, f"{ADDRESS} in-force")
    assert document.one(id="id_text").text.strip() == words.STARTER.strip()
    assert document.one(id="versions").get("hidden") is not None
    assert save(admin, GOOD.replace("\n", "\r\n"))["Location"] == ADDRESS
    assert text() == GOOD
    assert store.find(NAMESPACES, name="volcano-system")
    document = page(admin, ADDRESS)
    assert "2 times the cluster" in document.text(id="in-force")
    assert document.one(id="id_text").text.strip() == GOOD
    assert AuditEntry.objects.filter(name=CONFIG_MAP_KEY[1], verb="create", actor="admin").exists()
    for number in ("0", "x", "-1"):
        assert page(admin, f"{ADDRESS}?again={number}").one(id="id_text").text.strip() == GOOD


@pytest.mark.parametrize("do", ["check", "save"])
def test_what_cannot_be_used_is_said_with_its_line_and_not_stored(admin, do):
    save(admin, GOOD)
    document = Page(save(admin, "tiers: []\nactions: alocate", do=do))
    assert "Line 2. There is no action alocate. Did you mean allocate?" in document.text(id="findings")
    assert document.one(id="id_text").text.strip() == "tiers: []\nactions: alocate"
    assert text() == GOOD
    assert document.status == (422 if do == "save" else 200)
    assert bool(document.text(id="id_text_error")) == (do == "save")


@pytest.mark.parametrize("strange", ["", "\0", "<script>alert(1)</script>", "a: &a [*a, *a]", "🚀" * 10, "x" * 70_000])
def test_strange_texts_are_said_to_be_that(admin, strange):
    answer = save(admin, strange)
    assert answer.status_code == 422
    assert b"<script>alert(1)" not in answer.content
    assert not store.find(NAMESPACES, name=CONFIG_MAP_KEY[0])


def test_a_check_stores_nothing_and_shows_what_saving_changes(admin):
    save(admin, GOOD)
    body = Page(save(admin, GOOD.replace("2", "3"), do="check")).text(id="editor")
    assert text() == GOOD
    assert "− tiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: 2}}]}]" in body
    assert "+ tiers: [{plugins: [{name: overcommit, arguments: {overcommit-factor: 3}}]}]" in body


@cases("written", {
    "what has no effect": "actions: allocate, shuffle", "evicted for nobody": "actions: allocate",
    "evicted by preempt": "actions: allocate, preempt", "evicted by reclaim": "actions: allocate, reclaim",
    "evicted by both": "actions: allocate, preempt, reclaim", "runs for longer": RECLAIM % "1h",
    "runs no time at least": RECLAIM % "0", "room and backfill": "actions: allocate, backfill", "room never": GANG,
})  # fmt: skip
def test_it_says_what_follows_from_a_configuration(admin, reads, written):
    save(admin, written)
    reads(admin, f"{ADDRESS} findings in-force")


def test_two_who_edit_do_not_overwrite_each_other(admin):
    mine = version(admin)
    save(admin, GOOD)
    document = Page(save(admin, LATER, version=mine))
    assert "Somebody changed the configuration" in document.text(id="editor")
    assert text() == GOOD
    theirs = version(admin)
    save(admin, LATER)
    assert text() == LATER
    assert Page(save(admin, GOOD, version=theirs)).status == 422
    admin.post(f"{ADDRESS}reset/", {"version": theirs})
    assert text() == LATER


def test_going_back_to_the_defaults_and_to_an_earlier_version(admin):
    save(admin, GOOD)
    save(admin, LATER)
    admin.post(f"{ADDRESS}reset/", {"version": version(admin)})
    assert not store.find(CONFIGMAPS, namespace=CONFIG_MAP_KEY[0], name=CONFIG_MAP_KEY[1])
    document = page(admin, ADDRESS)
    assert "the defaults hold" in document.text(tag="main")
    assert len([row for row in document.all(tag="tr") if (row.get("id") or "").startswith("version-")]) == 3
    again = [link for link in links(admin, ADDRESS) if "again=" in link]
    oldest = page(admin, again[-1].partition("#")[0]).one(id="id_text").text
    assert oldest.strip() == GOOD
    save(admin, oldest)
    document = page(admin, ADDRESS)
    assert "2 times the cluster" in document.text(id="in-force")
    assert len(list(document.all(tag="details"))) >= 3


def test_one_that_cannot_be_used_is_shown_beside_the_one_that_holds(admin):
    save(admin, GOOD)
    store.write(Patch(CONFIGMAPS, *CONFIG_MAP_KEY, {"data": {"volcano-scheduler.conf": "actions: x"}}))
    document = page(admin, ADDRESS)
    assert "cannot be used; the one before it holds. Line 1: There is no action x." in document.text(tag="main")
    assert "2 times the cluster" in document.text(id="in-force")
    assert "it could not be used" in document.text(id="versions")


def test_who_may_not_change_it_reads_it_and_who_reads_nothing_there_has_no_way_to_it(admin, operator, alice):
    save(admin, GOOD)
    document = page(operator, ADDRESS)
    assert document.one(id="id_text") is None
    assert "overcommit-factor: 2" in document.text(id="editor")
    assert "admin" in document.text(id="versions")
    assert "admin" not in page(reader("vera", "viewer"), ADDRESS).text(id="versions")
    assert operator.post(ADDRESS, {"text": GOOD, "version": "1"}).status_code == 403
    operator.post(f"{ADDRESS}reset/", {"version": ""})
    assert text() == GOOD
    assert page(alice, ADDRESS).status == 403
    assert [ADDRESS in links(each, "/queues/") for each in (alice, operator)] == [False, True]


def test_where_another_scheduler_works_there_is_neither_page(admin, monkeypatch):
    monkeypatch.setattr(backend, "runs", Remote().runs)
    assert [admin.get(address).status_code for address in (ADDRESS, DECISIONS)] == [404, 404]
    assert ADDRESS not in links(admin, "/queues/")


@pytest.fixture
def decided(cluster):
    decisions.put([
        Decision(T, "refuse", "QueueLimit", "default", f"train-{UID}", "research", 2, "No room."),
        Decision(T + 60_000, "bind", "MinimumFits", "default", f"train-{UID}", "research", 2, "Got.", nodes=[("n1", 2)]),
        Decision(T + 120_000, "evict", "preempt", "team-a", "loose", "vision", 1, "Went.", f"default/train-{UID}", [("n2", 1)]),
    ])  # fmt: skip


@pytest.mark.usefixtures("decided")
def test_decisions_stand_newest_first_and_lead_to_jobs_and_filters_offer_what_all_have(admin, alice, reads):
    reads(admin, f"{DECISIONS} rows")
    reads(alice, f"{DECISIONS} rows")
    assert "/jobs/default/train/" in links(admin, DECISIONS)
    document = page(admin, f"{DECISIONS}?per=25&q=loose")
    for name, some in (("namespace", ["default", "team-a"]), ("queue", ["research", "vision"])):
        (field,) = document.all(tag="select", name=name)
        assert [each.get("value") for each in field.findall(".//option")][1:] == some


@pytest.mark.usefixtures("decided")
@cases("query, found", {
    "kind": ("?kind=Waits", ["QueueLimit"]),
    "queue": ("?queue=vision", ["preempt"]),
    "namespace": ("?namespace=default", ["MinimumFits", "QueueLimit"]),
    "node": ("?node=n1", ["MinimumFits"]),
    "job": ("?q=train", ["MinimumFits", "QueueLimit"]),
    "time": ("?from=2026-05-28T20:27&to=2026-05-28T20:28", ["MinimumFits"]),
    "what there is not": ("?kind=Nonsense", ["preempt", "MinimumFits", "QueueLimit"]),
})  # fmt: skip
def test_decisions_are_found(admin, query, found):
    document = page(admin, DECISIONS + query)
    rows = [document.text(id=each) for each in document.rows()]
    assert [next(word for word in ("QueueLimit", "MinimumFits", "preempt") if word in row) for row in rows] == found
