"""kubectl at a terminal: the commands of everyday work (reference: kubernetes-api §3.6)."""

import json
import socket
import subprocess
from contextlib import closing
from http.client import HTTPConnection

import pytest

from proof.harness.kubectl import WAIT
from proof.harness.ports import free_port
from proof.systems import work
from tests.builders import pod
from tests.tables import cases

pytestmark = pytest.mark.system

DONE = "--for=jsonpath={.status.state.phase}=Completed"


def job(name, replicas=1, command="true", **fields):
    return json.dumps(work.job(name, work.shell(command, name="work", replicas=replicas), minimum=1, **fields))


def words(table):
    return [line.split() for line in table.splitlines()]


def test_a_job_is_applied_waited_for_shown_and_deleted(kubectl):
    assert kubectl("apply", "-f", "-", stdin=job("kc")) == "job.batch.volcano.sh/kc created\n"
    kubectl("wait", DONE, "vcjob/kc", WAIT)
    head, row = words(kubectl("get", "vcjob", "kc"))
    assert head == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    assert row[:3] == ["kc", "Completed", "1"]
    pods = words(kubectl("get", "pods", "-l", "volcano.sh/job-name=kc"))
    assert pods[1][:3] == ["kc-work-0", "0/1", "Completed"]
    described = kubectl("describe", "vcjob", "kc")
    assert "Phase:" in described
    assert "AllPodsEnded" in described
    assert "AllPodsEnded" in kubectl("events", "--for=vcjob/kc")
    assert kubectl("delete", "vcjob", "kc").startswith('job.batch.volcano.sh "kc" deleted')
    assert "NotFound" in kubectl.fails("get", "vcjob", "kc")


def test_a_file_that_is_applied_again_changes_nothing_and_a_changed_one_is_told_and_applied(kubectl):
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same}\ndata: {a: '1'}\n"
    assert kubectl("apply", "-f", "-", stdin=config_map) == "configmap/same created\n"
    assert kubectl("apply", "-f", "-", stdin=config_map) == "configmap/same unchanged\n"
    # kubectl sends the lists of custom kinds whole, so it cannot tell; the stored object says it.
    for _ in range(2):
        kubectl("apply", "-f", "-", stdin=job("same", command="sleep 30"))
    assert kubectl("get", "vcjob", "same", "-o", "jsonpath={.metadata.generation}") == "1"
    diff = kubectl.run("diff", "-f", "-", stdin=job("same", 2, "sleep 30"))
    assert (diff.returncode, "+    replicas: 2" in diff.stdout) == (1, True)
    kubectl("apply", "-f", "-", stdin=job("same", 2, "sleep 30"))
    kubectl("wait", "--for=jsonpath={.status.running}=2", "vcjob/same", WAIT)
    kubectl("delete", "vcjob/same", "cm/same", "--wait=false")


def test_logs_are_read_and_followed(kubectl):
    script = "echo one; until [ -e go ]; do sleep 0.05; done; echo two"
    kubectl("apply", "-f", "-", stdin=job("talks", 1, script))
    kubectl("wait", "--for=jsonpath={.status.running}=1", "vcjob/talks", WAIT)
    with kubectl.lines("logs", "-f", "talks-work-0") as lines:
        assert next(lines) == "one\n"
        kubectl("exec", "talks-work-0", "--", "touch", "go")
        assert list(lines) == ["two\n"]
    assert kubectl("logs", "talks-work-0", "--tail=1") == "two\n"
    assert "T" in kubectl("logs", "talks-work-0", "--timestamps").split()[0]
    kubectl("delete", "vcjob", "talks")


def test_server_side_apply_finds_conflicts(kubectl):
    def wanted(value):
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: ssa}}\ndata: {{a: '{value}'}}\n"

    one = ("apply", "--server-side", "--field-manager=one", "-f", "-")
    two = ("apply", "--server-side", "--field-manager=two", "-f", "-")
    assert kubectl(*one, stdin=wanted(1)) == "configmap/ssa serverside-applied\n"
    assert 'conflict with "one": .data.a' in kubectl.fails(*two, stdin=wanted(2))
    kubectl(*two, "--force-conflicts", stdin=wanted(2))
    assert kubectl("get", "cm", "ssa", "-o", "jsonpath={.data.a}") == "2"
    managed = json.loads(kubectl("get", "cm", "ssa", "-o", "json", "--show-managed-fields"))["metadata"]
    assert [(m["manager"], m["operation"]) for m in managed["managedFields"]] == [("two", "Apply")]
    kubectl("delete", "cm", "ssa")


def test_small_changes_and_what_the_editor_leaves_are_stored(kubectl):
    kubectl("create", "configmap", "small", "--from-literal=a=1")
    kubectl("label", "cm", "small", "colour=blue")
    kubectl("annotate", "cm", "small", "why=because")
    kubectl("patch", "cm", "small", "--type=json", '-p=[{"op":"add","path":"/data/b","value":"2"}]')
    found = json.loads(kubectl("get", "cm", "-l", "colour=blue", "-o", "json"))["items"]
    assert [(o["metadata"]["name"], o["data"]) for o in found] == [("small", {"a": "1", "b": "2"})]
    kubectl("replace", "-f", "-", stdin=json.dumps({**found[0], "data": {"c": "3"}}))
    kubectl.environment["EDITOR"] = "sed -i 's/c: \"3\"/c: two/'"
    assert kubectl("edit", "cm", "small") == "configmap/small edited\n"
    assert kubectl("get", "cm", "small", "-o", "jsonpath={.data}") == '{"c":"two"}'
    kubectl("delete", "cm", "-l", "colour=blue")


@cases("typed, message", {
    "unknown field": ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndatta: {}\n", 'unknown field "datta"'),
    "name": (job("Bad_Name"), 'metadata.name: Invalid value: "Bad_Name"'),
    "number": (job("bad", -1), "spec.tasks[0].replicas"),
    "misspelled": (job("bad").replace("replicas", "replica"), 'unknown field "spec.tasks[0].replica"'),
})  # fmt: skip
def test_mistakes_are_refused_at_their_field(kubectl, typed, message):
    assert message in kubectl.fails("apply", "-f", "-", stdin=typed)


def test_a_namespace_goes_with_all_that_is_in_it(kubectl):
    kubectl("create", "namespace", "passing")
    kubectl("apply", "-f", "-", stdin=job("inside", 1, "sleep 60", namespace="passing"))
    kubectl("delete", "namespace", "passing", WAIT)
    assert "NotFound" in kubectl.fails("get", "namespace", "passing")
    assert kubectl("get", "vcjob,pods", "-n", "passing") == ""


SIMULATED = "ui.volcano.sh/simulated"


def simulated_pod(name, node, **fields):
    selector, notes = {"kubernetes.io/hostname": node, SIMULATED: "true"}, {"ui.volcano.sh/duration-seconds": "600"}
    return json.dumps(pod(name, labels={"app": name}, annotations=notes, nodeSelector=selector, **fields))


def simulated_nodes(kubectl):
    listed = kubectl("get", "nodes", "-l", f"{SIMULATED}=true", "-o", "name").split()
    return [each.removeprefix("node/") for each in listed]


def test_taints_keep_pods_away_that_do_not_tolerate_them(kubectl):
    name, *_ = simulated_nodes(kubectl)
    node = f"node/{name}"
    assert f"Taints:             {SIMULATED}=true:NoSchedule\n" in kubectl("describe", node)
    kubectl("taint", "nodes", name, "gpu=yes:NoSchedule")
    kubectl("cordon", node)
    kubectl("uncordon", node)
    taints = kubectl("get", node, "-o", "jsonpath={.spec.taints[*].key}")
    assert sorted(taints.split()) == ["gpu", SIMULATED]
    kubectl("apply", "-f", "-", stdin=simulated_pod("kept-off", name))
    kubectl("wait", "--for=jsonpath={.status.conditions[?(@.type=='PodScheduled')].status}=False", "pod/kept-off", WAIT)
    groups = kubectl("get", "podgroups", "-o", "jsonpath={.items[*].status.conditions[*].message}")
    assert "1 node(s) had untolerated taint {gpu: yes}" in groups
    kubectl("taint", "nodes", name, "gpu-")
    kubectl("wait", "--for=condition=Ready", "pod/kept-off", WAIT)
    kubectl("delete", "pod", "kept-off", "--grace-period=0", "--force")


def test_a_pod_waits_for_its_gates_and_an_administrator_places_one_past_the_scheduler(kubectl):
    node, *_ = simulated_nodes(kubectl)
    gated = simulated_pod("gated", node, schedulingGates=[{"name": "example.com/quota"}])
    kubectl("apply", "-f", "-", stdin=gated)
    assert words(kubectl("get", "pod", "gated"))[1][:3] == ["gated", "0/1", "SchedulingGated"]
    kubectl("patch", "pod", "gated", "--type=json", "-p", '[{"op":"remove","path":"/spec/schedulingGates"}]')
    kubectl("create", "-f", "-", stdin=simulated_pod("placed", node, nodeName=node))
    kubectl("wait", "--for=condition=Ready", "pod/gated", "pod/placed", WAIT)
    kubectl("delete", "pod", "gated", "placed", "--grace-period=0", "--force")


def test_a_queue_may_be_written_with_a_namespace(kubectl):
    queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: habit, namespace: default}\n"
    assert kubectl("apply", "-f", "-", stdin=queue) == "queue.scheduling.volcano.sh/habit created\n"
    assert kubectl("apply", "-f", "-", stdin=queue) == "queue.scheduling.volcano.sh/habit unchanged\n"
    stored = kubectl("get", "queue", "habit", "-o", "jsonpath={.metadata.namespace}/{.spec.dequeueStrategy}")
    assert stored == "/traverse"
    kubectl("patch", "queue", "habit", "--type=merge", "-p", '{"spec":{"state":"Closed"}}')
    kubectl("wait", "--for=jsonpath={.status.state}=Closed", "queue/habit", WAIT)
    kubectl("delete", "queue", "habit")


def test_nodes_are_drained_as_far_as_disruption_budgets_allow(kubectl):
    node = simulated_nodes(kubectl)[1]
    for name in ("evicted", "kept"):
        kubectl("apply", "-f", "-", stdin=simulated_pod(name, node))
    kubectl("create", "pdb", "kept", "--selector=app=kept", "--min-available=1")
    kubectl("wait", "--for=condition=Ready", "pod/evicted", "pod/kept", WAIT)
    refusal = "Cannot evict pod as it would violate the pod's disruption budget."
    with kubectl.lines("drain", node, "--force", stderr=subprocess.STDOUT) as output:
        assert any(refusal in line for line in output)
    kubectl("wait", "--for=delete", "pod/evicted", WAIT)
    assert "Ready,SchedulingDisabled" in kubectl("get", "node", node)
    kubectl("delete", "pdb/kept")
    assert "pod/kept evicted" in kubectl("drain", node, "--ignore-daemonsets", "--force", WAIT)
    kubectl("uncordon", node)
    assert "SchedulingDisabled" not in kubectl("get", "node", node)


def test_questions_about_rights_are_answered(kubectl):
    assert kubectl("auth", "can-i", "create", "vcjob").strip() == "yes"
    assert "admin" in kubectl("auth", "whoami")
    assert "jobs.batch.volcano.sh" in kubectl("auth", "can-i", "--list")
    account = "--as=system:serviceaccount:default:default"
    assert kubectl.run("auth", "can-i", "delete", "pods", account).stdout.split()[0] == "no"
    assert "forbidden" in kubectl.fails("get", "pods", account).lower()


def test_kinds_are_explained_and_listed(kubectl):
    assert "FIELDS:" in kubectl("explain", "vcjob.spec.tasks")
    assert "livenessProbe" in kubectl("explain", "pods.spec.containers")
    listed = kubectl("api-resources", "-o", "wide")
    assert "vcjob,vcjobs,vj" in listed
    assert "podgroups" in listed


def test_commands_run_in_containers(kubectl):
    kubectl("run", "shell", "--image=busybox", "--restart=Never", "--command", "--", "sleep", "60")
    kubectl("wait", "--for=condition=Ready", "pod/shell", WAIT)
    assert kubectl("exec", "shell", "--", "echo", "hi") == "hi\n"
    assert kubectl("exec", "-i", "shell", "--", "cat", stdin="typed") == "typed"
    failed = kubectl.run("exec", "shell", "--", "sh", "-c", "exit 7")
    assert failed.returncode == 7
    kubectl("delete", "pod", "shell", "--grace-period=0", "--force")


def test_a_watch_shows_what_is_there_and_what_happens_and_a_table_has_a_row_for_every_change(kubectl):
    kubectl("create", "secret", "generic", "before")
    with kubectl.lines("get", "secrets", "-w", "-o", "name") as lines:
        assert next(lines) == "secret/before\n"
        kubectl("create", "secret", "generic", "after")
        assert next(lines) == "secret/after\n"
        kubectl("delete", "secret", "before", "after")
        assert [next(lines), next(lines)] == ["secret/before\n", "secret/after\n"]
    kubectl("create", "configmap", "rows")
    with kubectl.lines("get", "cm", "rows", "-w") as lines:
        assert [next(lines).split()[:2], next(lines).split()[:2]] == [["NAME", "DATA"], ["rows", "0"]]
        kubectl("patch", "cm", "rows", "-p", '{"data": {"a": "1"}}')
        assert next(lines).split()[:2] == ["rows", "1"]
    kubectl("delete", "cm", "rows")


WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, required: [size], properties: {size: {type: integer, minimum: 1}}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
"""


def test_a_kind_of_ones_own(kubectl):
    kubectl("apply", "-f", "-", stdin=WIDGETS)
    kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", WAIT)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
    kubectl("apply", "-f", "-", stdin=json.dumps(widget))
    assert words(kubectl("get", "wd")) == [["NAME", "SIZE"], ["w", "3"]]
    bad = {**widget, "spec": {"size": 0}}
    assert "spec.size" in kubectl.fails("apply", "-f", "-", stdin=json.dumps(bad))
    kubectl("delete", "crd", "widgets.example.com", WAIT)
    # kubectl may still have the kind in its cache, and then the server says it.
    error = kubectl.fails("get", "widgets")
    assert "doesn't have a resource type" in error or "could not find the requested resource" in error


def test_ports_of_a_pod_are_forwarded(kubectl, web_pod):
    """Two connections at a time, and a port at which nobody listens: kubectl says so and, as on every cluster, ends."""
    local, free = free_port(), free_port()
    with kubectl.lines(
        "port-forward", web_pod.name, f"{local}:{web_pod.port}", f"{free}:1", stderr=subprocess.STDOUT
    ) as lines:
        assert next(lines).startswith(f"Forwarding from 127.0.0.1:{local}")
        with closing(HTTPConnection("127.0.0.1", local)) as one, closing(HTTPConnection("127.0.0.1", local)) as other:
            one.request("GET", "/hello")
            other.request("GET", "/hello")
            assert [each.getresponse().read() for each in (other, one)] == [b"from the pod"] * 2
        with socket.create_connection(("127.0.0.1", free)) as nobody:
            assert nobody.recv(1) == b""
        output = "".join(lines)
    assert f"error forwarding port 1 to pod {web_pod.name}: connection refused" in output
