"""Writing histories by hand: rows of a log, each with as much of an object as matters."""

from __future__ import annotations

import msgspec

from cluster.store import Change
from proof.invariants.views import COMMANDS, EVENTS, GROUPS, JOBS, NAMESPACES, NODES, PODS, QUEUES, QUOTAS

AT = 1_800_000_000_000
WHOLE = (NODES, QUEUES, NAMESPACES)  # kinds that lie in no namespace


class Log:
    """A log that grows row by row; what an object was is what it stays, but for what is said."""

    def __init__(self):
        self.changes = []
        self.at = AT
        self._objects = {}

    def put(self, kind, name, *, uid="", meta=None, **parts):
        """Write an object, new or changed; `meta` and `parts` are laid over what it was."""
        old = self._objects.get((kind, name))
        new = _over(old or {}, {"metadata": {"uid": uid or f"uid-{kind}-{name}", **(meta or {})}, **parts})
        self._objects[kind, name] = new
        return self._write("MODIFIED" if old else "ADDED", kind, name, new)

    def gone(self, kind, name):
        """Write that an object is gone."""
        return self._write("DELETED", kind, name, self._objects.pop((kind, name)))

    def row(self, verb, kind, name, uid="u", revision=None, **meta):
        """Write a row that may be wrong."""
        obj = {"metadata": {"uid": uid, **meta}}
        self._objects[kind, name] = obj
        return self._write(verb, kind, name, obj, revision)

    def wait(self, ms):
        """Let time pass."""
        self.at += ms
        return self

    def _write(self, verb, kind, name, obj, revision=None):
        revision = revision or len(self.changes) + 1
        version = {"resourceVersion": obj["metadata"].get("resourceVersion", str(revision))}
        body = msgspec.json.encode({**obj, "metadata": {"name": name, **obj["metadata"], **version}})
        namespace = "" if kind in WHOLE else "d"
        uid = obj["metadata"]["uid"]
        self.changes.append(Change(revision, kind, namespace, name, uid, verb, self.at, body))
        return self

    # Objects that most histories need

    def node(self, name="n", *, cpu="4", ready=True, **parts):
        conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
        offers = {"cpu": cpu, "pods": "10"}
        return self.put(NODES, name, status={"allocatable": offers, "conditions": conditions}, **parts)

    def pod(
        self,
        name="p",
        *,
        group="",
        cpu="1",
        job="",
        node="",
        phase="",
        deleted="",
        status=None,
        role="main",
        **spec,
    ):
        """Write a pod; a node and a phase that are not said stay as they were."""
        notes = {"volcano.sh/task-spec": role} | ({"scheduling.k8s.io/group-name": group} if group else {})
        meta = {"annotations": notes}
        if job:
            meta["ownerReferences"] = [_owner("Job", job)]
        if deleted:
            meta["deletionTimestamp"] = deleted
        spec["containers"] = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
        if node:
            spec["nodeName"] = node
        told = {**(status or {}), **({"phase": phase} if phase else {})}
        return self.put(PODS, name, meta=meta, spec=spec, **({"status": told} if told else {}))

    def group(
        self, name="g", minimum=1, *, phase="Inqueue", queue="default", meta=None, told="", reason="", kept="", roles=None, asks=None
    ):  # fmt: skip
        condition = {"type": "Unschedulable", "status": "True", "message": told, "reason": reason}
        conditions = [condition] if told else []
        if kept:
            conditions.append({"type": "Reserved", "status": "True", "reason": "RoomKept", "message": kept})
        status = {"phase": phase, "conditions": conditions}
        spec = {
            "minMember": minimum,
            "queue": queue,
            "minTaskMember": roles or {},
            "minResources": asks or {},
        }
        return self.put(GROUPS, name, meta=meta, spec=spec, status=status)

    def job(
        self,
        name="j",
        phase="",
        *,
        replicas=1,
        minimum=1,
        retries=3,
        queue="default",
        policies=(),
        of_task=(),
        **status,
    ):
        task = {"name": "main", "replicas": replicas, "policies": list(of_task)}
        spec = {"tasks": [task], "minAvailable": minimum, "policies": list(policies)}
        spec |= {"maxRetry": retries, "queue": queue}
        state = {"state": {"phase": phase}} if phase else {}
        return self.put(JOBS, name, spec=spec, status={"minAvailable": minimum, **state, **status})

    def queue(
        self, name="q", state="Open", *, wish="", parent="root", capability=None, guarantee=None, **status
    ):
        spec = {"state": wish or state, "parent": parent, "capability": capability or {}}
        spec["guarantee"] = {"resource": guarantee or {}}
        return self.put(QUEUES, name, spec=spec, status={"state": state, **status})

    def quota(self, **hard):
        hard = {name.replace("_", "."): amount for name, amount in hard.items()}
        return self.put(QUOTAS, "quota", spec={"hard": hard})

    def command(self, action, name="j", kind="Job"):
        resource = JOBS if kind == "Job" else QUEUES
        target = {"kind": kind, "name": name, "uid": f"uid-{resource}-{name}"}
        return self.put(COMMANDS, f"{name}-{action}", action=action, target=target)

    def event(self, number, reason, message="", name="j", kind=JOBS):
        about = {"kind": "Job", "name": name, "uid": f"uid-{kind}-{name}"}
        return self.put(EVENTS, f"e{number}", involvedObject=about, reason=reason, message=message)


def _owner(kind, name, **fields):
    return {"kind": kind, "name": name, "uid": f"uid-{JOBS}-{name}", "controller": True, **fields}


def _over(old, new):
    """Lay one object over another; lists and what is no object are replaced."""
    both = {**old, **new}
    return {
        key: _over(old[key], value) if isinstance(value, dict) and isinstance(old.get(key), dict) else value
        for key, value in both.items()
    }
