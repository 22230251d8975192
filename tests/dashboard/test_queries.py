"""How many queries each page takes among 5,000 jobs: a bounded number, whatever there is to show."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster.store import Create, Group, Patch, store
from dashboard import cluster_usage
from kube.resources import EVENTS, JOBS, NODES, PODS, QUEUES
from scheduler import waiting_lines
from tests.builders import node, of, pod, queue
from tests.jobs.pages import world

JOBS_COUNT = 5_000
PHASES = ("Pending", "Running", "Completed", "Failed")
# As recorded, session and user included.
PAGES = {
    "/": 15,
    "/jobs/": 12,
    "/jobs/?per=200": 12,
    "/jobs/?q=job-4&phase=Running&sort=-created&page=2": 10,
    "/jobs/?owner=alice&queue=queue-3": 11,
    "/jobs/new/": 13,
    "/jobs/default/job-00042/": 15,
    "/jobs/default/job-00042/?tab=logs": 11,
    "/jobs/default/job-00042/?tab=events": 12,
    "/jobs/default/job-00042/?tab=yaml": 15,
    "/queues/": 11,
    "/queues/queue-3/": 17,
    "/queues/queue-3/edit/": 5,
    "/nodes/": 9,
    "/nodes/node-03/": 14,
    "/events/": 7,
    "/audit/": 7,
    "/access/": 12,
    "/network/": 5,
    "/connect/": 4,
    "/queues/-/new/": 4,
    "/password/": 3,
}


@pytest.fixture(scope="module")
def many(django_db_setup, django_db_blocker):
    """Five thousand jobs with a pod each, in twenty queues on fifty nodes; taken away at the end."""
    from django.db import transaction

    with django_db_blocker.unblock(), transaction.atomic():
        furnish()
        _forget()
        with store.reading() as head, cluster_usage.current(head), waiting_lines.current(head):
            pass  # read once by each process, whichever page is the first
        yield User.objects.create_superuser("root-of-all")
        transaction.set_rollback(True)
    _forget()


def _forget():
    cluster_usage.forget()
    waiting_lines.forget()


def furnish():
    world.base()
    amounts = {"cpu": "32", "memory": "256Gi", "pods": "256"}
    queues = [Create(QUEUES, queue(f"queue-{number}", weight=1)) for number in range(20)]
    nodes = [Create(NODES, node(f"node-{number:02}", allocatable=amounts)) for number in range(50)]
    outcomes = store.commit(
        [*(Group([each]) for each in (*queues, *nodes)), *(Group(job(n)) for n in range(JOBS_COUNT))]
    )
    assert all(isinstance(each, list) for each in outcomes)


def job(number):
    name, phase = f"job-{number:05}", PHASES[number % len(PHASES)]
    obj = world.job_object(name, tasks=(("worker", 1),), minimum=1, queue=f"queue-{number % 20}")
    notes = {"volcano.sh/job-name": name}
    where = f"node-{number % 50:02}"
    member = pod(f"{name}-worker-0", annotations=notes, nodeName=where, status={"phase": "Running"})
    about = {"kind": "Job", "name": name, "namespace": "default"}
    event = of(
        EVENTS, f"{name}.1", {"involvedObject": about, "reason": "Created", "message": "Made.", "type": "Normal"}
    )
    told = {"phase": phase, "reason": "Told", "message": "As told."}
    counts = {"Running": {"running": 1}, "Completed": {"succeeded": 1}, "Failed": {"failed": 1}}.get(phase, {})
    state = {"status": {"state": told, "minAvailable": 1, **counts}}
    return [
        Create(JOBS, obj),
        Patch(JOBS, "default", name, state, "status"),
        Create(PODS, member),
        Create(EVENTS, event),
    ]


@pytest.mark.django_db
@pytest.mark.parametrize(("path", "most"), PAGES.items())
def test_page_takes_a_bounded_number_of_queries(many, client, path, most):
    client.force_login(many)
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(path)
    assert answer.status_code == 200
    said = "\n".join(each["sql"][:160] for each in captured)
    assert len(captured) <= most, f"{len(captured)} queries:\n{said}"
