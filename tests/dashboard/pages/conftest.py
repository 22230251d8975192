import lxml.html
import pytest
from django.contrib.auth.models import User
from django.test import Client

from cluster import clock
from cluster.models import RoleBinding
from cluster.store import Create, Group, Patch, store
from dashboard import cluster_usage
from kube.meta import now_text, timestamp
from kube.resources import EVENTS, JOBS, NAMESPACES, NODES, PODS, QUEUES
from scheduler import waiting_lines
from tests import builders
from tests.builders import of

HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def _picture():
    """What is known of the cluster belongs to the database of one test."""
    for each in (cluster_usage, waiting_lines):
        each.forget()
    yield
    for each in (cluster_usage, waiting_lines):
        each.forget()


def reader(name, role=None, namespace="*"):
    """A browser in which somebody is logged in."""
    user = User.objects.create_user(name, password="x", is_superuser=role == "superuser")
    if role not in (None, "superuser"):
        RoleBinding.objects.create(user=user, namespace=namespace, role=role)
    browser = Client()
    browser.force_login(user)
    browser.user = user
    return browser


def person(fixture, *about):
    return pytest.fixture(name=fixture)(lambda db: reader(*about))


admin, operator = person("admin", "admin", "superuser"), person("operator", "olga", "operator")
# A viewer in one namespace, who sees nothing elsewhere, and an account without any role.
alice, stranger = person("alice", "alice", "viewer", "team-a"), person("stranger", "stranger")


TAINT = {"key": "ui.volcano.sh/simulated", "value": "true", "effect": "NoSchedule"}


def node(name, *, ready=True, simulated=False, cpu="8"):
    annotations = {"ui.volcano.sh/simulated": "true"} if simulated else {}
    condition = {"type": "Ready", "status": "True" if ready else "False", "message": "Nothing was heard for 42 s."}
    status = {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}, "conditions": [condition]}
    return NODES, of(NODES, name, annotations=annotations, taints=[TAINT] if simulated else [], status=status)


def queue(name, *, parent="root", state="Open", **spec):
    wish = {"state": "Closed"} if state != "Open" else {}
    return QUEUES, of(QUEUES, name, parent=parent, **wish, **spec, status={"state": state})


def job(name, phase="Running", namespace="team-a", *, queue="default", message=""):
    state = {"phase": phase, "message": message, "lastTransitionTime": now_text(clock.milliseconds())}
    return JOBS, of(JOBS, name, namespace=namespace, queue=queue, minAvailable=1, status={"state": state})


def pod(name, *, node="one", namespace="team-a", queue="default", phase="Running", cpu="2", job="train"):
    return PODS, builders.pod(
        name, builders.container("c", requests={"cpu": cpu, "memory": "1Gi"}), nodeName=node,
        namespace=namespace, annotations={"volcano.sh/queue-name": queue},
        ownerReferences=[{"kind": "Job", "name": job, "uid": job, "controller": True}],
        status={"phase": phase, "startTime": timestamp(clock.milliseconds())},
    )  # fmt: skip


def event(name, *, about="train", namespace="team-a"):
    involved = {"kind": "Job", "name": about, "namespace": namespace, "uid": about}
    fields = {"type": "Warning", "reason": "Failed", "message": "It did not work."}
    seen = {"lastTimestamp": timestamp(clock.milliseconds())}
    return EVENTS, of(EVENTS, name, {"involvedObject": involved, **fields, **seen}, namespace=namespace)


def put(*objects, ago_ms=0):
    """Store objects as if that long ago."""
    groups = [Group([Create(resource, obj)]) for resource, obj in objects]
    outcomes = store.commit(groups, now=clock.milliseconds() - ago_ms)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return [outcome[0] for outcome in outcomes]


def set_phase(name, phase):
    status = {"status": {"state": {"phase": phase, "message": f"It is {phase}."}}}
    store.write(Patch(JOBS, "team-a", name, status, "status"))


@pytest.fixture
def cluster(db):
    """A small cluster: two nodes, one of them simulated; queues in a tree; jobs in two namespaces."""
    put(
        (NAMESPACES, {"metadata": {"name": "team-a"}}), (NAMESPACES, {"metadata": {"name": "team-b"}}),
        node("one"), node("sim-1", simulated=True, cpu="32"),
        queue("root", parent=""), queue("default"), queue("research"),
        queue("vision", parent="research", weight=4, capability={"cpu": "4"}), queue("old", state="Closed"),
        job("train", queue="vision"), job("other", namespace="team-b"),
        pod("train-0", queue="vision"), pod("train-1", queue="vision"), pod("other-0", namespace="team-b", job="other"),
        pod("done-0", phase="Succeeded"),
        event("train.1"), event("other.1", about="other", namespace="team-b"),
    )  # fmt: skip


class Page:
    """An answer's HTML, asked with few words."""

    def __init__(self, answer):
        self.answer, self.status = answer, answer.status_code
        self.tree = lxml.html.document_fromstring(answer.content.decode())

    def all(self, *, tag=None, **attributes):
        for element in self.tree.iter():
            if not isinstance(element.tag, str) or (tag and element.tag != tag):
                continue
            if all(element.get(name.replace("_", "-")) == value for name, value in attributes.items()):
                yield element

    def one(self, **wanted):
        return next(self.all(**wanted), None)

    def text(self, **wanted):
        element = self.one(**wanted)
        return "" if element is None else " ".join(" ".join(element.itertext()).split())

    def rows(self):
        """The ids of the table's rows."""
        body = self.one(id="table-rows")
        return [row.get("id") for row in body if row.tag == "tr"]

    def actions(self):
        """Where the buttons and forms of the page post to."""
        return {
            e.get("formaction") or e.get("action") for e in self.tree.iter() if e.get("formaction") or e.get("action")
        }


def page(browser, address, **headers):
    return Page(browser.get(address, headers=headers))
