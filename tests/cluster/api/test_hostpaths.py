from __future__ import annotations

import json

import pytest

from cluster import api
from cluster.rules import node_walls
from cluster.rules.leases import LEASE_NAMESPACE
from cluster.store import Create, store
from jobs.crons import plan
from kube import resources
from kube.errors import Forbidden, NotFound
from kube.kinds.batch import CronJob
from tests.tables import cases

from .conftest import job

pytestmark = pytest.mark.django_db
POD, JOB = "Pod", "Job"


@pytest.fixture(autouse=True)
def _cluster(cluster):
    pass


def spec(path):
    return {
        "containers": [{"name": "main", "image": "any", "command": ["true"]}],
        "volumes": [{"name": "h", "hostPath": {"path": path}}],
    }


def create(actor, kind, path, warn=None):
    if kind == POD:
        pod = {"metadata": {"name": "x", "namespace": "default"}, "spec": spec(path)}
        return api.create(actor, resources.PODS, pod, warn=warn)
    template = {"spec": {**spec(path), "restartPolicy": "Never"}}
    made = job("x", tasks=[{"name": "t", "replicas": 1, "template": template}])
    return api.create(actor, resources.JOBS, made, warn=warn)


@pytest.mark.parametrize("kind", [POD, JOB])
@pytest.mark.parametrize("role", ["submitter", "operator", "administrator"])
def test_a_path_of_the_machine_takes_an_administrator_of_everything(person, kind, role):
    with pytest.raises(Forbidden, match='"x" is forbidden: hostPath "/srv/data" is not allowed') as refusal:
        create(person("sam", default=role), kind, "/srv/data")
    assert "ask an administrator to add the directory to VOLCANO_UI_HOST_PATHS" in str(refusal.value)
    with pytest.raises(NotFound):
        store.get(resources.PODS if kind == POD else resources.JOBS, "default", "x")


@pytest.mark.parametrize("kind", [POD, JOB])
def test_an_administrator_of_everything_may_name_any(admin, kind):
    create(admin, kind, "/srv/data")


def with_network(kind):
    """An object whose pods have the network of their machine."""
    obj = (
        {"metadata": {"name": "x", "namespace": "default"}, "spec": spec("/srv")}
        if kind is resources.PODS
        else made_later(kind, "/srv")
    )
    text = json.dumps(obj).replace('"volumes": [{"name": "h", "hostPath": {"path": "/srv"}}]', '"hostNetwork": true')
    return json.loads(text)


@pytest.mark.parametrize("role", ["submitter", "administrator", None])
@pytest.mark.parametrize("kind", [resources.PODS, resources.CRON_JOBS, resources.JOB_FLOWS], ids=lambda kind: kind.kind)
def test_the_machine_s_network_takes_an_administrator_of_everything(person, admin, kind, role):
    actor = person("sam", default=role) if role else admin
    if role or kind is resources.JOB_FLOWS:
        with pytest.raises(Forbidden, match=r'"x" is forbidden: hostNetwork is not allowed: .* kubectl port-forward'):
            api.create(actor, kind, with_network(kind))
    else:
        api.create(actor, kind, with_network(kind))


def test_nobody_else_has_a_hand_in_a_pod_in_the_machine_s_network(person, admin):
    kind = resources.CRON_JOBS
    api.create(admin, kind, with_network(kind))
    other = {"spec": {"jobTemplate": {"spec": {"plugins": {"ssh": []}}}}}
    with pytest.raises(Forbidden, match="hostNetwork is not allowed"):
        api.patch(person("olga", default="operator"), kind, "default", "x", other)


@cases("path, allowed", {
    "the directory": ("/srv/data", True),
    "below it": ("/srv/data/deep/er", True),
    "written otherwise": ("/srv//data/./x", True),
    "a longer name": ("/srv/database", False),
    "above it": ("/srv", False),
})  # fmt: skip
def test_what_the_setting_names_is_everybody_s(person, settings, path, allowed):
    settings.HOST_PATHS = ["/srv/data/"]
    sam = person("sam", default="submitter")
    if allowed:
        create(sam, POD, path)
    else:
        with pytest.raises(Forbidden, match=r"only below /srv/data"):
            create(sam, POD, path)


def made_later(kind, path):
    """A template of later jobs, with a directory of the machine."""
    of_job = {"tasks": [{"name": "t", "replicas": 1, "template": {"spec": {**spec(path), "restartPolicy": "Never"}}}]}
    specs = {
        resources.JOB_TEMPLATES: of_job,
        resources.CRON_JOBS: {"schedule": "@daily", "jobTemplate": {"spec": of_job}},
        resources.JOB_FLOWS: {"flows": [{"name": "a", "patch": {"jobSpec": of_job}}]},
    }
    return {"metadata": {"name": "x", "namespace": "default"}, "spec": specs[kind]}


SHARED = [resources.JOB_TEMPLATES, resources.JOB_FLOWS]


@pytest.mark.parametrize("kind", [*SHARED, resources.CRON_JOBS], ids=lambda kind: kind.kind)
def test_what_makes_jobs_later_is_judged_as_a_job(person, kind):
    with pytest.raises(Forbidden, match='hostPath "/srv/data" is not allowed'):
        api.create(person("sam", default="submitter"), kind, made_later(kind, "/srv/data"))


@pytest.mark.parametrize("kind", SHARED, ids=lambda kind: kind.kind)
def test_what_several_people_make_jobs_with_has_no_administrator_s_rights(admin, settings, kind):
    with pytest.raises(Forbidden, match="The jobs of flows may mount only directories below"):
        api.create(admin, kind, made_later(kind, "/srv/data"))
    settings.HOST_PATHS = ["/srv"]
    api.create(admin, kind, made_later(kind, "/srv/data"))


def job_of(cron):
    return cron["spec"]["jobTemplate"]["spec"]


def set_in(*path, **fields):
    """Return a change that sets fields at a path below an object."""

    def change(obj):
        for key in path:
            obj = obj[key]
        obj.update(fields)

    return change


def other_task(cron):
    job_of(cron)["tasks"].append(
        {"name": "u", "replicas": 1, "template": {"spec": {**spec("/srv/data"), "restartPolicy": "Never"}}}
    )


IN_JOB = ("spec", "jobTemplate", "spec")
IN_TASK = (*IN_JOB, "tasks", 0)
IN_POD = (*IN_TASK, "template", "spec")
POLICY = {"event": "PodFailed", "action": "RestartJob"}
# Changes of what an administrator of everything made: by name, the kind, the change, and whether it decides what runs.
CHANGES = {
    "command": (resources.CRON_JOBS, set_in(*IN_POD, "containers", 0, command=["rm"]), True),
    "environment": (
        resources.CRON_JOBS,
        set_in(*IN_POD, "containers", 0, env=[{"name": "LD_PRELOAD", "value": "/tmp/x"}]),
        True,
    ),
    "path": (resources.CRON_JOBS, set_in(*IN_POD, "volumes", 0, hostPath={"path": "/etc"}), True),
    "annotations of pods": (
        resources.CRON_JOBS,
        set_in(*IN_TASK, "template", metadata={"annotations": {"a": "b"}}),
        True,
    ),
    "plugins": (resources.CRON_JOBS, set_in(*IN_JOB, plugins={"ssh": []}), True),
    "policies": (resources.CRON_JOBS, set_in(*IN_JOB, policies=[POLICY]), True),
    "policies of a task": (resources.CRON_JOBS, set_in(*IN_TASK, policies=[POLICY]), True),
    "volumes of a job": (
        resources.CRON_JOBS,
        set_in(*IN_JOB, volumes=[{"mountPath": "/lib", "volumeClaimName": "mine"}]),
        True,
    ),
    "scheduler": (resources.CRON_JOBS, set_in(*IN_JOB, schedulerName="volcano-other"), True),
    "a task beside": (resources.CRON_JOBS, other_task, True),
    "image of a pod": (resources.PODS, set_in("spec", "containers", 0, image="other"), True),
    "replicas": (resources.CRON_JOBS, set_in(*IN_TASK, replicas=3), False),
    "minAvailable": (resources.CRON_JOBS, set_in(*IN_JOB, minAvailable=1), False),
    "suspend": (resources.CRON_JOBS, set_in("spec", suspend=True), False),
    "schedule": (resources.CRON_JOBS, set_in("spec", schedule="@hourly"), False),
    "labels": (resources.CRON_JOBS, set_in("metadata", labels={"a": "b"}), False),
    "replicas of a job": (resources.JOBS, set_in("spec", "tasks", 0, replicas=2), False),
    "deadline of a pod": (resources.PODS, set_in("spec", activeDeadlineSeconds=60), False),
}


def updated(actor, kind, obj):
    return api.update(actor, kind, obj)


def patched(actor, kind, obj):
    change = {"metadata": {"labels": obj["metadata"].get("labels") or {}}, "spec": obj["spec"]}
    return api.patch(actor, kind, "default", "x", change)


def applied(actor, kind, obj):
    config = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
    config["metadata"] = {
        key: obj["metadata"][key] for key in ("name", "namespace", "labels") if key in obj["metadata"]
    }
    config.pop("status", None)
    return api.apply(actor, kind, "default", "x", config, manager="tests", force=True)


@pytest.mark.parametrize("verb", [updated, patched, applied])
@pytest.mark.parametrize("who", ["operator", "administrator", "everywhere"])
@cases("kind, change, decides", CHANGES)
def test_nobody_decides_what_runs_with_a_path_that_he_may_not_mount(person, admin, who, verb, kind, change, decides):
    if kind is resources.CRON_JOBS:
        api.create(admin, kind, made_later(kind, "/srv/data"))
    else:
        create(admin, POD if kind is resources.PODS else JOB, "/srv/data")
    roles = {"everywhere": "administrator"} if who == "everywhere" else {"default": who}
    actor = person("olga", **roles)
    before = store.get(kind, "default", "x")
    new = json.loads(before.body)
    change(new)
    if decides and who != "everywhere":
        with pytest.raises(Forbidden, match=r'"x" is forbidden: hostPath "/(srv/data|etc)" is not allowed'):
            verb(actor, kind, new)
        assert store.get(kind, "default", "x").revision == before.revision
    else:
        verb(actor, kind, new)
        assert store.get(kind, "default", "x").revision > before.revision


def test_whoever_takes_the_path_away_decides_the_rest(person, admin):
    kind = resources.CRON_JOBS
    api.create(admin, kind, made_later(kind, "/srv/data"))
    pod = set_in(*IN_POD, volumes=[])
    new = json.loads(store.get(kind, "default", "x").body)
    pod(new)
    set_in(*IN_POD, "containers", 0, command=["rm"])(new)
    api.update(person("olga", default="operator"), kind, new)


def test_whoever_runs_it_by_hand_makes_the_job(person, admin):
    """Its owner is the administrator's, but its pods run what he who asked for it may run."""
    api.create(admin, resources.CRON_JOBS, made_later(resources.CRON_JOBS, "/srv/data"))
    made = plan.by_hand(store.get(resources.CRON_JOBS, "default", "x").read(CronJob))
    with pytest.raises(Forbidden, match='hostPath "/srv/data" is not allowed'):
        api.create(person("olga", default="operator"), resources.JOBS, made)
    api.create(admin, resources.JOBS, made)


NO_NETWORK = f"holds: Landlock; {node_walls.NO_PODS}there is no network"


@pytest.mark.parametrize("kind", [POD, JOB])
@cases("says, role, allowed, why", {
    "no wall": (["none: no Landlock"], "submitter", False, "Only pods of administrators of all namespaces run there"),
    "no wall, which is allowed": (["none: no Landlock"], "submitter", True, ""),
    "no wall for an administrator": (["none: no Landlock"], None, False, ""),
    "a wall elsewhere": (["none: no Landlock", "holds: Landlock"], "submitter", False, ""),
    "a wall": (["holds: Landlock"], "submitter", False, ""),
    "no network that pods may have": ([NO_NETWORK], "submitter", True, "no pods run: there is no network"),
})  # fmt: skip
def test_who_makes_what_no_machine_has_a_wall_for_is_told(person, admin, settings, kind, says, role, allowed, why):
    settings.ALLOW_UNWALLED, settings.HOST_PATHS = allowed, ["/srv"]
    for number, words in enumerate(says):
        name = f"n{number}"
        store.write(
            Create(resources.NODES, {"metadata": {"name": name, "annotations": {node_walls.ANNOTATION: words}}}),
            Create(resources.LEASES, {"metadata": {"name": name, "namespace": LEASE_NAMESPACE}}),
        )
    actor, heard = person("sam", default=role) if role else admin, []
    create(actor, kind, "/srv/data", warn=heard.append)
    found = [text for text in heard if "for want of a wall" in text]
    assert [why in text for text in found] == ([True] if why else [])


@pytest.mark.parametrize(("says", "allowed"), [("none: no Landlock", False), ("holds with Landlock", True)])
def test_nobody_decides_what_runs_without_a_wall(person, admin, settings, says, allowed):
    kind = resources.CRON_JOBS
    store.write(
        Create(resources.NODES, {"metadata": {"name": "n", "annotations": {node_walls.ANNOTATION: says}}}),
        Create(resources.LEASES, {"metadata": {"name": "n", "namespace": LEASE_NAMESPACE}}),
    )
    cron = made_later(kind, "/srv/data")
    set_in(*IN_POD, volumes=[])(cron)
    api.create(admin, kind, cron)
    olga = person("olga", default="operator")
    other = {"spec": {"jobTemplate": {"spec": {"plugins": {"ssh": []}}}}}
    if not allowed:
        with pytest.raises(Forbidden, match=r"the node n has no wall round pods. Only pods of administrators"):
            api.patch(olga, kind, "default", "x", other)
        settings.ALLOW_UNWALLED = True
    api.patch(olga, kind, "default", "x", other)
