"""A world in which the scheduler's decisions come true, and stories about it, told as tests/scheduler/notation.py says."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import Any

import msgspec

from cluster.store import Delete, strategy
from kube import resources, usage
from kube.meta import now_text
from kube.volcano.reserved_room import CONDITION as KEPT
from kube.volcano.reserved_room import RELEASED
from kube.volcano.topology import ALLOCATED
from proof.harness.change import Change
from scheduler.cycle.cycle import schedule
from scheduler.reasons import message
from scheduler.records.reading import GroupCondition
from scheduler.snapshot.snapshot import Snapshot
from scheduler.writes import groups_of
from tests.scheduler.notation import (
    NAMED,
    START,
    Parts,
    configuration,
    group,
    keeping,
    made,
    names_of,
    namespace,
    node,
    pod,
    priority_class,
    queue,
    ranges,
    situation,
)  # fmt: skip

__all__ = [
    "START", "Outcome", "Story", "World", "configuration", "group", "keeping", "made", "namespace", "node", "node_of", "pod", "priority_class", "queue",
    "situation",
]  # fmt: skip


def node_of(obj):
    spec = obj.get("spec")
    return spec.get("nodeName") if isinstance(spec, dict) else None


class World:
    """Objects, a snapshot that follows them, and a clock. Writes are done by the store's own rules."""

    def __init__(self, *objects, schedulers=usage.VOLCANO_ALONE, heeds_claims=False) -> None:
        self.now = START
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.snapshot = Snapshot(schedulers, heeds_claims=heeds_claims)
        self.bound: dict[str, str] = {}  # by cycles: pod → node
        self.events: list[dict[str, Any]] = []
        self.writes = 0
        self.put(*objects)
        if str in map(type, objects) and resources.QUEUES.id not in {key[0] for key in self.objects}:
            self.put(queue())

    def put(self, *objects) -> World:
        """Put objects, also those of situations in text."""
        for each in objects:
            for part in each.split(";") if isinstance(each, str) else [each]:
                self._put(part)
        return self

    def _put(self, part) -> None:
        """Put an object, or what a clause of a text says."""
        verb, *words = part.split() if isinstance(part, str) and part.strip() else ("",)
        if verb in self.VERBS:
            self.VERBS[verb](self, *words)
            return
        if verb.startswith("-"):
            for name in names_of(words[0]):
                self.remove(NAMED[verb[1:]], name)
            return
        for resource, obj in situation(part) if isinstance(part, str) else [part]:
            metadata = obj["metadata"]
            key = (resource.id, metadata.get("namespace", ""), metadata["name"])
            if (
                resource is resources.POD_GROUPS
                and key in self.objects
                and isinstance(part, str)
                and "phase=" not in part
            ):
                obj["status"] = self.objects[key]["status"]  # a change of what is asked for
            verb = "MODIFIED" if key in self.objects else "ADDED"
            self.objects[key] = obj
            self.snapshot.apply(self._change(key, verb, obj))

    def remove(self, resource, name, namespace="ns") -> None:
        namespace, name = name.split("/") if "/" in name else (namespace, name)
        key = (resource.id, namespace if resource.namespaced else "", name)
        self.snapshot.apply(self._change(key, "DELETED", self.objects.pop(key)))

    def cycle(self, seconds=0):
        """Schedule once and do what was decided; return the decisions."""
        self.now += int(seconds * 1000)
        decisions = schedule(self.snapshot, self.now)
        self.snapshot.groups.settled(decisions.reported)
        for some in groups_of(decisions, self.now):
            for write in some.writes:
                self.writes += 1
                self._do(write)
        return decisions

    def end(self, name, namespace="ns"):
        """Ask a pod to end; one on a node stays until `gone`."""
        obj = json.loads(json.dumps(self.objects[resources.PODS.id, namespace, name]))
        obj["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
        self.put((resources.PODS, obj))

    def going(self):
        """Return the names of pods that were asked to end."""
        return sorted(key[2] for key, obj in self.objects.items() if "deletionTimestamp" in obj["metadata"])

    def gone(self, *names):
        """Let pods end that were asked to; without names all of them."""
        for name in names or self.going():
            self.remove(resources.PODS, name)

    def get(self, resource, name):
        return self.objects[resource.id, "ns" if resource.namespaced else "", name]

    def release(self, name, at=""):
        """Give back what is kept for a group, as people do; at some other time, if one is stated."""
        made = json.loads(json.dumps(self.get(resources.POD_GROUPS, name)))
        made["metadata"].setdefault("annotations", {})[RELEASED] = at or now_text(self.now)
        self.put((resources.POD_GROUPS, made))

    def restart(self):
        """Let another process go on, which knows nothing but the objects."""
        self.snapshot = self.rebuilt()

    def load(self, name, *words):
        """Note the figures of an agent, which were measured some seconds ago."""
        of = Parts(words, {})
        machine = [int(float(of.amounts["cpu"]) * 1e9), int(float(of.amounts.get("gi", 0)) * (1 << 30)), 15_000]
        at = self.now - 1000 * of.spec().get("ago", 0)
        self.snapshot.loads.note({"node": name, "at": at, "machine": machine, "containers": []})

    def claims(self, _):
        """`claims heeded`, before anything else: volumes are made by others, as on a cluster with nodes of its own."""
        self.snapshot = Snapshot(heeds_claims=True)

    VERBS = MappingProxyType(
        {"gone": gone, "end": end, "release": release, "restart": restart, "load": load, "claims": claims}
    )

    def status(self, name="g"):
        return self.get(resources.POD_GROUPS, name).get("status", {})

    def condition(self, name="g", kind="Unschedulable"):
        return next((c for c in self.status(name).get("conditions", ()) if c["type"] == kind), None)

    def message_of(self, name="g") -> str:
        """Return in words why a group waits; "" where it does not."""
        condition = self.condition(name)
        waits = condition and condition["status"] == "True"
        return message.parted(condition["message"], self.cause(name))[0] if waits else ""

    def cause(self, name="g"):
        """Return what a group, or pods beyond its minimum, waits for; None where nothing does."""
        return message.cause_of(msgspec.convert(self.status(name).get("conditions", ()), list[GroupCondition]))

    def reason(self, name="g") -> str:
        """Return in one word why a group waits; "" where it does not."""
        condition = self.condition(name)
        return condition["reason"] if condition and condition["status"] == "True" else ""

    def says(self, name) -> str:
        """Return in words why a pod waits."""
        return self.get(resources.PODS, name)["status"]["conditions"][0]["message"]

    def phase(self, name="g") -> str:
        return self.status(name).get("phase", "")

    def inside(self) -> set[str]:
        """Return the groups that were let in and do not run."""
        groups = [key[2] for key in self.objects if key[0] == resources.POD_GROUPS.id]
        return {name for name in groups if self.status(name).get("phase") == "Inqueue"}

    def inside_of(self, name):
        """Return the HyperNode in which a group is; "" where it is in none."""
        return self.get(resources.POD_GROUPS, name)["metadata"].get("annotations", {}).get(ALLOCATED, "")

    def where(self):
        """Return the node of each bound pod."""
        return {key[2]: node_of(obj) for key, obj in self.objects.items() if key[0] == "pods" and node_of(obj)}

    def placed(self) -> str:
        """Return the nodes that cycles found for the pods of each group."""
        groups: dict[str, list[str]] = {}
        for name, node_name in sorted(self.bound.items()):
            groups.setdefault(name.rpartition("-")[0] or name, []).append(node_name)
        return ", ".join(" ".join([name, *sorted(places)]) for name, places in groups.items())

    def rebuilt(self) -> Snapshot:
        fresh = Snapshot()
        for key, obj in reversed(self.objects.items()):
            fresh.apply(self._change(key, "ADDED", obj))
        return fresh

    def _do(self, write) -> None:
        resource = write.resource
        if isinstance(write, Delete):
            self.end(write.name, write.namespace)
            return
        if not hasattr(write, "patch"):
            if resource is resources.EVENTS:
                self.events.append(write.object)
            else:
                made = dict(write.object)
                made["metadata"] = {**made["metadata"], "uid": f"uid-{made['metadata']['name']}"}
                self.put((resource, made))
            return
        old = self.objects[resource.id, write.namespace, write.name]
        old["metadata"].setdefault("resourceVersion", "1")
        new = strategy.patched(write, old, self.now)
        if resource is resources.PODS and node_of(new) and not node_of(old):
            self.bound[write.name] = node_of(new)
        self.put((resource, new))

    def _change(self, key, verb, obj):
        return Change(*key, verb, self.now, json.dumps(obj).encode())


COUNTED = ("running", "succeeded", "failed")
LASTS = re.compile(r"(\d+)([dhm])")
SECONDS = {"d": 86400, "h": 3600, "m": 60}


class Story:
    """A world to which a line of text after the other is put; then comes a cycle, `after 11` seconds (`1h30m`) if it says so.

    A line that ends with a semicolon goes on in the next one. What is told of a cycle is all that is new in it.
    """

    world_of = World

    def __init__(self, given=()):
        self.world, self.group_lines = self.world_of(), []
        self.world.put(*given)

    def tell(self, line):
        *clauses, last = line.split(";")
        after = last.split()[1:] if last.strip().startswith("after ") else []
        self.world.put(*clauses, *([] if after else [last]))
        if not last.strip():
            return []
        if not any(key[0] == resources.QUEUES.id for key in self.world.objects):
            self.world.put(queue())
        return self.seen(*map(seconds_of, after))

    def seen(self, seconds=0):
        """Return what is new of groups, the pods that are told something else or have to end, and events."""
        begun, written = len(self.world.events), self.world.writes
        wake = self.world.cycle(seconds).wake
        previous, self.group_lines = self.group_lines, [*self._groups()]
        new = [each for each in self.group_lines if each not in previous]
        events = [*map(_event, self.world.events[begun:])]
        lines = [*new, *self._pods(), *events, *([] if self.world.writes > written else ["nothing is written"])]
        return lines if wake is None else [*lines, f"looks again after {(wake - self.world.now) / 1000:g} s"]

    def names(self, resource):
        return sorted(
            name for kind, namespace, name in self.world.objects if kind == resource.id and namespace in ("", "ns")
        )

    def _groups(self):
        world = self.world
        for name in self.names(resources.POD_GROUPS):
            places = sorted(at for pod, at in world.where().items() if self._group_of(pod) == name)
            waits = f": {world.reason(name)}, {world.message_of(name)}" if world.message_of(name) else ""
            counts = {each: world.status(name)[each] for each in COUNTED if world.status(name).get(each)}
            counted = "".join(f", {count} {each}" for each, count in counts.items())
            inside = [f"in {found}"] if (found := world.inside_of(name)) else []
            yield " ".join([name, world.phase(name), *places, *inside]) + counted + waits
            if condition := world.condition(name, KEPT):
                yield f"{name}, {condition['reason']} {condition.get('message', '')}".rstrip()

    def _pods(self):
        world, messages = self.world, {self.world.message_of(name) for name in self.names(resources.POD_GROUPS)}
        for name in self.names(resources.PODS):
            waits = name not in world.where() and world.get(resources.PODS, name)["status"].get("conditions")
            if waits and world.says(name) not in messages:
                yield f"{name}: {world.says(name)}"
        for name in world.going():
            conditions = world.get(resources.PODS, name)["status"].get("conditions", ())
            why = [each["reason"] for each in conditions if each["type"] == "DisruptionTarget"]
            yield " ".join([name, "has to end", *why])

    def _group_of(self, name):
        found = (
            obj for (kind, _, each), obj in self.world.objects.items() if (kind, each) == (resources.PODS.id, name)
        )
        return next(found)["metadata"].get("annotations", {}).get("scheduling.k8s.io/group-name")


def _event(event):
    about = event["involvedObject"]
    return f"event {event['reason']} of {about['name']}" + (f": {event['message']}" if about["kind"] == "Pod" else "")


class Outcome(Story):
    """A story of which only the outcome is told: who gets which nodes, who has to end, and by one word why others wait."""

    def __init__(self, given=()):
        super().__init__(given)
        self.waiting = {}

    def seen(self, seconds=0):
        before, gone = self.world.bound, set(self.world.going())
        self.world.bound = {}
        self.world.cycle(seconds)
        placed, self.world.bound = self.world.placed(), before | self.world.bound
        ends = ranges(set(self.world.going()) - gone)
        previous, self.waiting = self.waiting, {name: self._why(name) for name in self.names(resources.POD_GROUPS)}
        new = {name: why for name, why in self.waiting.items() if previous.get(name) != why and why != "Running"}
        waits = [f"{ranges(name for name in new if new[name] == why)}: {why}" for why in dict.fromkeys(new.values())]
        return ["; ".join(filter(None, [placed, ends and f"{ends} to end", *waits])) or "nothing new"]

    def _why(self, name):
        """Return why a group waits; of one that does not, in which HyperNode it is, or its phase."""
        if reason := self.world.reason(name):
            return reason
        inside = self.world.inside_of(name)
        return f"in {inside}" if inside else self.world.phase(name).replace("Inqueue", "let in")


def seconds_of(text):
    """Return how many seconds `1h30m` are, or 11."""
    return sum(int(number) * SECONDS[unit] for number, unit in LASTS.findall(text)) or float(text)
