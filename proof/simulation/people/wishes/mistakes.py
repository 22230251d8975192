"""What is to be refused: bad specs, missing rights, wrong versions, and requests that are sent twice."""

from __future__ import annotations

import copy

import msgspec

from kube.meta import Object
from kube.resources import COMMANDS, JOBS, NAMESPACES, NODES, PODS, QUEUES, RESOURCE_QUOTAS
from proof.simulation.people.before import WEIGHTS
from proof.simulation.people.desk import Desk, creator_of, is_unfinished, phase_of, pod_phase, queue_state, wish
from proof.simulation.people.request import (
    STRATEGIC,
    SUBMITTERS,
    Request,
    create,
    delete,
    name_of,
    patch,
    path_of,
    replace,
)
from proof.simulation.people.wishes.jobs import job, submit, task

WRONG_UID = "00000000-0000-4000-8000-000000000000"
STALE = "1"
FIXED: tuple[Object, ...] = ({"queue": "elsewhere"}, {"maxRetry": 77}, {"tasks": []})


@wish(1.5, meant="either")
def send_twice(desk: Desk) -> Request | None:
    """An answer was lost: the same once more, which meets what the first one made."""
    again = desk.one_or_none(list(desk.sent))
    return None if again is None else msgspec.structs.replace(again, wish=f"{again.wish}, again")


# ---- bad specs


def _no_tasks(spec: Object) -> None:
    spec["tasks"] = []


def _same_names(spec: Object) -> None:
    spec["tasks"].append(copy.deepcopy(spec["tasks"][0]))


def _too_many_at_least(spec: Object) -> None:
    spec["minAvailable"] = 99


def _waits_for_itself(spec: Object) -> None:
    spec["tasks"][0]["dependsOn"] = {"name": ["main"]}


def _waits_for_nobody(spec: Object) -> None:
    spec["tasks"][0]["dependsOn"] = {"name": ["nobody"]}


def _unknown_plugin(spec: Object) -> None:
    spec["plugins"] = {"teleport": []}


def _unknown_event(spec: Object) -> None:
    spec["policies"] = [{"event": "PodBored", "action": "RestartJob"}]


def _event_twice(spec: Object) -> None:
    spec["policies"] = [{"event": "PodFailed", "action": action} for action in ("RestartJob", "AbortJob")]


def _success_as_an_error(spec: Object) -> None:
    spec["policies"] = [{"exitCode": 0, "action": "RestartJob"}]


def _no_containers(spec: Object) -> None:
    spec["tasks"][0]["template"]["spec"]["containers"] = []


def _no_quantity(spec: Object) -> None:
    spec["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "lots"}}


def _negative(spec: Object) -> None:
    spec["tasks"][0]["replicas"] = -1


def _no_mount_path(spec: Object) -> None:
    spec["volumes"] = [{"volumeClaimName": "v"}]


def _text_for_a_number(spec: Object) -> None:
    spec["maxRetry"] = "three"


def _no_duration(spec: Object) -> None:
    spec["runningEstimate"] = "soon"


def _no_restart_policy(spec: Object) -> None:
    spec["tasks"][0]["template"]["spec"]["restartPolicy"] = "Sometimes"


BAD = (
    _no_tasks,
    _same_names,
    _too_many_at_least,
    _waits_for_itself,
    _waits_for_nobody,
    _unknown_plugin,
    _unknown_event,
    _event_twice,
    _success_as_an_error,
    _no_containers,
    _no_quantity,
    _negative,
    _no_mount_path,
    _text_for_a_number,
    _no_duration,
    _no_restart_policy,
)


@wish(0.8, meant="refused")
def submit_a_bad_spec(desk: Desk) -> Request:
    """One thing wrong in a job that is otherwise good."""
    body, spoil = job(desk, [task(desk)]), desk.one(BAD)
    spoil(body["spec"])
    who, what = desk.submitter(), spoil.__name__.strip("_").replace("_", " ")
    return create(who, JOBS, body, f"{who} submits the job {name_of(body)} with a mistake: {what}")


@wish(0.2, meant="refused")
def submit_under_a_bad_name(desk: Desk) -> Request:
    """Capitals, or far too long."""
    body = job(desk, [task(desk)])
    body["metadata"]["name"] += desk.one(("-BIG", "-" + "x" * 64))
    return submit(desk, body, "under a bad name")


@wish(0.2, meant="refused")
def submit_a_misspelt_field(desk: Desk) -> Request:
    """With fields validated strictly, as kubectl does."""
    body, who = job(desk, [task(desk)]), desk.submitter()
    body["spec"]["minAvailabel"] = 1
    words = f"{who} misspells a field of the job {name_of(body)}"
    return create(who, JOBS, body, words, fieldValidation="Strict")


@wish(0.4, meant="refused")
def submit_to_no_queue(desk: Desk) -> Request:
    """A queue that nobody made, a closed one, or root."""
    closed = [name_of(each) for each in desk.all(QUEUES) if queue_state(each) == "Closed"]
    return submit(desk, job(desk, [task(desk)], queue=desk.one([*closed, "nowhere", "root"])))


@wish(0.2, meant="refused")
def submit_to_no_namespace(desk: Desk) -> Request:
    """A namespace that nobody made."""
    body = job(desk, [task(desk)])
    body["metadata"]["namespace"] = "nowhere"
    return submit(desk, body, "to the namespace nowhere")


@wish(0.3, meant="refused")
def change_what_is_fixed(desk: Desk) -> Request | None:
    """A job's queue, or the image of its pods, once it is there."""
    found = desk.any(JOBS)
    if found is None:
        return None
    who, change = desk.whose(found), desk.one(FIXED)
    words = f"{who} changes what is fixed in {name_of(found)}: {', '.join(change)}"
    return patch(who, JOBS, found, {"spec": change}, words)


@wish(0.2, meant="refused")
def scale_by_the_subresource(desk: Desk) -> Request | None:
    """Jobs have no scale."""
    found = desk.any(JOBS)
    if found is None:
        return None
    where, who = path_of(JOBS, found, "scale"), desk.whose(found)
    words = f"{who} scales {name_of(found)} with kubectl scale"
    return Request(
        actor=who, method="PATCH", path=where, body={"spec": {"replicas": 2}},
        content_type="application/merge-patch+json", wish=words,
    )  # fmt: skip


# ---- versions and uids


@wish(0.4, meant="refused")
def delete_another_of_the_name(desk: Desk) -> Request | None:
    """A precondition on a uid that the object does not have."""
    resource = desk.one((JOBS, PODS))
    found = desk.any(resource)
    if found is None:
        return None
    who, words = desk.whose(found), f"deletes another {resource.kind} than {name_of(found)} is"
    return delete(who, resource, found, f"{who} {words}", preconditions={"uid": WRONG_UID})


@wish(0.3, meant="refused")
def replace_what_has_changed(desk: Desk) -> Request | None:
    """With a resourceVersion of long ago."""
    found = desk.any(JOBS)
    if found is None:
        return None
    who, old = desk.whose(found), copy.deepcopy(found)
    old["metadata"]["resourceVersion"] = STALE
    return replace(who, JOBS, old, f"{who} replaces {name_of(found)}, which has changed")


@wish(0.2, meant="refused")
def delete_what_is_not_there(desk: Desk) -> Request:
    """A name that nothing had."""
    gone = {"metadata": {"name": desk.name("gone-"), "namespace": desk.namespace()}}
    return delete("olga", JOBS, gone, f"olga deletes {name_of(gone)}, which is not there")


@wish(0.2, meant="refused")
def order_something_of_nothing(desk: Desk) -> Request:
    """A Command whose target is gone, or never was."""
    who = desk.one((*SUBMITTERS, "olga"))
    aim = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": desk.name("gone-"), "uid": WRONG_UID}
    metadata = {"name": desk.name("c"), "namespace": desk.namespace()}
    body = {"metadata": metadata, "action": "AbortJob", "target": aim}
    return create(who, COMMANDS, body, f"{who} orders AbortJob of {aim['name']}, which is not there")


# ---- queues


@wish(0.2, meant="refused")
def delete_a_queue_in_use(desk: Desk) -> Request | None:
    """One that is open, or one that the cluster needs; the first ones stay, should they be closed by then."""
    queue = desk.any(QUEUES, lambda each: queue_state(each) == "Open" and name_of(each) not in WEIGHTS)
    if queue is None:
        return None
    return delete("admin", QUEUES, queue, f"admin deletes the open queue {name_of(queue)}")


@wish(0.2, meant="refused")
def give_a_queue_nonsense(desk: Desk) -> Request | None:
    """A parent that is not there, itself as one, a state that is none, less than nothing."""
    queue = desk.any(QUEUES, lambda each: name_of(each) != "root")
    if queue is None:
        return None
    bad: tuple[Object, ...] = ({"parent": "nowhere"}, {"parent": name_of(queue)}, {"state": "Ajar"}, {"weight": 0})
    change = desk.one((*bad, {"capability": {"cpu": "-1"}}))
    words = f"admin gives the queue {name_of(queue)} nonsense: {', '.join(change)}"
    return patch("admin", QUEUES, queue, {"spec": change}, words)


# ---- rights


@wish(0.5, meant="refused")
def change_as_a_viewer(desk: Desk) -> Request | None:
    """Who may look only."""
    acts = (_vera_deletes_a_job, _vera_cordons, _vera_makes_a_queue, _vera_submits, _vera_evicts)
    return desk.one(acts)(desk)


def _vera_deletes_a_job(desk: Desk) -> Request | None:
    found = desk.any(JOBS)
    return None if found is None else delete("vera", JOBS, found, f"vera deletes {name_of(found)}")


def _vera_cordons(desk: Desk) -> Request | None:
    node, change = desk.any(NODES), {"spec": {"unschedulable": True}}
    if node is None:
        return None
    return patch("vera", NODES, node, change, f"vera cordons {name_of(node)}", STRATEGIC)


def _vera_makes_a_queue(desk: Desk) -> Request:
    name = desk.name("q-")
    return create("vera", QUEUES, {"metadata": {"name": name}, "spec": {}}, f"vera makes the queue {name}")


def _vera_submits(desk: Desk) -> Request:
    body = job(desk, [task(desk)])
    return create("vera", JOBS, body, f"vera submits {name_of(body)}")


def _vera_evicts(desk: Desk) -> Request | None:
    pod = desk.any(PODS, lambda each: pod_phase(each) == "Running")
    if pod is None:
        return None
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name_of(pod)}}
    where, words = path_of(PODS, pod, "eviction"), f"vera evicts {name_of(pod)}"
    return Request(actor="vera", method="POST", path=where, body=body, wish=words)


@wish(0.4, meant="refused")
def touch_what_is_anothers(desk: Desk) -> Request | None:
    """A submitter and somebody else's job."""
    found = desk.any(JOBS, lambda each: creator_of(each) in SUBMITTERS)
    if found is None:
        return None
    who = next(name for name in SUBMITTERS if name != creator_of(found))
    if desk.chance(0.5):
        return delete(who, JOBS, found, f"{who} deletes {name_of(found)}, which is another's")
    change = {"metadata": {"labels": {"note": who}}}
    return patch(who, JOBS, found, change, f"{who} labels {name_of(found)}, which is another's")


@wish(0.3, meant="refused")
def reach_too_high(desk: Desk) -> Request | None:
    """A submitter who binds a pod, writes a status, or lifts a quota."""
    acts = (_bind, _declare_completed, _lift_a_quota, _make_a_namespace)
    return desk.one(acts)(desk)


def _bind(desk: Desk) -> Request | None:
    pod, node = desk.any(PODS, lambda each: not each["spec"].get("nodeName")), desk.any(NODES)
    if pod is None or node is None:
        return None
    target = {"apiVersion": "v1", "kind": "Node", "name": name_of(node)}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name_of(pod)}, "target": target}
    words = f"alice binds {name_of(pod)} to {name_of(node)}"
    return Request(actor="alice", method="POST", path=path_of(PODS, pod, "binding"), body=body, wish=words)


def _declare_completed(desk: Desk) -> Request | None:
    found = desk.any(JOBS, is_unfinished)
    if found is None:
        return None
    status = {**(found.get("status") or {}), "state": {"phase": "Completed"}}
    words = f"alice says that {name_of(found)}, which is {phase_of(found)}, has completed"
    where, body = path_of(JOBS, found, "status"), {**found, "status": status}
    return Request(actor="alice", method="PUT", path=where, body=body, wish=words)


def _lift_a_quota(desk: Desk) -> Request | None:
    quota = desk.any(RESOURCE_QUOTAS)
    words = "alice deletes the quota"
    return None if quota is None else delete("alice", RESOURCE_QUOTAS, quota, f"{words} {name_of(quota)}")


def _make_a_namespace(desk: Desk) -> Request:
    name = desk.name("n")
    return create("bob", NAMESPACES, {"metadata": {"name": name}}, f"bob makes the namespace {name}")
