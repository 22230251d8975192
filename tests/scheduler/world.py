"""Objects for the scheduler's tests, and a world in which its decisions come true.

A situation may be a text, `World("node n1 3; group g 3x1")`: objects, each a kind, a name, and what matters of it.

    node n1 8 pods:2 zone=a !gpu   8 CPUs (without a number 4), 2 pods, a label, a taint; also `notready`, `cordoned`
    queue a 10 parent=root keeps=2 at most 10 CPUs, of which 2 are guaranteed; fields of its spec; `Closed`, `Closing`
    group g 2/3x4 queue=a high     g-0 to g-2 of 4 CPUs wait, 2 of them (without `2/` all) start together; a priority
    group g 2x1 ?zone=a            they select nodes with a label
    group g 2x1 @n1,n2             they run there (`@n1`: both on n1)
    group g 10 ago=300             it has no pods yet, asks to be let in with 10 CPUs, and was made 300 s before
    group g 2x1 @n1 +app=x ready   with a label; also cooldown=60s started=30 (seconds ago), jdb-min-available=1
    group g 2x1 @n1 estimate=1h    it says how long it runs; also since=300 (seconds ago)
    group g 2x1 ~preemptable=false owned   an annotation volcano.sh/preemptable (also of a pod); its pods have a controller
    group g 2x1 topology=hard/2    in one HyperNode of a tier, by number or by name, if there is one
    pod x 2 gpu:1 app=x @n1        a pod of no group (or of `group=g`, `scheduler=s`) that runs; also `Failed`, `gated`
    budget b minAvailable=4 +app=x for pods with a label

`n1..3` are three objects, `conf actions: allocate` is a configuration. `-pod x` removes objects, `gone` those that
were asked to end. Without a queue there is `default`. `World.placed()` says what came of it: `g n1 n1, h n2`. Stories
go on line by line and are told in tests/golden/scheduler/stories.txt (`Story`).
"""

from __future__ import annotations

import json
import re
from typing import Any

from cluster.store import Delete, strategy
from kube import resources, usage
from kube.meta import timestamp
from kube.usage import ESTIMATE_ANNOTATION
from proof.harness.change import Change
from scheduler.cycle.cycle import schedule
from scheduler.engine.message import people
from scheduler.snapshot.snapshot import Snapshot
from scheduler.writes import groups_of

START = 1_767_225_600_000  # 2026-01-01T00:00:00Z, when most objects are made: nobody has waited long


def node(name, cpu="4", memory="8Gi", pods=10, *, labels=None, taints=None, ready=True, unschedulable=False, **more):
    return resources.NODES, {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": taints or [], "unschedulable": unschedulable},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": str(pods), **more},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def queue(name="default", capability=None, parent="", state="Open", **spec):
    return resources.QUEUES, {
        "metadata": {"name": name},
        "spec": {"capability": capability or {}, "parent": parent, **spec},
        "status": {"state": state},
    }


def keeping(cpu):
    """Return the part of a queue's spec by which so much is kept for it."""
    return {"guarantee": {"resource": {"cpu": str(cpu)}}, "deserved": {"cpu": str(cpu)}}


def group(name="g", minimum=1, *, queue="default", phase="Inqueue", created="2026-01-01T00:00:00Z", **spec):
    return resources.POD_GROUPS, {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": created},
        "spec": {"minMember": minimum, "queue": queue, **spec},
        "status": {"phase": phase} if phase else {},
    }


def pod(name, group="g", cpu="1", *, phase="Pending", node="", role="", requests=None, scheduler="volcano", **spec):
    annotations = {"scheduling.k8s.io/group-name": group} if group else {}
    if role:
        annotations["volcano.sh/task-spec"] = role
    wanted = {"cpu": cpu, **(requests or {})} if cpu else dict(requests or {})
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "ns",
        "uid": f"uid-{name}",
        "annotations": annotations,
        "creationTimestamp": spec.pop("created", "2026-01-01T00:00:00Z"),
    }
    if labels := spec.pop("labels", None):
        metadata["labels"] = labels
    if (deleted := spec.pop("deleted", "")) != "":
        metadata["deletionTimestamp"] = deleted
    inner = {"schedulerName": scheduler, "containers": [{"name": "c", "resources": {"requests": wanted}}], **spec}
    if node:
        inner["nodeName"] = node
    return resources.PODS, {"metadata": metadata, "spec": inner, "status": {"phase": phase} if phase else {}}


OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "g", "uid": "u-job", "controller": True}


def made(name, *arguments, **spec):
    """A pod that its controller would make again."""
    kind, found = pod(name, *arguments, **spec)
    found["metadata"]["ownerReferences"] = [OWNER]
    return kind, found


def namespace(name="ns", **labels):
    return resources.NAMESPACES, {"metadata": {"name": name, "labels": labels}}


def priority_class(name, value, **more):
    return resources.PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value, **more}


def configuration(text, *, key="volcano-scheduler.conf"):
    """The ConfigMap by which the scheduler is configured."""
    metadata = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
    return resources.CONFIGMAPS, {"metadata": metadata, "data": {key: text}}


NAMED = {"pod": resources.PODS, "group": resources.POD_GROUPS, "node": resources.NODES, "queue": resources.QUEUES}
CLASSES = {"low": -5, "high": 10}


def situation(text):
    """Return the objects of a text."""
    for word in CLASSES.keys() & set(text.replace(";", " ").split()):
        yield priority_class(word, CLASSES[word])
    for clause in filter(str.strip, text.split(";")):
        if clause.split()[0] == "conf":
            yield configuration(f"{{{clause.strip()[5:]}}}")
            continue
        kind, names, *words = clause.split()
        read, states = READERS[kind]
        parts = Parts(words)
        assert not set(parts.states) - set(states), clause
        for name in _names(names):
            yield from read(name, parts)


def _names(text):
    """Return `n1`, `n2` and `n3` of `n1..3`."""
    if not (several := re.fullmatch(r"(.*?)(\d+)\.\.(\d+)", text)):
        return [text]
    name, first, last = several.groups()
    return [f"{name}{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]


class Parts:
    """What a text says of an object, by how each word looks."""

    def __init__(self, words):
        self.size, self.places, self.states, self.cooling = "", [], [], {}
        self.fields, self.amounts, self.selector, self.labels, self.taints = {}, {}, {}, {}, []
        self.annotations = {}
        for word in words:
            key, _, value = word[1:].partition("=")
            match word[0]:
                case "@":
                    self.places = word[1:].split(",")
                case "?":
                    self.selector[key] = value
                case "+":
                    self.labels[key] = value
                case "~":
                    self.annotations[f"volcano.sh/{key}"] = value
                case "!":
                    self.taints.append({"key": key, "value": value, "effect": "NoSchedule"})
                case _:
                    self._plain(word)

    def _plain(self, word):
        if "=" in word or ":" in word:
            key, sign, value = re.split("([=:])", word, maxsplit=1)
            (self.fields if sign == "=" else self.amounts)[key] = value
        elif word[0].isdigit():
            self.size = word
        else:
            self.states.append(word)

    def spec(self):
        """Return the fields with values that are no texts."""
        words = {"true": True, "false": False}
        return {name: int(one) if one.isdigit() else words.get(one, one) for name, one in self.fields.items()}

    def needs(self):
        return {**({"cpu": self.size} if self.size else {}), **self.amounts}


def _node(name, of):
    flags = {"ready": "notready" not in of.states, "unschedulable": "cordoned" in of.states}
    yield node(name, of.size or "4", labels=of.fields, taints=of.taints, **flags, **of.amounts)


def _queue(name, of):
    spec = of.spec() | ({"deserved": {"cpu": of.fields["deserved"]}} if "deserved" in of.fields else {})
    spec |= keeping(spec.pop("keeps")) if "keeps" in spec else {}
    yield queue(name, of.needs(), state=of.states[0] if of.states else "Open", **spec)


def _group(name, of):
    classes = [each for each in of.states if each in CLASSES]
    spec = of.spec() | ({"priorityClassName": classes[0]} if classes else {})
    made = timestamp(START - 1000 * spec.pop("ago", 0))
    spec = {"created": f"{spec.pop('created')}T00:00:00Z" if "created" in spec else made, **spec}
    spec |= {"networkTopology": _topology(spec.pop("topology"))} if "topology" in spec else {}
    own = {f"volcano.sh/{key}": str(spec.pop(key)) for key in [*spec] if key.startswith("jdb-")} | of.annotations
    own |= {ESTIMATE_ANNOTATION: spec.pop("estimate")} if "estimate" in spec else {}
    since = timestamp(START - 1000 * spec.pop("since", 0))
    of.cooling = {key: spec.pop(key) for key in ("cooldown", "started") if key in spec}
    size = re.fullmatch(r"(?:(\d+)/)?(\d+)x(\w+)", of.size)
    if not size:
        needs = {"minResources": of.needs()} if of.needs() else {}
        yield group(name, **{"phase": "Pending", **needs, **spec})
        return
    minimum, count, cpu = size.groups()
    kind, one = group(name, int(minimum or count), **{"phase": "Running" if of.places else "Inqueue", **spec})
    one["metadata"] |= {"annotations": own} if own else {}
    if of.places and ESTIMATE_ANNOTATION in own:
        runs = {"type": "Scheduled", "status": "True", "reason": "r", "message": "", "lastTransitionTime": since}
        one["status"]["conditions"] = [runs]
    yield kind, one
    for number in range(int(count)):
        place = of.places[number % len(of.places)] if of.places else ""
        phase, labels = "Running" if place else "Pending", dict(of.labels)
        yield _made_pod(f"{name}-{number}", name, cpu, of, phase, place, created=made, labels=labels)


def _topology(text):
    mode, _, highest = text.partition("/")
    tier = {"highestTierAllowed": int(highest)} if highest.isdigit() else {"highestTierName": highest}
    return {"mode": mode, **(tier if highest else {})}


def _pod(name, of):
    labels = dict(of.fields)
    place = of.places[0] if of.places else ""
    phase = next((each for each in of.states if each.istitle()), "Running" if place else "Pending")
    owner, scheduler = labels.pop("group", ""), labels.pop("scheduler", "volcano")
    of.cooling = {"cooldown": labels.pop("cooldown")} if "cooldown" in labels else {}
    gates = {"schedulingGates": [{"name": "hold"}]} if "gated" in of.states else {}
    kind, one = _made_pod(name, owner, of.size or "1", of, phase, place, labels=labels, scheduler=scheduler, **gates)
    one["metadata"]["annotations"] |= of.annotations
    yield kind, one


def _made_pod(name, owner, cpu, of, phase, place, **more):
    selector = {"nodeSelector": of.selector} if of.selector else {}
    kind, one = pod(name, owner, cpu, requests=of.amounts, phase=phase, node=place, **selector, **more)
    if "owned" in of.states:
        one["metadata"]["ownerReferences"] = [OWNER]
    if "ready" in of.states:
        one["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    if "cooldown" in of.cooling:
        since = timestamp(START - 1000 * of.cooling.get("started", 0))
        one["metadata"]["annotations"]["volcano.sh/cooldown-time"] = of.cooling["cooldown"]
        one["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": since}]
    return kind, one


def _budget(name, of):
    spec = {"selector": {"matchLabels": of.labels}, **of.spec()}
    yield resources.DISRUPTION_BUDGETS, {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


READERS = {
    "node": (_node, {"notready", "cordoned"}),
    "queue": (_queue, {"Closed", "Closing"}),
    "group": (_group, {*CLASSES, "ready", "owned"}),
    "pod": (_pod, {"Pending", "Running", "Succeeded", "Failed", "gated", "ready", "owned"}),
    "budget": (_budget, ()),
}


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
        if isinstance(part, str) and part.strip() == "gone":
            self.gone()
            return
        if isinstance(part, str) and part.strip().startswith("-"):
            kind, names = part.strip(" -").split()
            for name in _names(names):
                self.remove(NAMED[kind], name)
            return
        for resource, obj in situation(part) if isinstance(part, str) else [part]:
            metadata = obj["metadata"]
            key = (resource.id, metadata.get("namespace", ""), metadata["name"])
            verb = "MODIFIED" if key in self.objects else "ADDED"
            self.objects[key] = obj
            self.snapshot.apply(self._change(key, verb, obj))

    def remove(self, resource, name, namespace="ns") -> None:
        key = (resource.id, namespace if resource.namespaced else "", name)
        self.snapshot.apply(self._change(key, "DELETED", self.objects.pop(key)))

    def cycle(self, seconds=0):
        """Schedule once and do what was decided; return the decisions."""
        self.now += int(seconds * 1000)
        decisions = schedule(self.snapshot, self.now)
        self.snapshot.settled(decisions.said)
        for some in groups_of(decisions, self.now):
            for write in some.writes:
                self.writes += 1
                self._do(write)
        return decisions

    def end(self, name):
        """Ask a pod to end; one on a node stays until `gone`."""
        obj = json.loads(json.dumps(self.get(resources.PODS, name)))
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

    def status(self, name="g"):
        return self.get(resources.POD_GROUPS, name).get("status", {})

    def condition(self, name="g", kind="Unschedulable"):
        return next((c for c in self.status(name).get("conditions", ()) if c["type"] == kind), None)

    def told(self, name="g") -> str:
        """Return in words why a group waits; "" where it does not."""
        condition = self.condition(name)
        return people(condition["message"]) if condition and condition["status"] == "True" else ""

    def reason(self, name="g") -> str:
        """Return in one word why a group waits; "" where it does not."""
        condition = self.condition(name)
        return condition["reason"] if condition and condition["status"] == "True" else ""

    def says(self, name) -> str:
        """Return in words why a pod waits."""
        return people(self.get(resources.PODS, name)["status"]["conditions"][0]["message"])

    def phase(self, name="g") -> str:
        return self.status(name).get("phase", "")

    def inside(self) -> set[str]:
        """Return the groups that were let in and do not run."""
        groups = [key[2] for key in self.objects if key[0] == resources.POD_GROUPS.id]
        return {name for name in groups if self.status(name).get("phase") == "Inqueue"}

    def where(self):
        """Return the node of each bound pod."""
        return {key[2]: node_of(obj) for key, obj in self.objects.items() if key[0] == "pods" and node_of(obj)}

    def placed(self) -> str:
        """Return the nodes that cycles found for the pods of each group."""
        groups: dict[str, list[str]] = {}
        for name, place in sorted(self.bound.items()):
            groups.setdefault(name.rpartition("-")[0] or name, []).append(place)
        return ", ".join(" ".join([name, *sorted(places)]) for name, places in groups.items())

    def rebuilt(self) -> Snapshot:
        fresh = Snapshot()
        for key, obj in reversed(self.objects.items()):
            fresh.apply(self._change(key, "ADDED", obj))
        return fresh

    def _do(self, write) -> None:
        resource = write.resource
        if isinstance(write, Delete):
            self.end(write.name)
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


class Story:
    """A world to which a line of text after the other is put; then comes a cycle, `after 11` seconds if it says so."""

    def __init__(self):
        self.world, self.shown = World(), []

    def tell(self, line):
        """Return what is new of groups, the pods that are told something else or have to end, and events."""
        *clauses, last = line.split(";")
        seconds = float(last.split()[1]) if last.strip().startswith("after ") else 0
        begun, written = len(self.world.events), self.world.writes
        self.world.put(*clauses, *([] if seconds else [last]))
        if not self.shown and not any(key[0] == resources.QUEUES.id for key in self.world.objects):
            self.world.put(queue())
        wake = self.world.cycle(seconds).wake
        known, self.shown = self.shown, [*self._groups()]
        new = [each for each in self.shown if each not in known]
        events = [f"event {each['reason']} of {each['involvedObject']['name']}" for each in self.world.events[begun:]]
        said = [*new, *self._pods(), *events, *([] if self.world.writes > written else ["nothing is written"])]
        return said if wake is None else [*said, f"looks again after {(wake - self.world.now) / 1000:g} s"]

    def _names(self, resource):
        return sorted(name for kind, _, name in self.world.objects if kind == resource.id)

    def _groups(self):
        world = self.world
        for name in self._names(resources.POD_GROUPS):
            places = sorted(at for pod, at in world.where().items() if self._group_of(pod) == name)
            waits = f": {world.reason(name)}, {world.told(name)}" if world.told(name) else ""
            counts = {each: world.status(name)[each] for each in COUNTED if world.status(name).get(each)}
            counted = "".join(f", {count} {each}" for each, count in counts.items())
            yield " ".join([name, world.phase(name), *places]) + counted + waits

    def _pods(self):
        world, told = self.world, {self.world.told(name) for name in self._names(resources.POD_GROUPS)}
        for name in self._names(resources.PODS):
            waits = name not in world.where() and world.get(resources.PODS, name)["status"].get("conditions")
            if waits and world.says(name) not in told:
                yield f"{name}: {world.says(name)}"
        yield from (f"{name} has to end" for name in world.going())

    def _group_of(self, name):
        metadata = self.world.get(resources.PODS, name)["metadata"]
        return metadata.get("annotations", {}).get("scheduling.k8s.io/group-name")
