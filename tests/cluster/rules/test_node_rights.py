from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cluster.rules import node_rights
from cluster.rules.node_rights import If
from kube import resources
from kube.resources import CLAIMS, CONFIGMAPS, EVENTS, LEASES, NODES, PODS, SECRETS
from tests.tables import cases

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate")

# As the documents of Kubernetes list it (Node Authorization, NodeRestriction), without what this cluster does not have.
ALLOWED = {
    ("get", NODES.id): If.OWN,
    ("create", NODES.id): If.OWN,
    ("update", NODES.id): If.OWN,
    ("patch", NODES.id): If.OWN,
    ("get", f"{NODES.id}/status"): If.OWN,
    ("update", f"{NODES.id}/status"): If.OWN,
    ("patch", f"{NODES.id}/status"): If.OWN,
    ("create", f"{NODES.id}/link"): If.OWN,
    ("get", LEASES.id): If.OWN,
    ("create", LEASES.id): If.OWN,
    ("update", LEASES.id): If.OWN,
    ("patch", LEASES.id): If.OWN,
    ("get", PODS.id): If.BOUND,
    ("list", PODS.id): If.SELECTED,
    ("watch", PODS.id): If.SELECTED,
    ("delete", PODS.id): If.BOUND,
    ("get", f"{PODS.id}/status"): If.BOUND,
    ("update", f"{PODS.id}/status"): If.BOUND,
    ("patch", f"{PODS.id}/status"): If.BOUND,
    ("get", CONFIGMAPS.id): If.MENTIONED,
    ("get", SECRETS.id): If.MENTIONED,
    ("get", CLAIMS.id): If.MENTIONED,
    ("create", EVENTS.id): If.ABOUT,
    ("update", EVENTS.id): If.ABOUT,
    ("patch", EVENTS.id): If.ABOUT,
}


def test_nothing_is_allowed_that_is_not_listed():
    parts = [f"{kind.id}/{part.name}" for kind in resources.ALL for part in kind.parts]
    targets = [*(kind.id for kind in resources.ALL), *parts, "users", "audit", "roles"]
    found = {
        (verb, target): condition
        for target in targets
        for verb in VERBS
        if (condition := node_rights.condition(verb, target)) is not None
    }
    assert found == ALLOWED


@cases("fields, expected", {
    "the node's": ("spec.nodeName=n", True),
    "written with two": ("spec.nodeName==n", True),
    "another's": ("spec.nodeName=m", False),
    "all but the node's": ("spec.nodeName!=n", False),
    "more than that": ("spec.nodeName=n,metadata.name=p", False),
    "of no node": ("spec.nodeName=", False),
    "all": ("", False),
})  # fmt: skip
def test_only_the_plain_selection_of_its_pods_is_a_nodes(fields, expected):
    assert node_rights.selects_own("n", fields) == expected


@cases("target, namespace, name, expected", {
    "its node": (NODES.id, "", "n", True),
    "another node": (NODES.id, "", "m", False),
    "its lease": (LEASES.id, "kube-node-lease", "n", True),
    "another's lease": (LEASES.id, "kube-node-lease", "m", False),
    "a lease of its name elsewhere": (LEASES.id, "default", "n", False),
})  # fmt: skip
def test_a_nodes_own_objects_have_its_name_and_place(target, namespace, name, expected):
    assert node_rights.is_own("n", target, namespace, name) == expected


POD = {
    "spec": {
        "imagePullSecrets": [{"name": "pull"}],
        "volumes": [
            {"name": "a", "configMap": {"name": "cm-volume"}},
            {"name": "b", "secret": {"secretName": "secret-volume"}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}},
            {
                "name": "d",
                "projected": {
                    "sources": [{"configMap": {"name": "cm-projected"}}, {"secret": {"name": "secret-projected"}}]
                },
            },
        ],
        "initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "cm-from"}}]}],
        "containers": [
            {
                "name": "m",
                "envFrom": [{"secretRef": {"name": "secret-from"}}],
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm-key", "key": "k"}}},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "secret-key", "key": "k"}}},
                    {"name": "C", "value": "not-mentioned"},
                ],
            }
        ],
    }
}


def test_what_a_pod_mentions_is_found_wherever_it_stands():
    assert node_rights.mentions(POD) == {
        *((CONFIGMAPS.id, f"cm-{each}") for each in ("volume", "projected", "from", "key")),
        *((SECRETS.id, f"secret-{each}") for each in ("volume", "projected", "from", "key")),
        (SECRETS.id, "pull"),
        (CLAIMS.id, "claim"),
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["configMap", "secret", "secretRef", "imagePullSecrets", "name", "x"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_spec_can_be_looked_through(spec):
    assert all(isinstance(name, str) for _, name in node_rights.mentions({"spec": spec}))


def node(spec=None, labels=None, annotations=None):
    return {"metadata": {"labels": labels or {}, "annotations": annotations or {}}, "spec": spec or {}}


@cases("old, new, refused", {
    "made plain": ({}, node(), ""),
    "its host name": ({}, node(labels={"kubernetes.io/hostname": "n"}), ""),
    "another's host name": ({}, node(labels={"kubernetes.io/hostname": "m"}), "label"),
    "no host name any more": (node(labels={"kubernetes.io/hostname": "n"}), node(), "label"),
    "a label of the lab's": ({}, node(labels={"lab.example/rack": "7"}), ""),
    "a plain label": ({}, node(labels={"plain": "x"}), ""),
    "its type": ({}, node(labels={"node.kubernetes.io/instance-type": "x"}), ""),
    "restricted": ({}, node(labels={"node-restriction.kubernetes.io/safe": "1"}), "label"),
    "restricted, below": ({}, node(labels={"a.node-restriction.kubernetes.io/safe": "1"}), "label"),
    "a role": ({}, node(labels={"node-role.kubernetes.io/control": ""}), "label"),
    "simulated": ({}, node(labels={"ui.volcano.sh/simulated": "true"}), "label"),
    "restricted, taken off": (node(labels={"node-restriction.kubernetes.io/unsafe": "1"}), node(), "label"),
    "restricted, left alone": (node(labels={"node-restriction.kubernetes.io/x": "1"}),
        node(labels={"node-restriction.kubernetes.io/x": "1", "a": "b"}), ""),
    "its lease": ({}, node(annotations={"ui.volcano.sh/lease": "n"}), ""),
    "another's lease": ({}, node(annotations={"ui.volcano.sh/lease": "m"}), "annotation"),
    "no lease any more": (node(annotations={"ui.volcano.sh/lease": "n"}), node(), "annotation"),
    "made cordoned": ({}, node({"unschedulable": True}), "spec"),
    "uncordoned": (node({"unschedulable": True}), node(), "spec"),
    "without its taint": (node({"taints": [{"key": "a"}]}), node(), "spec"),
    "as it was": (node({"taints": [{"key": "a"}]}), node({"taints": [{"key": "a"}]}), ""),
})  # fmt: skip
def test_what_a_node_says_of_itself(old, new, refused):
    said = node_rights.refusal("n", old, new)
    assert refused in said
    assert bool(said) == bool(refused)


@cases("event, expected", {
    "a pod": ({"involvedObject": {"kind": "Pod", "apiVersion": "v1", "namespace": "d", "name": "p", "uid": "u"}},
        ("d", "p", "u")),
    "in the new form": ({"regarding": {"kind": "Pod", "namespace": "d", "name": "p"}}, ("d", "p", "")),
    "a node": ({"involvedObject": {"kind": "Node", "name": "n"}}, ("", "", "")),
    "another kind of that name": ({"involvedObject": {"kind": "Pod", "apiVersion": "x/v1", "name": "p"}}, ("", "", "")),
    "of no shape": ({"involvedObject": "Pod"}, ("", "", "")),
})  # fmt: skip
def test_about_which_pod_an_event_is(event, expected):
    assert node_rights.about(event) == expected
