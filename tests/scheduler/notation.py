"""Objects for the scheduler's tests, also by a notation.

A situation may be a text, `World("node n1 3; group g 3x1")`: objects, each a kind, a name, and what matters of it.

    node n1 8 pods:2 zone=a !gpu   8 CPUs (else 4), 2 pods, a label, a taint (`!gpu:NoExecute`); also `notready`, `cordoned`
    queue a 10 parent=root keeps=2 at most 10 CPUs, of which 2 are guaranteed; fields of its spec; `Closed`, `Closing`
    queue a Closing since=60       for 60 seconds; also uses=red,blue and prefers=red, groups of nodes
    group g 2/3x4 queue=a high     g-0 to g-2 of 4 CPUs wait, 2 of them (else all) start together; a priority, `low` or `high`
    group g 2x1 @n1,n2             they run there (`@n1`: both on n1)
    group g 10 ago=300             it has no pods yet, asks to be let in with 10 CPUs, and was made 300 s before
    group g 2x1 @n1 ready          also cooldown=60s started=30 (seconds ago), jdb-min-available=1
    group g 2x1 @n1 estimate=1h    it says how long it runs; also since=300, evicted=600, job=60 (its job was made)
    group g 2x1 ~preemptable=false owned   an annotation volcano.sh/preemptable (also of a pod); its pods have a controller
    group g 2x1 topology=hard/2    in one HyperNode of a tier, by number or by name, if there is one
    group g 4/0x1 subgroups=2/1/hard/1     sub-groups of 2 pods of a partition, at least 1 of them, each in one HyperNode
    group g 3/0x1 minTaskMember=ps:1,w:2   minima of tasks
    pod x 2 gpu:1 app=x @n1        a pod of no group (or of `group=g`, `scheduler=s`) that runs; also `Failed`, `gated`, `going`
    pod g-0 group=g ~task-spec=w partition=1       of a task, in a partition
    budget b minAvailable=4 +app=x for pods with a label
    hypernode rack-a 1 rack=a      of the nodes with a label, or `@n1,n2`, or `of=rack-a,rack-b`; tier=rack is its tier's name
    quota q cpu:5/2                5 CPUs, of which 2 are used
    claim data Bound; class mid 5; namespace ns team=red

Pods, also those of a group: `?zone=a` selects nodes, `+app=x` is a label (of a pod alone without the sign), `port=80/UDP` a host
port, `claim=data` a volume; `near=zone/app=x`, `apart=host/app=x` and `spread=zone/app=x/maxSkew=2` are what they need of pods with
a label, `near~…`, `apart~…`, `spread~…` and `on~zone=a*2` what they would rather have.

`n1..3` are three objects, `other/x` is one of another namespace. Behind all words there may be more fields of the spec (of a group
with pods: of theirs), as YAML: `pod x {tolerations: [{operator: Exists}]}`. `conf allocate, preempt: pdb, {name: tdm}` is a
configuration of actions and plugins, `conf {actions: allocate}` any.

What happens are clauses as well: `-pod x` removes objects, `gone` those that were asked to end (`gone x` one of them), `end x` asks
for it, `release g` gives back what is kept for a group, `load n1 cpu:3.3 gi:1 ago=20` was measured on a node, `restart` has another
process go on. Without a queue there is `default`. `World.placed()` says what came of it: `g n1 n1, h n2`.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from kube import resources
from kube.meta import timestamp
from kube.usage import ESTIMATE_ANNOTATION
from kube.volcano.evictions import FIRST_EVICTED
from kube.volcano.intake_times import JOB_CREATED, SHUT_SINCE

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


GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "Scheduling is blocked"}
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


NAMED = {
    "pod": resources.PODS, "group": resources.POD_GROUPS, "node": resources.NODES, "queue": resources.QUEUES,
    "budget": resources.DISRUPTION_BUDGETS, "quota": resources.RESOURCE_QUOTAS, "claim": resources.CLAIMS,
    "hypernode": resources.HYPER_NODES,
}  # fmt: skip
CLASSES = {"low": -5, "high": 10}
HOST, TASK, PARTITION = "kubernetes.io/hostname", "volcano.sh/task-spec", "volcano.sh/partition-id"
REQUIRED, PREFERRED = (f"{each}DuringSchedulingIgnoredDuringExecution" for each in ("required", "preferred"))


def situation(text):
    """Return the objects of a text."""
    for word in CLASSES.keys() & set(text.replace(";", " ").split()):
        yield priority_class(word, CLASSES[word])
    for clause in filter(None, map(str.strip, text.split(";"))):
        if clause.startswith("conf "):
            yield configuration(configured(clause[5:]))
            continue
        kind, names, *words = clause.partition(" {")[0].split()
        read, states = READERS[kind]
        parts = Parts(words, yaml.safe_load("{" + clause.partition(" {")[2]) if " {" in clause else {})
        assert not set(parts.states) - set(states), clause
        for name in names_of(names):
            prefix, _, name = name.rpartition("/")
            for resource, obj in read(name, parts):
                if prefix:
                    obj["metadata"]["namespace"] = prefix
                yield resource, obj


def configured(text):
    """Return a configuration of actions and plugins, or of what is in braces or begins with `actions:`."""
    if text.startswith(("{", "actions:")):
        return text if text.startswith("{") else f"{{{text}}}"
    actions, _, plugins = text.partition(":")
    listed = [{"name": each} if isinstance(each, str) else each for each in yaml.safe_load(f"[{plugins}]")]
    return json.dumps({"actions": actions} | ({"tiers": [{"plugins": listed}]} if listed else {}))


def names_of(text):
    """Return `n1`, `n2` and `n3` of `n1..3`."""
    if not (several := re.fullmatch(r"(.*?)(\d+)\.\.(\d+)", text)):
        return [text]
    name, first, last = several.groups()
    return [f"{name}{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]


def ranges(names):
    """Return a text of names, `n1..3 m`."""
    found = []
    for prefix, number in sorted(map(_numbered, names), key=lambda each: (each[0], int(each[1] or 0))):
        if found and number and found[-1][0] == prefix and int(number) == int(found[-1][2]) + 1:
            found[-1][2] = number
        else:
            found.append([prefix, number, number])
    return " ".join(f"{prefix}{first}{f'..{last}' if last != first else ''}" for prefix, first, last in found)


def _numbered(name):
    return re.fullmatch(r"(.*?)(\d*)", name).groups()


class Parts:
    """What a text says of an object, by how each word looks."""

    def __init__(self, words, more):
        self.size, self.places, self.states, self.demands, self.more = "", [], [], [], more
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
                    self.annotations[key.lstrip("/") if "/" in key else f"volcano.sh/{key}"] = value
                case "!":
                    key, _, effect = key.partition(":")
                    self.taints.append({"key": key, "value": value, "effect": effect or "NoSchedule"})
                case _:
                    self._plain(word)

    def _plain(self, word):
        if demand := re.match(r"(near|apart|spread|on|port|claim)([=~])(.*)", word):
            self.demands.append(demand.groups())
        elif "=" in word or ":" in word:
            key, sign, value = re.split("([=:])", word, maxsplit=1)
            (self.fields if sign == "=" else self.amounts)[key] = value
        elif word[0].isdigit():
            self.size = word
        else:
            self.states.append(word)

    def spec(self):
        """Return the fields with values that are no texts."""
        return {name: _value(text) for name, text in self.fields.items()}

    def needs(self):
        return {**({"cpu": self.size} if self.size else {}), **self.amounts}

    def wanted(self):
        """Return the part of a pod's spec that says where it may be, or would rather be."""
        spec = {"nodeSelector": self.selector} if self.selector else {}
        for kind, sign, text in self.demands:
            DEMANDS[kind](spec, text, sign == "=")
        return spec | self.more


def _value(text):
    if ":" in text:
        return {key: int(value) for key, value in (each.split(":") for each in text.split(","))}
    return int(text) if text.removeprefix("-").isdigit() else {"true": True, "false": False}.get(text, text)


def _term(text):
    """Return the term of `zone/app=x/maxSkew=2`: a topology, labels, and what else it has."""
    topology, labels, *more = text.split("/")
    selector = {"matchLabels": dict(each.split("=") for each in labels.split(",") if each)}
    fields = {key: _value(value) for key, value in (each.split("=") for each in more)}
    return {"topologyKey": HOST if topology == "host" else topology, "labelSelector": selector, **fields}


def _beside(kind):
    def add(spec, text, is_needed):
        term = _term(text) if is_needed else {"weight": 1, "podAffinityTerm": _term(text)}
        affinity = spec.setdefault("affinity", {}).setdefault(kind, {})
        affinity.setdefault(REQUIRED if is_needed else PREFERRED, []).append(term)

    return add


def _spread(spec, text, is_needed):
    rule = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule" if is_needed else "ScheduleAnyway", **_term(text)}
    spec.setdefault("topologySpreadConstraints", []).append(rule)


def _on(spec, text, _):
    key, value = text.split("=")
    value, _, weight = value.partition("*")
    expression = {"key": key, "operator": "In", "values": [value]}
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {}).setdefault(PREFERRED, [])
    affinity.append({"weight": int(weight or 1), "preference": {"matchExpressions": [expression]}})


def _port(spec, text, _):
    fields = dict(zip(("hostPort", "protocol", "hostIP"), text.split("/"), strict=False))
    spec.setdefault("ports", []).append({"containerPort": 1, **fields, "hostPort": int(fields["hostPort"])})


def _claim(spec, text, _):
    spec.setdefault("volumes", []).append({"name": "data", "persistentVolumeClaim": {"claimName": text}})


DEMANDS = {
    "near": _beside("podAffinity"), "apart": _beside("podAntiAffinity"), "spread": _spread, "on": _on, "port": _port,
    "claim": _claim,
}  # fmt: skip


def _node(name, of):
    flags = {"ready": "notready" not in of.states, "unschedulable": "cordoned" in of.states}
    labels = {HOST if key == "host" else key: value for key, value in of.fields.items()}
    kind, one = node(name, labels=labels, taints=of.taints, **flags, **{"cpu": of.size or "4", **of.amounts})
    one["status"]["allocatable"] = {name: amount for name, amount in one["status"]["allocatable"].items() if amount}
    yield kind, one


def _queue(name, of):
    spec = of.spec() | ({"deserved": {"cpu": of.fields["deserved"]}} if "deserved" in of.fields else {})
    spec |= keeping(spec.pop("keeps")) if "keeps" in spec else {}
    groups = {
        how: spec.pop(word).split(",")
        for word, how in (("uses", REQUIRED), ("prefers", PREFERRED))
        if word in of.fields
    }
    spec |= {"affinity": {"nodeGroupAffinity": groups}} if groups else {}
    notes = {SHUT_SINCE: _before(spec, "since")} if "since" in spec else {}
    kind, one = queue(name, of.needs(), state=of.states[0] if of.states else "Open", **spec | of.more)
    one["metadata"] |= {"annotations": notes} if notes else {}
    yield kind, one


def _before(spec, name):
    return timestamp(START - 1000 * spec.pop(name, 0))


def _group(name, of):
    spec = {key: value for key, value in of.spec().items() if key not in ("cooldown", "started")}
    spec |= (
        {"priorityClassName": next(each for each in of.states if each in CLASSES)}
        if CLASSES.keys() & {*of.states}
        else {}
    )
    made = f"{spec.pop('created')}T00:00:00Z" if "created" in spec else _before(spec, "ago")
    spec |= {"networkTopology": _topology(spec.pop("topology"))} if "topology" in spec else {}
    spec |= {"subGroupPolicy": [_sub_groups(spec.pop("subgroups"))]} if "subgroups" in spec else {}
    own = {f"volcano.sh/{key}": str(spec.pop(key)) for key in [*spec] if key.startswith("jdb-")} | of.annotations
    own |= {ESTIMATE_ANNOTATION: spec.pop("estimate")} if "estimate" in spec else {}
    own |= {note: _before(spec, field) for field, note in TIMES.items() if field in spec}
    since = _before(spec, "since")
    size = re.fullmatch(r"(?:(\d+)/)?(\d+)x(\w+)", of.size)
    minimum, count, cpu = size.groups() if size else (1, 0, "")
    if not size:
        spec = {"phase": "Pending", **({"minResources": of.needs()} if of.needs() else {}), **spec}
    spec = {"minimum": int(minimum or count), "phase": "Running" if of.places else "Inqueue", "created": made, **spec}
    kind, one = group(name, **spec, **({} if int(count) else of.more))
    one["metadata"] |= {"annotations": own} if own else {}
    if of.places and ESTIMATE_ANNOTATION in own:
        runs = {"type": "Scheduled", "status": "True", "reason": "r", "message": "", "lastTransitionTime": since}
        one["status"]["conditions"] = [runs]
    yield kind, one
    for number in range(int(count)):
        node_name = of.places[number % len(of.places)] if of.places else ""
        phase = "Running" if node_name else "Pending"
        yield _made_pod(f"{name}-{number}", name, cpu, of, phase, node_name, created=made, labels=dict(of.labels))


TIMES = {"evicted": FIRST_EVICTED, "job": JOB_CREATED}


def _topology(text):
    mode, _, highest = text.partition("/")
    tier = {"highestTierAllowed": int(highest)} if highest.isdigit() else {"highestTierName": highest}
    return {"mode": mode, **(tier if highest else {})}


def _sub_groups(text):
    size, least, topology = (*str(text).split("/", 2), "0", "")[:3] if "/" in str(text) else (text, "0", "")
    policy = {"name": "work", "labelSelector": {"matchLabels": {TASK: "work"}}, "matchLabelKeys": [PARTITION]}
    policy |= {"subGroupSize": int(size), "minSubGroups": int(least)}
    return policy | ({"networkTopology": _topology(topology)} if topology else {})


def _pod(name, of):
    labels = dict(of.fields)
    node_name = of.places[0] if of.places else ""
    phase = next((each for each in of.states if each.istitle()), "Running" if node_name else "Pending")
    owner, scheduler = labels.pop("group", ""), labels.pop("scheduler", "volcano")
    if "partition" in labels:
        labels |= {TASK: "work", PARTITION: labels.pop("partition")}
    for field in ("cooldown", "started"):
        labels.pop(field, None)
    more = {"schedulingGates": [{"name": "hold"}]} if "gated" in of.states else {}
    more |= {"deleted": timestamp(START)} if "going" in of.states else {}
    kind, one = _made_pod(name, owner, of.size or "1", of, phase, node_name, labels=labels, scheduler=scheduler, **more)
    one["metadata"]["annotations"] |= of.annotations
    yield kind, one


def _made_pod(name, owner, cpu, of, phase, node_name, **more):
    wanted = of.wanted()
    ports = wanted.pop("ports", [])
    kind, one = pod(
        name, owner, "" if cpu == "0" else cpu, requests=of.amounts, phase=phase, node=node_name, **wanted, **more
    )
    if ports:
        one["spec"]["containers"][0]["ports"] = ports
    if "gated" in of.states:
        one["status"]["conditions"] = [GATED]
    if "owned" in of.states:
        one["metadata"]["ownerReferences"] = [OWNER]
    if "ready" in of.states:
        one["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    if "cooldown" in of.fields:
        one["metadata"]["annotations"]["volcano.sh/cooldown-time"] = of.fields["cooldown"]
    if {"cooldown", "started"} & of.fields.keys():
        since = _before(of.spec(), "started")
        one["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": since}]
    return kind, one


def _budget(name, of):
    spec = {"selector": {"matchLabels": of.labels}, **of.spec()}
    yield resources.DISRUPTION_BUDGETS, {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


def _hyper_node(name, of):
    listed = [("Node", {"exactMatch": {"name": each}}) for each in of.places]
    fields = dict(of.fields)
    listed += [("HyperNode", {"exactMatch": {"name": each}}) for each in fields.pop("of", "").split(",") if each]
    tier = {"tier": int(of.size), **({"tierName": fields.pop("tier")} if "tier" in fields else {})}
    listed += [("Node", {"labelMatch": {"matchLabels": fields}})] if fields else []
    members = [{"type": kind, "selector": selector} for kind, selector in listed]
    yield resources.HYPER_NODES, {"metadata": {"name": name}, "spec": {**tier, "members": members}}


def _quota(name, of):
    pairs = {key: each.split("/") for key, each in of.amounts.items()}
    hard, used = ({key: each[at] for key, each in pairs.items() if len(each) > at} for at in (0, 1))
    one = {"metadata": {"name": name, "namespace": "ns"}, "spec": {"hard": hard, **of.more}, "status": {"used": used}}
    yield resources.RESOURCE_QUOTAS, one


def _claim_object(name, of):
    yield resources.CLAIMS, {"metadata": {"name": name, "namespace": "ns"}, "status": {"phase": of.states[0]}}


def _class(name, of):
    yield priority_class(name, int(of.size), **of.more)


def _namespace(name, of):
    yield namespace(name, **of.fields)


READERS = {
    "node": (_node, {"notready", "cordoned"}),
    "queue": (_queue, {"Open", "Closed", "Closing"}),
    "group": (_group, {*CLASSES, "ready", "owned"}),
    "pod": (_pod, {"Pending", "Running", "Succeeded", "Failed", "gated", "going", "ready", "owned"}),
    "budget": (_budget, ()),
    "hypernode": (_hyper_node, ()),
    "quota": (_quota, ()),
    "claim": (_claim_object, {"Pending", "Bound", "Lost"}),
    "class": (_class, ()),
    "namespace": (_namespace, ()),
}
