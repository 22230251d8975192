"""Pods without a job, alone and in groups."""

from __future__ import annotations

from kube.meta import Object
from kube.resources import CONFIGMAPS, JOBS, POD_GROUPS, PODS, QUEUES
from proof.simulation.people.desk import Desk, has_owner, is_unfinished, pod_phase, queue_state, wish
from proof.simulation.people.request import JSON_PATCH, STRATEGIC, Request, create, name_of, patch
from proof.simulation.people.wishes.jobs import FAILING_SHARE, simulated

QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
GATE = "simulation.example/gate"
MAX_GROUPS = 20


def pod(desk: Desk, **annotations: str) -> Object:
    """Return a pod for Volcano's scheduler."""
    body = simulated(desk, fails=desk.chance(FAILING_SHARE))
    body["metadata"] |= {"name": desk.name("p"), "namespace": desk.namespace()}
    body["metadata"]["annotations"] |= annotations
    body["spec"]["schedulerName"] = "volcano"
    return body


def _create(desk: Desk, body: Object, what: str) -> Request:
    who = desk.submitter()
    return create(who, PODS, body, f"{who} makes {what}")


@wish(2, submits=True)
def make_a_pod(desk: Desk) -> Request:
    """A pod that says its queue."""
    queue = desk.queue()
    body = pod(desk, **{QUEUE_ANNOTATION: queue})
    if desk.chance(0.3):
        body["spec"]["priorityClassName"] = desk.priority_class()
    if body["spec"].get("priorityClassName") is None:
        body["spec"].pop("priorityClassName", None)
    return _create(desk, body, f"the pod {name_of(body)} in the queue {queue}")


@wish(1.5, submits=True)
def run_a_pod_with_kubectl(desk: Desk) -> Request:
    """A pod that knows nothing of queues or schedulers."""
    body = pod(desk)
    del body["spec"]["schedulerName"]
    body["metadata"]["labels"] = {"run": name_of(body)}
    return _create(desk, body, f"the pod {name_of(body)} with kubectl")


@wish(0.5, submits=True)
def make_a_pod_without_a_name(desk: Desk) -> Request:
    """The server makes the name."""
    body = pod(desk)
    body["metadata"]["generateName"] = f"{body['metadata'].pop('name')}-"
    return _create(desk, body, f"a pod named {body['metadata']['generateName']}...")


def _closed_queue(desk: Desk) -> Object | None:
    return desk.any(QUEUES, lambda each: queue_state(each) in ("Closed", "Closing"))


@wish(0.3, submits=True)
def make_a_pod_for_a_closed_queue(desk: Desk) -> Request | None:
    """It waits until the queue is open."""
    queue = _closed_queue(desk)
    if queue is None:
        return None
    body = pod(desk, **{QUEUE_ANNOTATION: name_of(queue)})
    return _create(desk, body, f"the pod {name_of(body)} for the queue {name_of(queue)}, which is closed")


@wish(0.2, meant="refused")
def make_a_group_in_a_closed_queue(desk: Desk) -> Request | None:
    """It may not begin there."""
    queue = _closed_queue(desk)
    if queue is None:
        return None
    who, name = desk.submitter(), desk.name("g")
    spec = {"minMember": 1, "queue": name_of(queue)}
    body = {"metadata": {"name": name, "namespace": desk.namespace()}, "spec": spec}
    words = f"{who} makes the group {name} in the queue {name_of(queue)}, which is closed"
    return create(who, POD_GROUPS, body, words)


@wish(0.4, meant="either", submits=True)
def take_a_name_of_a_job(desk: Desk) -> Request | None:
    """A pod with a name that a job wants, which has it for a pod of its own, or waits."""
    job = desk.any(JOBS, lambda each: is_unfinished(each) and each["spec"].get("tasks"))
    if job is None:
        return None
    body, task = pod(desk), desk.one(job["spec"]["tasks"])
    index = desk.random.randrange((task.get("replicas") or 0) + 1)
    body["metadata"]["name"] = f"{name_of(job)}-{task['name']}-{index}"
    body["metadata"]["namespace"] = job["metadata"]["namespace"]
    return _create(desk, body, f"the pod {name_of(body)}, as if it were the job's")


@wish(0.5, submits=True)
def make_a_gated_pod(desk: Desk) -> Request:
    """A pod that waits until somebody opens its gate."""
    body = pod(desk)
    body["spec"]["schedulingGates"] = [{"name": GATE}]
    return _create(desk, body, f"the pod {name_of(body)} behind a gate")


@wish(0.8)
def open_a_gate(desk: Desk) -> Request | None:
    """Let a gated pod be scheduled."""
    gated = desk.any(PODS, lambda each: each["spec"].get("schedulingGates"))
    if gated is None:
        return None
    change = [{"op": "remove", "path": "/spec/schedulingGates"}]
    who = desk.whose(gated)
    return patch(who, PODS, gated, change, f"{who} opens the gate of {name_of(gated)}", JSON_PATCH)


@wish(1.2, submits=True)
def make_a_group(desk: Desk) -> Request | None:
    """A pod group; its pods come one by one."""
    if len(desk.all(POD_GROUPS, lambda each: not has_owner(each))) >= MAX_GROUPS:
        return None
    who, name, least = desk.submitter(), desk.name("g"), desk.random.randint(2, 4)
    spec = {"minMember": least, "queue": desk.queue()}
    if desk.chance(0.3):
        spec["minResources"] = {"cpu": str(least), "memory": "1Gi"}
    body = {"metadata": {"name": name, "namespace": desk.namespace()}, "spec": spec}
    return create(who, POD_GROUPS, body, f"{who} makes the group {name} of {least} pods")


@wish(5, submits=True)
def make_a_pod_of_a_group(desk: Desk) -> Request | None:
    """One more pod of a group that has not all yet; the queue that it may name itself says nothing."""
    group = desk.one_or_none([each for each in desk.all(POD_GROUPS, _is_for_pods) if _is_wanting(desk, each)])
    if group is None:
        return None
    own = {QUEUE_ANNOTATION: desk.queue()} if desk.chance(0.3) else {}
    body = pod(desk, **{GROUP_ANNOTATION: name_of(group)}, **own)
    body["metadata"]["namespace"] = group["metadata"]["namespace"]
    return _create(desk, body, f"the pod {name_of(body)} of the group {name_of(group)}")


def _is_for_pods(group: Object) -> bool:
    return not has_owner(group) and name_of(group).startswith("g")


def _is_wanting(desk: Desk, group: Object) -> bool:
    least = (group.get("spec") or {}).get("minMember") or 0
    return len(desk.all(PODS, lambda each: _is_of(group, each))) < least


def _is_of(group: Object, each: Object) -> bool:
    metadata = each["metadata"]
    annotations = metadata.get("annotations") or {}
    same_namespace = metadata.get("namespace") == group["metadata"].get("namespace")
    return same_namespace and annotations.get(GROUP_ANNOTATION) == name_of(group)


@wish(1)
def move_a_group(desk: Desk) -> Request | None:
    """To another queue, with the pods that it has, whatever queue these name; also the group of a job."""
    group, queue = desk.any(POD_GROUPS, _is_at_work), desk.queue()
    if group is None:
        return None
    words = f"olga moves the group {name_of(group)} to the queue {queue}"
    return patch("olga", POD_GROUPS, group, {"spec": {"queue": queue}}, words)


def _is_at_work(group: Object) -> bool:
    return (group.get("status") or {}).get("phase") == "Running"


@wish(1)
def let_go(desk: Desk) -> Request | None:
    """Make the ConfigMap that pods are held for."""
    existing = desk.picture.objects(CONFIGMAPS.id)
    held = {
        (each["metadata"].get("namespace", ""), hold): each
        for each in desk.all(PODS)
        if (hold := (each["metadata"].get("annotations") or {}).get("ui.volcano.sh/hold"))
    }
    key = desk.one_or_none([key for key in held if key not in existing])
    if key is None:
        return None
    body = {"metadata": {"name": key[1], "namespace": key[0]}, "data": {"go": "true"}}
    return create("olga", CONFIGMAPS, body, f"olga lets the pods go that {key[1]} holds")


@wish(0.8)
def label_a_pod(desk: Desk) -> Request | None:
    """A strategic patch, as kubectl label sends it."""
    found = desk.any(PODS)
    if found is None:
        return None
    who, label = desk.whose(found), desk.one(("red", "blue"))
    change = {"metadata": {"labels": {"colour": label}}}
    return patch(who, PODS, found, change, f"{who} labels the pod {name_of(found)} {label}", STRATEGIC)


@wish(0.3)
def bound_a_pod_in_time(desk: Desk) -> Request | None:
    """A deadline for a pod that runs."""
    found = desk.any(PODS, _has_no_deadline)
    if found is None:
        return None
    who, limit = desk.whose(found), desk.random.randint(10, 600)
    words = f"{who} gives the pod {name_of(found)} {limit} seconds"
    return patch(who, PODS, found, {"spec": {"activeDeadlineSeconds": limit}}, words, STRATEGIC)


def _has_no_deadline(each: Object) -> bool:
    return pod_phase(each) == "Running" and each["spec"].get("activeDeadlineSeconds") is None
