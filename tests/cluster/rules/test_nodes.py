"""What nodes may do and what is said of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.rules import node_engines, node_rights
from cluster.rules.leases import LEASE_S, PLACE_ANNOTATION, other_place
from cluster.rules.node_rights import If
from cluster.rules.node_walls import NodeWall
from kube import resources
from kube.meta import timestamp
from kube.resources import CLAIMS, CONFIGMAPS, EVENTS, LEASES, NODES, PODS, SECRETS
from tests.tables import cases

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate")

# As the documents of Kubernetes list it (Node Authorization, NodeRestriction), without what this cluster does not have.
ALLOWED = (
    (NODES.id, "get create update patch", If.OWN),
    (f"{NODES.id}/status", "get update patch", If.OWN),
    (f"{NODES.id}/link", "create", If.OWN),
    (LEASES.id, "get create update patch", If.OWN),
    (PODS.id, "get delete", If.BOUND),
    (PODS.id, "list watch", If.SELECTED),
    (f"{PODS.id}/status", "get update patch", If.BOUND),
    (CONFIGMAPS.id, "get", If.MENTIONED),
    (SECRETS.id, "get", If.MENTIONED),
    (CLAIMS.id, "get", If.MENTIONED),
    (EVENTS.id, "create update patch", If.ABOUT),
)


def test_nothing_is_allowed_that_is_not_listed():
    parts = [f"{kind.id}/{part.name}" for kind in resources.ALL for part in kind.parts]
    targets = [*(kind.id for kind in resources.ALL), *parts, "users", "audit", "roles"]
    conditions = {(verb, target): node_rights.condition(verb, target) for target in targets for verb in VERBS}
    allowed = {(verb, target): condition for target, verbs, condition in ALLOWED for verb in verbs.split()}
    assert {asked: condition for asked, condition in conditions.items() if condition is not None} == allowed


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


PROJECTED = {"sources": [{"configMap": {"name": "cm-projected"}}, {"secret": {"name": "secret-projected"}}]}
POD = {
    "imagePullSecrets": [{"name": "pull"}],
    "volumes": [
        {"name": "a", "configMap": {"name": "cm-volume"}},
        {"name": "b", "secret": {"secretName": "secret-volume"}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "d", "projected": PROJECTED},
    ],
    "initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "cm-from"}}]}],
    "containers": [
        {"name": "m", "envFrom": [{"secretRef": {"name": "secret-from"}}]},
        {"name": "n", "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm-key", "key": "k"}}}]},
        {"name": "o", "env": [{"name": "B", "valueFrom": {"secretKeyRef": {"name": "secret-key", "key": "k"}}}]},
        {"name": "p", "env": [{"name": "C", "value": "not-mentioned"}]},
    ],
}


def test_what_a_pod_mentions_is_found_wherever_it_stands():
    assert node_rights.mentions({"spec": POD}) == {
        *((CONFIGMAPS.id, f"cm-{each}") for each in ("volume", "projected", "from", "key")),
        *((SECRETS.id, f"secret-{each}") for each in ("volume", "projected", "from", "key")),
        (SECRETS.id, "pull"),
        (CLAIMS.id, "claim"),
    }


KEYS = st.sampled_from(["configMap", "secret", "secretRef", "imagePullSecrets", "name", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_any_spec_can_be_looked_through(spec):
    assert all(isinstance(name, str) for _, name in node_rights.mentions({"spec": spec}))


def node(spec=None, labels=None, annotations=None):
    return {"metadata": {"labels": labels or {}, "annotations": annotations or {}}, "spec": spec or {}}


def labelled(key, value="1", **more):
    return node(labels={key: value, **more})


HOST, RESTRICTED = "kubernetes.io/hostname", "node-restriction.kubernetes.io/x"
LEASED, TAINTED = node(annotations={"ui.volcano.sh/lease": "n"}), node({"taints": [{"key": "a"}]})


@cases("old, new, refused", {
    "made plain": ({}, node(), ""),
    "its host name": ({}, labelled(HOST, "n"), ""),
    "another's host name": ({}, labelled(HOST, "m"), "label"),
    "no host name any more": (labelled(HOST, "n"), node(), "label"),
    "a label of the lab's": ({}, labelled("lab.example/rack"), ""),
    "a plain label": ({}, labelled("plain"), ""),
    "its type": ({}, labelled("node.kubernetes.io/instance-type"), ""),
    "restricted": ({}, labelled(RESTRICTED), "label"),
    "restricted, below": ({}, labelled(f"a.{RESTRICTED}"), "label"),
    "a role": ({}, labelled("node-role.kubernetes.io/control", ""), "label"),
    "simulated": ({}, labelled("ui.volcano.sh/simulated", "true"), "label"),
    "restricted, taken off": (labelled(RESTRICTED), node(), "label"),
    "restricted, left alone": (labelled(RESTRICTED), labelled(RESTRICTED, a="b"), ""),
    "its lease": ({}, LEASED, ""),
    "another's lease": ({}, node(annotations={"ui.volcano.sh/lease": "m"}), "annotation"),
    "no lease any more": (LEASED, node(), "annotation"),
    "made cordoned": ({}, node({"unschedulable": True}), "spec"),
    "uncordoned": (node({"unschedulable": True}), node(), "spec"),
    "without its taint": (TAINTED, node(), "spec"),
    "as it was": (TAINTED, TAINTED, ""),
})  # fmt: skip
def test_what_a_node_says_of_itself(old, new, refused):
    said = node_rights.refusal("n", old, new)
    assert refused in said
    assert bool(said) == bool(refused)


WHOLE = {"kind": "Pod", "apiVersion": "v1", "namespace": "d", "name": "p", "uid": "u"}


@cases("event, expected", {
    "a pod": ({"involvedObject": WHOLE}, ("d", "p", "u")),
    "in the new form": ({"regarding": {"kind": "Pod", "namespace": "d", "name": "p"}}, ("d", "p", "")),
    "a node": ({"involvedObject": {"kind": "Node", "name": "n"}}, ("", "", "")),
    "another kind of that name": ({"involvedObject": {**WHOLE, "apiVersion": "x/v1"}}, ("", "", "")),
    "of no shape": ({"involvedObject": "Pod"}, ("", "", "")),
})  # fmt: skip
def test_about_which_pod_an_event_is(event, expected):
    assert node_rights.about(event) == expected


NOW, THERE = 1_800_000_000_000, "host:/there"


@cases("place, age_s, other", {
    "lives": (THERE, 1, THERE),
    "just so": (THERE, LEASE_S - 1, THERE),
    "its clock is ahead": (THERE, -5, THERE),
    "silent": (THERE, LEASE_S, ""),
    "ours": ("host:/here", 1, ""),
    "has stopped in order": ("", 1, ""),
    "says nothing": (None, 1, ""),
})  # fmt: skip
def test_another_agent_lives_while_its_lease_is_fresh(place, age_s, other):
    annotations = {} if place is None else {PLACE_ANNOTATION: place}
    lease = {"metadata": {"annotations": annotations}, "spec": {"renewTime": timestamp(NOW - age_s * 1000)}}
    assert other_place(lease, "host:/here", NOW) == other


@pytest.mark.parametrize("renewed", [None, "", "soon"])
def test_a_lease_that_was_never_renewed_is_nobodys(renewed):
    lease = {"metadata": {"annotations": {PLACE_ANNOTATION: THERE}}, "spec": {"renewTime": renewed}}
    assert other_place(lease, "host:/here", NOW) == ""


PODMAN, NONE = "podman 4.3.1", "none: podman is not installed"
RUNS = "Images run with podman 4.3.1."
GONE = "Images do not run, commands do: podman is not installed."
BOTH = (
    "Images run with podman 4.3.1 now, and commands ran before. What is to go on so: annotation "
    "ui.volcano.sh/runtime: process on the pod, or VOLCANO_UI_ENGINE=none for the whole machine."
)


@cases("now, before, said", {
    "a new node": (PODMAN, None, RUNS),
    "as before": (PODMAN, PODMAN, RUNS),
    "another engine": (PODMAN, "docker 20.10", RUNS),
    "the engine has come": (PODMAN, NONE, BOTH),
    "the engine has gone": (NONE, PODMAN, GONE),
    "none as before": (NONE, NONE, GONE),
    "none, for no reason": (node_engines.written("", ""), None, "Images do not run, commands do."),
})  # fmt: skip
def test_a_start_says_what_runs_and_what_is_new_about_it(now, before, said):
    known = before and node_engines.of("here", {node_engines.ANNOTATION: before})
    assert node_engines.told(node_engines.of("here", {node_engines.ANNOTATION: now}), known) == said


@cases("engine, why, says", {"one": (PODMAN, "", PODMAN), "none": ("", "podman is not installed", NONE)})
def test_engines_are_written_as_they_are_read(engine, why, says):
    assert node_engines.written(engine, why) == says


@cases("command, args, has", {
    "a command": (["sh"], [], True),
    "kubectl run busybox -- sh -c …": ([], ["sh", "-c", "echo hello"], True),
    "a command and options": (["python3"], ["-c", "1"], True),
    "options of the image's own program": ([], ["-c", "1"], False),
    "nothing": ([], [], False),
})  # fmt: skip
def test_arguments_alone_are_a_command_without_an_image(command, args, has):
    assert node_engines.has_command(command, args) is has


@cases("says, sentence", {
    "holds": ("holds: mounts", "The wall round pods holds: mounts."),
    "none": ("none: pods reach all", "There is no wall round pods: pods reach all."),
})  # fmt: skip
def test_walls_are_told_in_sentences(says, sentence):
    assert NodeWall("a", says).sentence == sentence
