"""Writing histories by hand: rows of a log, each with as much of an object as matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec

from cluster.store import Change
from cluster.store.types import Verb
from kube.meta import Object
from kube.volcano import reserved_room
from kube.volcano.reserved_room import Reservation
from proof.invariants.views import COMMANDS, EVENTS, GROUPS, JOBS, NAMESPACES, NODES, PODS, QUEUES, QUOTAS

AT = 1_800_000_000_000
WHOLE = (NODES, QUEUES, NAMESPACES)  # kinds that lie in no namespace


class Log:
    """A log that grows row by row; what an object was is what it stays, but for what is said."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.at = AT
        self._objects: dict[tuple[str, str], Object] = {}

    def put(self, kind: str, name: str, *, uid: str = "", meta: Object | None = None, **parts: Any) -> Self:
        """Write an object, new or changed; `meta` and `parts` are laid over what it was."""
        old = self._objects.get((kind, name))
        new = _over(old or {}, {"metadata": {"uid": uid or f"uid-{kind}-{name}", **(meta or {})}, **parts})
        self._objects[kind, name] = new
        return self._write("MODIFIED" if old else "ADDED", kind, name, new)

    def gone(self, kind: str, name: str) -> Self:
        """Write that an object is gone."""
        return self._write("DELETED", kind, name, self._objects.pop((kind, name)))

    def row(self, verb: Verb, kind: str, name: str, uid: str = "u", revision: int | None = None, **meta: Any) -> Self:
        """Write a row that may be wrong."""
        obj = {"metadata": {"uid": uid, **meta}}
        self._objects[kind, name] = obj
        return self._write(verb, kind, name, obj, revision)

    def wait(self, ms: int) -> Self:
        """Let time pass."""
        self.at += ms
        return self

    def _write(self, verb: Verb, kind: str, name: str, obj: Object, revision: int | None = None) -> Self:
        revision = revision or len(self.changes) + 1
        version = {"resourceVersion": obj["metadata"].get("resourceVersion", str(revision))}
        body = msgspec.json.encode({**obj, "metadata": {"name": name, **obj["metadata"], **version}})
        namespace = "" if kind in WHOLE else "d"
        uid = obj["metadata"]["uid"]
        self.changes.append(Change(revision, kind, namespace, name, uid, verb, self.at, body))
        return self

    # Objects that most histories need

    def node(self, name: str = "n", *, cpu: str = "4", ready: bool = True, **parts: Any) -> Self:
        conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
        offers = {"cpu": cpu, "pods": "10"}
        return self.put(NODES, name, status={"allocatable": offers, "conditions": conditions}, **parts)

    def pod(
        self,
        name: str = "p",
        *,
        group: str = "",
        cpu: str = "1",
        job: str = "",
        node: str = "",
        phase: str = "",
        deleted: str = "",
        status: Object | None = None,
        role: str = "main",
        **spec: Any,
    ) -> Self:
        """Write a pod; a node and a phase that are not said stay as they were."""
        notes = {"volcano.sh/task-spec": role} | ({"scheduling.k8s.io/group-name": group} if group else {})
        meta: Object = {"annotations": notes}
        if job:
            meta["ownerReferences"] = [_owner("Job", job)]
        if deleted:
            meta["deletionTimestamp"] = deleted
        spec["containers"] = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
        if node:
            spec["nodeName"] = node
        full_status = {**(status or {}), **({"phase": phase} if phase else {})}
        if not full_status:
            return self.put(PODS, name, meta=meta, spec=spec)
        return self.put(PODS, name, meta=meta, spec=spec, status=full_status)

    def group(
        self, name: str="g", minimum: int=1, *, phase: str="Inqueue", queue: str="default", meta: Object | None=None, message: str="", reason: str="", reservation: Reservation | None=None, roles: Mapping[str, int] | None=None, asks: Mapping[str, Any] | None=None
    ) -> Self:  # fmt: skip
        condition = {"type": "Unschedulable", "status": "True", "message": message, "reason": reason}
        conditions = [condition] if message else []
        if reservation:
            of_both = {"status": "True", "reason": "RoomKept"}
            conditions.append(
                {"type": reserved_room.CONDITION, "message": reserved_room.message(reservation), **of_both}
            )
            conditions.append({"type": reserved_room.DATA, "message": reserved_room.data(reservation), **of_both})
        status = {"phase": phase, "conditions": conditions}
        spec = {"minMember": minimum, "queue": queue, "minTaskMember": roles or {}, "minResources": asks or {}}
        return self.put(GROUPS, name, meta=meta, spec=spec, status=status)

    def job(
        self,
        name: str = "j",
        phase: str = "",
        *,
        replicas: int = 1,
        minimum: int = 1,
        retries: int = 3,
        queue: str = "default",
        policies: Sequence[Object] = (),
        of_task: Sequence[Object] = (),
        **status: Any,
    ) -> Self:
        task = {"name": "main", "replicas": replicas, "policies": list(of_task)}
        spec = {"tasks": [task], "minAvailable": minimum, "policies": list(policies)}
        spec |= {"maxRetry": retries, "queue": queue}
        state = {"state": {"phase": phase}} if phase else {}
        return self.put(JOBS, name, spec=spec, status={"minAvailable": minimum, **state, **status})

    def queue(
        self,
        name: str = "q",
        state: str = "Open",
        *,
        wish: str = "",
        parent: str = "root",
        capability: Mapping[str, Any] | None = None,
        guarantee: Mapping[str, Any] | None = None,
        **status: Any,
    ) -> Self:
        spec = {"state": wish or state, "parent": parent, "capability": capability or {}}
        spec["guarantee"] = {"resource": guarantee or {}}
        return self.put(QUEUES, name, spec=spec, status={"state": state, **status})

    def quota(self, **hard: Any) -> Self:
        hard = {name.replace("_", "."): amount for name, amount in hard.items()}
        return self.put(QUOTAS, "quota", spec={"hard": hard})

    def command(self, action: str, name: str = "j", kind: str = "Job") -> Self:
        resource = JOBS if kind == "Job" else QUEUES
        target = {"kind": kind, "name": name, "uid": f"uid-{resource}-{name}"}
        return self.put(COMMANDS, f"{name}-{action}", action=action, target=target)

    def event(self, number: int, reason: str, message: str = "", name: str = "j", kind: str = JOBS) -> Self:
        about = {"kind": "Job", "name": name, "uid": f"uid-{kind}-{name}"}
        return self.put(EVENTS, f"e{number}", involvedObject=about, reason=reason, message=message)


def _owner(kind: str, name: str, **fields: Any) -> Object:
    return {"kind": kind, "name": name, "uid": f"uid-{JOBS}-{name}", "controller": True, **fields}


def _over(old: Object, new: Object) -> Object:
    """Lay one object over another; lists and what is no object are replaced."""
    both = {**old, **new}
    return {
        key: _over(old[key], value) if isinstance(value, dict) and isinstance(old.get(key), dict) else value
        for key, value in both.items()
    }
