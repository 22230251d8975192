"""Pods: what is filled in, and the plug-ins ServiceAccount, Priority and DefaultTolerationSeconds."""

from __future__ import annotations

import pytest

from cluster.rules import templates
from kube.errors import Forbidden
from tests.tables import cases

from .known import DROP, PODS, admit, admitted, causes, changed, messages, pod, priority_class

HIGH = priority_class("high", 1000, preemptionPolicy="Never")
LOW, LOWER = priority_class("low", 10, globalDefault=True), priority_class("lower", 5, globalDefault=True)


def account(name, **fields):
    return {"kind": "ServiceAccount", "metadata": {"namespace": "default", "name": name}, **fields}


def test_defaults():
    stored = admitted(PODS, pod())
    spec = stored["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["schedulerName"] == "default-scheduler"
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert spec["enableServiceLinks"] is True
    assert stored["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_what_is_given_stays():
    given = {
        "restartPolicy": "Never",
        "dnsPolicy": "Default",
        "terminationGracePeriodSeconds": 0,
        "schedulerName": "volcano",
    }
    spec = admitted(PODS, pod(**given))["spec"]
    assert {field: spec[field] for field in given} == given


def test_what_is_stored_is_not_changed_by_an_update():
    stored = admitted(PODS, pod())
    assert admit(PODS, stored, stored).object == stored
    assert causes(PODS, changed(stored, "metadata.labels", {"a": "b"}), stored) == []


def test_a_pod_stays_for_a_while_on_a_node_that_is_not_heard_of():
    spec = admitted(PODS, pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]))["spec"]
    assert [(t["key"], t.get("tolerationSeconds")) for t in spec["tolerations"]] == [
        ("node.kubernetes.io/not-ready", None),
        ("node.kubernetes.io/unreachable", 300),
    ]


SIMULATED = {"ui.volcano.sh/simulated": "true"}
TOLERATION = {"key": "ui.volcano.sh/simulated", "operator": "Exists", "effect": "NoSchedule"}


@cases("fields, tolerated", {
    "a real pod": ({}, []),
    "another value": ({"nodeSelector": {"ui.volcano.sh/simulated": "false"}}, []),
    "one node by its name": ({"nodeSelector": {"kubernetes.io/hostname": "sim-0001"}}, []),
    "one that asks": ({"nodeSelector": SIMULATED}, [TOLERATION]),
    "one that says so itself": ({"nodeSelector": SIMULATED, "tolerations": [TOLERATION]}, [TOLERATION]),
})  # fmt: skip
def test_a_pod_tolerates_simulated_nodes_when_it_asks_for_them(fields, tolerated):
    spec = admitted(PODS, pod(**fields))["spec"]
    assert [t for t in spec["tolerations"] if t["key"] == "ui.volcano.sh/simulated"] == tolerated


def test_a_pod_that_asks_for_simulated_nodes_tolerates_them_whatever_an_update_leaves_out():
    stored = admitted(PODS, pod(nodeSelector=SIMULATED))
    updated = admit(PODS, changed(stored, "spec.tolerations", DROP), stored)
    assert updated.object["spec"]["tolerations"] == [TOLERATION]


def test_a_pod_that_a_controller_made_can_be_labelled_and_is_not_filled_in():
    made = {**pod(), "apiVersion": "v1", "kind": "Pod"}
    labelled = changed(made, "metadata.labels", {"a": "b"})
    assert admit(PODS, labelled, made).checked()["spec"] == made["spec"]
    with_image = changed(made, "spec.containers.0.image", "other")
    assert admit(PODS, with_image, made).checked()["spec"] == with_image["spec"]


def test_what_was_filled_in_is_filled_in_again_when_it_is_left_out():
    stored = admitted(PODS, pod())
    shorter = changed(stored, "spec.dnsPolicy", DROP)
    assert admit(PODS, shorter, stored).checked()["spec"] == stored["spec"]


@pytest.mark.parametrize(
    ("image", "policy"),
    [("busybox", "Always"), ("busybox:latest", "Always"), ("busybox:1", "IfNotPresent"), ("r:5000/busybox", "Always"), ("busybox@sha256:0", "IfNotPresent")],
)  # fmt: skip
def test_an_image_is_fetched_by_its_tag(image, policy):
    stored = admitted(PODS, changed(pod(), "spec.containers.0.image", image))
    assert stored["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_limits_stand_in_for_requests():
    asked = changed(pod(), "spec.containers.0.resources", {"limits": {"cpu": "1", "memory": "1Gi"}})
    stored = admitted(PODS, asked)
    assert stored["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert stored["status"]["qosClass"] == "Guaranteed"


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 1}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}, "Burstable"),
        ({"requests": {"cpu": "1000m"}, "limits": {"cpu": 1, "memory": "1Gi"}}, "Guaranteed"),
    ],
)
def test_quality_of_service(resources, quality):
    stored = admitted(PODS, changed(pod(), "spec.containers.0.resources", resources))
    assert stored["status"]["qosClass"] == quality


def test_the_priority_is_that_of_the_class():
    spec = admitted(PODS, pod(priorityClassName="high"), HIGH)["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")


def test_a_pod_without_a_class_gets_the_default_and_the_lowest_of_several():
    spec = admitted(PODS, pod(), HIGH, LOW, LOWER)["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("lower", 5)


def test_a_priority_that_agrees_is_tolerated():
    assert admitted(PODS, pod(priorityClassName="high", priority=1000), HIGH)["spec"]["priority"] == 1000


def test_the_pull_secrets_are_those_of_the_account():
    builder = account("builder", imagePullSecrets=[{"name": "s"}])
    spec = admitted(PODS, pod(serviceAccountName="builder"), builder)["spec"]
    assert spec["imagePullSecrets"] == [{"name": "s"}]


FORBIDDEN = {
    "an unknown class": (pod(priorityClassName="none"), 'pods "p" is forbidden: no PriorityClass with name none was found'),
    "a priority of ones own": (
        pod(priority=7),
        'pods "p" is forbidden: the integer value of priority (7) must not be provided in pod spec;'
        " priority admission controller computed 0 from the given PriorityClass name",
    ),
    "a preemption policy of ones own": (
        pod(preemptionPolicy="Never"),
        'pods "p" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec;'
        " priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
    ),
    "an unknown account": (
        pod(serviceAccountName="builder"),
        'pods "p" is forbidden: error looking up service account default/builder: serviceaccount "builder" not found',
    ),
}  # fmt: skip


@cases("obj, message", FORBIDDEN)
def test_what_plugins_forbid(obj, message):
    with pytest.raises(Forbidden) as refused:
        admitted(PODS, obj)
    assert refused.value.message == message


REFUSED = {
    "no container": (pod(containers=[]), "spec.containers"),
    "a container twice": (pod(containers=[{"name": "a"}, {"name": "a"}]), "spec.containers[1].name"),
    "an unknown volume": (changed(pod(), "spec.containers.0.volumeMounts", [{"name": "v", "mountPath": "/v"}]), "spec.containers[0].volumeMounts[0].name"),
    "more asked than allowed": (changed(pod(), "spec.containers.0.resources", {"requests": {"cpu": 2}, "limits": {"cpu": 1}}), "spec.containers[0].resources.requests[cpu]"),
    "a node of no name": (pod(nodeName="A b"), "spec.nodeName"),
    "a node for what gates hold back": (pod(nodeName="n", schedulingGates=[{"name": "g"}]), "spec.nodeName"),
    "a gate without a name": (pod(schedulingGates=[{}]), "spec.schedulingGates[0].name"),
    "a gate twice": (pod(schedulingGates=[{"name": "g"}, {"name": "g"}]), "spec.schedulingGates[1]"),
    "no spec": (changed(pod(), "spec", DROP), "spec"),
    "a toleration of all keys by value": (pod(tolerations=[{"value": "v"}]), "spec.tolerations[0].operator"),
    "a toleration of any value that names one": (pod(tolerations=[{"key": "k", "operator": "Exists", "value": "v"}]), "spec.tolerations[0].operator"),
    "a toleration of what is no value": (pod(tolerations=[{"key": "k", "value": "a b"}]), "spec.tolerations[0].operator"),
    "a toleration of what is no key": (pod(tolerations=[{"key": "a b", "operator": "Exists"}]), "spec.tolerations[0].key"),
    "a toleration for a time of what does not evict": (
        pod(tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}]),
        "spec.tolerations[0].effect",
    ),
}  # fmt: skip


@cases("obj, field", REFUSED)
def test_refusals(obj, field):
    assert field in [where for where, _ in causes(PODS, obj)]


def test_a_container_without_a_command_is_pointed_out():
    silent = changed(pod(), "spec.containers", [{"name": "a", "image": "nginx"}])
    assert [text.partition(":")[0] for text in admit(PODS, silent, warnings=True).warnings] == [
        "spec.containers[0].command"
    ]


LEAST, MOST = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


@pytest.mark.shows("groups 3.8/jdb-min-available, jdb-max-unavailable", "groups 3.8/others")
@cases("annotations, fields", {
    "a number": ({LEAST: "2"}, []),
    "the smallest share": ({MOST: "1%"}, []),
    "the largest share": ({LEAST: "99%"}, []),
    "none": ({LEAST: "0"}, [LEAST]),
    "less than none": ({MOST: "-1"}, [MOST]),
    "no share": ({LEAST: "0%"}, [LEAST]),
    "all": ({LEAST: "100%"}, [LEAST]),
    "a word": ({MOST: "half"}, [MOST]),
    "nothing": ({MOST: ""}, [MOST]),
    "both": ({LEAST: "1", MOST: "1"}, [MOST]),
    "everything wrong": ({LEAST: "x", MOST: "y"}, [LEAST, MOST, MOST]),
})  # fmt: skip
def test_what_a_disruption_must_leave_is_said_in_one_way(annotations, fields):
    given = changed(pod(schedulerName="volcano"), "metadata.annotations", annotations)
    assert [where for where, _ in causes(PODS, given)] == [f"metadata.annotations[{key}]" for key in fields]
    # As in Volcano: pods of other schedulers, and pods that exist, are not looked at.
    assert causes(PODS, changed(given, "spec.schedulerName", "default-scheduler")) == []
    stored = admitted(PODS, pod(schedulerName="volcano"))
    assert causes(PODS, changed(stored, "metadata.annotations", annotations), stored) == []


def test_a_wrong_disruption_annotation_is_told_with_its_remedy():
    given = changed(pod(schedulerName="volcano"), "metadata.annotations", {LEAST: "0"})
    assert messages(PODS, given) == [
        f'metadata.annotations[{LEAST}]: Invalid value: "0": must be a positive integer, or a percentage'
        " between 1% and 99%; write it like 2 or 50%."
    ]


BACK = "must not contain '..'"


def mounting(mount):
    container = {"name": "c", "image": "i", "volumeMounts": [mount]}
    return pod(volumes=[{"name": "v", "emptyDir": {}}], containers=[container])


@cases("written, expected", {
    "inside": ("a/b..c/...", []),
    "up": ("../..", [BACK]),
    "up and down again": ("a/../b", [BACK]),
    "absolute": ("/a", ["must be a relative path"]),
})  # fmt: skip
@pytest.mark.parametrize("field", ["subPath", "subPathExpr"])
def test_a_sub_path_stays_below_its_volume(field, written, expected):
    mount = {"name": "v", "mountPath": "/v", field: written}
    found = messages(PODS, mounting(mount))
    where = f"spec.containers[0].volumeMounts[0].{field}"
    assert found == [f'{where}: Invalid value: "{written}": {text}' for text in expected]


def test_a_sub_path_is_written_once():
    mount = {"name": "v", "mountPath": "/v", "subPath": "a", "subPathExpr": "b"}
    assert "subPathExpr and subPath are mutually exclusive" in messages(PODS, mounting(mount))[0]


@cases("volume, field", {
    "ConfigMap": ({"configMap": {"name": "c", "items": [{"key": "k", "path": "../x"}]}}, "configMap.items[0].path"),
    "Secret": ({"secret": {"secretName": "c", "items": [{"key": "k", "path": "/x"}]}}, "secret.items[0].path"),
    "downward API": ({"downwardAPI": {"items": [{"path": "..data", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        "downwardAPI.items[0].path"),
    "projected": ({"projected": {"sources": [{"configMap": {"name": "c", "items": [{"key": "k", "path": "a/../../x"}]}}]}},
        "projected.sources[0].configMap.items[0].path"),
    "hostPath": ({"hostPath": {"path": "/srv/../etc"}}, "hostPath.path"),
})  # fmt: skip
def test_a_path_in_a_volume_leads_nowhere_else(volume, field):
    found = causes(PODS, pod(volumes=[{"name": "v", **volume}]))
    assert [one for one, _ in found] == [f"spec.volumes[0].{field}"]


@cases("volume, field", {
    "ConfigMap": ({"configMap": {"name": ""}}, "configMap.name"),
    "ConfigMap of nothing": ({"configMap": {}}, "configMap.name"),
    "Secret": ({"secret": {"secretName": ""}}, "secret.secretName"),
    "claim": ({"persistentVolumeClaim": {"claimName": ""}}, "persistentVolumeClaim.claimName"),
    "hostPath": ({"hostPath": {"path": ""}}, "hostPath.path"),
})  # fmt: skip
def test_a_volume_names_what_it_is_made_of(volume, field):
    found = causes(PODS, pod(volumes=[{"name": "v", **volume}]))
    assert [one for one, _ in found] == [f"spec.volumes[0].{field}"]


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/data", True), ("/dev/shm", True), ("/dev/shm/x", True), ("/devices", True), ("/run", True), ("/etc/x", True),
        ("/", False), ("/dev", False), ("/dev/null", False), ("/proc/self/fd", False), ("/sys/", False),
        ("/data/../proc", False), ("proc", False), ("//proc", False), ("/dev/shm/../null", False),
    ],
)  # fmt: skip
@cases("elsewhere", {
    "here": False,
    "in another cluster": True,
})  # fmt: skip
def test_where_a_volume_may_be(path, allowed, elsewhere):
    container = {"name": "c", "command": ["c"], "volumeMounts": [{"name": "v", "mountPath": path}]}
    template = {"spec": {"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}}
    fields = [cause.field for cause in templates.check(template, "", elsewhere=elsewhere)]
    wanted = [] if allowed or elsewhere else [".spec.containers[0].volumeMounts[0].mountPath"]
    assert fields == wanted


@pytest.mark.parametrize("source", ["serviceAccountToken", "secret"])
def test_token_of_an_account_is_told_of(source):
    volume = {"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}, {source: {}}]}}
    told = admit(PODS, pod(volumes=[volume]), warnings=True).warnings
    path = "spec.volumes[0].projected.sources[1].serviceAccountToken"
    assert [text.partition(":")[0] for text in told if "volumes" in text] == (
        [path] if source == "serviceAccountToken" else []
    )
