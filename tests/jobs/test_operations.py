"""Bulk operations: what is chosen and shown before, who may see and do what, and each job once, with the rights of then."""

from collections import Counter

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from cluster import access
from cluster.api import backend
from cluster.models import AuditEntry, RoleBinding
from cluster.store import Create, Delete, Group, store
from dashboard import live
from dashboard.live.topics import TopicRequest
from dashboard.parts import phases
from jobs import tasks
from jobs.models import Operation
from jobs.operations import batches, drafts
from jobs.pages.operations import selection
from jobs.pages.operations.selection import Selection
from jobs.rules import actions
from jobs.rules.actions import TIME_LIMIT_MS, Result
from kube.errors import Conflict, NotFound, ServiceUnavailable
from kube.resources import COMMANDS, JOBS
from tests.dashboard.pages.conftest import reader
from tests.jobs.pages import world
from tests.jobs.pages.job_page import JobPage, words, words_of
from tests.tables import cases

ALL = "/jobs/-/operations/"


@pytest.fixture
def actor(cluster, person):
    return access.for_user(person("alice"))


def make(number, *, owner="alice", begin=0):
    running = {"status": world.status("Running", now=world.START)}
    names = [f"job-{index:04d}" for index in range(begin, begin + number)]
    store.commit([Group([Create(JOBS, world.job_object(name, owner=owner) | running)]) for name in names])


def carry_on(budget_s=1):
    """Ask what is left for a while, and look at what was asked, as the task does."""
    batches.ask(budget_s)
    batches.settle_all()


def begin(actor, action, chosen=None):
    """Confirm an operation on the chosen jobs, by default on all."""
    operation = drafts.draft(actor, action, Selection(chosen or store.names(JOBS), "all"))
    assert drafts.confirm(operation)
    operation.refresh_from_db()
    return operation


def counts(operation):
    return Counter(item.result for item in operation.items.all())


def ordered():
    return sorted((each.object["action"], each.object["target"]["name"]) for each in store.find(COMMANDS))


def test_each_job_is_asked_once_and_the_operation_is_over_when_each_shows_it_or_lasts_too_long(actor):
    make(3)
    operation = begin(actor, actions.SUSPEND)
    for _ in range(3):
        carry_on()
    assert ordered() == [("AbortJob", f"job-000{index}") for index in range(3)]
    assert counts(operation) == {"Asked": 3}
    assert not drafts.confirm(operation)
    for name in ("job-0000", "job-0001"):
        world.becomes(name, "Aborted")
    operation.items.filter(name="job-0002").update(asked=operation.confirmed - TIME_LIMIT_MS)
    carry_on()
    operation.refresh_from_db()
    assert (counts(operation), operation.over > 0) == ({"Done": 2, "Timed out": 1}, True)
    assert operation.items.get(name="job-0002").why == "After 30 s it is Running."
    rows = AuditEntry.objects.filter(verb="AbortJob").values_list("actor", "name", "outcome")
    assert sorted(rows) == [("alice", f"job-000{index}", "done") for index in range(3)]


def test_jobs_that_changed_or_vanished_or_were_replaced_or_are_another_ones_are_told_so(actor):
    make(4)
    make(1, owner="bob", begin=4)
    operation = begin(actor, actions.SUSPEND)
    world.becomes("job-0000", "Completed")
    for name in ("job-0001", "job-0002"):
        store.write(Delete(JOBS, "default", name))
    store.write(Create(JOBS, world.job_object("job-0002")))
    carry_on()
    assert ordered() == [("AbortJob", "job-0003")]
    found = operation.items.order_by("name")
    assert [item.result for item in found] == ["Skipped", "Gone", "Gone", "Asked", "Refused"]
    assert found[0].why == "It is Completed; only jobs that are Pending or Running can be suspended."
    assert "forbidden" in found[4].why


def test_of_a_deletion_a_namesake_stays(actor):
    make(2)
    operation = begin(actor, actions.DELETE)
    store.write(Delete(JOBS, "default", "job-0000"))
    store.write(Create(JOBS, world.job_object("job-0000")))
    carry_on()
    assert counts(operation) == {"Gone": 1, "Done": 1}
    assert [stored.name for stored in store.find(JOBS)] == ["job-0000"]


@cases("lose", {
    "role": lambda: RoleBinding.objects.all().delete(),
    "account": lambda: User.objects.all().delete(),
    "login": lambda: User.objects.update(is_active=False),
})  # fmt: skip
def test_a_right_that_was_taken_away_after_the_confirmation_holds_no_more(actor, lose):
    make(2)
    operation = begin(actor, actions.DELETE)
    lose()
    carry_on()
    assert counts(operation) == {"Refused": 2}
    assert len(store.find(JOBS)) == 2


def test_batches_of_several_operations_take_turns_and_a_stop_leaves_what_was_not_asked(actor, monkeypatch):
    monkeypatch.setattr(backend, "batch", 2)
    make(8)
    names = list(store.names(JOBS).items())
    both = [begin(actor, actions.DELETE, dict(half)) for half in (names[:4], names[4:])]
    carry_on(0)
    assert [counts(each) for each in both] == [{"Done": 2, "Not begun": 2}] * 2
    assert drafts.stop(both[0], actor) == 2
    carry_on()
    both[0].refresh_from_db()
    assert (counts(both[0]), both[0].over > 0) == ({"Done": 2, "Not asked": 2}, True)
    assert len(store.find(JOBS)) == 2
    assert drafts.stop(both[0], actor) == 0


@cases("outcomes, settled", {
    "nothing was asked": ([], ""),
    "all answered": (["done", Conflict("")], "ab"),
    "the first could not be taken, and waits": ([ServiceUnavailable(""), "done"], "b"),
    "nothing could be taken": ([ServiceUnavailable(""), ServiceUnavailable("")], None),
})  # fmt: skip
def test_what_the_cluster_could_not_take_waits(outcomes, settled):
    items = "ab"[: len(outcomes)]
    if settled is None:
        with pytest.raises(ServiceUnavailable):
            batches.answered(items, outcomes)
    else:
        assert [item for item, _ in batches.answered(items, outcomes)] == list(settled)


def test_a_batch_of_many_costs_as_many_queries_as_one_of_few(actor):
    make(400)
    names, costs = list(store.names(JOBS).items()), []
    for chosen in (names[:2], names[2:]):
        operation = begin(actor, actions.SUSPEND, dict(chosen))
        with CaptureQueriesContext(connection) as captured:
            batches.ask_batch(operation)
        costs.append(len(captured))
    assert costs[1] <= costs[0] + 5


def test_drafts_and_old_operations_are_forgotten(actor):
    make(1)
    draft = drafts.draft(actor, actions.DELETE, Selection(store.names(JOBS), "all"))
    operation = begin(actor, actions.DELETE)
    assert drafts.prune(draft.drafted + drafts.DRAFT_MS) == 0
    assert drafts.prune(draft.drafted + drafts.DRAFT_MS + 1) == 1
    assert list(Operation.objects.all()) == [operation]
    assert drafts.prune(operation.drafted + 91 * 86_400_000) == 1


def test_every_result_is_known_to_the_page():
    assert {str(result) for result in Result} <= phases.LOOKS.keys()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("follow", [False, True])
def test_a_run_asks_and_looks_at_what_came_of_it(actor, follow):
    """Also after the database failed, and without Redis, where beat goes on."""
    make(1)
    operation = begin(actor, actions.DELETE)
    tasks.hurry()
    with connection.cursor() as cursor:
        cursor.execute("CREATE TRIGGER broken BEFORE UPDATE ON jobs_operationitem BEGIN SELECT RAISE(ABORT, 'no'); END")
        tasks.advance()
        cursor.execute("DROP TRIGGER broken")
    assert len(store.find(JOBS)) == 1
    tasks.advance(follow)
    operation.refresh_from_db()
    assert store.find(JOBS) == []
    assert operation.over
    Operation.objects.update(drafted=1)
    tasks.clean()
    assert not Operation.objects.exists(), "what is old is cleaned away"


# ---- the pages
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
    number = int(response["Location"].strip("/").rpartition("/")[2])
    return sorted(Operation.objects.get(pk=number).items.values_list("name", flat=True))


@cases("filters, names", {
    "all": ({}, ["four", "one", "three", "two"]),
    "filters": ({"phase": "Running", "owner": "alice"}, ["one", "two"]),
    "text": ({"q": "thr"}, ["three"]),
    "of a queue": ({"queue": "default", "phase": "Failed"}, ["three"]),
})  # fmt: skip
def test_all_that_match_the_filters_are_chosen_or_the_ticked_ones(client, jobs, filters, names):
    assert chosen(client.post(ALL, {"action": "delete", "which": "all", **filters})) == names
    assert chosen(ticked(client, "suspend", "one", "three", **filters)) == ["one", "three"]


@pytest.mark.parametrize("form", [{"which": "all"}, {"which": "ticked"}])
def test_more_jobs_than_one_operation_takes_are_refused(client, jobs, monkeypatch, form):
    monkeypatch.setattr(selection, "MOST", 1)
    answer = client.post(ALL, {"action": "delete", "uid": [uid("one"), uid("two")], **form}, follow=True)
    assert "one operation takes 1 at most" in words_of(answer, "toasts")
    assert not Operation.objects.exists()


@cases("form, message", {
    "nothing ticked": ({"action": "suspend", "which": "ticked"}, "No job is ticked"),
    "ticked and gone": ({"action": "suspend", "which": "ticked", "uid": "none"}, "are gone"),
    "a filter that would be left out": ({"action": "delete", "which": "all", "phase": "Faild"},
        "could not be read, so nothing was chosen"),
    "none matches": ({"action": "delete", "which": "all", "q": "zzz"}, "No job matches"),
    "no bulk action": ({"action": "edit", "which": "all"}, "Say what to do"),
    "no action": ({"which": "all"}, "Say what to do"),
})  # fmt: skip
def test_what_chooses_nothing_is_told_and_leads_back(client, jobs, form, message):
    answer = client.post(ALL, {**form, "next": "/jobs/?q=o"}, follow=True)
    assert message in words_of(answer, "toasts")
    assert answer.redirect_chain[-1][0] == "/jobs/?q=o"
    assert not Operation.objects.exists()


def confirmed(client, *what):
    """Choose jobs and confirm; return the address of the operation."""
    page = ticked(client, *what)["Location"]
    assert client.post(f"{page}confirm/")["Location"] == page
    return page


def test_before_anything_is_done_the_effect_is_shown(client, jobs):
    draft = ticked(client, "suspend", "one", "two", "three", "four")["Location"]
    text = JobPage(client, address=draft).text("content")
    assert "Suspend 2 of 4 jobs?" in text
    assert "6 running pods will be stopped, and 2 waiting pods will not start." in text
    assert "1 is in a phase in which a job cannot be suspended, and stays as it is." in text
    assert "For 1 you lack the right; it stays as it is." in text
    nothing = JobPage(client, address=ticked(client, "resume", "one")["Location"])
    assert "None of these jobs can be resumed by you now." in nothing.text("content")
    assert nothing.tree.findall(".//main//button") == []
    assert store.find(COMMANDS) == []


def test_the_page_tells_how_far_it_is_and_the_result_of_each_and_later_jobs_are_not_touched(client, alice, jobs):
    where = confirmed(client, "delete", "one", "four")
    world.make("five", "Running")
    page, running = JobPage(client, address=where), topic(alice)
    assert "Under way: 0 of 2 jobs have a result." in page.text("operation-head")
    assert page.tree.get_element_by_id("operation-head").get("data-state") == "asking"
    carry_on()
    page, over = JobPage(client, address=where), topic(alice)
    assert "Over: 2 of 2 jobs have a result." in page.text("operation-head")
    four, one = (words(row) for row in page.tree.findall(".//tbody/tr"))
    assert (four.startswith("default / four Refused"), "forbidden" in four) == (True, True)
    assert one.startswith("default / one Done")
    assert len(JobPage(client, address=f"{where}?result=Refused").tree.findall(".//tbody/tr")) == 1
    assert (running.again is None, over.again is None) == (False, True), "it is drawn anew while it runs"
    assert [stored.name for stored in store.find(JOBS)] == ["five", "four", "three", "two"]


def test_what_was_not_asked_is_not_told_on_the_page_of_the_job(client, jobs):
    where = confirmed(client, "suspend", "one", "three")
    for _ in range(2):
        client.post(f"{where}confirm/")
        carry_on()
    assert len(store.find(COMMANDS)) == 1, "confirming twice is confirming once"
    assert JobPage(client, address=where).tree.get_element_by_id("operation-head").get("data-state") == "waiting"
    assert "Suspend: under way." in JobPage(client, "one").text("job-asked")
    assert JobPage(client, "three").text("job-asked") == ""


def test_others_see_and_do_what_they_have_the_right_to(client, alice, jobs):
    page = ticked(client, "delete", "one")["Location"]
    bob, olga = reader("bob", "operator", "default"), reader("olga", "operator", "*")
    assert bob.get(page).status_code == bob.post(f"{page}confirm/").status_code == 404, "a draft is nobody else's"
    assert not Operation.objects.exclude(confirmed=0).exists()
    assert "No bulk operation yet" in JobPage(client, address=ALL).text("content")
    RoleBinding.objects.create(user=alice, namespace="other", role="submitter")
    store.write(Create(JOBS, world.job_object("hidden", namespace="other")))
    where = client.post(ALL, {"action": "suspend", "which": "all", "owner": "alice"})["Location"]
    client.post(f"{where}confirm/")
    for browser, expected in ((client, "all that match"), (bob, "No bulk operation yet"), (olga, "all that match")):
        assert expected in JobPage(browser, address=ALL).text("content")
    page = JobPage(reader("vera", "viewer", "default"), address=where)
    assert ("hidden" in page.text("content"), "of 3 jobs" in page.text("operation-head")) == (False, True)
    assert reader("will", "viewer", "elsewhere").get(where).status_code == 404
    assert (bob.post(f"{where}stop/").status_code, olga.post(f"{where}stop/").status_code) == (403, 302)
    assert Operation.objects.get(confirmed__gt=0).stopped_by == "olga"


@cases("address, names, has_boxes", {
    "the list": ("/jobs/?phase=Running&owner=alice", {"phase": "Running", "owner": "alice"}, True),
    "a queue": ("/queues/default/?phase=Running", {"phase": "Running", "queue": "default"}, False),
})  # fmt: skip
def test_lists_offer_boxes_and_all_that_match(client, jobs, address, names, has_boxes):
    tree = JobPage(client, address=address).tree
    form = tree.find(".//form[@id='bulk']")
    hidden = {each.get("name"): each.get("value") for each in form.findall(".//input[@type='hidden']")}
    assert (form.get("action"), names.items() <= hidden.items()) == (ALL, True)
    boxes = {*tree.xpath("//input[@form='bulk']/@value")}
    assert not has_boxes or (tree.find(".//*[@id='table-total']").text, boxes) == ("2", {uid("one"), uid("two")})


def topic(user, number=None):
    number = Operation.objects.get().pk if number is None else number
    return live.topics.find("jobs:operation")(TopicRequest(access.for_user(user), QueryDict(f"number={number}")))


@pytest.mark.parametrize("number", ["", "x", "9" * 40, "7"])
def test_an_operation_that_is_not_there_is_told_so(client, alice, number):
    with pytest.raises(NotFound):
        topic(alice, number)
    if number.isdigit():
        assert client.get(f"{ALL}{number}/").status_code == 404


def test_the_page_costs_the_same_queries_for_few_and_for_many(client, alice):
    make(600)
    counts = []
    for filters in ({"q": "job-000"}, {}):
        page = client.post(ALL, {"action": "delete", "which": "all", **filters})["Location"]
        client.post(f"{page}confirm/")
        with CaptureQueriesContext(connection) as captured:
            assert client.get(page).status_code == 200
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 12
