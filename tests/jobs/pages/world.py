"""A cluster as the job pages see it: jobs with their groups, pods and events, as controllers write them."""

from cluster.store import Create, Group, Patch, store
from kube import resources
from kube.meta import now_text, timestamp
from scheduler.engine.cause import Cause
from scheduler.reasons import message as words
from scheduler.reasons.sentence import sentence
from tests.builders import container, namespace, of, owner, pod, pod_group, queue, template

GANG_TEXT = "2/2 tasks in gang unschedulable: pod group is not ready."
START = 1_780_000_000_000
WINNER = "default/urgent-9f7e6c1d-1111-4222-8333-444455556666"  # the pod group for which others go
REQUESTS = {"cpu": "500m", "memory": "64Mi"}
CONTAINER = {**container(requests=REQUESTS), "image": "busybox", "command": ["sh", "-c", "echo hello"]}
TEMPLATE = template(CONTAINER)


def base(now=START):
    """The namespaces default and other, and an open queue."""
    wanted = [(resources.NAMESPACES, namespace(each)) for each in ("default", "other")]
    wanted.append((resources.QUEUES, queue("default", weight=1)))
    missing = [(kind, obj) for kind, obj in wanted if not store.find(kind, name=obj["metadata"]["name"])]
    store.write(*(Create(kind, obj) for kind, obj in missing), now=now)


def job_object(name, *, tasks=(("worker", 4),), minimum=4, queue="default", owner="alice", spec=None, **metadata):
    made = [{"name": each, "replicas": n, "minAvailable": n, "template": TEMPLATE} for each, n in tasks]
    spec = {"minAvailable": minimum, "queue": queue, "maxRetry": 3, "tasks": made, **(spec or {})}
    metadata = {"annotations": {"ui.volcano.sh/created-by": owner}, **metadata}
    return of(resources.JOBS, name, {"spec": spec}, **metadata)


def status(phase, *, now, began=None, message="", summary="", **counts):
    times = [("Pending", now - 60_000)]
    times += [("Running", began)] if began is not None else []
    times += [(phase, now)] if phase not in ("Pending", "Running") else []
    conditions = [{"status": each, "lastTransitionTime": now_text(at)} for each, at in times]
    state = {"phase": phase, "reason": "", "message": message, "lastTransitionTime": now_text(now)}
    return {"state": state | ({"summary": summary} if summary else {}), "conditions": conditions, **counts}


def pod_object(
    job, task, index, *, phase="Running", node="this-machine", scheduled=None, started=None, finished=None, code=None
):
    index_of = {"volcano.sh/task-spec": task, "volcano.sh/task-index": str(index)}
    state, placed = {}, []
    if finished is not None:
        ended = {"exitCode": code or 0, "reason": "Error" if code else "Completed"}
        state = {"terminated": {**ended, "startedAt": now_text(started), "finishedAt": now_text(finished)}}
    elif started is not None:
        state = {"running": {"startedAt": now_text(started)}}
    if scheduled is not None:
        placed = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": now_text(scheduled)}]
    containers = {"containerStatuses": [{"name": "main", "restartCount": 0, "state": state}]} if state else {}
    about = {"namespace": job.namespace, "ownerReferences": [owner(job.object)], "annotations": index_of}
    about["labels"] = {"volcano.sh/job-name": job.name, **index_of}
    about["status"] = {"phase": phase, "conditions": placed, **containers}
    name, node_name = f"{job.name}-{task}-{index}", node if placed else None
    return pod(name, CONTAINER, restartPolicy="Never", nodeName=node_name, **about)


def waits(cause):
    """The conditions by which the scheduler says why a group waits; of pods beyond its minimum in data alone."""
    about = {"status": "True", "reason": cause.reason, "lastTransitionTime": now_text(START), "transitionID": "1"}
    condition = {"type": words.UNSCHEDULABLE, "message": f"{sentence(cause)} {GANG_TEXT}", **about}
    return [*([] if cause.started else [condition]), {"type": words.CAUSE, "message": words.data(cause), **about}]


def group_object(job, *, phase="Running", why=""):
    """The pod group of a job; why it waits is a cause, or what another scheduler says."""
    unschedulable = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": why}
    theirs = [{**unschedulable, "lastTransitionTime": now_text(START)}] if why else []
    conditions = waits(why) if isinstance(why, Cause) else theirs
    spec, about = job.object["spec"], {"namespace": job.namespace, "ownerReferences": [owner(job.object)]}
    status = {"phase": phase, "conditions": conditions}
    return pod_group(f"{job.name}-{job.uid}", spec["minAvailable"], queue=spec["queue"], status=status, **about)


def event_object(job, reason, message, *, about="Job", name="", now=START, kind="Normal"):
    involved = {"apiVersion": "v1", "kind": about, "namespace": job.namespace, "name": name or job.name}
    involved |= {"uid": job.uid} if about == "Job" else {}
    times = dict.fromkeys(("firstTimestamp", "lastTimestamp"), timestamp(now))
    fields = {"involvedObject": involved, "reason": reason, "message": message, "type": kind, "count": 1, **times}
    name = f"{involved['name']}.{now:x}{abs(hash(message)) % 10**8:08d}"
    return of(resources.EVENTS, name, fields, namespace=job.namespace)


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


def becomes(name, phase, message=""):
    """The controller says that a job is in a phase."""
    full = {"status": status(phase, now=START, message=message)}
    store.write(Patch(resources.JOBS, "default", name, full, subresource="status"))
