"""The pages of bulk operations: what is chosen, what is shown before, who may see and do what."""

from __future__ import annotations

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext

from cluster import access
from cluster.models import RoleBinding
from cluster.store import Create, Patch, store
from dashboard import live
from dashboard.live.topics import TopicRequest
from jobs.models import Operation
from kube.errors import NotFound
from kube.resources import COMMANDS, JOBS
from tests.jobs.operations.control import carry_on
from tests.jobs.pages import world
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


def test_before_anything_is_done_the_effect_is_shown(client, jobs, parse):
    shown = client.get(ticked(client, "suspend", "one", "two", "three", "four")["Location"])
    said = world.words(shown, parse, "content")
    assert "Suspend 2 of 4 jobs?" in said
    assert "6 running pods will be stopped, and 2 waiting pods will not start." in said
    assert "1 is in a phase in which a job cannot be suspended, and stays as it is." in said
    assert "For 1 you lack the right; it stays as it is." in said
    assert store.find(COMMANDS) == []


def test_where_nothing_would_be_done_nothing_is_offered(client, jobs, parse):
    shown = client.get(ticked(client, "resume", "one")["Location"])
    assert "None of these jobs can be resumed by you now." in world.words(shown, parse, "content")
    assert [*parse(shown).findall(".//main//button")] == []


def test_jobs_that_come_after_the_choice_are_not_touched(client, jobs):
    page = client.post(ALL, {"action": "delete", "which": "all"})["Location"]
    world.make("five", "Running")
    client.post(f"{page}confirm/")
    carry_on()
    assert [stored.name for stored in store.find(JOBS)] == ["five", "four"]


def test_the_page_tells_how_far_it_is_and_the_result_of_each(client, jobs, parse):
    page = ticked(client, "delete", "one", "four")["Location"]
    assert client.post(f"{page}confirm/")["Location"] == page
    assert "Under way: 0 of 2 jobs have a result." in world.words(client.get(page), parse, "operation-head")
    carry_on()
    shown = client.get(page)
    assert "Over: 2 of 2 jobs have a result." in world.words(shown, parse, "operation-head")
    rows = [" ".join("".join(row.itertext()).split()) for row in parse(shown).findall(".//tbody/tr")]
    assert rows[0].startswith("default / four Refused")
    assert "forbidden" in rows[0]
    assert rows[1].startswith("default / one Done")
    only = parse(client.get(f"{page}?result=Refused")).findall(".//tbody/tr")
    assert len(only) == 1


def test_what_was_not_asked_is_not_told_on_the_page_of_the_job(client, jobs, parse):
    page = ticked(client, "suspend", "one", "three")["Location"]
    client.post(f"{page}confirm/")
    carry_on()
    assert "Suspend: under way." in world.words(client.get("/jobs/default/one/"), parse, "job-asked")
    assert world.words(client.get("/jobs/default/three/"), parse, "job-asked") == ""


def test_stopping_is_offered_while_jobs_are_left_to_ask(client, jobs, parse):
    page = ticked(client, "suspend", "one", "two")["Location"]
    client.post(f"{page}confirm/")
    head = ".//*[@id='operation-head']"
    assert parse(client.get(page)).find(head).get("data-state") == "asking"
    carry_on()
    assert parse(client.get(page)).find(head).get("data-state") == "waiting"


def test_confirming_twice_is_confirming_once(client, jobs):
    page = ticked(client, "suspend", "one")["Location"]
    client.post(f"{page}confirm/")
    carry_on()
    client.post(f"{page}confirm/")
    carry_on()
    assert len(store.find(COMMANDS)) == 1


def test_a_running_operation_is_stopped_by_who_began_it(client, jobs, parse):
    page = ticked(client, "delete", "one", "two")["Location"]
    client.post(f"{page}confirm/")
    answer = client.post(f"{page}stop/", follow=True)
    assert "Stopped: 2 jobs were not asked." in world.words(answer, parse, "toasts")
    carry_on()
    assert len(store.find(JOBS)) == 4
    assert "alice stopped it" in world.words(client.get(page), parse, "operation-head")


def login(person, name, role="submitter", namespace="default"):
    browser = Client()
    browser.force_login(person(name, role, namespace))
    return browser


def test_nobody_else_confirms_or_sees_a_draft(client, jobs, person):
    page = ticked(client, "delete", "one")["Location"]
    bob = login(person, "bob", "operator")
    assert bob.get(page).status_code == 404
    assert bob.post(f"{page}confirm/").status_code == 404
    assert not Operation.objects.exclude(confirmed=0).exists()


def test_others_see_of_an_operation_the_jobs_that_they_may_list(client, jobs, person, parse):
    RoleBinding.objects.create(
        user=Operation.user.field.related_model.objects.get(username="alice"), namespace="other", role="submitter"
    )
    store.write(Create(JOBS, world.job_object("hidden", namespace="other")))
    page = client.post(ALL, {"action": "delete", "which": "all", "owner": "alice"})["Location"]
    client.post(f"{page}confirm/")
    carry_on()
    shown = login(person, "vera", "viewer").get(page)
    said = world.words(shown, parse, "content")
    assert "hidden" not in said
    assert "3 of 3 jobs" in world.words(shown, parse, "operation-head")
    assert login(person, "will", "viewer", "elsewhere").get(page).status_code == 404


def test_somebody_else_stops_it_only_with_the_right_to_all(client, jobs, person):
    page = ticked(client, "delete", "one")["Location"]
    client.post(f"{page}confirm/")
    assert login(person, "bob", "operator").post(f"{page}stop/").status_code == 403
    assert login(person, "olga", "operator", "*").post(f"{page}stop/").status_code == 302
    assert Operation.objects.get().stopped_by == "olga"


def test_a_viewer_is_offered_nothing(cluster, person, parse):
    world.make("one", "Running")
    browser = login(person, "vera", "viewer")
    shown = parse(browser.get("/jobs/"))
    assert shown.find(".//*[@id='bulk']") is None
    assert shown.find(".//input[@type='checkbox']") is None
    answer = browser.post(ALL, {"action": "delete", "which": "all"}, follow=True)
    assert "Nowhere may you delete jobs" in world.words(answer, parse, "toasts")
    assert not Operation.objects.exists()


def test_the_list_offers_boxes_and_all_that_match(client, jobs, parse):
    shown = parse(client.get("/jobs/?phase=Running&owner=alice"))
    form = shown.find(".//form[@id='bulk']")
    values = {each.get("name"): each.get("value") for each in form.iter("input") if each.get("type") == "hidden"}
    assert (values["phase"], values["owner"]) == ("Running", "alice")
    assert shown.find(".//*[@id='table-total']").text == "2"
    boxes = [each.get("value") for each in shown.iter("input") if each.get("form") == "bulk"]
    assert sorted(boxes) == sorted([uid("one"), uid("two")])


def test_the_page_of_a_queue_offers_the_same_for_its_jobs(client, jobs, parse):
    shown = parse(client.get("/queues/default/?phase=Running"))
    form = shown.find(".//form[@id='bulk']")
    values = {each.get("name"): each.get("value") for each in form.iter("input") if each.get("type") == "hidden"}
    assert (values["phase"], values["queue"]) == ("Running", "default")
    assert form.get("action") == ALL


def test_the_list_of_operations_has_ones_own(client, jobs, person, parse):
    page = ticked(client, "suspend", "one")["Location"]
    assert "No bulk operation yet" in world.words(client.get(ALL), parse, "content")
    client.post(f"{page}confirm/")
    assert "Suspend ticked in the list" in world.words(client.get(ALL), parse, "content")
    assert "No bulk operation yet" in world.words(login(person, "bob").get(ALL), parse, "content")
    assert "Suspend" in world.words(login(person, "olga", "operator", "*").get(ALL), parse, "content")


@pytest.mark.parametrize("number", ["999", "99999999999999999999999"])
def test_an_operation_that_is_not_there_is_told_so(client, alice, number):
    assert client.get(f"{ALL}{number}/").status_code == 404


@pytest.mark.parametrize("address", ["confirm/", "stop/"])
def test_what_changes_is_a_post_and_needs_a_login(client, jobs, address):
    page = ticked(client, "suspend", "one")["Location"]
    assert client.get(f"{page}{address}").status_code == 405
    assert Client().post(f"{page}{address}")["Location"].startswith("/login/")


def topic(user, number):
    request = TopicRequest(access.for_user(user), QueryDict(f"number={number}"))
    return live.topics.find("jobs:operation")(request)


def test_the_topic_is_drawn_anew_while_the_operation_runs(client, alice, jobs):
    page = ticked(client, "delete", "one")["Location"]
    client.post(f"{page}confirm/")
    number = Operation.objects.get().pk
    running = topic(alice, number)
    assert running.again is not None
    assert "Under way" in running.parts["operation-head"]
    carry_on()
    over = topic(alice, number)
    assert over.again is None
    assert "Over" in over.parts["operation-head"]


@pytest.mark.parametrize("number", ["", "x", "9" * 40, "7"])
def test_a_topic_of_nothing_is_not_found(alice, number):
    with pytest.raises(NotFound):
        topic(alice, number)


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


def test_the_status_of_a_job_that_changes_before_the_confirmation_is_looked_at_again(client, jobs):
    page = ticked(client, "suspend", "one")["Location"]
    status = world.status("Completed", now=world.START)
    store.write(Patch(JOBS, "default", "one", {"status": status}, subresource="status"))
    client.post(f"{page}confirm/")
    carry_on()
    assert Operation.objects.get().items.get().result == "Skipped"
