"""The index columns by which the store finds objects: one function per kind, which does dict lookups only."""

from __future__ import annotations

from typing import Any

from kube import pod_health, terms
from kube.kinds import core
from kube.meta import Object
from kube.resource import Index
from kube.usage import queue_named

CREATOR_ANNOTATION = "ui.volcano.sh/created-by"
# What a ConfigMap of ours holds; others have no such label.
HOLDS_LABEL = "ui.volcano.sh/holds"
HOLDS_SWEEP = "sweep"
_JOB_PHASES = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended")
_USUAL = ("PodsRunning", "WaitingForPods")  # reasons of jobs that get on
LONGEST_TROUBLE = 64
_NODE_PHASES = {"True": core.NodePhase.READY, "False": core.NodePhase.NOT_READY}


_NOTHING: dict[str, Any] = {}


def _part(obj: Object, key: str) -> dict[str, Any]:
    part = obj.get(key)
    return part if type(part) is dict else _NOTHING


def _common(obj: Object) -> tuple[str, str]:
    """Return the controller's uid and the creator."""
    metadata = _part(obj, "metadata")
    owner = ""
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller"):
            owner = reference.get("uid") or ""
    return owner, _part(metadata, "annotations").get(CREATOR_ANNOTATION) or ""


def plain(obj: Object) -> Index:
    owner, creator = _common(obj)
    return Index(owner=owner, creator=creator)


def by_phase(obj: Object) -> Index:
    owner, creator = _common(obj)
    return Index(_part(obj, "status").get("phase") or "", "", "", owner, creator)


def config_map(obj: Object) -> Index:
    """A config map has no phase: what it holds for us, if anything, stands for it."""
    owner, creator = _common(obj)
    holds = _part(_part(obj, "metadata"), "labels").get(HOLDS_LABEL)
    return Index(HOLDS_SWEEP if holds == HOLDS_SWEEP else "", "", "", owner, creator)


def pod(obj: Object) -> Index:
    """A pod has no queue of its own: `kube.usage` derives it from the pod group."""
    owner, creator = _common(obj)
    status = _part(obj, "status")
    node = _part(obj, "spec").get("nodeName") or ""
    is_ending = bool(_part(obj, "metadata").get("deletionTimestamp"))
    phase = status.get("phase") or ""
    return Index(phase, "", node, owner, creator, _trouble(status, phase, is_ending=is_ending))


def _trouble(status: dict[str, Any], phase: str, *, is_ending: bool) -> str:
    """Return the cause for which a pod does not run although it has its node."""
    trouble = pod_health.trouble(
        phase,
        is_ending=is_ending,
        containers=[_state(each) for each in status.get("containerStatuses") or ()],
        inits=[_state(each) for each in status.get("initContainerStatuses") or ()],
    )
    return trouble.cause.value if trouble else ""


def _state(status: dict[str, Any]) -> pod_health.State:
    state = _part(status, "state")
    waiting = _part(state, "waiting")
    reason, message = waiting.get("reason") or "", waiting.get("message") or ""
    return pod_health.State(state.get("running") is not None, str(reason), str(message))


def job_v1(obj: Object) -> Index:
    """A `batch/v1` Job has no phase: the condition that says most stands for it."""
    owner, creator = _common(obj)
    conditions = _part(obj, "status").get("conditions") or ()
    true = {each.get("type") for each in conditions if each.get("status") == "True"}
    phase = next((name for name in _JOB_PHASES if name in true), "")
    return Index(phase, "", "", owner, creator)


def node(obj: Object) -> Index:
    owner, creator = _common(obj)
    for condition in _part(obj, "status").get("conditions") or ():
        if condition.get("type") == "Ready":
            return Index(
                _NODE_PHASES.get(condition.get("status") or "", core.NodePhase.UNKNOWN).value, "", "", owner, creator
            )
    return Index(core.NodePhase.UNKNOWN.value, "", "", owner, creator)


def event(obj: Object) -> Index:
    """An event is found by what it is about: that is its owner here, though not for the garbage collector."""
    _, creator = _common(obj)
    about = _part(obj, "involvedObject").get("uid") or ""
    return Index(obj.get("type") or "", "", "", about, creator)


def job(obj: Object) -> Index:
    """A job is also found by why it waits or failed, by its labels, and by how its pods ended."""
    owner, creator = _common(obj)
    status = _part(obj, "status")
    phase = _part(status, "state").get("phase") or ""
    queue = queue_named(_part(obj, "spec").get("queue"))
    return Index(phase, queue, "", owner, creator, _cause(status, phase), _terms(obj, status))


def _terms(obj: Object, status: dict[str, Any]) -> str:
    labels, codes = _part(_part(obj, "metadata"), "labels"), status.get("exitCodes")
    if not labels and not codes:
        return ""
    texts = {str(key): str(value) for key, value in labels.items()}
    return terms.join(texts, [code for code in codes or () if type(code) is int])


def _cause(status: dict[str, Any], phase: str) -> str:
    """Return why a job waits or failed; nothing of one that completed or does what every job goes through."""
    reason = _part(status, "state").get("reason") or ""
    if phase == "Completed" or reason in _USUAL:
        return ""
    return str(status.get("waitingReason") or reason)[:LONGEST_TROUBLE]


def job_flow(obj: Object) -> Index:
    owner, creator = _common(obj)
    state = _part(_part(obj, "status"), "state")
    return Index(state.get("phase") or "", "", "", owner, creator)


def cron_job(obj: Object) -> Index:
    """A cron job has no phase: whether it makes jobs stands for it."""
    owner, creator = _common(obj)
    is_suspended = _part(obj, "spec").get("suspend") is True
    return Index("Suspended" if is_suspended else "Scheduled", "", "", owner, creator)


def queue(obj: Object) -> Index:
    """A queue is found by the one above it, as if it were in that; directly below root it may name none."""
    owner, creator = _common(obj)
    parent = _part(obj, "spec").get("parent") or ""
    return Index(_part(obj, "status").get("state") or "", parent, "", owner, creator)


def pod_group(obj: Object) -> Index:
    owner, creator = _common(obj)
    queue = queue_named(_part(obj, "spec").get("queue"))
    return Index(_part(obj, "status").get("phase") or "", queue, "", owner, creator)
