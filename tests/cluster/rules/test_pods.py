"""Pods: what is filled in, what is refused, and the plug-ins ServiceAccount, Priority and DefaultTolerationSeconds.

What Kubernetes fills in without looking at anything else: test_kinds.py.
"""

from __future__ import annotations

import pytest

from cluster.rules import templates
from kube.errors import Forbidden
from kube.resources import SERVICE_ACCOUNTS
from tests.builders import container
from tests.tables import cases

from .known import DROP, PODS, admit, admitted, causes, changed, messages, of, pod, priority_class

HIGH = priority_class("high", 1000, preemptionPolicy="Never")
LOW, LOWER = priority_class("low", 10, globalDefault=True), priority_class("lower", 5, globalDefault=True)
SIMULATED = {"ui.volcano.sh/simulated": "true"}
TOLERATION = {"key": "ui.volcano.sh/simulated", "operator": "Exists", "effect": "NoSchedule"}


def fields(obj, old=None):
    return [field for field, _ in causes(PODS, obj, old)]


def main(**given):
    """A pod whose container has these fields."""
    return pod(containers=[container(**given)])


def test_what_is_given_or_stored_stays():
    given = {
        "restartPolicy": "Never",
        "dnsPolicy": "Default",
        "terminationGracePeriodSeconds": 0,
        "schedulerName": "volcano",
    }
    assert given.items() <= admitted(PODS, pod(**given))["spec"].items()
    stored = admitted(PODS, pod())
    assert admit(PODS, stored, stored).object == stored
    assert fields(changed(stored, "metadata.labels", {"a": "b"}), stored) == []
    shorter = changed(stored, "spec.dnsPolicy", DROP)
    assert admit(PODS, shorter, stored).checked()["spec"] == stored["spec"]


def test_a_pod_that_a_controller_made_can_be_labelled_and_is_not_filled_in():
    made = pod()
    labelled = changed(made, "metadata.labels", {"a": "b"})
    with_image = changed(made, "spec.containers.0.image", "other")
    for change in (labelled, with_image):
        assert admit(PODS, change, made).checked()["spec"] == change["spec"]


@cases("spec, tolerated", {
    "a real pod": ({}, []),
    "another value": ({"nodeSelector": {"ui.volcano.sh/simulated": "false"}}, []),
    "one node by its name": ({"nodeSelector": {"kubernetes.io/hostname": "sim-0001"}}, []),
    "one that asks": ({"nodeSelector": SIMULATED}, [TOLERATION]),
    "one that says so itself": ({"nodeSelector": SIMULATED, "tolerations": [TOLERATION]}, [TOLERATION]),
})  # fmt: skip
def test_a_pod_tolerates_simulated_nodes_when_it_asks_for_them_whatever_an_update_leaves_out(spec, tolerated):
    stored = admitted(PODS, pod(**spec))
    assert [t for t in stored["spec"]["tolerations"] if t["key"] == "ui.volcano.sh/simulated"] == tolerated
    updated = admit(PODS, changed(stored, "spec.tolerations", DROP), stored)
    assert updated.object["spec"].get("tolerations", []) == tolerated


@cases("resources, quality", {
    "nothing": ({}, "BestEffort"),
    "a device alone": ({"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 1}}, "BestEffort"),
    "a request": ({"requests": {"cpu": "1"}}, "Burstable"),
    "a limit": ({"limits": {"cpu": "1"}}, "Burstable"),
    "more than it asks for": ({"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}, "Burstable"),
    "as much, written otherwise": ({"requests": {"cpu": "1000m"}, "limits": {"cpu": 1, "memory": "1Gi"}}, "Guaranteed"),
})  # fmt: skip
def test_quality_of_service(resources, quality):
    assert admitted(PODS, main(resources=resources))["status"]["qosClass"] == quality


@cases("spec, exist, expected", {
    "of its class": ({"priorityClassName": "high"}, [HIGH], {"priority": 1000, "preemptionPolicy": "Never"}),
    "its own, which agrees": ({"priorityClassName": "high", "priority": 1000}, [HIGH], {"priority": 1000}),
    "the lowest of several defaults": ({}, [HIGH, LOW, LOWER], {"priorityClassName": "lower", "priority": 5}),
    "of its account": ({"serviceAccountName": "x"}, [of(SERVICE_ACCOUNTS, imagePullSecrets=[{"name": "s"}])],
        {"imagePullSecrets": [{"name": "s"}]}),
})  # fmt: skip
def test_what_comes_of_other_objects(spec, exist, expected):
    assert expected.items() <= admitted(PODS, pod(**spec), *exist)["spec"].items()


COMPUTED = " must not be provided in pod spec; priority admission controller computed"


@cases("spec, refusal", {
    "an unknown class": ({"priorityClassName": "none"}, "no PriorityClass with name none was found"),
    "a priority of ones own": ({"priority": 7},
        f"the integer value of priority (7){COMPUTED} 0 from the given PriorityClass name"),
    "a preemption policy of ones own": ({"preemptionPolicy": "Never"},
        f"the string value of PreemptionPolicy (Never){COMPUTED} PreemptLowerPriority from the given PriorityClass name"),
    "an unknown account": ({"serviceAccountName": "builder"},
        'error looking up service account default/builder: serviceaccount "builder" not found'),
})  # fmt: skip
def test_what_plugins_forbid(spec, refusal):
    with pytest.raises(Forbidden) as refused:
        admitted(PODS, pod(**spec))
    assert refused.value.message == f'pods "p" is forbidden: {refusal}'


RUN, EXISTS = {"exec": {"command": ["true"]}}, {"key": "k", "operator": "Exists"}
HEADERS = {"port": 1, "httpHeaders": [{"name": "a b", "value": ""}]}
MAIN, TOLERATIONS = "spec.containers[0]", "spec.tolerations[0]"


def probe(**given):
    return main(livenessProbe=given)


def tolerating(**given):
    return pod(tolerations=[given])


def user(**given):
    return pod(securityContext=given)


@cases("obj, field", {
    "no container": (pod(containers=[]), "spec.containers"),
    "a container twice": (pod(containers=[{"name": "a"}, {"name": "a"}]), "spec.containers[1].name"),
    "an unknown volume": (main(volumeMounts=[{"name": "v", "mountPath": "/v"}]), f"{MAIN}.volumeMounts[0].name"),
    "more asked than allowed": (main(requests={"cpu": 2}, limits={"cpu": 1}), f"{MAIN}.resources.requests[cpu]"),
    "a node of no name": (pod(nodeName="A b"), "spec.nodeName"),
    "a node for what gates hold back": (pod(nodeName="n", schedulingGates=[{"name": "g"}]), "spec.nodeName"),
    "a gate without a name": (pod(schedulingGates=[{}]), "spec.schedulingGates[0].name"),
    "a gate twice": (pod(schedulingGates=[{"name": "g"}, {"name": "g"}]), "spec.schedulingGates[1]"),
    "no spec": (changed(pod(), "spec", DROP), "spec"),
    "a toleration of all keys by value": (tolerating(value="v"), f"{TOLERATIONS}.operator"),
    "a toleration of any value that names one": (tolerating(**EXISTS, value="v"), f"{TOLERATIONS}.operator"),
    "a toleration of what is no value": (tolerating(key="k", value="a b"), f"{TOLERATIONS}.operator"),
    "a toleration of what is no key": (tolerating(key="a b", operator="Exists"), f"{TOLERATIONS}.key"),
    "a toleration for a time of what does not evict": (tolerating(**EXISTS, effect="NoSchedule", tolerationSeconds=5), f"{TOLERATIONS}.effect"),
    "a probe of nothing": (probe(), f"{MAIN}.livenessProbe"),
    "a probe of two things": (main(startupProbe={**RUN, "tcpSocket": {"port": 1}}), f"{MAIN}.startupProbe.tcpSocket"),
    "no command": (probe(exec={}), f"{MAIN}.livenessProbe.exec.command"),
    "no port": (probe(tcpSocket={"port": 0}), f"{MAIN}.livenessProbe.tcpSocket.port"),
    "beyond the last port": (probe(tcpSocket={"port": 65536}), f"{MAIN}.livenessProbe.tcpSocket.port"),
    "a number as the name of a port": (probe(tcpSocket={"port": "80"}), f"{MAIN}.livenessProbe.tcpSocket.port"),
    "scheme": (probe(httpGet={"port": 1, "scheme": "FTP"}), f"{MAIN}.livenessProbe.httpGet.scheme"),
    "header": (probe(httpGet=HEADERS), f"{MAIN}.livenessProbe.httpGet.httpHeaders[0].name"),
    "negative": (probe(**RUN, periodSeconds=-1), f"{MAIN}.livenessProbe.periodSeconds"),
    "alive twice": (probe(**RUN, successThreshold=2), f"{MAIN}.livenessProbe.successThreshold"),
    "started twice": (main(startupProbe={**RUN, "successThreshold": 2}), f"{MAIN}.startupProbe.successThreshold"),
    "no grace": (probe(**RUN, terminationGracePeriodSeconds=0), f"{MAIN}.livenessProbe.terminationGracePeriodSeconds"),
    "readiness ends nobody": (main(readinessProbe={**RUN, "terminationGracePeriodSeconds": 9}), f"{MAIN}.readinessProbe.terminationGracePeriodSeconds"),
    "a hook without anything to do": (main(lifecycle={"postStart": {}}), f"{MAIN}.lifecycle.postStart"),
    "a long pause": (main(lifecycle={"preStop": {"sleep": {"seconds": 31}}}), f"{MAIN}.lifecycle.preStop.sleep.seconds"),
    "a user below none": (user(runAsUser=-1), "spec.securityContext.runAsUser"),
    "a user above all": (user(runAsUser=2**31), "spec.securityContext.runAsUser"),
    "a group below none": (user(runAsGroup=-1), "spec.securityContext.runAsGroup"),
    "a group above all": (user(runAsGroup=2**31), "spec.securityContext.runAsGroup"),
    "a group of files below none": (user(fsGroup=-1), "spec.securityContext.fsGroup"),
    "a group of files above all": (user(fsGroup=2**31), "spec.securityContext.fsGroup"),
    "one of several groups": (user(supplementalGroups=[1, -1]), "spec.securityContext.supplementalGroups[1]"),
    "a user of a container": (main(securityContext={"runAsUser": 2**31}), f"{MAIN}.securityContext.runAsUser"),
})  # fmt: skip
def test_refusals(obj, field):
    assert field in fields(obj)


@cases("obj", {
    "ready twice": main(readinessProbe={**RUN, "successThreshold": 2}),
    "port by name": probe(httpGet={"port": "http-alt"}),
    "hooks": main(lifecycle={"preStop": {"sleep": {"seconds": 30}}, "postStart": RUN}),
    "users": user(runAsUser=0, runAsGroup=1000, fsGroup=2**31 - 1),
})  # fmt: skip
def test_acceptances(obj):
    assert fields(obj) == []


@cases("given", {"a probe": {"livenessProbe": RUN}, "a hook": {"lifecycle": {"postStart": RUN}}})
def test_init_container_that_ends_has_no_probes_and_hooks(given):
    init = container("first", **given)
    assert f"spec.initContainers[0].{next(iter(given))}" in fields(pod(initContainers=[init]))
    assert fields(pod(initContainers=[{**init, "restartPolicy": "Always"}])) == []


LEAST, MOST = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


@pytest.mark.shows("groups 3.8/jdb-min-available, jdb-max-unavailable", "groups 3.8/others")
@cases("annotations, wrong", {
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
def test_what_a_disruption_must_leave_is_said_in_one_way(annotations, wrong):
    given = pod(schedulerName="volcano", annotations=annotations)
    assert fields(given) == [f"metadata.annotations[{key}]" for key in wrong]
    # As in Volcano: pods of other schedulers, and pods that exist, are not looked at.
    assert fields(changed(given, "spec.schedulerName", "default-scheduler")) == []
    stored = admitted(PODS, pod(schedulerName="volcano"))
    assert fields(changed(stored, "metadata.annotations", annotations), stored) == []


def test_a_wrong_disruption_annotation_is_told_with_its_remedy():
    assert messages(PODS, pod(schedulerName="volcano", annotations={LEAST: "0"})) == [
        f'metadata.annotations[{LEAST}]: Invalid value: "0": must be a positive integer, or a percentage'
        " between 1% and 99%; write it like 2 or 50%."
    ]


def mounting(**mount):
    mounted = container(volumeMounts=[{"name": "v", "mountPath": "/v", **mount}])
    return pod(volumes=[{"name": "v", "emptyDir": {}}], containers=[mounted])


@cases("written, problem", {
    "inside": ("a/b..c/...", None),
    "up": ("../..", "must not contain '..'"),
    "up and down again": ("a/../b", "must not contain '..'"),
    "absolute": ("/a", "must be a relative path"),
})  # fmt: skip
@pytest.mark.parametrize("field", ["subPath", "subPathExpr"])
def test_a_sub_path_stays_below_its_volume(field, written, problem):
    said = f'{MAIN}.volumeMounts[0].{field}: Invalid value: "{written}": {problem}'
    assert messages(PODS, mounting(**{field: written})) == ([said] if problem else [])


def test_a_sub_path_is_written_once():
    assert "subPathExpr and subPath are mutually exclusive" in messages(PODS, mounting(subPath="a", subPathExpr="b"))[0]


UP = [{"key": "k", "path": "../x"}]
ABSOLUTE = [{"key": "k", "path": "/x"}]
DATA = [{"path": "..data", "fieldRef": {"fieldPath": "metadata.name"}}]
DEEP = {"sources": [{"configMap": {"name": "c", "items": [{"key": "k", "path": "a/../../x"}]}}]}


@cases("volume, field", {
    "ConfigMap": ({"configMap": {"name": "c", "items": UP}}, "configMap.items[0].path"),
    "Secret": ({"secret": {"secretName": "c", "items": ABSOLUTE}}, "secret.items[0].path"),
    "downward API": ({"downwardAPI": {"items": DATA}}, "downwardAPI.items[0].path"),
    "projected": ({"projected": DEEP}, "projected.sources[0].configMap.items[0].path"),
    "hostPath": ({"hostPath": {"path": "/srv/../etc"}}, "hostPath.path"),
    "ConfigMap without a name": ({"configMap": {"name": ""}}, "configMap.name"),
    "ConfigMap of nothing": ({"configMap": {}}, "configMap.name"),
    "Secret without a name": ({"secret": {"secretName": ""}}, "secret.secretName"),
    "claim without a name": ({"persistentVolumeClaim": {"claimName": ""}}, "persistentVolumeClaim.claimName"),
    "hostPath of nothing": ({"hostPath": {"path": ""}}, "hostPath.path"),
})  # fmt: skip
def test_a_volume_names_what_it_is_made_of_and_its_paths_lead_nowhere_else(volume, field):
    assert fields(pod(volumes=[{"name": "v", **volume}])) == [f"spec.volumes[0].{field}"]


ANYWHERE = ("/data", "/dev/shm", "/dev/shm/x", "/devices", "/run", "/etc/x")
NOWHERE = ("/", "/dev", "/dev/null", "/proc/self/fd", "/sys/", "/data/../proc", "proc", "//proc", "/dev/shm/../null")


@pytest.mark.parametrize("path", [*ANYWHERE, *NOWHERE])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another cluster"])
def test_where_a_volume_may_be(path, elsewhere):
    mounted = container(volumeMounts=[{"name": "v", "mountPath": path}])
    template = {"spec": {"containers": [mounted], "volumes": [{"name": "v", "emptyDir": {}}]}}
    found = [cause.field for cause in templates.check(template, "", elsewhere=elsewhere)]
    is_allowed = path in ANYWHERE or elsewhere
    assert found == ([] if is_allowed else [".spec.containers[0].volumeMounts[0].mountPath"])


@cases("obj, field", {
    "no command": (pod(containers=[{"name": "a", "image": "nginx"}]), "spec.containers[0].command"),
    "the token of an account": (pod(volumes=[{"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}, {"serviceAccountToken": {}}]}}]),
        "spec.volumes[0].projected.sources[1].serviceAccountToken"),
    "a secret": (pod(volumes=[{"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {}}]}}]), None),
})  # fmt: skip
def test_what_has_no_effect_is_pointed_out(obj, field):
    told = admit(PODS, obj, warnings=True).warnings
    assert [text.partition(":")[0] for text in told] == ([field] if field else [])
