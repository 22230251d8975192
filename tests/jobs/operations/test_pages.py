"""The pages of bulk operations: what is chosen, what is shown before, who may see and do what."""

from __future__ import annotations

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext

from cluster import access
from cluster.models import RoleBinding
from cluster.store import Create, store
from dashboard import live
from dashboard.live.topics import TopicRequest
from jobs.models import Operation
from jobs.operations import selection
from kube.errors import NotFound
from kube.resources import COMMANDS, JOBS
from tests.jobs.operations.conftest import carry_on
from tests.jobs.pages import world
from tests.jobs.pages.job_page import JobPage, words
from tests.tables import cases

ALL = "/jobs/-/operations/"


@pytest.fixture
def jobs(alice):
    """Two that run, one that failed and one that belongs to bob."""
    for name in ("one", "two"):
        world.make(name, "Running", counts={"running": 3, "pending": 1})
    world.make("three", "Failed")
    world.make("four", "Running", owner="bob")


def uid(name):
    return store.get(JOBS, "default", name).uid


def ticked(client, action, *names, **more):
    return client.post(ALL, {"action": action, "which": "ticked", "uid": [uid(each) for each in names], **more})


def chosen(response):
    """The names of the jobs of the operation that a form has led to."""
    number = int(response["Location"].strip("/").rpartition("/")[2])
    return sorted(Operation.objects.get(pk=number).items.values_list("name", flat=True))


def test_the_ticked_jobs_are_chosen(client, jobs):
    assert chosen(ticked(client, "suspend", "one", "three")) == ["one", "three"]


@cases("filters, names", {
    "all": ({}, ["four", "one", "three", "two"]),
    "filters": ({"phase": "Running", "owner": "alice"}, ["one", "two"]),
    "text": ({"q": "thr"}, ["three"]),
    "of a queue": ({"queue": "default", "phase": "Failed"}, ["three"]),
})  # fmt: skip
def test_all_that_match_the_filters_are_chosen(client, jobs, filters, names):
    assert chosen(client.post(ALL, {"action": "delete", "which": "all", **filters})) == names


@pytest.mark.parametrize("form", [{"which": "all"}, {"which": "ticked"}])
def test_more_jobs_than_one_operation_takes_are_refused(client, jobs, monkeypatch, parse, form):
    monkeypatch.setattr(selection, "MOST", 1)
    answer = client.post(ALL, {"action": "delete", "uid": [uid("one"), uid("two")], **form}, follow=True)
    assert "one operation takes 1 at most" in world.words(answer, parse, "toasts")
    assert not Operation.objects.exists()


@cases("form, said", {
    "nothing ticked": ({"action": "suspend", "which": "ticked"}, "No job is ticked"),
    "ticked and gone": ({"action": "suspend", "which": "ticked", "uid": "none"}, "are gone"),
    "a filter that would be left out": ({"action": "delete", "which": "all", "phase": "Faild"},
        "could not be read, so nothing was chosen"),
    "none matches": ({"action": "delete", "which": "all", "q": "zzz"}, "No job matches"),
    "no bulk action": ({"action": "edit", "which": "all"}, "Say what to do"),
    "no action": ({"which": "all"}, "Say what to do"),
})  # fmt: skip
def test_what_chooses_nothing_is_told_and_leads_back(client, jobs, parse, form, said):
    answer = client.post(ALL, {**form, "next": "/jobs/?q=o"}, follow=True)
    assert said in world.words(answer, parse, "toasts")
    assert answer.redirect_chain[-1][0] == "/jobs/?q=o"
    assert not Operation.objects.exists()


def confirmed(client, *what):
    """Choose jobs and confirm; return the address of the operation."""
    page = ticked(client, *what)["Location"]
    assert client.post(f"{page}confirm/")["Location"] == page
    return page


def test_before_anything_is_done_the_effect_is_shown(client, jobs, parse):
    shown = JobPage(client, address=ticked(client, "suspend", "one", "two", "three", "four")["Location"])
    for said in (
        "Suspend 2 of 4 jobs?",
        "6 running pods will be stopped, and 2 waiting pods will not start.",
        "1 is in a phase in which a job cannot be suspended, and stays as it is.",
        "For 1 you lack the right; it stays as it is.",
    ):
        assert said in shown.text("content")
    nothing = JobPage(client, address=ticked(client, "resume", "one")["Location"])
    assert "None of these jobs can be resumed by you now." in nothing.text("content")
    assert nothing.tree.findall(".//main//button") == []
    assert store.find(COMMANDS) == []


def test_jobs_that_come_after_the_choice_are_not_touched(client, jobs):
    page = client.post(ALL, {"action": "delete", "which": "all"})["Location"]
    world.make("five", "Running")
    client.post(f"{page}confirm/")
    carry_on()
    assert [stored.name for stored in store.find(JOBS)] == ["five", "four"]


def test_the_page_tells_how_far_it_is_and_the_result_of_each(client, alice, jobs):
    where = confirmed(client, "delete", "one", "four")
    page, running = JobPage(client, address=where), topic(alice)
    assert "Under way: 0 of 2 jobs have a result." in page.text("operation-head")
    assert page.tree.get_element_by_id("operation-head").get("data-state") == "asking"
    carry_on()
    page, over = JobPage(client, address=where), topic(alice)
    assert "Over: 2 of 2 jobs have a result." in page.text("operation-head")
    four, one = (words(row) for row in page.tree.findall(".//tbody/tr"))
    assert four.startswith("default / four Refused")
    assert "forbidden" in four
    assert one.startswith("default / one Done")
    assert len(JobPage(client, address=f"{where}?result=Refused").tree.findall(".//tbody/tr")) == 1
    assert (running.again is None, over.again is None) == (False, True), "it is drawn anew while it runs"


def test_what_was_not_asked_is_not_told_on_the_page_of_the_job(client, jobs):
    where = confirmed(client, "suspend", "one", "three")
    for _ in range(2):
        client.post(f"{where}confirm/")
        carry_on()
    assert len(store.find(COMMANDS)) == 1, "confirming twice is confirming once"
    assert JobPage(client, address=where).tree.get_element_by_id("operation-head").get("data-state") == "waiting"
    assert "Suspend: under way." in JobPage(client, "one").text("job-asked")
    assert JobPage(client, "three").text("job-asked") == ""


def test_a_running_operation_is_stopped_by_who_began_it(client, jobs, parse):
    where = confirmed(client, "delete", "one", "two")
    answer = client.post(f"{where}stop/", follow=True)
    assert "Stopped: 2 jobs were not asked." in world.words(answer, parse, "toasts")
    carry_on()
    assert len(store.find(JOBS)) == 4
    assert "alice stopped it" in JobPage(client, address=where).text("operation-head")


def login(person, name, role="submitter", namespace="default"):
    browser = Client()
    browser.force_login(person(name, role, namespace))
    return browser


def test_nobody_else_confirms_or_sees_a_draft(client, jobs, person):
    page = ticked(client, "delete", "one")["Location"]
    bob = login(person, "bob", "operator")
    assert (bob.get(page).status_code, bob.post(f"{page}confirm/").status_code) == (404, 404)
    assert not Operation.objects.exclude(confirmed=0).exists()


def test_others_see_of_an_operation_the_jobs_that_they_may_list(client, alice, jobs, person):
    RoleBinding.objects.create(user=alice, namespace="other", role="submitter")
    store.write(Create(JOBS, world.job_object("hidden", namespace="other")))
    where = client.post(ALL, {"action": "delete", "which": "all", "owner": "alice"})["Location"]
    client.post(f"{where}confirm/")
    carry_on()
    page = JobPage(login(person, "vera", "viewer"), address=where)
    assert "hidden" not in page.text("content")
    assert "3 of 3 jobs" in page.text("operation-head")
    assert login(person, "will", "viewer", "elsewhere").get(where).status_code == 404


def test_somebody_else_sees_and_stops_it_only_with_the_right_to_all(client, jobs, person):
    bob, olga = login(person, "bob", "operator"), login(person, "olga", "operator", "*")
    assert "No bulk operation yet" in JobPage(client, address=ALL).text("content")
    where = confirmed(client, "suspend", "one")
    for browser, said in ((client, "Suspend ticked in the list"), (bob, "No bulk operation yet"), (olga, "Suspend")):
        assert said in JobPage(browser, address=ALL).text("content")
    assert (bob.post(f"{where}stop/").status_code, olga.post(f"{where}stop/").status_code) == (403, 302)
    assert Operation.objects.get().stopped_by == "olga"


def test_a_viewer_is_offered_nothing(cluster, person, parse):
    world.make("one", "Running")
    browser = login(person, "vera", "viewer")
    shown = JobPage.of_list(browser)
    assert 'id="bulk"' not in shown.html
    assert 'type="checkbox"' not in shown.html
    answer = browser.post(ALL, {"action": "delete", "which": "all"}, follow=True)
    assert "Nowhere may you delete jobs" in world.words(answer, parse, "toasts")
    assert not Operation.objects.exists()


@cases("address, names, has_boxes", {
    "the list": ("/jobs/?phase=Running&owner=alice", {"phase": "Running", "owner": "alice"}, True),
    "a queue": ("/queues/default/?phase=Running", {"phase": "Running", "queue": "default"}, False),
})  # fmt: skip
def test_lists_offer_boxes_and_all_that_match(client, jobs, address, names, has_boxes):
    tree = JobPage(client, address=address).tree
    form = tree.find(".//form[@id='bulk']")
    hidden = {each.get("name"): each.get("value") for each in form.iter("input") if each.get("type") == "hidden"}
    assert (form.get("action"), {name: hidden[name] for name in names}) == (ALL, names)
    boxes = {each.get("value") for each in tree.iter("input") if each.get("form") == "bulk"}
    if has_boxes:
        assert (tree.find(".//*[@id='table-total']").text, boxes) == ("2", {uid("one"), uid("two")})


def topic(user, number=None):
    number = number if number is not None else Operation.objects.get().pk
    return live.topics.find("jobs:operation")(TopicRequest(access.for_user(user), QueryDict(f"number={number}")))


@pytest.mark.parametrize("number", ["", "x", "9" * 40, "7"])
def test_an_operation_that_is_not_there_is_told_so(client, alice, number):
    with pytest.raises(NotFound):
        topic(alice, number)
    if number.isdigit():
        assert client.get(f"{ALL}{number}/").status_code == 404


def test_the_page_costs_the_same_queries_for_few_and_for_many(client, alice):
    world.many(600)
    counts = []
    for filters in ({"q": "job-0000"}, {}):
        page = client.post(ALL, {"action": "delete", "which": "all", **filters})["Location"]
        client.post(f"{page}confirm/")
        with CaptureQueriesContext(connection) as captured:
            assert client.get(page).status_code == 200
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 12
