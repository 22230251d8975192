"""The list of jobs and the owners that are offered, and Jobs of batch/v1, which are stored and not run."""

import pytest
import yaml
from django.utils.http import urlencode

from cluster import access, api
from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, Patch, store
from jobs.lifecycle import causes, phases
from jobs.lifecycle.causes import Failure
from jobs.models import Operation
from jobs.pages.editor import converted, editor
from jobs.pages.job_list import job_filters, listing
from jobs.rules import reasons
from kube.pod_health import Cause
from kube.resources import BATCH_JOBS, JOBS
from scheduler.engine.cause import Reason
from tests.blocks import blocks
from tests.builders import of
from tests.jobs.made import runner, settle
from tests.jobs.pages import world
from tests.jobs.pages.job_page import JobPage, words
from tests.tables import cases

HOUR = job_filters.HOUR_MS
REST = "1 of 4 pods succeeded; minAvailable is 4."
LONGEST_TABLE = 60_000  # bytes of a hundred rows
WRITTEN = {
    job_filters.label_problem: ("team in (a,b),!gpu", "team>1", "team=", "team in a"),
    job_filters.exit_code_problem: ("137", "0", "256", "²"),
    job_filters.moment_problem: ("2026-11-20T08:30", "yesterday"),
}  # fmt: skip
POD = {"restartPolicy": "Never", "containers": [{"name": "pi", "image": "perl", "command": ["perl", "-e", "1"]}]}


@pytest.mark.parametrize("phase", ["Running", "Pending", "Failed"])
def test_the_list_shows_each_job_with_phase_gang_owner_and_why(client, alice, phase, reads):
    failed = causes.summed_up([Failure("train-worker-0", "worker", (3,))])
    counts = {"running": 3, "summary": REST, "causes": causes.written(failed)}
    world.make("train", phase, began=world.START - 5000, message=f"{failed.sentence} {REST}", counts=counts)
    reads(client, "/jobs/ rows")
    (row,) = JobPage.of_list(client).rows
    assert row[-1].get("title") == (None if phase == "Running" else REST), "the rest, on hover"


@cases("message, title", {"short": ("The queue is closed.", None), "long": (f"{REST} {REST}", f"{REST} {REST}")})
def test_a_reason_that_is_only_a_sentence_is_shown_whole(client, alice, message, title):
    world.make("wait", "Pending", message=message)
    (row,) = JobPage.of_list(client).rows
    assert (row[-1].text, row[-1].get("title")) == (message, title)


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
    monkeypatch.setattr(listing, "MAX_OWNERS", 3)
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
    failed = "Out of memory · worker-0, worker-3. 2 of 4 pods succeeded; minAvailable is 4."
    killed = [Failure(f"train-0000-worker-{number}", "worker", (137,), "OOMKilled") for number in (0, 3)]
    memory = {"failed": 2, "summary": REST, "causes": causes.written(causes.summed_up(killed))}
    waits = "2 of 4 pods fit now: each needs 4 CPU, and node-17 has 2 free. 0 of 4 pods are running; minAvailable is 4."
    done = ("Completed", "", {"succeeded": 4})
    looks = [done, ("Running", "", {"running": 4}), ("Failed", failed, memory), ("Pending", waits, {}), done]
    for number in range(100):
        name, (phase, message, counts) = f"train-{number:04d}", looks[number % 5]
        world.make(name, phase, began=world.START - 5000, message=message, counts=counts)
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
    pages = (JobPage.of_list(client, query) for query in ("?exit=1&label=team&queue=default", ""))
    some, none = (page.tree.find(".//details[@id='filters-more']/summary/b") for page in pages)
    assert (some.text, none.get("hidden") is not None) == ("2 set", True)


@pytest.fixture
def stored(alice, admin_user):
    bootstrap()

    def store_(name="pi", metadata=None, **spec):
        obj = of(BATCH_JOBS, name, template={"metadata": metadata or {}, "spec": POD}, **spec)
        return api.create(access.for_user(admin_user), BATCH_JOBS, obj)

    return store_


def test_its_page_says_that_it_is_stored_and_not_run_and_leads_to_a_volcano_job(admin_client, admin_user, stored):
    made = stored()
    html = JobPage(admin_client, "pi").html
    texts = ("Stored, not run here.", "/jobs/new/?batch=default/pi", "deleted so long ago")
    assert [text in html for text in texts] == [True, True, False]
    missing = admin_client.get("/jobs/default/tau/")
    assert (missing.status_code, b"deleted so long ago" in missing.content) == (404, True)
    form = admin_client.get("/jobs/new/?batch=default/pi").content.decode()
    assert "# The Job pi of batch/v1, written as a Volcano Job." in form
    editor.submit(access.for_user(admin_user), converted.text(made.object), "")
    assert "Stored, not run here." not in JobPage(admin_client, "pi").html, "a Volcano Job has the name"


def test_who_may_not_see_it_is_told_nothing_and_no_number(stored, person, client):
    stored()
    client.force_login(person("nora", namespace="other"))
    assert [client.get(f"/jobs/{each}").status_code for each in ("default/pi/", "new/?batch=default/pi")] == [403, 403]
    assert line(client, "/jobs/") == ("", "")
    assert JobPage(client, address="/jobs/-/kubernetes/").names == []


@blocks("kubernetes_jobs", folder="pages")
def test_the_volcano_job_does_the_same_work(stored, admin_user, block, golden):
    obj = stored(metadata={"labels": {"app": "pi"}}, **yaml.safe_load(block.inputs[0])).object
    golden(block, lambda _: converted.text(obj).splitlines())
    job = editor.submit(access.for_user(admin_user), converted.text(obj), "")
    assert store.get(JOBS, "default", job.name).object["spec"]["schedulerName"] == "volcano"


def line(client, address, part="jobs-not-run"):
    element = JobPage(client, address=address).tree.get_element_by_id(part)
    return words(element), "".join(element.xpath(".//a/@href"))


def test_the_list_of_jobs_says_how_many_match_and_leads_to_them(admin_client, stored, reads):
    for name in ("pi", "pi-again", "tau"):
        stored(name)
    for query in ("", "q=pi", "q=tau&namespace=default", "owner=admin", "namespace=elsewhere", "q=rho", "phase=Failed"):
        text, way = line(admin_client, f"/jobs/?{query}")
        reads.read(f"?{query}: {text or 'nothing'} {way}")
    answer = admin_client.get("/jobs/?q=tau", headers={"HX-Request": "true"}).content.decode()
    assert "with “tau” in its name" in answer, "where only the table is asked for"


def test_the_overview_counts_them_and_their_list_leads_to_the_page_of_each(admin_client, stored):
    stored()
    text, way = line(admin_client, "/?namespace=default", "overview-not-run")
    assert text == "1 Job of batch/v1 in default is stored and not run here."
    assert way == "/jobs/-/kubernetes/?namespace=default"
    stored("tau")
    (row,) = JobPage(admin_client, address="/jobs/-/kubernetes/?q=pi").rows
    assert "not run here" in words(row)
    assert row.find("th/a").get("href") == "/jobs/default/pi/"
