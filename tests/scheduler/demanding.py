"""Strategies for pods that demand things because of other pods, and for those whom the demands are about."""

from hypothesis import strategies as st

from .definitions import PREFERRED, REQUIRED
from .world import namespace, node, pod

HOST, ZONE = "kubernetes.io/hostname", "zone"

labels = st.fixed_dictionaries({}, optional={"app": st.sampled_from(["a", "b"]), "tier": st.sampled_from(["x", "y"])})
conditions = st.sampled_from([
    {"key": "app", "operator": "In", "values": ["a", "b"]}, {"key": "app", "operator": "NotIn", "values": ["b"]},
    {"key": "tier", "operator": "Exists"}, {"key": "tier", "operator": "DoesNotExist"},
])  # fmt: skip
selectors = st.one_of(
    st.sampled_from([{"matchLabels": {"app": "a"}}, {"matchLabels": {"app": "b"}}]),
    st.fixed_dictionaries({"matchLabels": labels, "matchExpressions": st.lists(conditions, max_size=2)}),
    st.sampled_from([None, {}]),
)
keys = st.sampled_from([None, None, ["tier"], ["app", "gone"]])


def without_none(**fields):
    return {name: value for name, value in fields.items() if value is not None}


terms = st.builds(
    without_none,
    topologyKey=st.sampled_from([HOST, ZONE, "absent"]),
    labelSelector=selectors,
    namespaces=st.sampled_from([None, None, None, [], ["ns"], ["other"], ["ns", "other"]]),
    namespaceSelector=st.sampled_from([None, None, None, {}, {"matchLabels": {"team": "red"}}]),
    matchLabelKeys=keys,
    mismatchLabelKeys=st.sampled_from([None, None, None, ["tier"]]),
)
spreads = st.builds(
    without_none,
    topologyKey=st.sampled_from([HOST, ZONE, ZONE]),
    maxSkew=st.integers(1, 2),
    whenUnsatisfiable=st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
    labelSelector=selectors,
    minDomains=st.sampled_from([None, None, 1, 3]),
    nodeAffinityPolicy=st.sampled_from([None, "Honor", "Ignore"]),
    nodeTaintsPolicy=st.sampled_from([None, "Honor", "Ignore"]),
    matchLabelKeys=keys,
)
weights = st.sampled_from([1, 1, 7, 100])
weighted = st.builds(lambda weight, term: {"weight": weight, "podAffinityTerm": term}, weights, terms)
of_nodes = st.sampled_from([
    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a", "b"]}]},
    {"matchExpressions": [{"key": ZONE, "operator": "NotIn", "values": ["b"]}]},
    {"matchExpressions": [{"key": HOST, "operator": "Exists"}]},
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}, {},
])  # fmt: skip
wanted = st.builds(lambda weight, term: {"weight": weight, "preference": term}, weights, of_nodes)
ports = st.builds(
    without_none,
    containerPort=st.just(1),
    hostPort=st.sampled_from([None, 0, 80, 80, 81]),
    hostIP=st.sampled_from([None, None, "10.0.0.1", "10.0.0.2", "0.0.0.0"]),
    protocol=st.sampled_from([None, "TCP", "UDP"]),
)


@st.composite
def demands(draw):
    """The part of a pod's spec that is about other pods."""
    spec, affinity = {}, {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw(st.sampled_from([True, False, False])):
            affinity[kind] = {REQUIRED: draw(st.lists(terms, max_size=2))}
        if draw(st.sampled_from([True, False, False])):
            affinity.setdefault(kind, {})[PREFERRED] = draw(st.lists(weighted, max_size=2))
    if draw(st.sampled_from([True, False, False])):
        affinity["nodeAffinity"] = {PREFERRED: draw(st.lists(wanted, max_size=3))}
    if affinity:
        spec["affinity"] = affinity
    if draw(st.sampled_from([True, False, False])):
        spec["topologySpreadConstraints"] = draw(st.lists(spreads, max_size=2))
    if draw(st.sampled_from([True, False, False])):
        spec["ports"] = draw(st.lists(ports, max_size=2))
    return spec


@st.composite
def pods(draw, name, of="", **more):
    """A pod with demands, in one of two namespaces when it is of no group."""
    spec = draw(demands()) | more
    listed = spec.pop("ports", None)
    kind, made = pod(name, of, draw(st.sampled_from(["1", "500m"])), labels=draw(labels), **spec)
    if listed is not None:
        made["spec"]["containers"][0]["ports"] = listed
    if not of:
        made["metadata"]["namespace"] = draw(st.sampled_from(["ns", "ns", "other"]))
    return kind, made


@st.composite
def nodes(draw, name):
    given = draw(st.fixed_dictionaries({HOST: st.just(name)}, optional={ZONE: st.sampled_from(["a", "b", "c"])}))
    if draw(st.sampled_from([True, *[False] * 5])):
        del given[HOST]
    rather = [{"key": "p", "effect": "PreferNoSchedule"}]
    taints = draw(st.sampled_from([[], [], [], [{"key": "k", "effect": "NoSchedule"}], rather]))
    return node(name, draw(st.sampled_from(["1", "2", "4"])), labels=given, taints=taints)


namespaces = st.builds(namespace, st.sampled_from(["ns", "other"]), team=st.sampled_from(["red", "blue"]))
