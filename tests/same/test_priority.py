"""Which priority somebody has who names a priority class, or none, is the same to everybody who asks."""

import re
import secrets

import pytest

from cluster import access, api
from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, Patch, store
from jobs.pages.editor import editor
from jobs.pages.job import effective
from jobs.rules import yaml_write
from kube.errors import ApiError
from kube.resources import JOBS, POD_GROUPS, PODS, PRIORITY_CLASSES
from scheduler import rehearsal, waiting_lines
from scheduler.consumer import SchedulerConsumer
from tests.dashboard.pages.conftest import admin, page  # noqa: F401  admin is a fixture
from tests.jobs import builders
from tests.jobs.control import Controller, job
from tests.same import differing

SITUATIONS = [
    # what it shows                                classes that come and go                          names   priority
    ("no class at all",                            [],                                               "",     0),
    ("a class by its name",                        ["high 1000"],                                    "high", 1000),
    ("no class is the default",                    ["high 1000"],                                    "",     0),
    ("the default",                                ["high 1000", "low 10 default"],                  "",     10),
    ("a class by its name, beside the default",    ["high 1000", "low 10 default"],                  "high", 1000),
    ("a default below 0",                          ["low -10 default"],                              "",     -10),
    ("of two defaults the lower",                  ["high 1000 default", "low 10 default"],          "",     10),
    ("of two defaults the lower, which was first", ["low 10 default", "high 1000 default"],          "",     10),
    ("the lower of two defaults is gone",          ["high 1000 default", "low 10 default", "low gone"], "",  1000),
    ("the default is one no more",                 ["high 1000 default", "high 1000"],               "",     0),
    ("the default is gone",                        ["high 1000", "low 10 default", "low gone"],      "",     0),
    ("another is the default now",                 ["high 1000 default", "high 1000", "low 10 default"], "", 10),
    ("a class that never was",                     ["high 1000"],                                    "none", 0),
    ("a class that never was, with a default",     ["low 10 default"],                               "none", 10),
    ("the class that it names is gone",            ["high 1000", "low 10 default", "high gone"],     "high", 10),
]  # fmt: skip


class Followers:
    """Who follows the log, as it does: each has read all that was there before the last change."""

    def __init__(self):
        self.controller, self.scheduler = Controller(), SchedulerConsumer()
        self.revision = store.revision()
        self.snapshot = self.scheduler.load(0, self.revision)
        self.follow()

    def follow(self):
        self.controller.settle()
        for change in store.changes(self.revision, (PRIORITY_CLASSES,)):
            self.scheduler.apply(self.snapshot, change)
        self.revision = store.revision()
        for module in (waiting_lines, rehearsal):
            with store.reading() as head, module.current(head):
                pass


def change(text):
    name, value, *more = text.split()
    if value == "gone":
        store.write(Delete(PRIORITY_CLASSES, "", name))
        return
    fields = {"value": int(value), "globalDefault": "default" in more}
    if store.find(PRIORITY_CLASSES, name=name):
        store.write(Patch(PRIORITY_CLASSES, "", name, fields))
    else:
        store.write(Create(PRIORITY_CLASSES, {"metadata": {"name": name}, **fields}))


def pod_by_kubectl(names, *_):
    spec = {"containers": [{"name": "c", "image": "i", "command": ["true"]}]}
    if names:
        spec["priorityClassName"] = names
    try:
        made = api.create(access.SYSTEM, PODS, {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    except ApiError:
        return None  # as Kubernetes, it refuses a class that does not exist
    return made.object["spec"]["priority"]


def pod_of_a_job(controller, names):
    """Let a controller make the pod of a job; return the job's name and the pod's priority."""
    name = f"job-{secrets.token_hex(4)}"
    spec = {"priorityClassName": names} if names else {}
    made = store.write(Create(JOBS, job(name, replicas=1, minAvailable=1, **spec)))[0]
    controller.settle()
    for group in store.find(POD_GROUPS, owner=made.uid):
        store.write(Patch(POD_GROUPS, "default", group.name, {"status": {"phase": "Inqueue"}}, "status"))
    controller.settle()
    return made, store.get(PODS, "default", f"{name}-main-0").object["spec"]["priority"]


def what_the_job_page_says_of_its_pods(names, *_):
    made, _ = pod_of_a_job(Controller(), names)
    (manifest,) = effective.pods(made, is_there=False)
    return int(re.search(r"^ *priority: (-?\d+)$", manifest.text, re.MULTILINE)[1])


def waiting(names):
    """Have a pod group wait; return its name."""
    group = {"spec": {"minMember": 1, "queue": "default"}, "status": {"phase": "Pending"}}
    if names:
        group["spec"]["priorityClassName"] = names
    name = f"g-{secrets.token_hex(4)}"
    store.write(Create(POD_GROUPS, {"metadata": {"name": name, "namespace": "default"}, **group}))
    return name


def queue_page(names, _, browser):
    name = waiting(names)
    rows = page(browser, "/queues/default/").one(id="queue-line").iter("tr")
    row = next(row for row in rows if name in " ".join(row.itertext()))
    return int(next(cell.text for cell in row if cell.get("data-label") == "Priority"))


def editor_placeholder(names, *_):
    """The class that the form shows where a job names none; its value is that of the class."""
    held = editor.check(access.SYSTEM, yaml_write.dump(builders.job())).held
    chosen = held.get("spec.priorityClassName", "")
    return None if names else store.get(PRIORITY_CLASSES, "", chosen).object["value"] if chosen else 0


def rank_as_followed(names, *_):
    name = waiting(names)
    with store.reading() as head, waiting_lines.current(head) as lines:
        return {each.name: value for each, value in lines.line("default", 100)}[name]


def rank_as_loaded(names, *_):
    name = waiting(names)
    with store.reading() as head:
        lines = waiting_lines.Lines.loaded(head)
    return {each.name: value for each, value in lines.line("default", 100)}[name]


def rehearsed(names, *_):
    with store.reading() as head, rehearsal.current(head) as world:
        return world._snapshot.priority_of(names)


PLACES = {
    "admission of a pod": pod_by_kubectl,
    "pod of a job, by a controller that follows": lambda names, who, _: pod_of_a_job(who.controller, names)[1],
    "pod of a job, by a controller that starts": lambda names, *_: pod_of_a_job(Controller(), names)[1],
    "job page, what a pod gets": what_the_job_page_says_of_its_pods,
    "editor, class of who names none": editor_placeholder,
    "editor, rehearsal": rehearsed,
    "scheduler that follows": lambda names, who, _: who.snapshot.priority_of(names),
    "scheduler that starts": lambda names, who, _: who.scheduler.load(0, store.revision()).priority_of(names),
    "waiting line that follows": rank_as_followed,
    "waiting line that is loaded": rank_as_loaded,
    "queue page": queue_page,
}


@pytest.mark.parametrize(("classes", "names", "priority"), [pytest.param(*row, id=what) for what, *row in SITUATIONS])
def test_everybody_gives_the_same_priority(admin, classes, names, priority):  # noqa: F811
    bootstrap()
    who = Followers()
    for each in classes:
        change(each)
        who.follow()
    assert differing(PLACES, priority, names, who, admin) == {}
