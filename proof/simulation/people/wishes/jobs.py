"""Volcano jobs, random but sensible, and jobs of batch/v1."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cluster.rules.simulation import SIMULATED
from kube.meta import Object
from kube.resources import BATCH_JOBS, CLAIMS, CONFIGMAPS, JOBS, NAMESPACES
from proof.simulation.people.desk import Desk, wish
from proof.simulation.people.request import APPLY, Request, create, name_of, path

CPU = {"100m": 10, "250m": 15, "500m": 20, "1": 25, "2": 15, "4": 8, "8": 3}
MEMORY = {"64Mi": 30, "256Mi": 30, "1Gi": 25, "4Gi": 15}
RESTART = {"Never": 60, "OnFailure": 37, "Always": 3}
TASKS = ("main", "worker", "server")
FAILING_SHARE = 0.2
LONG = 7200
CLASSES = ("high", "low")
ZONES = ("a", "b")
PARTITION_SIZE = 2
LATELY = 10  # requests whose outcome no picture may show yet


# ---- pods of jobs


def requests_of(desk: Desk, cpu: str | None = None) -> Object:
    """Return the resources of a container."""
    wanted = {"cpu": cpu or desk.weighed(CPU), "memory": desk.weighed(MEMORY)}
    return {"requests": wanted, "limits": wanted} if desk.chance(0.2) else {"requests": wanted}


def seconds(desk: Desk) -> int:
    """Return how long a simulated pod runs."""
    if desk.chance(desk.habits.long):
        return LONG
    return desk.random.randint(1, 5) if desk.chance(0.1) else desk.random.randint(5, 300)


def script(desk: Desk, *, fails: bool, runs: int | None = None) -> dict[str, str]:
    """Return the annotations that tell a simulated node what the pod does."""
    found = {"ui.volcano.sh/duration-seconds": str(runs or seconds(desk))}
    if fails:
        found["ui.volcano.sh/exit-code"] = str(desk.one((1, 3, 137)))
    if desk.chance(0.15):
        found["ui.volcano.sh/start-seconds"] = str(desk.random.randint(1, 20))
    if desk.chance(0.1):
        found["ui.volcano.sh/wait-for-job"] = "true"
    return found


def restart_policy(desk: Desk, *, fails: bool) -> str:
    """Return a restart policy; a pod that fails seldom starts again, because it would do so for ever."""
    return ("OnFailure" if desk.chance(0.15) else "Never") if fails else desk.weighed(RESTART)


def simulated(
    desk: Desk, *, cpu: str | None = None, fails: bool = False, runs: int | None = None, **spec: Any
) -> Object:
    """Return the template of a pod for simulated nodes; spec is added to the pod's."""
    container = {"name": "main", "image": "busybox", "resources": requests_of(desk, cpu)}
    if desk.chance(0.1):
        spec["initContainers"] = [{"name": "init", "image": "busybox"}]
    return {
        "metadata": {"annotations": script(desk, fails=fails, runs=runs)},
        "spec": {
            "restartPolicy": restart_policy(desk, fails=fails),
            "nodeSelector": {SIMULATED: "true", **spec.pop("nodeSelector", {})},
            "containers": [container],
            **spec,
        },
    }


def real(desk: Desk) -> Object:
    """Return the template of a pod for a node that runs processes."""
    code = 1 if desk.chance(FAILING_SHARE) else 0
    command = desk.one([["sh", "-c", f"exit {code}"], ["sleep", str(desk.random.randint(1, 90))]])
    small = {"cpu": "100m", "memory": "32Mi"}
    container = {"name": "main", "image": "busybox", "command": command, "resources": {"requests": small}}
    return {"spec": {"restartPolicy": restart_policy(desk, fails=bool(code)), "containers": [container]}}


# ---- jobs


def task(
    desk: Desk, name: str = "main", replicas: int | None = None, template: Object | None = None, **fields: Any
) -> Object:
    """Return a task of simulated pods."""
    count = replicas or desk.random.randint(1, 6)
    fails = desk.chance(FAILING_SHARE)
    return {"name": name, "replicas": count, "template": template or simulated(desk, fails=fails), **fields}


def total(tasks: Sequence[Object]) -> int:
    """Return how many pods the tasks have."""
    return sum(each["replicas"] for each in tasks)


def extras(desk: Desk) -> Object:
    """Return fields of a job that some people write."""
    found = {
        "ttlSecondsAfterFinished": desk.random.randint(0, 120) if desk.chance(0.35) else None,
        "maxRetry": desk.random.randint(1, 5) if desk.chance(0.3) else None,
        "priorityClassName": desk.one(CLASSES) if desk.chance(0.2) else None,
        "plugins": _plugins(desk) if desk.chance(0.25) else None,
        "runningEstimate": f"{desk.random.randint(10, 400)}s" if desk.chance(0.15) else None,
    }
    return {field: value for field, value in found.items() if value is not None}


def _plugins(desk: Desk) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in ("env", "svc", "ssh") if desk.chance(0.5)}
    if desk.chance(0.1):
        found["pytorch"] = ["--master=main", "--worker=worker", "--port=23456"]
    return found or {"env": []}


def job(desk: Desk, tasks: Sequence[Object], **spec: Any) -> Object:
    """Return a job of these tasks, all of which start together unless spec says otherwise."""
    metadata = {"name": desk.name("j"), "namespace": desk.namespace(), "labels": {"lot": desk.one("xyz")}}
    whole = {"queue": desk.queue(), "minAvailable": total(tasks), "tasks": tasks}
    return {"metadata": metadata, "spec": {**whole, **extras(desk), **spec}}


def summary(body: Object) -> str:
    """Return a job in words: `j17 of 3 x 2 cpu to the queue q2`."""
    parts = [f"{each['replicas']} x {_cpu(each)} cpu" for each in body["spec"]["tasks"]]
    queue = body["spec"].get("queue", "default")
    return f"{body['metadata'].get('name', 'without a name')} of {' and '.join(parts)} to the queue {queue}"


def _cpu(each: Object) -> str:
    return str(each["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def submit(desk: Desk, body: Object, what: str = "the job") -> Request:
    """Return the request that submits a job."""
    who = desk.submitter()
    return create(who, JOBS, body, f"{who} submits {what} {summary(body)}")


# ---- policies

ACTIONS = ("RestartJob", "AbortJob", "TerminateJob", "RestartTask", "RestartPod", "CompleteJob")
EVENTS = {
    "PodFailed": ACTIONS,
    "PodEvicted": ("RestartJob", "RestartPod", "AbortJob", "TerminateJob"),
    "TaskFailed": ("AbortJob", "TerminateJob", "RestartJob"),
    "TaskCompleted": ("CompleteJob", "RestartJob"),
    "Unknown": ("RestartJob", "RestartPod"),
    "PodPending": ("AbortJob", "RestartJob"),
    "JobUpdated": ("RestartJob", "CompleteJob"),
}


def policies(desk: Desk) -> list[Object]:
    """Return what is to be done when something happens to a job or a task."""
    if desk.chance(0.1):
        return [{"event": "*", "action": desk.one(ACTIONS)}]
    chosen = desk.random.sample(list(EVENTS), desk.random.randint(1, 2))
    found: list[Object] = [{"event": event, "action": desk.one(EVENTS[event])} for event in chosen]
    for policy in found:
        if policy["event"] == "PodPending" or desk.chance(0.2):
            policy["timeout"] = f"{desk.random.randint(5, 60)}s"
    if desk.chance(0.3):
        found.append({"exitCode": desk.one((1, 3, 137)), "action": desk.one(ACTIONS)})
    return found


# ---- wishes


@wish(20, submits=True)
def submit_gang(desk: Desk) -> Request:
    """All of it, or nothing."""
    return submit(desk, job(desk, [task(desk)]), "the gang")


@wish(10, submits=True)
def submit_part_of_a_gang(desk: Desk) -> Request:
    """A job that starts with fewer pods than it has."""
    tasks = [task(desk, replicas=desk.random.randint(2, 6))]
    least = desk.random.randint(1, total(tasks) - 1)
    tasks[0]["minAvailable"] = least
    body = job(desk, tasks, minAvailable=least)
    if desk.chance(0.3):
        body["spec"]["minSuccess"] = desk.random.randint(1, least)
    return submit(desk, body, f"the gang that {least} pods may begin,")


@wish(12, submits=True)
def submit_one_pod(desk: Desk) -> Request:
    """The smallest job."""
    return submit(desk, job(desk, [task(desk, replicas=1)]))


@wish(6, submits=True)
def submit_several_tasks(desk: Desk) -> Request:
    """Tasks of their own priorities, and some that wait for others."""
    names = TASKS[: desk.random.randint(2, 3)]
    tasks = [task(desk, name, desk.random.randint(1, 4)) for name in names]
    for number, each in enumerate(tasks):
        if desk.chance(0.3):
            each["template"]["spec"]["priorityClassName"] = desk.one(CLASSES)
        if desk.chance(0.2):
            each["maxRetry"] = desk.random.randint(1, 3)
        if number and desk.chance(0.4):
            each["dependsOn"] = {"name": list(names[:number]), "iteration": desk.one(("any", "all"))}
    least = total(tasks) if desk.chance(0.5) else desk.random.randint(1, total(tasks))
    return submit(desk, job(desk, tasks, minAvailable=least))


@wish(5, submits=True)
def submit_with_policies(desk: Desk) -> Request:
    """Jobs that say what to do when their pods fail, which these often do."""
    tasks = [
        task(desk, name, desk.random.randint(1, 3), simulated(desk, fails=desk.chance(0.5)))
        for name in TASKS[: desk.random.randint(1, 2)]
    ]
    if desk.chance(0.5):
        tasks[0]["policies"] = policies(desk)
    return submit(desk, job(desk, tasks, policies=policies(desk)), "the job with policies")


@wish(1, submits=True)
def submit_for_hours(desk: Desk) -> Request:
    """Two hours of work."""
    return submit(desk, job(desk, [task(desk, template=simulated(desk, runs=LONG))]), "for two hours")


@wish(1, submits=True)
def submit_with_volumes(desk: Desk) -> Request:
    """Volumes with a claim that exists, one that does not, one to make, and none."""
    body = job(desk, [task(desk)])
    namespace = body["metadata"]["namespace"]
    claims = [each["metadata"]["name"] for each in desk.all(CLAIMS, _in(namespace))]
    body["spec"]["volumes"] = [{"mountPath": "/data", **_volume(desk, claims)}]
    if desk.chance(0.3):
        body["spec"]["volumes"].append({"mountPath": "/scratch", **_volume(desk, claims)})
    return submit(desk, body, "with volumes")


def _in(namespace: str) -> Callable[[Object], bool]:
    return lambda obj: obj["metadata"].get("namespace") == namespace


def _volume(desk: Desk, claims: Iterable[str]) -> Object:
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    kinds: list[Object] = [{}, {"volumeClaimName": "nobody-made-it"}, {"volumeClaim": size}]
    return desk.one([*kinds, *({"volumeClaimName": name} for name in claims)])


@wish(0.8, submits=True)
def submit_with_settings(desk: Desk) -> Request | None:
    """Pods that see a ConfigMap as files."""
    body = job(desk, [task(desk)])
    settings = desk.any(CONFIGMAPS, _in(body["metadata"]["namespace"]))
    if settings is None:
        return None
    pod = body["spec"]["tasks"][0]["template"]["spec"]
    pod["volumes"] = [{"name": "settings", "configMap": {"name": settings["metadata"]["name"]}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "settings", "mountPath": "/etc/settings"}]
    return submit(desk, body, "with settings")


@wish(0.5, submits=True)
def submit_and_hold(desk: Desk) -> Request:
    """Pods whose time begins when somebody makes a ConfigMap."""
    body = job(desk, [task(desk)])
    held = desk.name("h")
    body["spec"]["tasks"][0]["template"]["metadata"]["annotations"]["ui.volcano.sh/hold"] = held
    return submit(desk, body, f"held by {held}")


@wish(1, submits=True)
def submit_to_this_machine(desk: Desk) -> Request:
    """Real processes."""
    return submit(desk, job(desk, [task(desk, replicas=desk.random.randint(1, 2), template=real(desk))]))


@wish(1, submits=True)
def submit_to_a_zone(desk: Desk) -> Request:
    """Pods for labelled nodes only, or rather there than elsewhere."""
    zone = desk.one(ZONES)
    if desk.chance(0.5):
        template = simulated(desk, nodeSelector={"zone": zone})
    else:
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
        kind = "requiredDuringSchedulingIgnoredDuringExecution"
        template = simulated(desk, affinity={"nodeAffinity": {kind: {"nodeSelectorTerms": [term]}}})
    return submit(desk, job(desk, [task(desk, template=template)]), f"for zone {zone}")


@wish(0.5, submits=True)
def submit_impossible(desk: Desk) -> Request:
    """What is accepted and can never run: too large, or next to pods in a way that is not understood."""
    if desk.chance(0.5):
        return submit(desk, job(desk, [task(desk, template=simulated(desk, cpu="100"))]))
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "none"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return submit(desk, job(desk, [task(desk, template=simulated(desk, affinity=near))]), "near others")


@wish(0.5, submits=True)
def submit_partitions(desk: Desk) -> Request:
    """A task whose pods come in partitions."""
    count = desk.random.randint(1, 3)
    policy = {"totalPartitions": count, "partitionSize": PARTITION_SIZE, "minPartitions": 1}
    tasks = [task(desk, "worker", count * PARTITION_SIZE, partitionPolicy=policy)]
    restart = [{"event": "PodFailed", "action": "RestartPartition"}]
    return submit(desk, job(desk, tasks, minAvailable=PARTITION_SIZE, policies=restart), "in partitions")


@wish(0.5, submits=True)
def submit_without_a_name(desk: Desk) -> Request:
    """The server makes the name."""
    body = job(desk, [task(desk, replicas=1)])
    body["metadata"]["generateName"] = f"{body['metadata'].pop('name')}-"
    return submit(desk, body)


@wish(0.4, submits=True)
def submit_another_run(desk: Desk) -> Request:
    """The server makes the name, from the same beginning as for everybody's."""
    body = job(desk, [task(desk, replicas=1)])
    del body["metadata"]["name"]
    body["metadata"]["generateName"] = "run-"
    return submit(desk, body)


@wish(0.6, submits=True)
def apply_a_job(desk: Desk) -> Request:
    """`kubectl apply --server-side` of a new job."""
    who, body = desk.submitter(), job(desk, [task(desk)])
    body["metadata"]["labels"]["applied"] = "true"
    where = path(JOBS, body["metadata"]["namespace"], body["metadata"]["name"], fieldManager="kubectl")
    whole = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, **body}
    words = f"{who} applies the job {summary(body)}"
    return Request(actor=who, method="PATCH", path=where, body=whole, content_type=APPLY, wish=words)


@wish(0.8, submits=True)
def submit_to_batch(desk: Desk) -> Request:
    """A job of batch/v1, which is stored."""
    who, name, count = desk.submitter(), desk.name("b"), desk.random.randint(1, 3)
    template = simulated(desk)
    template["spec"]["restartPolicy"] = "Never"
    spec = {"completions": count, "parallelism": count, "suspend": desk.chance(0.2), "template": template}
    body = {"metadata": {"name": name, "namespace": desk.namespace()}, "spec": spec}
    return create(who, BATCH_JOBS, body, f"{who} submits the batch/v1 job {name}")


@wish(2, submits=True)
def use_a_name_again(desk: Desk) -> Request | None:
    """A job like one that is gone, under its name, where its namespace is still there."""
    existing, older = desk.picture.objects(JOBS.id), list(desk.sent)[:-LATELY]
    places = [name_of(each) for each in desk.all(NAMESPACES)]
    named = [each for each in older if _names_a_job(each) and _key(each)[0] in places]
    gone = [each for each in named if _key(each) not in existing]
    before = desk.one_or_none(gone)
    if before is None:
        return None
    name = before.body["metadata"]["name"]
    words = f"{before.actor} submits {name} once more, because it is gone"
    return create(before.actor, JOBS, before.body, words)


def _names_a_job(request: Request) -> bool:
    return request.body["apiVersion"] == JOBS.api_version and "name" in request.body["metadata"]


def _key(request: Request) -> tuple[str, str]:
    metadata = request.body["metadata"]
    return metadata["namespace"], metadata["name"]
