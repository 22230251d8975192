"""Every place of the pages that changes something, with another cluster behind them: offered and refused, or a call there."""

from contextlib import contextmanager, suppress

import pytest
from django.urls import Resolver404, get_resolver, resolve

from cluster.models import AuditEntry
from cluster.remote.connection import Connection
from cluster.remote.http import paths, target
from kube.resources import QUEUES
from proof.harness.waiting import until
from proof.systems.system import running
from proof.systems.work import Page, Person, Watcher, problems
from tests.system.changes import CHANGES, LASTING, objects, send, sweep
from tests.system.pair import kubeconfig, strip

__all__ = ["kubeconfig"]  # fixtures
pytestmark = pytest.mark.system

SAYS = "only show the cluster"
# Pages that need what these tests do not have, or answer without offering anything; what these pages keep for themselves;
# what is about a scheduler of ours, which works on another cluster in-place alone; samples, of the embedded cluster alone.
OTHERS = """
    dashboard:node jobs:kubernetes jobs:operation jobs:validate jobs:log
    dashboard:theme dashboard:create-user dashboard:make-link dashboard:set-active dashboard:set-password
    dashboard:bind-role dashboard:unbind-role dashboard:connect dashboard:revoke-token dashboard:add-machine
    jobs:operation-stop
"""
ELSEWHERE = "queues:scheduler queues:reset-scheduler queues:decisions dashboard:release-room jobs:run-sample"
# Forms that lead to changes, which are offered only with them.
FORMS = "jobs:template jobs:template-kept"
# An operation is prepared here and confirmed, and then changes jobs: see test_remote.
CHANGING = {change.name for change in CHANGES} | {"jobs:operations", "jobs:operation-confirm"}
READS = """
    / /nodes/ /network/ /events/ /audit/ /access/
    /jobs/ /jobs/default/long/ /jobs/default/ended/ /jobs/default/paused/ /jobs/default/long/?tab=yaml
    /jobs/default/long/?tab=logs /jobs/default/long/yaml/ /sweeps/ /sweeps/default/old/
    /flows/ /flows/-/templates/ /flows/-/templates/default/steps/ /flows/default/flow/
    /cronjobs/ /cronjobs/default/nightly/ /cronjobs/default/resting/ /queues/ /queues/spare/
"""
APPLICATIONS = ("dashboard", "jobs", "sweeps", "flows", "cronjobs", "queues")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The cluster with Volcano."""
    with running(tmp_path_factory.mktemp("first") / "data") as system:
        yield system


@pytest.fixture(scope="module")
def world(first, kubeconfig, tmp_path_factory, django_db_blocker):
    """One object of each kind that is changed, made by requests to the cluster's API."""
    api = Connection.of(target.find(str(kubeconfig), ""), tmp_path_factory.mktemp("keys"))
    for kind, obj in objects():
        api.request("POST", paths.collection(kind, obj["metadata"].get("namespace", "")), body=obj)
    with django_db_blocker.unblock(), first.store() as store, Person(first) as person:
        sweep(person, "old")
        for name in LASTING:
            Watcher(store).reaches(name, "Running")
        person.post("/jobs/default/paused/suspend/")
        Watcher(store).reaches("paused", "Aborted")
        Watcher(store).reaches("ended", "Completed")
        until(lambda: store.find(QUEUES, phase="Closed"), what="a closed queue")


@contextmanager
def showing(first, kubeconfig, folder, **variables):
    """A person at pages that show the first system, which has been read."""
    data = folder / "data"
    with running(data, VOLCANO_UI_KUBECONFIG=str(kubeconfig), **variables) as system, Person(system) as person:
        until(lambda: 'data-word="live"' in person.get("/").text, what="the first list")
        yield person


def offered(person, pages):
    """Return the names of the places to which pages lead."""
    names = set()
    for page in pages:
        answer = person.get(page)
        assert answer.status_code == 200, (page, answer.text[:500])
        for path in Page(answer.text).paths:
            with suppress(Resolver404):
                names.add(resolve(path).view_name)
    return names


def test_every_address_is_in_one_of_the_tables():
    names = {
        f"{name}:{pattern.name}"
        for name in APPLICATIONS
        for pattern in get_resolver().namespace_dict[name][1].url_patterns
    }
    reads = {resolve(path.partition("?")[0]).view_name for path in READS.split()}
    assert names == CHANGING | reads | {*f"{OTHERS} {ELSEWHERE} {FORMS}".split()}


def test_read_only_each_is_refused_and_beside_each_is_a_call(first, kubeconfig, world, tmp_path):
    none_is_offered_and_each_refused(first, kubeconfig, tmp_path / "reading")
    each_is_offered_and_a_call_of_the_clusters_api(first, kubeconfig, tmp_path / "beside")


def none_is_offered_and_each_refused(first, kubeconfig, folder):
    with showing(first, kubeconfig, folder, VOLCANO_UI_WAY="read-only") as reader, first.store() as store:
        before = changes(store)
        assert strip(reader) == "volcano-ui live read-only"
        offers = offered(reader, READS.split()) - {"jobs:operations"}
        assert not offers & (CHANGING | {*f"{FORMS} {ELSEWHERE}".split()})
        assert reader.get("/queues/-/scheduler/").status_code == 404
        assert reader.post("/queues/-/scheduler/reset/").status_code == 404
        for change in CHANGES:
            answer = reader.post(change.path, **change.fields)
            assert SAYS in page_message(reader, answer), (change.name, answer.status_code)
        assert SAYS in page_message(reader, reader.post("/jobs/-/operations/", action="delete", which="all"))
        for page in ("/jobs/-/templates/mpi/", "/jobs/-/templates/default/steps/"):
            assert SAYS in reader.get(page).text, page
        assert changes(store) == before


def page_message(person, answer):
    """What somebody reads who has sent a form."""
    return person.get(answer.headers["location"]).text if answer.status_code == 302 else answer.text


def changes(store):
    """How often somebody has changed something there, or tried: the cluster's own controllers are not in its audit."""
    return AuditEntry.objects.using(store.using).count()


def each_is_offered_and_a_call_of_the_clusters_api(first, kubeconfig, folder):
    with showing(first, kubeconfig, folder) as person, first.store() as store:
        # In the last namespace no job is.
        offers = offered(person, [*READS.split(), "/jobs/new/", "/sweeps/-/new/", "/?namespace=kube-system"])
        assert CHANGING - offers == {"jobs:operation-confirm"}
        assert "jobs:run-sample" not in offers
        for change in CHANGES:
            rows = AuditEntry.objects.using(store.using)
            rows = rows.filter(verb=change.verb, resource=change.kind.id, outcome="done")
            before = rows.count()
            answer = send(person, change)
            assert answer.status_code == 302, (change.name, problems(answer))
            assert rows.count() > before, (change.name, page_message(person, answer).partition('id="toasts"')[2][:2000])
