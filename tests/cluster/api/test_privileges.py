"""What takes an administrator of everything: paths and the network of machines, pods without a wall, classes of the system."""

from __future__ import annotations

import json

import pytest

from cluster import api
from cluster.rules import node_walls
from cluster.rules.leases import LEASE_NAMESPACE
from cluster.store import Create, store
from jobs.crons import plan
from jobs.editor import choices
from kube.errors import Forbidden, NotFound
from kube.kinds.batch import CronJob
from kube.resources import (
    BATCH_JOBS,
    CRON_JOBS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    LEASES,
    NODES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
)
from tests import builders
from tests.tables import cases

from .conftest import job

pytestmark = pytest.mark.django_db
CRITICAL = "system-node-critical"
# What a pod may ask for, and the refusal of it.
PRIVILEGES = {
    "path": ({"volumes": [{"name": "h", "hostPath": {"path": "/srv/data"}}]},
        r'hostPath "/srv/data" is not allowed\..*(ask an administrator to add the directory to|below those of) VOLCANO_UI_HOST_PATHS'),
    "network": ({"hostNetwork": True}, "hostNetwork is not allowed: .* kubectl port-forward"),
    "class": ({"priorityClassName": CRITICAL}, f'priorityClassName "{CRITICAL}" is not allowed.*use another class, or ask'),
}  # fmt: skip
PATH, NETWORK, CLASS = (pod for pod, _ in PRIVILEGES.values())
KINDS = (PODS, POD_GROUPS, JOBS, JOB_TEMPLATES, CRON_JOBS, JOB_FLOWS, BATCH_JOBS)
SHARED = (JOB_TEMPLATES, JOB_FLOWS)  # of several people: nobody's rights are those of their pods


@pytest.fixture(autouse=True)
def _cluster(cluster):
    for name, value in ((CRITICAL, 2_000_001_000), ("high", 1000)):
        store.write(Create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value}))


@pytest.fixture
def sam(person):
    return person("sam", default="submitter")


@pytest.fixture
def olga(person):
    return person("olga", default="operator")


def made(kind, **pod):
    """An object of a kind, with fields of the spec of the pods that it is, has or makes."""
    tasks = [builders.task("t", pod=pod)]
    group = {key: value for key, value in pod.items() if key == "priorityClassName"}
    specs = {
        PODS: {"containers": [builders.container()], **pod},
        POD_GROUPS: {"minMember": 1, **group},
        JOBS: {"queue": "default", "minAvailable": 1, "tasks": tasks},
        JOB_TEMPLATES: {"tasks": tasks},
        CRON_JOBS: {"schedule": "@daily", "jobTemplate": {"spec": {"tasks": tasks}}},
        JOB_FLOWS: {"flows": [{"name": "a", "patch": {"jobSpec": {"tasks": tasks}}}]},
        BATCH_JOBS: {"template": builders.template(**pod)},
    }
    return {"metadata": {"name": "x", "namespace": "default"}, "spec": specs[kind]}


@pytest.mark.parametrize("role", ["submitter", "operator", "administrator", "everywhere"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
@pytest.mark.parametrize("privilege", PRIVILEGES)
def test_a_privilege_takes_an_administrator_of_everything(person, kind, role, privilege):
    actor = person("sam", **{role: "administrator"} if role == "everywhere" else {"default": role})
    pod, refusal = PRIVILEGES[privilege]
    asks = privilege == "class" or kind is not POD_GROUPS  # which are no pods
    if asks and (role != "everywhere" or (kind in SHARED and privilege != "class")):
        with pytest.raises(Forbidden, match=f'"x" is forbidden: {refusal}'):
            api.create(actor, kind, made(kind, **pod))
        with pytest.raises(NotFound):
            store.get(kind, "default", "x")
        api.create(actor, kind, made(kind, priorityClassName="high"))
    else:
        api.create(actor, kind, made(kind, **pod))


@cases("path, allowed", {
    "the directory": ("/srv/data", True),
    "below it": ("/srv/data/deep/er", True),
    "written otherwise": ("/srv//data/./x", True),
    "a longer name": ("/srv/database", False),
    "above it": ("/srv", False),
})  # fmt: skip
def test_what_the_setting_names_is_everybody_s(sam, settings, path, allowed):
    settings.HOST_PATHS = ["/srv/data/"]
    pods = [made(kind, volumes=[{"name": "h", "hostPath": {"path": path}}]) for kind in (PODS, JOB_FLOWS)]
    if allowed:
        api.create(sam, PODS, pods[0])
        api.create(sam, JOB_FLOWS, pods[1])
    else:
        with pytest.raises(Forbidden, match=r"only below /srv/data"):
            api.create(sam, PODS, pods[0])


def set_in(*path, **fields):
    """Return a change that sets fields at a path below an object."""

    def change(obj):
        for key in path:
            obj = obj[key]
        obj.update(fields)

    return change


def other_task(cron):
    cron["spec"]["jobTemplate"]["spec"]["tasks"].append(builders.task("u", pod=PATH))


IN_JOB = ("spec", "jobTemplate", "spec")
IN_TASK = (*IN_JOB, "tasks", 0)
IN_POD = (*IN_TASK, "template", "spec")
IN_MAIN = (*IN_POD, "containers", 0)
POLICY = {"event": "PodFailed", "action": "RestartJob"}
PRELOAD = {"name": "LD_PRELOAD", "value": "/tmp/x"}
LIBRARIES = {"mountPath": "/lib", "volumeClaimName": "mine"}


@pytest.mark.parametrize("verb", ["update", "patch", "apply"])
@pytest.mark.parametrize("who", ["operator", "administrator", "everywhere"])
@cases("kind, change, decides", {
    "command": (CRON_JOBS, set_in(*IN_MAIN, command=["rm"]), True),
    "environment": (CRON_JOBS, set_in(*IN_MAIN, env=[PRELOAD]), True),
    "path": (CRON_JOBS, set_in(*IN_POD, "volumes", 0, hostPath={"path": "/etc"}), True),
    "annotations of pods": (CRON_JOBS, set_in(*IN_TASK, "template", metadata={"annotations": {"a": "b"}}), True),
    "plugins": (CRON_JOBS, set_in(*IN_JOB, plugins={"ssh": []}), True),
    "policies": (CRON_JOBS, set_in(*IN_JOB, policies=[POLICY]), True),
    "policies of a task": (CRON_JOBS, set_in(*IN_TASK, policies=[POLICY]), True),
    "volumes of a job": (CRON_JOBS, set_in(*IN_JOB, volumes=[LIBRARIES]), True),
    "scheduler": (CRON_JOBS, set_in(*IN_JOB, schedulerName="volcano-other"), True),
    "a task beside": (CRON_JOBS, other_task, True),
    "image of a pod": (PODS, set_in("spec", "containers", 0, image="other"), True),
    "replicas": (CRON_JOBS, set_in(*IN_TASK, replicas=3), False),
    "minAvailable": (CRON_JOBS, set_in(*IN_JOB, minAvailable=1), False),
    "suspend": (CRON_JOBS, set_in("spec", suspend=True), False),
    "schedule": (CRON_JOBS, set_in("spec", schedule="@hourly"), False),
    "labels": (CRON_JOBS, set_in("metadata", labels={"a": "b"}), False),
    "replicas of a job": (JOBS, set_in("spec", "tasks", 0, replicas=2), False),
    "deadline of a pod": (PODS, set_in("spec", activeDeadlineSeconds=60), False),
})  # fmt: skip
def test_nobody_decides_what_runs_with_a_path_that_he_may_not_mount(person, admin, who, verb, kind, change, decides):
    api.create(admin, kind, made(kind, **PATH))
    actor = person("olga", **{who: "administrator"} if who == "everywhere" else {"default": who})
    before = store.get(kind, "default", "x")
    new = json.loads(before.body)
    change(new)
    if decides and who != "everywhere":
        with pytest.raises(Forbidden, match=r'"x" is forbidden: hostPath "/(srv/data|etc)" is not allowed'):
            send(actor, verb, kind, new)
        assert store.get(kind, "default", "x").revision == before.revision
    else:
        send(actor, verb, kind, new)
        assert store.get(kind, "default", "x").revision > before.revision


def send(actor, verb, kind, obj):
    if verb == "update":
        return api.update(actor, kind, obj)
    labels = obj["metadata"].get("labels")
    metadata = {"name": "x", "namespace": "default", **({"labels": labels} if labels else {})}
    sent = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": obj["spec"]}
    if verb == "patch":
        return api.patch(actor, kind, "default", "x", sent)
    return api.apply(actor, kind, "default", "x", sent, manager="tests", force=True)


@cases("pod, refusal", {"network": (NETWORK, "hostNetwork is not allowed"), "class": (CLASS, "priorityClassName")})
def test_nobody_decides_what_runs_with_another_privilege(admin, olga, pod, refusal):
    api.create(admin, CRON_JOBS, made(CRON_JOBS, **pod))
    api.patch(olga, CRON_JOBS, "default", "x", {"spec": {"suspend": True}})
    new = json.loads(store.get(CRON_JOBS, "default", "x").body)
    set_in(*IN_MAIN, command=["false"])(new)
    with pytest.raises(Forbidden, match=refusal):
        api.update(olga, CRON_JOBS, new)
    api.update(admin, CRON_JOBS, new)


def test_nobody_gives_a_class_of_the_system_to_a_job_later_and_the_form_offers_it_to_who_may(admin, sam, olga):
    api.create(sam, JOBS, job("own"))
    with pytest.raises(Forbidden, match="priorityClassName"):
        api.patch(sam, JOBS, "default", "own", {"spec": CLASS})
    api.create(admin, JOBS, job("critical", **CLASS))
    api.patch(olga, JOBS, "default", "critical", {"metadata": {"labels": {"a": "b"}}})
    offered = [[choice.value for choice in choices._priorities(actor)] for actor in (sam, admin)]
    assert offered == [["high"], [CRITICAL, "high"]]


def test_whoever_takes_the_path_away_decides_the_rest_and_whoever_runs_it_by_hand_makes_the_job(admin, olga):
    """Its owner is the administrator's, but its pods run what he who asked for it may run."""
    api.create(admin, CRON_JOBS, made(CRON_JOBS, **PATH))
    stored = store.get(CRON_JOBS, "default", "x")
    by_hand = plan.by_hand(stored.read(CronJob))
    with pytest.raises(Forbidden, match='hostPath "/srv/data" is not allowed'):
        api.create(olga, JOBS, by_hand)
    api.create(admin, JOBS, by_hand)
    new = json.loads(stored.body)
    set_in(*IN_POD, volumes=[])(new)
    set_in(*IN_MAIN, command=["rm"])(new)
    api.update(olga, CRON_JOBS, new)


def machines(*walls):
    for number, words in enumerate(walls):
        lease = builders.of(LEASES, f"n{number}", namespace=LEASE_NAMESPACE)
        store.write(Create(NODES, builders.node(f"n{number}", annotations={node_walls.ANNOTATION: words})))
        store.write(Create(LEASES, lease))


NO_WALL, HOLDS = "none: no Landlock", "holds: Landlock"
NO_NETWORK = f"{HOLDS}; {node_walls.NO_PODS}there is no network"


@pytest.mark.parametrize("kind", [PODS, JOBS], ids=lambda kind: kind.kind)
@cases("walls, role, allowed, why", {
    "no wall": ([NO_WALL], "submitter", False, "Only pods of administrators of all namespaces run there"),
    "no wall, which is allowed": ([NO_WALL], "submitter", True, ""),
    "no wall for an administrator": ([NO_WALL], None, False, ""),
    "a wall elsewhere": ([NO_WALL, HOLDS], "submitter", False, ""),
    "a wall": ([HOLDS], "submitter", False, ""),
    "no network that pods may have": ([NO_NETWORK], "submitter", True, "no pods run: there is no network"),
})  # fmt: skip
def test_who_makes_what_no_machine_has_a_wall_for_is_told(admin, sam, settings, kind, walls, role, allowed, why):
    settings.ALLOW_UNWALLED = allowed
    machines(*walls)
    heard = []
    api.create(sam if role else admin, kind, made(kind), warn=heard.append)
    found = [text for text in heard if "for want of a wall" in text]
    assert [why in text for text in found] == ([True] if why else [])


@cases("wall, allowed", {"no wall": (NO_WALL, False), "a wall": ("holds with Landlock", True)})
def test_nobody_decides_what_runs_without_a_wall(admin, olga, settings, wall, allowed):
    machines(wall)
    api.create(admin, CRON_JOBS, made(CRON_JOBS))
    other = {"spec": {"jobTemplate": {"spec": {"plugins": {"ssh": []}}}}}
    if not allowed:
        with pytest.raises(Forbidden, match=r"the node n0 has no wall round pods. Only pods of administrators"):
            api.patch(olga, CRON_JOBS, "default", "x", other)
        settings.ALLOW_UNWALLED = True
    api.patch(olga, CRON_JOBS, "default", "x", other)
