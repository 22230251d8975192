"""Nodes that report what is not true.

Agents and simulators write into the store of their own process: nobody asks
who they are or what they may. What keeps old reports out are preconditions,
the uid of the pod and the version that was seen; for the rest the others
have to go on with what is said, and who knows better has to say so again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from cluster.store import Change, Group, Patch, Update, Write, store
from kube.errors import ApiError
from kube.kinds.pod import ENDED
from kube.meta import Object
from kube.resources import NODES, PODS
from proof.invariants import Broken
from proof.simulation.people.picture import LogPicture

T = TypeVar("T")
NAME = "old reports change nothing"
REAL = "vm"  # the node whose agent has the truth on disk; simulated nodes have it in the store
REMEMBERED = 5  # versions of a pod
PROCESSORS = ("0", "1", "", "64")  # of a node that says something else than it has; "" is the truth


class Lies:
    """Reports as they are told by somebody who is behind, mistaken or broken; `excuse` hears of revisions that are untrue."""

    def __init__(self, picture: LogPicture, excuse: Callable[[int], None]) -> None:
        self.picture = picture
        self.excuse = excuse
        self.versions: dict[str, deque[Change]] = {}  # the last versions of each pod, by uid
        self.gone: deque[Change] = deque(maxlen=REMEMBERED)

    def take(self, change: Change) -> None:
        """Note a change of a pod."""
        if change.resource != PODS.id:
            return
        if change.verb == "DELETED":
            self.versions.pop(change.uid, None)
            self.gone.append(change)
        else:
            self.versions.setdefault(change.uid, deque(maxlen=REMEMBERED)).append(change)

    def tell(self, what: str, index: int) -> None:
        """Report something; nothing when there is nothing to report on."""
        LIES[what](self, index)

    def stale(self, index: int) -> None:
        """An earlier status of a pod, told after others: the version that it was made from is an old one."""
        self._expect_refusal(_one([each[0] for each in self.versions.values() if len(each) > 1], index))

    def gone_pod(self, index: int) -> None:
        """The status of a pod that is gone, whose name another one may have."""
        self._expect_refusal(_one(list(self.gone), index))

    def twice(self, index: int) -> None:
        """What the store knows already."""
        pod = _one(self._pods(lambda pod: True), index)
        if pod is not None:
            outcome = _commit(_report(pod, pod.get("status")))
            if outcome > int(pod["metadata"]["resourceVersion"]):
                raise Broken(NAME, outcome, _key(pod), "was told twice, and the second time changed it")

    def elsewhere(self, index: int) -> None:
        """A node to which a pod is not bound says that it has ended there."""
        pod = _one(self._pods(lambda pod: pod["spec"].get("nodeName") and _phase(pod) not in ENDED), index)
        if pod is not None:
            reported = {"phase": ENDED[index % 2], "message": "Another node says so."}
            _commit(_report(pod, {**(pod.get("status") or {}), **reported}))

    def again(self, index: int) -> None:
        """The node with processes says that one runs again which has succeeded, as it did before."""
        pod = _one(self._pods(_has_succeeded), index)
        past = [change.object for change in self.versions.get(pod["metadata"]["uid"], ())] if pod else []
        running = next((each for each in past if _phase(each) == "Running"), None)
        if pod is not None and running is not None:
            self.excuse(_commit(_report(pod, running["status"])))

    def resized(self, index: int) -> None:
        """A node offers another number of processors."""
        node = _one(list(self.picture.objects(NODES.id).values()), index)
        if node is not None:
            amount = PROCESSORS[index % len(PROCESSORS)] or node["status"]["capacity"]["cpu"]
            _commit(Patch(NODES, "", _name(node), {"status": {"allocatable": {"cpu": amount}}}, "status"))

    def ready(self, index: int) -> None:
        """A node that is not heard of is called Ready, and its lease is not renewed."""
        nodes = self.picture.objects(NODES.id).values()
        node = _one([each for each in nodes if not any(map(_is_ready, _conditions(each)))], index)
        if node is not None:
            conditions = [{**each, "status": "True"} if each["type"] == "Ready" else each for each in _conditions(node)]
            _commit(Patch(NODES, "", _name(node), {"status": {"conditions": conditions}}, "status"))

    def _pods(self, test: Callable[[Object], object]) -> list[Object]:
        return [pod for pod in self.picture.objects(PODS.id).values() if test(pod)]

    def _expect_refusal(self, change: Change | None) -> None:
        if change is None:
            return
        revision = _commit(_report(change.object, change.object.get("status")))
        if revision:
            raise Broken(NAME, revision, f"{PODS.id}/{change.key}", "took over what was told of an old version")


LIES: dict[str, Callable[[Lies, int], None]] = {
    "stale": Lies.stale,
    "gone": Lies.gone_pod,
    "twice": Lies.twice,
    "elsewhere": Lies.elsewhere,
    "again": Lies.again,
    "resized": Lies.resized,
    "ready": Lies.ready,
}


def _one(found: Sequence[T], index: int) -> T | None:
    return found[index % len(found)] if found else None


def _report(pod: Object, status: Object | None) -> Write:
    """Return what a node writes that has seen a version of a pod (`node.simulator.simulator`)."""
    fields = ("namespace", "name", "uid", "resourceVersion")
    metadata = {field: pod["metadata"][field] for field in fields}
    return Update(PODS, {"metadata": metadata, "status": status}, "status")


def _commit(write: Write) -> int:
    """Return the revision that the object has after a write; 0 when it was refused."""
    outcome = store.commit([Group([write])])[0]
    return 0 if isinstance(outcome, ApiError) else outcome[0].revision


def _has_succeeded(pod: Object) -> bool:
    """Whether a pod of the node with processes has run to its end."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    is_there = pod["spec"].get("nodeName") == REAL and "deletionTimestamp" not in pod["metadata"]
    return is_there and _phase(pod) == "Succeeded" and all("terminated" in each["state"] for each in statuses)


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _key(pod: Object) -> str:
    return f"{PODS.id}/{pod['metadata']['namespace']}/{_name(pod)}"


def _conditions(node: Object) -> list[Object]:
    return (node.get("status") or {}).get("conditions") or []


def _is_ready(condition: Object) -> bool:
    return bool(condition["type"] == "Ready" and condition["status"] == "True")
