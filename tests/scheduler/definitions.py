"""Kubernetes' rules and preferences about nodes and other pods, by their definitions: objects in, no arrays, nothing of the engine.

Sources: the API's documentation of Affinity, TopologySpreadConstraint and ContainerPort, and kube-scheduler's filters
InterPodAffinity, PodTopologySpread and NodePorts where it is silent; for preferences the scores of the same names, and
NodeAffinity and TaintToleration.
"""

import math

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def selected(selector, labels):
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_meets(each, labels) for each in selector.get("matchExpressions") or ())


def _meets(condition, labels):
    value, values = labels.get(condition["key"]), condition.get("values")
    match condition["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise AssertionError(condition)


def labels_of(obj):
    return obj["metadata"].get("labels") or {}


def terms(pod, kind, how=REQUIRED):
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(how) or []


def ports(pod):
    listed = [*pod["spec"]["containers"]]
    listed += [each for each in pod["spec"].get("initContainers", ()) if each.get("restartPolicy") == "Always"]
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for each in listed
        for port in each.get("ports", ())
        if port.get("hostPort")
    ]


def conflict(one, other):
    return one[1:] == other[1:] and (one[0] == other[0] or "0.0.0.0" in (one[0], other[0]))


class Judge:
    """What stands on the nodes of a world, and who may not come to which node."""

    def __init__(self, world):
        self.nodes = {key[2]: obj for key, obj in world.objects.items() if key[0] == "nodes"}
        self.namespaces = {key[2]: labels_of(obj) for key, obj in world.objects.items() if key[0] == "namespaces"}
        self.pods = {
            key[1:]: obj
            for key, obj in world.objects.items()
            if key[0] == "pods"
            and obj["spec"].get("nodeName") in self.nodes
            and obj["status"].get("phase") not in ("Succeeded", "Failed")
        }

    def means(self, term, owner, other):
        """Whether a term of a pod is about another one."""
        names, namespace = term.get("namespaces") or [], other["metadata"]["namespace"]
        by_labels = term.get("namespaceSelector")
        if not names and by_labels is None:
            names = [owner["metadata"]["namespace"]]
        if namespace not in names and not selected(by_labels, self.namespaces.get(namespace, {})):
            return False
        own, its = labels_of(owner), labels_of(other)
        same = all(its.get(key) == own[key] for key in term.get("matchLabelKeys") or () if key in own)
        differ = all(its.get(key) != own[key] for key in term.get("mismatchLabelKeys") or () if key in own)
        return same and differ and selected(term.get("labelSelector"), its)

    def place(self, node, key):
        return labels_of(self.nodes[node]).get(key)

    def near(self, term, node, other):
        """Whether a pod that stands is in the same domain as a node."""
        here = self.place(node, term["topologyKey"])
        return here is not None and here == self.place(other["spec"]["nodeName"], term["topologyKey"])

    def broken(self, pod, node, *, others=None):
        """Return the rules that a pod would break on a node, or break of those who stand there."""
        others = list(self.pods.values()) if others is None else others
        found = set()
        if any(
            conflict(one, two)
            for each in others
            if each["spec"]["nodeName"] == node
            for one in ports(pod)
            for two in ports(each)
        ):
            found.add("port")
        for each in others:
            if any(self.means(t, pod, each) and self.near(t, node, each) for t in terms(pod, "podAntiAffinity")):
                found.add("anti-affinity")
            if any(self.means(t, each, pod) and self.near(t, node, each) for t in terms(each, "podAntiAffinity")):
                found.add("repelled")
        if not self.is_near_enough(pod, node, others):
            found.add("affinity")
        if not all(self.is_spread(each, pod, node) for each in self.spreads(pod)):
            found.add("spread")
        return found

    def is_near_enough(self, pod, node, others):
        needed = terms(pod, "podAffinity")
        if not needed:
            return True
        if any(self.place(node, term["topologyKey"]) is None for term in needed):
            return False
        wanted = [each for each in others if all(self.means(term, pod, each) for term in needed)]
        if all(any(self.near(term, node, each) for each in wanted) for term in needed):
            return True
        placed = [
            each
            for each in wanted
            if any(self.place(each["spec"]["nodeName"], term["topologyKey"]) is not None for term in needed)
        ]
        return not placed and all(self.means(term, pod, pod) for term in needed)

    def spreads(self, pod, kind="DoNotSchedule"):
        listed = pod["spec"].get("topologySpreadConstraints") or ()
        return [each for each in listed if each["whenUnsatisfiable"] == kind]

    def is_spread(self, rule, pod, node):
        domains = self.domains(rule, pod)
        here = self.place(node, rule["topologyKey"])
        if here not in domains:
            return False
        fewest = min(domains.values()) if len(domains) >= (rule.get("minDomains") or 1) else 0
        return domains[here] + self.is_counted(rule, pod, pod) - fewest <= rule["maxSkew"]

    def domains(self, rule, pod):
        """Return the pods that a constraint counts, by domain of the nodes that it counts."""
        keys = [each["topologyKey"] for each in self.spreads(pod)]
        found = {}
        for name, node in self.nodes.items():
            if any(self.place(name, key) is None for key in keys) or not self.counts_node(rule, pod, node):
                continue
            here = self.place(name, rule["topologyKey"])
            on_it = [each for each in self.pods.values() if each["spec"]["nodeName"] == name]
            counted = [
                each
                for each in on_it
                if self.is_counted(rule, pod, each) and not each["metadata"].get("deletionTimestamp")
            ]
            found[here] = found.get(here, 0) + (0 if self.is_of_everybody(rule, pod) else len(counted))
        return found

    def is_of_everybody(self, rule, pod):
        """Whether a constraint selects without any condition: kube-scheduler counts nobody then."""
        selector = rule.get("labelSelector")
        keys = [key for key in rule.get("matchLabelKeys") or () if key in labels_of(pod)]
        return selector is not None and not any(selector.values()) and not keys

    def counts_node(self, rule, pod, node):
        if rule.get("nodeAffinityPolicy", "Honor") == "Honor":
            wanted = pod["spec"].get("nodeSelector") or {}
            if any(labels_of(node).get(key) != value for key, value in wanted.items()):
                return False
        if rule.get("nodeTaintsPolicy", "Ignore") == "Honor" and not pod["spec"].get("tolerations"):
            return not any(each["effect"] != "PreferNoSchedule" for each in node["spec"]["taints"])
        return True

    def is_counted(self, rule, pod, other):
        own, its = labels_of(pod), labels_of(other)
        same = all(its.get(key) == own[key] for key in rule.get("matchLabelKeys") or () if key in own)
        alike = pod["metadata"]["namespace"] == other["metadata"]["namespace"]
        return alike and same and selected(rule.get("labelSelector"), its)


def wishes(judge, pod, nodes, weights):
    """Return what each of some nodes is worth to a pod; weights are those of nodes, pods, taints and spreading."""
    scores = (_matching, _beside, _untainted, _evenly)
    found = [score(judge, pod, nodes) for score in scores]
    return {node: sum(weight * each[node] for weight, each in zip(weights, found, strict=True)) for node in nodes}


def _matching(judge, pod, nodes):
    raw = dict.fromkeys(nodes, 0)
    for node in nodes:
        for each in terms(pod, "nodeAffinity", PREFERRED):
            expressions = each["preference"].get("matchExpressions") or []
            names = each["preference"].get("matchFields") or []
            if (expressions or names) and all(_meets(one, labels_of(judge.nodes[node])) for one in expressions):
                raw[node] += each["weight"] * all(_meets(one, {"metadata.name": node}) for one in names)
    most = max(raw.values())
    return {node: 100 * one // most if most else 0 for node, one in raw.items()}


def _untainted(judge, pod, nodes):
    raw = {
        node: 0 if pod["spec"].get("tolerations") else
        sum(each["effect"] == "PreferNoSchedule" for each in judge.nodes[node]["spec"]["taints"])
        for node in nodes
    }  # fmt: skip
    most = max(raw.values())
    return {node: 100 - (100 * one // most if most else 0) for node, one in raw.items()}


def _beside(judge, pod, nodes):
    raw = dict.fromkeys(nodes, 0)
    for node in nodes:
        for other in judge.pods.values():
            for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
                for owner, meant in ((pod, other), (other, pod)):
                    for each in terms(owner, kind, PREFERRED):
                        term = each["podAffinityTerm"]
                        if judge.means(term, owner, meant) and judge.near(term, node, other):
                            raw[node] += sign * each["weight"]
    least, most = min(raw.values()), max(raw.values())
    return {node: 100 * (one - least) // (most - least) if most > least else 0 for node, one in raw.items()}


def _evenly(judge, pod, nodes):
    rules = judge.spreads(pod, "ScheduleAnyway")
    keys = [each["topologyKey"] for each in rules]
    counted = [node for node in nodes if all(judge.place(node, key) is not None for key in keys)]
    if not rules or not counted:
        return dict.fromkeys(nodes, 0)
    raw = {}
    for node in counted:
        total = 0.0
        for rule in rules:
            pods, size = _of_domain(judge, rule, keys, pod, node, counted)
            total += pods * math.log(size + 2) + (rule["maxSkew"] - 1)
        raw[node] = int(total) + (total - int(total) >= 0.5)
    most, least = max(raw.values()), min(raw.values())
    worth = {node: 100 * (most + least - one) // most if most else 100 for node, one in raw.items()}
    return {node: worth.get(node, 0) for node in nodes}


def _of_domain(judge, rule, keys, pod, node, counted):
    """Return how many pods count in the domain of a node, and how many domains there are."""
    key = rule["topologyKey"]
    here = judge.place(node, key)
    by_node = key == "kubernetes.io/hostname"
    pods = 0
    for other in judge.pods.values():
        on = other["spec"]["nodeName"]
        near = on == node if by_node else (
            judge.place(on, key) == here
            and all(judge.place(on, each) is not None for each in keys)
            and judge.counts_node(rule, pod, judge.nodes[on])
        )  # fmt: skip
        if near and judge.is_counted(rule, pod, other) and not other["metadata"].get("deletionTimestamp"):
            pods += not judge.is_of_everybody(rule, pod)
    return pods, len(counted) if by_node else len({judge.place(each, key) for each in counted})
