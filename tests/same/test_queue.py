"""Which queue a job, a pod group and a pod are in is the same to everybody who asks: scheduler, queue status, pages, filters, metrics."""

import pytest

from cluster import access
from cluster.bootstrap import bootstrap
from cluster.consumers.consumer import Runner
from cluster.runtime import registry
from cluster.store import Create, Delete, Patch, store
from dashboard import cluster_usage
from jobs.pages.editor import choices
from kube.resources import JOBS, NAMESPACES, NODES, POD_GROUPS, PODS, QUEUES
from queues import metrics
from queues.controller import PAUSE_MS, QueueConsumer
from scheduler import waiting_lines
from scheduler.consumer import SchedulerConsumer
from tests.dashboard.pages.conftest import admin, page  # noqa: F401  admin is a fixture
from tests.jobs import builders
from tests.jobs.control import Controller
from tests.same import differing

GROUP, QUEUE, OWN_QUEUE = ("scheduling.k8s.io/group-name", "volcano.sh/queue-name", "scheduling.volcano.sh/queue-name")
HERE = ("default", "one", "two")

PODS_COUNT = [
    # what it shows                                its annotations              what happens then       its queue
    ("pod of a job",                               {GROUP: "g", QUEUE: "one"},  "",                     "one"),
    ("made by kubectl, without the annotation",    {GROUP: "g"},                "",                     "one"),
    ("the group rules over the annotation",        {GROUP: "g", QUEUE: "two"},  "",                     "one"),
    ("a group that moved takes its pods",          {GROUP: "g", QUEUE: "one"},  "group moves",          "two"),
    ("group that is gone",                         {GROUP: "g", QUEUE: "two"},  "group goes",           "two"),
    ("group that never was",                       {GROUP: "none"},             "",                     "default"),
    ("no group, but a queue",                      {OWN_QUEUE: "two", QUEUE: "one"}, "",                "two"),
    ("neither",                                    {},                          "",                     "default"),
    ("the namespace names a queue",                {},                          "namespace names two",  "two"),
    ("the pod's wish goes before its namespace",   {QUEUE: "one"},              "namespace names two",  "one"),
    ("of a group without a queue, whatever its namespace says", {GROUP: "plain"}, "namespace names two", "default"),
    ("a pod of another scheduler is in none",      {GROUP: "g", QUEUE: "one"},  "",                     ""),
]  # fmt: skip
NAMED = [
    # what it shows         what it names        its queue
    ("a queue by its name", {"queue": "one"},    "one"),
    ("none",                {},                  "default"),  # as vcctl writes jobs
    ("an empty name",       {"queue": ""},       "default"),
]  # fmt: skip
HAPPENINGS = {
    "": [],
    "group moves": [Patch(POD_GROUPS, "ns", "g", {"spec": {"queue": "two"}})],
    "group goes": [Delete(POD_GROUPS, "ns", "g")],
    "namespace names two": [Patch(NAMESPACES, "", "ns", {"metadata": {"annotations": {OWN_QUEUE: "two"}}})],
}


def furnish():
    bootstrap()
    size = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    status = {"allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]}
    store.write(Create(NODES, {"metadata": {"name": "n"}, "spec": {}, "status": status}))
    for name in ("one", "two"):
        spec = {"weight": 1, "parent": "root", "state": "Open"}
        store.write(Create(QUEUES, {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}}))
    store.write(Create(NAMESPACES, {"metadata": {"name": "ns"}}))
    put_group("g", queue="one")
    put_group("plain")


def put_group(name, *, phase="Running", **spec):
    metadata = {"name": name, "namespace": "ns"}
    status = {"phase": phase}
    store.write(Create(POD_GROUPS, {"metadata": metadata, "spec": {"minMember": 1, **spec}, "status": status}))


def run_pod(annotations, scheduler="volcano"):
    spec = {
        "nodeName": "n",
        "schedulerName": scheduler,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}],
    }
    metadata = {"name": "p", "namespace": "ns", "annotations": annotations}
    store.write(Create(PODS, {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}))


class Followers:
    """Who follows the log: each has read all that was there before the last change."""

    def __init__(self, time):
        self.time = time
        cluster_usage.forget()
        self.controller = Runner(registry.get("queues"), 0, QueueConsumer())
        self.scheduler = SchedulerConsumer()
        self.revision = store.revision()
        self.snapshot = self.scheduler.load(0, self.revision)
        self.settle()

    def settle(self):
        self.time.move(PAUSE_MS / 1000)
        while self.controller.step():
            self.time.move(PAUSE_MS / 1000)
        changes = store.changes(self.revision, tuple(registry.get("scheduler").resources))
        for change in changes:
            self.scheduler.apply(self.snapshot, change)
        self.revision = changes[-1].revision if changes else self.revision
        with cluster_usage.current(store.revision()):
            pass


def only(queues):
    """Return the one queue in which something was found; "" for none."""
    return " ".join(sorted(queues))


def use_on_page(browser, address, part):
    rows = [row for row in page(browser, address).one(id=part).iter("tr") if "3 of 8" in " ".join(row.itertext())]
    return only(name for name in HERE for row in rows if name in " ".join(row.itertext()).split())


def in_picture(picture):
    return only(name for name, taken in picture.in_queue.items() if taken.get("cpu"))


def followed_picture(*_):
    with cluster_usage.current(store.revision()) as picture:
        return in_picture(picture)


def allocated(*_):
    return only(q for q in HERE if store.get(QUEUES, "", q).object["status"]["allocated"]["cpu"] == "3")


def samples(name, label, actor=access.SYSTEM):
    (found,) = [family for family in metrics.families(actor) if family.name == name]
    return [(labels[label], value) for labels, value in found.samples]


def metric_of_use(*_):
    used = samples("volcano_queue_allocated_milli_cpu", "queue_name")
    return only(name for name, value in used if value == 3000 and name != "root")


PLACES_OF_PODS = {
    "scheduler": lambda who, _: only(queue for queue, _ in who.snapshot.usage),
    "scheduler, loaded": lambda who, _: only(queue for queue, _ in who.scheduler.load(0, store.revision()).usage),
    "status of the queue": allocated,
    "picture": followed_picture,
    "picture, loaded": lambda *_: in_picture(cluster_usage.Picture.loaded(store.revision())),
    "queue page": lambda _, browser: only(
        name for name in HERE if "3 of 8" in page(browser, f"/queues/{name}/").text(id="queue-use")
    ),
    "list of queues": lambda _, browser: use_on_page(browser, "/queues/", "table-rows"),
    "overview": lambda _, browser: use_on_page(browser, "/", "overview-queues"),
    "metric": metric_of_use,
}


@pytest.mark.shows("scheduler 1.3/group-name", "groups 3.5/queue-name", "groups 3.5/queue-name of a namespace")
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("runner_mode")
@pytest.mark.parametrize(
    ("annotations", "meanwhile", "queue"), [pytest.param(*row, id=what) for what, *row in PODS_COUNT]
)
def test_everybody_counts_a_pod_in_the_same_queue(moved_clock, admin, annotations, meanwhile, queue):  # noqa: F811
    furnish()
    run_pod(annotations, "volcano" if queue else "another")
    who = Followers(moved_clock)
    if HAPPENINGS[meanwhile]:
        store.write(*HAPPENINGS[meanwhile])
    who.settle()
    assert differing(PLACES_OF_PODS, queue, who, admin) == {}
    cluster_usage.forget()


def queues_linked(browser, address, start, **where):
    """Return the queue to which links of a part of a page lead; start is how their addresses begin."""
    links = {each.get("href") for each in page(browser, address).one(**where).iter("a")}
    return only(name for name in HERE if f"{start}{name}" in links)


def found_in(browser, address):
    return only(name for name in HERE if page(browser, address.format(name)).rows())


def counted_in_list_of_queues(browser):
    list_of_queues = page(browser, "/queues/")
    rows = {name: list_of_queues.one(id=f"queue-{name}") for name in HERE}
    waiting = {
        name: next(cell for cell in row if cell.get("data-label") == "Waiting jobs") for name, row in rows.items()
    }
    return only(name for name, cell in waiting.items() if "".join(cell.itertext()).strip() == "1")


def waits_in_the_editor(_):
    offered = choices.of(access.SYSTEM)["spec.queue"]
    return only(each["value"] for each in offered if "1 job waits" in each["description"])


def group_of_the_controller(_):
    Controller().settle()
    (group,) = store.find(POD_GROUPS, namespace="default")
    return group.object["spec"]["queue"]


PLACES_OF_JOBS = {
    "index of the store": lambda _: only(store.count(JOBS, by="queue")),
    "list of jobs": lambda browser: queues_linked(browser, "/jobs/", "?queue=", id="table-rows"),
    "list of jobs, filter": lambda browser: found_in(browser, "/jobs/?queue={}"),
    "page of the job": lambda browser: queues_linked(browser, "/jobs/default/demo/", "/jobs/?queue=", id="job-head"),
    "page of the queue": lambda browser: found_in(browser, "/queues/{}/"),
    "list of queues": counted_in_list_of_queues,
    "editor": waits_in_the_editor,
    "pod group of the controller": group_of_the_controller,
}


@pytest.mark.django_db
@pytest.mark.parametrize(("named", "queue"), [pytest.param(*row, id=what) for what, *row in NAMED])
def test_everybody_has_a_job_in_the_same_queue(admin, named, queue):  # noqa: F811
    furnish()
    written = builders.job(name="demo", **named)
    store.write(Create(JOBS, {**written, "status": {"state": {"phase": "Pending"}}}))
    assert differing(PLACES_OF_JOBS, queue, admin) == {}


def waiting_line(_):
    with store.reading() as head:
        return waiting_lines.Lines.loaded(head).queue_of("ns/waits")


PLACES_OF_GROUPS = {
    "index of the store": lambda _: only(
        name for name in HERE if [each for each in store.find(POD_GROUPS, queue=name) if each.name == "waits"]
    ),
    "scheduler": lambda _: SchedulerConsumer().load(0, store.revision()).groups["ns/waits"].queue,
    "waiting line": waiting_line,
    "picture": lambda _: only(
        name for name, phases in cluster_usage.Picture.loaded(store.revision())._usage.groups_in.items() if phases["Inqueue"]
    ),
    "page of the queue": lambda browser: only(
        name for name in HERE if "waits" in page(browser, f"/queues/{name}/").text(id="queue-line").split()
    ),
    "metric of how many wait": lambda _: only(
        name for name, count in samples("volcano_queue_pod_group_inqueue_count", "queue_name") if count and name != "root"
    ),
}  # fmt: skip


@pytest.mark.shows("scheduler 1.4/queue")
@pytest.mark.django_db
@pytest.mark.parametrize(("named", "queue"), [pytest.param(*row, id=what) for what, *row in NAMED])
def test_everybody_has_a_pod_group_in_the_same_queue(admin, named, queue):  # noqa: F811
    furnish()
    put_group("waits", phase="Inqueue", **named)
    assert differing(PLACES_OF_GROUPS, queue, admin) == {}


def test_a_pod_is_in_the_queue_of_its_group_and_none_of_its_own(db):
    furnish()
    run_pod({QUEUE: "one"})
    assert store.count(PODS, by="queue") == {"": 1}
