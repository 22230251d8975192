from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.rules import node_rights
from cluster.rules.node_rights import If
from kube import resources
from kube.resources import CLAIMS, CONFIGMAPS, EVENTS, LEASES, NODES, PODS, SECRETS

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


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param("spec.nodeName=n", True, id="the node's"),
        pytest.param("spec.nodeName==n", True, id="written with two"),
        pytest.param("spec.nodeName=m", False, id="another's"),
        pytest.param("spec.nodeName!=n", False, id="all but the node's"),
        pytest.param("spec.nodeName=n,metadata.name=p", False, id="more than that"),
        pytest.param("spec.nodeName=", False, id="of no node"),
        pytest.param("", False, id="all"),
    ],
)
def test_only_the_plain_selection_of_its_pods_is_a_nodes(fields, expected):
    assert node_rights.selects_own("n", fields) == expected


@pytest.mark.parametrize(
    ("target", "namespace", "name", "expected"),
    [
        pytest.param(NODES.id, "", "n", True, id="its node"),
        pytest.param(NODES.id, "", "m", False, id="another node"),
        pytest.param(LEASES.id, "kube-node-lease", "n", True, id="its lease"),
        pytest.param(LEASES.id, "kube-node-lease", "m", False, id="another's lease"),
        pytest.param(LEASES.id, "default", "n", False, id="a lease of its name elsewhere"),
    ],
)
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


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        pytest.param({}, node(), "", id="made plain"),
        pytest.param({}, node(labels={"kubernetes.io/hostname": "n"}), "", id="its host name"),
        pytest.param({}, node(labels={"kubernetes.io/hostname": "m"}), "label", id="another's host name"),
        pytest.param(node(labels={"kubernetes.io/hostname": "n"}), node(), "label", id="no host name any more"),
        pytest.param({}, node(labels={"lab.example/rack": "7"}), "", id="a label of the lab's"),
        pytest.param({}, node(labels={"plain": "x"}), "", id="a plain label"),
        pytest.param({}, node(labels={"node.kubernetes.io/instance-type": "x"}), "", id="its type"),
        pytest.param({}, node(labels={"node-restriction.kubernetes.io/safe": "1"}), "label", id="restricted"),
        pytest.param(
            {}, node(labels={"a.node-restriction.kubernetes.io/safe": "1"}), "label", id="restricted, below"
        ),
        pytest.param({}, node(labels={"node-role.kubernetes.io/control": ""}), "label", id="a role"),
        pytest.param({}, node(labels={"ui.volcano.sh/simulated": "true"}), "label", id="simulated"),
        pytest.param(
            node(labels={"node-restriction.kubernetes.io/unsafe": "1"}), node(), "label", id="restricted, taken off"
        ),
        pytest.param(
            node(labels={"node-restriction.kubernetes.io/x": "1"}),
            node(labels={"node-restriction.kubernetes.io/x": "1", "a": "b"}),
            "",
            id="restricted, left alone",
        ),
        pytest.param({}, node(annotations={"ui.volcano.sh/lease": "n"}), "", id="its lease"),
        pytest.param({}, node(annotations={"ui.volcano.sh/lease": "m"}), "annotation", id="another's lease"),
        pytest.param(
            node(annotations={"ui.volcano.sh/lease": "n"}), node(), "annotation", id="no lease any more"
        ),
        pytest.param({}, node({"unschedulable": True}), "spec", id="made cordoned"),
        pytest.param(node({"unschedulable": True}), node(), "spec", id="uncordoned"),
        pytest.param(node({"taints": [{"key": "a"}]}), node(), "spec", id="without its taint"),
        pytest.param(node({"taints": [{"key": "a"}]}), node({"taints": [{"key": "a"}]}), "", id="as it was"),
    ],
)  # fmt: skip
def test_what_a_node_says_of_itself(old, new, refused):
    said = node_rights.refusal("n", old, new)
    assert refused in said
    assert bool(said) == bool(refused)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param({"involvedObject": {"kind": "Pod", "apiVersion": "v1", "namespace": "d", "name": "p", "uid": "u"}}, ("d", "p", "u"), id="a pod"),
        pytest.param({"regarding": {"kind": "Pod", "namespace": "d", "name": "p"}}, ("d", "p", ""), id="in the new form"),
        pytest.param({"involvedObject": {"kind": "Node", "name": "n"}}, ("", "", ""), id="a node"),
        pytest.param({"involvedObject": {"kind": "Pod", "apiVersion": "x/v1", "name": "p"}}, ("", "", ""), id="another kind of that name"),
        pytest.param({"involvedObject": "Pod"}, ("", "", ""), id="of no shape"),
    ],
)  # fmt: skip
def test_about_which_pod_an_event_is(event, expected):
    assert node_rights.about(event) == expected
