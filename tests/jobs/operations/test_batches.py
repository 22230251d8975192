"""Carrying out what was asked of many jobs: each job once, with the rights of then, whatever happens."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster import access
from cluster.api import backend
from cluster.models import AuditEntry, RoleBinding
from cluster.store import Create, Delete, Group, Patch, store
from jobs import tasks
from jobs.models import Operation
from jobs.operations import batches, drafts
from jobs.operations.selection import Selection
from jobs.rules import actions
from jobs.rules.actions import TIME_LIMIT_MS, Result
from kube.errors import Conflict, ServiceUnavailable
from kube.resources import COMMANDS, JOBS
from tests.jobs.control import submit
from tests.jobs.operations.conftest import carry_on
from tests.jobs.pages import world
from tests.tables import cases


@pytest.fixture
def actor(cluster, person):
    return access.for_user(person("alice"))


def make(number, *, phase="Running", owner="alice", namespace="default", begin=0):
    """Make jobs in a phase; return those of the operation's selection."""
    groups = []
    for index in range(begin, begin + number):
        job = world.job_object(f"job-{index:04d}", owner=owner, namespace=namespace)
        job["status"] = world.status(phase, now=world.START)
        groups.append(Group([Create(JOBS, job)]))
    store.commit(groups)
    return store.names(JOBS)


def begin(actor, action, chosen=None):
    """Confirm an operation on the chosen jobs, by default on all."""
    operation = drafts.draft(actor, action, Selection(chosen or store.names(JOBS), "all"))
    assert drafts.confirm(operation)
    operation.refresh_from_db()
    return operation


def results(operation):
    return {item.name: (item.result, item.why) for item in operation.items.all()}


def counts(operation):
    return Counter(item.result for item in operation.items.all())


def becomes(phase, *names):
    for name in names or [stored.name for stored in store.find(JOBS)]:
        status = world.status(phase, now=world.START)
        store.write(Patch(JOBS, "default", name, {"status": status}, subresource="status"))


def ordered():
    return sorted((each.object["action"], each.object["target"]["name"]) for each in store.find(COMMANDS))


def test_each_job_is_asked_once_and_the_operation_is_over_when_each_shows_it(actor):
    make(3)
    operation = begin(actor, actions.SUSPEND)
    for _ in range(3):
        carry_on()
    assert ordered() == [("AbortJob", f"job-000{index}") for index in range(3)]
    assert counts(operation) == {"Asked": 3}
    assert not drafts.confirm(operation)
    becomes("Aborted")
    carry_on()
    operation.refresh_from_db()
    assert counts(operation) == {"Done": 3}
    assert operation.over
    rows = AuditEntry.objects.filter(verb="AbortJob").values_list("actor", "name", "outcome")
    assert sorted(rows) == [("alice", f"job-000{index}", "done") for index in range(3)]


def test_jobs_that_changed_or_vanished_or_were_replaced_are_told_so(actor):
    make(4)
    operation = begin(actor, actions.SUSPEND)
    becomes("Completed", "job-0000")
    for name in ("job-0001", "job-0002"):
        store.write(Delete(JOBS, "default", name))
    store.write(Create(JOBS, world.job_object("job-0002")))
    carry_on()
    assert ordered() == [("AbortJob", "job-0003")]
    found = results(operation)
    assert found["job-0000"] == ("Skipped", "It is Completed; only jobs that are Pending or Running can be suspended.")
    assert found["job-0001"][0] == found["job-0002"][0] == "Gone"
    assert found["job-0003"][0] == "Asked"


def test_of_a_deletion_some_are_done_some_are_refused_and_a_namesake_stays(actor):
    make(3)
    make(2, owner="bob", begin=3)
    operation = begin(actor, actions.DELETE)
    store.write(Delete(JOBS, "default", "job-0000"))
    store.write(Create(JOBS, world.job_object("job-0000")))
    carry_on()
    assert counts(operation) == {"Gone": 1, "Done": 2, "Refused": 2}
    assert "forbidden" in results(operation)["job-0003"][1]
    assert [stored.name for stored in store.find(JOBS)] == ["job-0000", "job-0003", "job-0004"]


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


def test_a_stop_leaves_what_was_not_asked(actor, monkeypatch):
    monkeypatch.setattr(backend, "batch", 2)
    make(5)
    operation = begin(actor, actions.DELETE)
    assert batches.ask_batch(operation)
    assert drafts.stop(operation, actor) == 3
    carry_on()
    operation.refresh_from_db()
    assert counts(operation) == {"Done": 2, "Not asked": 3}
    assert len(store.find(JOBS)) == 3
    assert operation.over
    assert drafts.stop(operation, actor) == 0


def test_batches_of_several_operations_take_turns(actor, monkeypatch):
    monkeypatch.setattr(backend, "batch", 2)
    make(8)
    names = store.names(JOBS)
    halves = [dict(list(names.items())[:4]), dict(list(names.items())[4:])]
    both = [begin(actor, actions.DELETE, half) for half in halves]
    carry_on(0)
    assert [counts(each) for each in both] == [{"Done": 2, "Not begun": 2}] * 2


@cases("outcomes, settled", {
    "nothing was asked": ([], ""),
    "all answered": (["done", Conflict("")], "ab"),
    "the first could not be taken, and waits": ([ServiceUnavailable(""), "done"], "b"),
    "nothing could be taken": ([ServiceUnavailable(""), ServiceUnavailable("")], None),
})  # fmt: skip
def test_what_the_cluster_could_not_take_waits(outcomes, settled):
    asked = "ab"[: len(outcomes)]
    if settled is None:
        with pytest.raises(ServiceUnavailable):
            batches.answered(asked, outcomes)
    else:
        assert [item for item, _ in batches.answered(asked, outcomes)] == list(settled)


@contextmanager
def broken_items():
    """Have the database refuse to note what became of a job."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TRIGGER broken BEFORE UPDATE ON jobs_operationitem BEGIN SELECT RAISE(ABORT, 'no'); END")
        yield
        cursor.execute("DROP TRIGGER broken")


@pytest.mark.django_db(transaction=True)
def test_a_batch_that_breaks_is_undone_whole_and_done_later(actor):
    make(3)
    operation = begin(actor, actions.SUSPEND)
    with broken_items(), pytest.raises(Exception, match="no"):
        carry_on()
    assert ordered() == []
    assert AuditEntry.objects.filter(verb="AbortJob").count() == 0
    carry_on()
    assert len(ordered()) == 3
    assert counts(operation) == {"Asked": 3}


def test_what_has_no_effect_in_half_a_minute_is_told_with_what_the_job_says(actor):
    make(1)
    operation = begin(actor, actions.SUSPEND)
    carry_on()
    operation.items.update(asked=operation.confirmed - TIME_LIMIT_MS)
    carry_on()
    assert results(operation)["job-0000"] == ("Timed out", "After 30 s it is Running.")


@cases("action, phase", {
    "suspend": (actions.SUSPEND, "Aborted"), "restart": (actions.RESTART, "Pending"),
    "terminate": (actions.TERMINATE, "Terminated"), "complete": (actions.COMPLETE, "Completed"),
})  # fmt: skip
def test_the_real_controller_does_what_is_asked(actor, controller, action, phase):
    submit(controller, world.job_object("demo"))
    operation = begin(actor, action)
    carry_on()
    controller.settle()
    carry_on()
    assert store.get(JOBS, "default", "demo").object["status"]["state"]["phase"] == phase
    assert counts(operation) == {"Done": 1}


def test_a_batch_of_many_costs_as_many_queries_as_one_of_few(actor):
    make(400)
    names = list(store.names(JOBS).items())
    costs = []
    for action, chosen in ((actions.SUSPEND, names[:2]), (actions.SUSPEND, names[2:])):
        operation = begin(actor, action, dict(chosen))
        with CaptureQueriesContext(connection) as captured:
            batches.ask_batch(operation)
        costs.append(len(captured))
    assert costs[1] <= costs[0] + 5


def test_drafts_and_old_operations_are_forgotten(actor):
    make(1)
    draft = drafts.draft(actor, actions.DELETE, Selection(store.names(JOBS), "all"))
    kept = begin(actor, actions.DELETE)
    assert drafts.prune(draft.drafted + drafts.DRAFT_MS) == 0
    assert drafts.prune(draft.drafted + drafts.DRAFT_MS + 1) == 1
    assert list(Operation.objects.all()) == [kept]
    assert drafts.prune(kept.drafted + 91 * 86_400_000) == 1


def test_every_result_is_known_to_the_page():
    from dashboard.parts import phases

    assert {str(result) for result in Result} <= phases.LOOKS.keys()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("follow", [False, True])
def test_a_run_asks_and_looks_at_what_came_of_it(actor, follow):
    """Also after the database failed, and without Redis, where beat goes on."""
    make(1)
    operation = begin(actor, actions.DELETE)
    tasks.hurry()
    with broken_items():
        tasks.advance()
    assert len(store.find(JOBS)) == 1
    tasks.advance(follow)
    operation.refresh_from_db()
    assert store.find(JOBS) == []
    assert operation.over
    Operation.objects.update(drafted=1)
    tasks.clean()
    assert not Operation.objects.exists(), "what is old is cleaned away"
