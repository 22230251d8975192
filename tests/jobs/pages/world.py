"""A cluster as the job pages see it: jobs in every phase with their groups, pods and events, as the controllers write them."""

from __future__ import annotations

from cluster.store import Create, Delete, Group, Patch, decisions, store
from cluster.writes import Decision
from kube import resources
from kube.meta import now_text, timestamp

START = 1_780_000_000_000
WINNER = "default/urgent-9f7e6c1d-1111-4222-8333-444455556666"  # the pod group for which others go
TEMPLATE = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "command": ["sh", "-c", "echo hello"],
                "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}},
            }
        ],
    }
}


def base(now=START):
    """The namespaces default and other, and an open queue."""
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}}
        for name in ("default", "other")
    ]
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {"weight": 1},
        "status": {"state": "Open"},
    }
    known = {stored.name for stored in store.find(resources.NAMESPACES)}
    store.write(*[Create(resources.NAMESPACES, n) for n in namespaces if n["metadata"]["name"] not in known], now=now)
    if not store.find(resources.QUEUES, name="default"):
        store.write(Create(resources.QUEUES, queue), now=now)


def job_object(
    name,
    *,
    namespace="default",
    tasks=(("worker", 4),),
    minimum=4,
    queue="default",
    owner="alice",
    spec=None,
    **metadata,
):
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"ui.volcano.sh/created-by": owner},
            **metadata,
        },
        "spec": {
            "minAvailable": minimum,
            "queue": queue,
            "maxRetry": 3,
            "tasks": [
                {"name": task, "replicas": replicas, "minAvailable": replicas, "template": TEMPLATE}
                for task, replicas in tasks
            ],
            **(spec or {}),
        },
    }


def status(phase, *, now, began=None, message="", **counts):
    """A job's status as the controller writes it."""
    conditions = [{"status": "Pending", "lastTransitionTime": now_text(now - 60_000)}]
    if began is not None:
        conditions.append({"status": "Running", "lastTransitionTime": now_text(began)})
    if phase not in ("Pending", "Running"):
        conditions.append({"status": phase, "lastTransitionTime": now_text(now)})
    return {
        "state": {"phase": phase, "reason": "", "message": message, "lastTransitionTime": now_text(now)},
        "conditions": conditions,
        **counts,
    }


def pod_object(
    job, task, index, *, phase="Running", node="this-machine", scheduled=None, started=None, finished=None, code=None
):
    metadata = job.object["metadata"]
    name = f"{job.name}-{task}-{index}"
    state = {}
    if finished is not None:
        state = {
            "terminated": {
                "exitCode": code or 0,
                "reason": "Error" if code else "Completed",
                "startedAt": now_text(started),
                "finishedAt": now_text(finished),
            }
        }
    elif started is not None:
        state = {"running": {"startedAt": now_text(started)}}
    conditions = []
    if scheduled is not None:
        conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": now_text(scheduled)})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.namespace,
            "labels": {
                "volcano.sh/job-name": job.name,
                "volcano.sh/task-spec": task,
                "volcano.sh/task-index": str(index),
            },
            "annotations": {"volcano.sh/task-spec": task, "volcano.sh/task-index": str(index)},
            "ownerReferences": [owner(metadata)],
        },
        "spec": {**TEMPLATE["spec"], **({"nodeName": node} if scheduled is not None else {})},
        "status": {
            "phase": phase,
            "conditions": conditions,
            **({"containerStatuses": [{"name": "main", "restartCount": 0, "state": state}]} if state else {}),
        },
    }


def owner(metadata):
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def group_object(job, *, phase="Running", why=""):
    conditions = []
    if why:
        conditions.append(
            {
                "type": "Unschedulable",
                "status": "True",
                "reason": "NotEnoughResources",
                "message": why,
                "lastTransitionTime": now_text(START),
            }
        )
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": f"{job.name}-{job.uid}",
            "namespace": job.namespace,
            "ownerReferences": [owner(job.object["metadata"])],
        },
        "spec": {"minMember": job.object["spec"]["minAvailable"], "queue": job.object["spec"]["queue"]},
        "status": {"phase": phase, "conditions": conditions},
    }


def event_object(job, reason, message, *, about="Job", name="", now=START, kind="Normal"):
    name = name or job.name
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{now:x}{abs(hash(message)) % 10**8:08d}", "namespace": job.namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": about,
            "namespace": job.namespace,
            "name": name,
            **({"uid": job.uid} if about == "Job" else {}),
        },
        "reason": reason,
        "message": message,
        "type": kind,
        "count": 1,
        "firstTimestamp": timestamp(now),
        "lastTimestamp": timestamp(now),
    }


def make(name, phase="Pending", *, pods=(), why="", message="", now=START, began=None, counts=None, **options):
    """Create a job with its pod group and pods; return it as stored."""
    created = now - 60_000
    (job,) = store.write(Create(resources.JOBS, job_object(name, **options)), now=created)
    group = group_object(job, phase="Pending" if phase == "Pending" else "Running", why=why)
    store.write(Create(resources.POD_GROUPS, group), now=created + 20)
    store.commit([Group([Create(resources.PODS, pod_object(job, **pod))]) for pod in pods], now=created + 60)
    full = status(phase, now=now, began=began, message=message, **(counts or {}))
    (job,) = store.write(Patch(resources.JOBS, job.namespace, name, {"status": full}, subresource="status"), now=now)
    return job


def many(number, *, begin=0, now=START):
    """Create jobs in bulk, numbered from `begin`, in several namespaces' worth of phases and owners."""
    phases = ["Pending", "Running", "Completed", "Failed", "Aborted"]
    groups = []
    for index in range(begin, begin + number):
        job = job_object(
            f"job-{index:05d}", owner=("alice", "bob")[index % 2], namespace=("default", "other")[index % 3 == 0]
        )
        phase = phases[index % 5]
        began = None if phase == "Pending" else now + index - 5000
        job["status"] = status(phase, now=now + index, began=began, running=index % 5)
        groups.append(Group([Create(resources.JOBS, job)]))
    for start in range(0, number, 1000):
        store.commit(groups[start : start + 1000], now=now + start)


def evict(life, *names, reason="preempt", other=WINNER, grace=1):
    """Have the scheduler evict pods of a job that lives, and their nodes end them a second later."""
    at = life.clock.microseconds() // 1000
    for name in names:
        conditions = store.get(resources.PODS, "default", name).object["status"].get("conditions") or []
        target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        status = {"status": {"conditions": [*conditions, {**target, "lastTransitionTime": life.now()}]}}
        pods = resources.PODS
        store.write(Patch(pods, "default", name, status, "status"), Delete(pods, "default", name, grace=30))
    group, nodes = f"{life.name}-{life.job.uid}", (("node-1", len(names)),)
    decisions.put([Decision(at, "evict", reason, "default", group, "default", len(names), "", other, nodes)])
    life.jobs.settle()
    return life.passes(grace).bury() if grace else life


def words(response, parse, part):
    """What a page says in the element with an id."""
    return " ".join("".join(parse(response).find(f".//*[@id='{part}']").itertext()).split())
