"""The list of jobs: its rows, filters and counts, the owners that are offered, and who may begin a new job."""

from __future__ import annotations

import pytest
from django.utils.http import urlencode

from cluster.store import Create, Delete, Patch, store
from jobs.lifecycle import phases
from jobs.models import Operation
from jobs.pages import job_filters, listing
from jobs.rules import reasons
from kube.pod_health import Cause
from kube.resources import JOBS
from scheduler.engine.cause import Reason
from tests.jobs.made import runner, settle
from tests.jobs.pages import world
from tests.jobs.pages.job_page import JobPage, words
from tests.tables import cases

HOUR = job_filters.HOUR_MS
WHY = "Exited with code 3 · train-worker-0. 1 of 4 pods succeeded; minAvailable is 4."
LONGEST_TABLE = 60_000  # bytes of a hundred rows
WRITTEN = {
    job_filters.label_problem: ("team in (a,b),!gpu", "team>1", "team=", "team in a"),
    job_filters.exit_code_problem: ("137", "0", "256", "²"),
    job_filters.moment_problem: ("2026-11-20T08:30", "yesterday"),
}  # fmt: skip


@pytest.mark.parametrize("phase", ["Running", "Pending", "Failed"])
def test_the_list_shows_each_job_with_phase_gang_owner_and_why(client, alice, phase, reads):
    world.make("train", phase, began=world.START - 5000, counts={"running": 3}, message=WHY)
    reads(client, "/jobs/ rows")
    (row,) = JobPage.of_list(client).rows
    assert row[-1].get("title") == (None if phase == "Running" else WHY.partition(". ")[2]), "the rest, on hover"


def test_what_others_wrote_is_text_and_what_is_elsewhere_is_neither_shown_nor_counted(client, alice):
    world.make("x", "Failed", message='"><script>alert(1)</script>', owner="<b>")
    world.make("theirs", "Running", namespace="other")
    page = JobPage.of_list(client)
    assert (page.names, [each for each in ("<script>alert", "<b></a>", "theirs") if each in page.html]) == (["x"], [])
    assert JobPage.of_list(client, "?namespace=other").names == []


def test_filters_and_orders(client, alice, reads):
    world.make("train", "Running")
    world.make("wait", "Pending", owner="bob")
    store.write(Create(JOBS, world.job_object("new")))  # no controller has seen it
    queries = "q=tra phase=Pending&sort=name owner=bob queue=default&sort=name queue=nowhere sort=-name q=%25_%21"
    reads(client, *(f"/jobs/?{query} names" for query in queries.split()))


def test_counts_obey_every_filter_but_the_phase(client, alice, reads):
    assert 'action="/jobs/samples/primes/run/"' in JobPage.of_list(client).html, "an empty list offers samples"
    world.make("train", "Running")
    world.make("wait", "Pending", owner="bob")
    reads(client, "/jobs/?owner=bob&phase=Pending table-chips")


def test_the_owners_of_the_jobs_that_the_reader_may_see_are_offered(client, alice, person):
    for name, namespace in (("alice", "default"), ("bob", "default"), ("", "default"), ("zoe", "other")):
        world.make(f"of-{name or 'nobody'}", "Running", owner=name, namespace=namespace)
    assert JobPage.of_list(client).offered("owner") == ["alice", "bob"]
    client.force_login(person("victor", "viewer", "*"))
    assert JobPage.of_list(client).offered("owner") == ["alice", "bob", "victor", "zoe"]
    assert JobPage.of_list(client, "?owner=gone").offered("owner") == ["alice", "bob", "victor", "zoe", "gone"]


@pytest.mark.parametrize("namespace", ["*", "default"])
def test_of_very_many_owners_the_first_are_offered_and_the_reader(client, cluster, person, namespace, monkeypatch):
    monkeypatch.setattr(listing, "MOST_OWNERS", 3)
    for name in ("", "ann", "bob", "cleo", "dan", "eve"):
        world.make(f"of-{name or 'nobody'}", "Running", owner=name)
    client.force_login(person("victor", "viewer", namespace))
    assert JobPage.of_list(client).offered("owner") == ["ann", "bob", "cleo", "victor"]


@cases("role, namespace, begins_in", {
    "viewer": ("viewer", "*", None),
    "submitter elsewhere": ("submitter", "other", "other"),
    "submitter everywhere": ("submitter", "*", "default"),
    "submitter here": ("submitter", "default", "default"),
})  # fmt: skip
def test_a_new_job_is_offered_to_those_who_may_submit_one(cluster, person, client, role, namespace, begins_in):
    client.force_login(person("victor", role, namespace))
    form = client.get("/jobs/new/")
    assert ('href="/jobs/new/"' in JobPage.of_list(client).html) == bool(begins_in)
    assert form.status_code == (200 if begins_in else 403)
    assert not begins_in or f"namespace: {begins_in}\n" in form.content.decode()


def test_a_hundred_jobs_are_a_small_page(client, cluster, person):
    """A fifth of them wait and a fifth failed, each with a sentence; what is sent is all rows with the table's head."""
    client.force_login(person("boss", "operator", "*"))
    failed = "Exited with code 137 (OOMKilled) · {0}-worker-0, {0}-worker-3. 2 of 4 pods succeeded; minAvailable is 4."
    waits = "2 of 4 pods fit now: each needs 4 CPU, and node-17 has 2 free. 0 of 4 pods are running; minAvailable is 4."
    done = ("Completed", "", {"succeeded": 4})
    looks = [done, ("Running", "", {"running": 4}), ("Failed", failed, {"failed": 2}), ("Pending", waits, {}), done]
    for number in range(100):
        name, (phase, message, counts) = f"train-{number:04d}", looks[number % 5]
        world.make(name, phase, began=world.START - 5000, message=message.format(name), counts=counts)
    page = client.get("/jobs/?per=100").content
    table = page[page.index(b"<table") : page.index(b"</table>")]
    assert table.count(b"<tr") == 101
    assert len(table) < LONGEST_TABLE


def test_every_reason_of_a_job_is_a_cause_or_usual():
    steps = [step for row in phases.STEPS.values() for step in row.values()]
    given = {rule.reason for step in steps for rule in step.rules} - {""}
    given |= set(Reason) | set(Cause)
    assert given <= reasons.WORDS.keys() | reasons.USUAL
    assert not reasons.WORDS.keys() & reasons.USUAL
    assert reasons.WORDS.keys() | reasons.USUAL <= given | {"Aborted", "Terminated"}


def test_what_is_wrong_with_a_value(reads):
    for problem, texts in WRITTEN.items():
        for text in texts:
            reads.read(f"{text}: {problem(text) or 'nothing'}")


@pytest.fixture
def zoo(cluster):
    def failed(name, labels, *codes, reason="TooFewSucceeded", now=world.START):
        world.make(name, "Failed", labels=labels, now=now)
        status = {"exitCodes": list(codes), "state": {"phase": "Failed", "reason": reason}}
        store.write(Patch(JOBS, "default", name, {"status": status}, "status"))

    failed("cat", {"team": "vision"}, 1)
    failed("dog", {"team": "ads"}, 1, 137, reason="RetriesUsedUp")
    world.make("eel", "Running", now=world.START + HOUR)


@cases("query, names", {
    "label": ({"label": "team in (vision, ads)"}, "cat dog"),
    "label that is not there": ({"label": "!team"}, "eel"),
    "exit code": ({"exit": "137"}, "dog"),
    "cause": ({"cause": "TooFewSucceeded"}, "cat"),
    "from": ({"from": "2026-05-28T20:30"}, "eel"),
    "before, and exit code": ({"to": "2026-05-28T20:30", "exit": "1"}, "cat dog"),
    "lately": ({"created": "1h"}, ""),
})  # fmt: skip
def test_jobs_are_listed_counted_chosen_and_found_when_deleted_by_what_is_asked(zoo, client, person, query, names):
    client.force_login(person("boss", "operator", "*"))
    page = JobPage.of_list(client, f"?{urlencode(query | {'sort': 'name'})}")
    assert " ".join(page.names) == names
    assert page.tree.find(".//*[@id='table-chips']/a/b").text == str(len(names.split()))
    if names:
        client.post("/jobs/-/operations/", {"which": "all", "action": "delete", **query})
        assert " ".join(item.name for item in Operation.objects.get().items.order_by("name")) == names
    recorder = runner("history")
    settle(recorder)
    for name in ("cat", "dog", "eel"):
        store.write(Delete(JOBS, "default", name, grace=0))
    settle(recorder)
    assert JobPage.of_list(client, f"?{urlencode(query | {'sort': 'name', 'phase': 'Deleted'})}").names == names.split()


@pytest.mark.usefixtures("zoo", "alice")
def test_a_value_that_is_none_is_left_out_with_a_note_and_filters_that_are_folded_away_are_counted(client, reads):
    for query in ("label=team%3E1", "exit=x", "cause=Nonsense", "created=2y", "from=x"):
        page = JobPage.of_list(client, f"?{query}")
        (notes,) = page.tree.xpath("//ul[@class='table-notes']")
        reads.read(f"{query}: {words(notes)}")
        assert len(page.rows) == 3
    some, none = (
        JobPage.of_list(client, query).tree.find(".//details[@id='filters-more']/summary/b")
        for query in ("?exit=1&label=team&queue=default", "")
    )
    assert (some.text, none.get("hidden") is not None) == ("2 set", True)
