from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from cluster.rules.leases import LEASE_NAMESPACE, PLACE_ANNOTATION
from cluster.runtime import nudge
from cluster.store import Create, Delete, Patch, store
from kube.resources import CONFIGMAPS, EVENTS, LEASES, NODES, PODS, SECRETS
from node import attempts
from node.agent.machine import Occupied
from node.left import AtStop
from node.shim import linux, tree
from proof.harness.waiting import HANG_S, until
from tests.cluster.store.forgetting import ASLEEP, forget
from tests.node.driving import NODE, UNTIL_ASKED, Node

MICROSECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")

REMEDY = "; give another command, or install it on node here, whose programs containers run, whatever their image"


def conditions(status):
    return {one["type"]: one["status"] for one in status["conditions"]}


class TestOneAgent:
    @pytest.fixture
    def other(self, node, tmp_path):
        """Another agent for the same node, on another state directory."""
        found = Node(tmp_path / "other")
        yield found
        found.close()

    def test_lease_names_the_state_directory(self, node):
        node.begin()
        lease = store.get(LEASES, LEASE_NAMESPACE, NODE).object
        assert lease["metadata"]["annotations"] == {PLACE_ANNOTATION: f"{socket.gethostname()}:{node.data}"}

    def test_second_agent_stands_back_while_the_first_lives(self, node, other):
        node.begin()
        with pytest.raises(Occupied, match=f"the node {NODE} is the agent's in {socket.gethostname()}:{node.data}$"):
            other.begin()

    def test_second_agent_follows_at_once_when_the_first_stops_in_order(self, node, other):
        node.begin()
        node.agent.depart()
        other.begin()

    def test_second_agent_follows_a_crash_when_the_lease_has_ended(self, node, other):
        node.begin()
        node.crash()
        store.write(Patch(LEASES, LEASE_NAMESPACE, NODE, {"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}}))
        other.begin()

    def test_first_agent_stops_when_it_stood_still_until_another_was_its_node(self, node, other, caplog):
        """It finds that before it starts or tells anything, and ends what it runs."""
        node.begin()
        node.shell(UNTIL_ASKED, "before")
        node.until_phase("Running", "before")
        ended = {"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}}
        store.write(Patch(LEASES, LEASE_NAMESPACE, NODE, ended))
        other.begin()
        uid = node.shell("true", "meanwhile")
        lease, told = store.get(LEASES, LEASE_NAMESPACE, NODE), node.pod("before")
        node.agent.machine.due = node.agent.listener._asked_at = 0.0  # it stood still for longer than all its pauses
        node.agent.work()
        assert f"the node {NODE} is the agent's in {socket.gethostname()}:{other.data}" in caplog.text
        assert node.agent.stopping
        assert node.shims()
        node.daemon.shut_down(AtStop.END)
        assert not node.shims()
        assert not node.directory(uid).exists()
        assert store.get(LEASES, LEASE_NAMESPACE, NODE).object == lease.object
        assert node.pod("before") == told

    def test_first_agent_waits_when_it_is_started_again(self, node, other):
        node.begin()
        node.crash()
        ended = {"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}}
        store.write(Patch(LEASES, LEASE_NAMESPACE, NODE, ended))
        other.begin()
        with pytest.raises(Occupied):
            node.again()

    def test_agent_goes_on_when_its_lease_is_deleted_or_somebody_writes_it(self, node):
        node.begin()
        for write in (
            Delete(LEASES, LEASE_NAMESPACE, NODE),
            Patch(LEASES, LEASE_NAMESPACE, NODE, {"metadata": {"labels": {"a": "b"}}}),
        ):
            store.write(write)
            node.agent.machine.due = 0.0
            node.agent.work()
            assert not node.agent.stopping
        found = store.get(LEASES, LEASE_NAMESPACE, NODE).object
        assert found["metadata"]["annotations"] == {PLACE_ANNOTATION: f"{socket.gethostname()}:{node.data}"}

    def test_same_agent_follows_its_own_crash_at_once(self, node):
        node.begin()
        node.crash()
        node.again()


class TestOnePod:
    @pytest.mark.each_runtime
    def test_success_is_told_as_a_kubelet_tells_it(self, node):
        node.begin()
        uid = node.shell("echo hello")
        status = node.until_phase("Succeeded")
        state = status["containerStatuses"][0]["state"]["terminated"]
        assert (state["exitCode"], state["reason"]) == (0, "Completed")
        if node.engine:
            assert re.fullmatch("podman://[0-9a-f]{64}", state["containerID"])
            assert status["containerStatuses"][0]["imageID"].startswith("localhost/shell@sha256:")
        else:
            assert state["containerID"] == f"process://{uid}/main/0"
        assert all(
            MICROSECONDS.fullmatch(text) for text in (state["startedAt"], state["finishedAt"], status["startTime"])
        )
        assert conditions(status) == {
            "PodScheduled": "True", "Initialized": "True", "ContainersReady": "False", "Ready": "False",
        }  # fmt: skip
        assert status["podIP"].startswith("127.")
        assert status["hostIP"] == "127.0.0.1"

    @pytest.mark.each_runtime
    def test_failure_carries_its_exit_code(self, node):
        node.begin()
        node.shell("exit 3")
        status = node.until_phase("Failed")
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3

    @pytest.mark.each_runtime
    def test_running_is_ready(self, node):
        node.begin()
        node.shell("sleep 60")
        status = node.until_phase("Running")
        assert conditions(status)["Ready"] == "True"
        assert status["containerStatuses"][0]["ready"]
        assert MICROSECONDS.fullmatch(status["containerStatuses"][0]["state"]["running"]["startedAt"])

    @pytest.mark.each_runtime
    def test_command_that_does_not_exist_says_so(self, node):
        node.begin()
        node.submit(command=["nosuch-program"])
        node.until_phase("Failed")
        state = node.state()["terminated"]
        assert (state["exitCode"], state["reason"]) == (128, "StartError")
        problem = 'exec: "nosuch-program": executable file not found in $PATH'
        assert state["message"] == (problem if node.engine else problem + REMEDY)

    def test_program_that_a_shell_does_not_find_is_named_with_the_remedy(self, node):
        node.begin()
        node.shell("echo begun >&2; nosuch-program --now")
        node.until_phase("Failed")
        state = node.state()["terminated"]
        assert (state["exitCode"], state["reason"]) == (127, "Error")
        assert re.fullmatch(r".*nosuch-program: (command )?not found" + re.escape(REMEDY), state["message"])

    def test_program_that_is_missing_is_named_while_its_container_starts_again_and_again(self, node):
        node.begin()
        node.submit(command=["nosuch-program"], restartPolicy="OnFailure")
        node.until(lambda: "CrashLoopBackOff" in json.dumps(node.status()))
        assert node.state()["waiting"]["message"].endswith("found in $PATH" + REMEDY)

    def test_container_without_a_command_gets_a_remedy(self, node):
        node.begin()
        node.submit(containers=[{"name": "web", "image": "nginx"}])
        status = node.until_phase("Failed")
        assert status["reason"] == "NoCommand"
        assert "give container web a command" in status["message"]

    def test_arguments_alone_are_run_as_busybox_runs_them(self, node):
        node.begin()
        node.submit(containers=[{"name": "web", "image": "busybox", "args": ["sh", "-c", "exit 7"]}])
        status = node.until_phase("Failed")
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7

    @pytest.mark.each_runtime
    def test_volume_that_cannot_be_had_is_refused(self, node):
        node.begin()
        node.submit(volumes=[{"name": "v", "nfs": {"server": "s", "path": "/"}}])
        assert node.until_phase("Failed")["reason"] == "UnsupportedVolume"

    @pytest.mark.each_runtime
    @pytest.mark.parametrize("path", ["/", "{data}", "{data}/node", "relative", "/no/such/path"])
    def test_host_path_that_is_not_safe_is_refused(self, node, settings, path):
        settings.HOST_PATHS = ["/"]
        node.begin()
        node.submit(volumes=[{"name": "v", "hostPath": {"path": path.format(data=node.data)}}])
        assert node.until_phase("Failed")["reason"] == "UnsupportedVolume"

    @pytest.mark.each_runtime
    def test_change_by_somebody_else_meanwhile_loses_nothing(self, node):
        node.begin()
        node.shell("sleep 0.2; exit 4")
        for _ in range(20):
            node.annotate()
            node.daemon._wait(0.01)
            node.agent._notice()
            node.agent._step()
            node.agent._write()
        assert node.until_phase("Failed")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 4


class TestSeveralContainers:
    @pytest.mark.each_runtime
    def test_init_containers_run_one_after_another_then_all_together(self, node):
        node.begin()
        out = node.out / "out"

        def say(word, meanwhile):
            return ["sh", "-c", f"echo {word} >> {out}; {meanwhile}; echo -{word} >> {out}"]

        def meet(word):
            return f"until grep -q {word} {out}; do sleep 0.01; done"

        inits = [{"name": f"init-{n}", "command": say(f"i{n}", "sleep 0.05")} for n in (1, 2)]
        mains = [{"name": f"main-{n}", "command": say(f"m{n}", meet(f"m{3 - n}"))} for n in (1, 2)]
        node.submit(containers=mains, initContainers=inits)
        status = node.until_phase("Succeeded")
        lines = out.read_text().split()
        assert lines[:4] == ["i1", "-i1", "i2", "-i2"]
        assert set(lines[4:6]) == {"m1", "m2"}, "neither ended before the other began"
        assert [one["state"]["terminated"]["exitCode"] for one in status["initContainerStatuses"]] == [0, 0]

    @pytest.mark.each_runtime
    def test_failed_init_container_fails_the_pod(self, node):
        node.begin()
        node.submit(initContainers=[{"name": "first", "command": ["false"]}])
        status = node.until_phase("Failed")
        assert conditions(status)["Initialized"] == "False"
        assert "waiting" in status["containerStatuses"][0]["state"]

    @pytest.mark.each_runtime
    def test_sidecar_runs_beside_and_ends_with_the_pod(self, node):
        node.begin()
        sidecar = {"name": "side", "command": ["sh", "-c", UNTIL_ASKED], "restartPolicy": "Always"}
        node.shell("sleep 0.1", initContainers=[sidecar])
        status = node.until_phase("Succeeded")
        assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 143

    @pytest.mark.each_runtime
    def test_pod_is_running_until_its_last_container_ends(self, node):
        node.begin()
        node.submit(containers=[{"name": "a", "command": ["true"]}, {"name": "b", "command": ["sleep", "60"]}])
        node.until(lambda: node.status().get("phase") == "Running" and "terminated" in node.state())
        assert "running" in node.state(container=1)


class TestRestarts:
    @pytest.mark.each_runtime
    def test_first_restart_is_at_once_and_the_next_waits(self, node):
        node.begin()
        node.shell("exit 5", restartPolicy="OnFailure")
        node.until(lambda: "CrashLoopBackOff" in json.dumps(node.status()))
        container = node.status()["containerStatuses"][0]
        assert container["restartCount"] == 1
        assert container["lastState"]["terminated"]["exitCode"] == 5
        assert container["state"]["waiting"]["message"].startswith("back-off 10s restarting failed container=main")
        assert node.status()["phase"] == "Running"

    @pytest.mark.each_runtime
    def test_back_off_is_told_as_kubernetes_tells_it(self, node):
        node.begin()
        uid = node.shell("exit 5", restartPolicy="OnFailure")
        node.until(lambda: "BackOff" in [each.object["reason"] for each in store.find(EVENTS, owner=uid)])
        (told,) = (stored.object for stored in store.find(EVENTS, owner=uid) if stored.object["reason"] == "BackOff")
        assert "CrashLoopBackOff" in json.dumps(node.status())
        assert (told["type"], told["reason"], told["count"]) == ("Warning", "BackOff", 1)
        assert told["message"] == f"Back-off restarting failed container main in pod p_d({uid})"
        assert told["involvedObject"]["fieldPath"] == "spec.containers{main}"
        assert told["source"] == {"component": "kubelet"}

    @pytest.mark.each_runtime
    def test_success_is_not_repeated_on_failure(self, node):
        node.begin()
        count = node.out / "count"
        node.shell(f"echo x >> {count}; [ $(wc -l < {count}) = 2 ]", restartPolicy="OnFailure")
        status = node.until_phase("Succeeded")
        assert status["containerStatuses"][0]["restartCount"] == 1

    @pytest.mark.each_runtime
    def test_deadline_ends_the_pod(self, node):
        node.begin()
        node.shell(UNTIL_ASKED, activeDeadlineSeconds=1)
        status = node.until_phase("Failed")
        assert status["reason"] == "DeadlineExceeded"


class TestDeletion:
    @pytest.mark.each_runtime
    def test_pod_ends_in_order_and_is_gone(self, node):
        node.begin()
        uid = node.shell("trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done")
        node.until_phase("Running")
        until(lambda: list(node.directory(uid).glob("log.*")))
        node.delete()
        node.until(lambda: node.pod() is None)
        assert json.loads((node.directory(uid) / "status.json").read_text())["exitCode"] == 0
        last = next(one for one in store.history(PODS, "d", "p") if one.verb == "DELETED").object
        assert last["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0

    @pytest.mark.each_runtime
    def test_who_ignores_sigterm_is_killed_after_the_grace(self, node):
        node.begin()
        uid = node.shell("trap '' TERM; echo up; while :; do sleep 0.01; done", terminationGracePeriodSeconds=1)
        node.until_phase("Running")
        until(lambda: list(node.directory(uid).glob("log.*")))
        node.delete()
        node.until(lambda: node.pod() is None)
        assert json.loads((node.directory(uid) / "status.json").read_text())["exitCode"] == 137

    @pytest.mark.each_runtime
    def test_forced_deletion_ends_the_processes_too(self, node):
        node.begin()
        node.shell("trap '' TERM; while :; do sleep 0.01; done")
        node.until_phase("Running")
        node.delete(grace=0)
        node.until(lambda: not node.shims())

    @pytest.mark.each_runtime
    def test_pod_that_never_started_can_be_deleted(self, node):
        node.begin()
        node.submit(containers=[{
            "name": "main", "command": ["true"], "envFrom": [{"configMapRef": {"name": "missing"}}],
        }])  # fmt: skip
        node.until(lambda: "not found" in json.dumps(node.status()))
        node.delete()
        node.until(lambda: node.pod() is None)

    @pytest.mark.each_runtime
    def test_pod_that_was_given_up_elsewhere_is_stopped(self, node):
        node.begin()
        node.shell(UNTIL_ASKED)
        node.until_phase("Running")
        lost = {"status": {"phase": "Failed", "reason": "NodeLost", "message": "gone"}}
        store.write(Patch(PODS, "d", "p", lost, "status"))
        node.until(lambda: not node.shims())
        node.until(lambda: "terminated" in node.state())
        assert (node.status()["phase"], node.status()["reason"]) == ("Failed", "NodeLost")


class TestEnvironment:
    @pytest.mark.each_runtime
    def test_everything_that_kubernetes_offers(self, node):
        node.begin()
        store.write(
            Create(
                CONFIGMAPS, {"metadata": {"name": "c", "namespace": "d"}, "data": {"K": "from-map", "not a name=": "x"}}
            )
        )
        store.write(Create(SECRETS, {"metadata": {"name": "s", "namespace": "d"}, "data": {"P": "aHVzaA=="}}))

        def field(path):
            return {"fieldRef": {"fieldPath": path}}

        env = [
            {"name": "A", "value": "1"},
            {"name": "B", "value": "$(A)-$(NOPE)-$$(A)"},
            {"name": "NAME", "valueFrom": field("metadata.name")},
            {"name": "IP", "valueFrom": field("status.podIP")},
            {"name": "TIER", "valueFrom": field("metadata.labels['tier']")},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            {"name": "MAPPED", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "K"}}},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "P"}}},
            {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "s", "key": "Q", "optional": True}}},
        ]
        container = {
            "name": "main", "env": env, "envFrom": [{"prefix": "X_", "configMapRef": {"name": "c"}}],
            "resources": {"limits": {"cpu": "1500m"}},
            "command": ["sh", "-c", f"env -0 > {node.out}/env; echo $(B) > {node.out}/argv"],
        }  # fmt: skip
        node.submit(containers=[container], labels={"tier": "gold"})
        status = node.until_phase("Succeeded")
        found = dict(one.split("=", 1) for one in (node.out / "env").read_text().split("\0") if one)
        assert found["B"] == "1-$(NOPE)-$(A)"
        assert (found["NAME"], found["IP"], found["TIER"], found["CPU"]) == ("p", status["podIP"], "gold", "1500")
        assert (found["MAPPED"], found["SECRET"], found["X_K"], "ABSENT" in found) == (
            "from-map",
            "hush",
            "from-map",
            False,
        )
        assert found["HOSTNAME"] == "p"
        assert node.engine or found["HOME"] == found["PWD"]
        assert not {name for name in found if name.startswith(("VOLCANO_UI", "DJANGO", "DATABASE"))}

    @pytest.mark.each_runtime
    def test_missing_config_map_is_waited_for(self, node):
        node.begin()
        node.submit(containers=[{
            "name": "main", "command": ["true"], "envFrom": [{"configMapRef": {"name": "late"}}],
        }])  # fmt: skip
        node.until(lambda: "CreateContainerConfigError" in json.dumps(node.status()))
        assert node.state()["waiting"]["message"] == 'configmap "late" not found'
        store.write(Create(CONFIGMAPS, {"metadata": {"name": "late", "namespace": "d"}, "data": {}}))
        node.until_phase("Succeeded")

    @pytest.mark.each_runtime
    def test_config_map_that_is_gone_at_a_restart_is_waited_for(self, node):
        node.begin()
        store.write(Create(CONFIGMAPS, {"metadata": {"name": "fleeting", "namespace": "d"}, "data": {}}))
        node.submit(restartPolicy="Always", containers=[{
            "name": "main", "command": ["sleep", "0.5"], "envFrom": [{"configMapRef": {"name": "fleeting"}}],
        }])  # fmt: skip
        node.until(lambda: '"running"' in json.dumps(node.status()))
        store.write(Delete(CONFIGMAPS, "d", "fleeting"))
        node.until(lambda: "CreateContainerConfigError" in json.dumps(node.status()))
        (entry,) = node.status()["containerStatuses"]
        assert node.status()["phase"] == "Running"
        assert entry["state"]["waiting"]["message"] == 'configmap "fleeting" not found'
        assert entry["lastState"]["terminated"]["exitCode"] == 0


@pytest.fixture(params=["mounted", "directories", "podman"])
def begun(request, node):
    """A node for each of the ways in which containers get their volumes."""
    if request.param == "podman":
        return node.with_engine(request.getfixturevalue("podman")).begin()
    found = node.allowed().mounts
    if request.param == "mounted" and found == "none":
        pytest.skip("this machine does not let this user make mounts")
    return node.begin(found if request.param == "mounted" else "none")


class TestVolumes:
    def test_config_map_volume_follows_its_config_map(self, begun):
        store.write(Create(CONFIGMAPS, {"metadata": {"name": "c", "namespace": "d"}, "data": {"key": "one"}}))
        seen = begun.out / "seen"
        mount = {"name": "conf", "mountPath": "/etc/volcano-test"}
        script = f"cat $VOLUME_CONF/key > {seen}; while [ $(cat $VOLUME_CONF/key) = one ]; do sleep 0.01; done"
        begun.submit(
            containers=[{"name": "main", "command": ["sh", "-c", script], "volumeMounts": [mount]}],
            volumes=[{"name": "conf", "configMap": {"name": "c"}}],
        )
        begun.until_phase("Running")
        begun.until(lambda: seen.exists() and seen.read_text() == "one")
        store.write(Patch(CONFIGMAPS, "d", "c", {"data": {"key": "two"}}))
        begun.until_phase("Succeeded")

    def test_empty_dir_is_shared_by_containers_and_a_claim_by_pods(self, begun):
        mounts = [{"name": "scratch", "mountPath": "/scratch"}, {"name": "kept", "mountPath": "/kept/deep"}]
        volumes = [{"name": "scratch", "emptyDir": {}}, {"name": "kept", "persistentVolumeClaim": {"claimName": "c"}}]
        begun.claim()
        write = ["sh", "-c", "echo shared > $VOLUME_SCRATCH/f; echo kept > $VOLUME_KEPT/f"]
        read = ["sh", "-c", "[ $(cat $VOLUME_SCRATCH/f) = shared ]"]
        begun.submit(
            "one", volumes=volumes,
            initContainers=[{"name": "write", "command": write, "volumeMounts": mounts}],
            containers=[{"name": "read", "command": read, "volumeMounts": mounts}],
        )  # fmt: skip
        begun.until_phase("Succeeded", "one")
        again = ["sh", "-c", "[ $(cat $VOLUME_KEPT/f) = kept ] && ! [ -e $VOLUME_SCRATCH/f ]"]
        begun.submit("two", volumes=volumes, containers=[{"name": "m", "command": again, "volumeMounts": mounts}])
        begun.until_phase("Succeeded", "two")

    def test_pods_of_a_job_find_each_other_by_name(self, begun):
        script = (
            'for n in w-0 w-1 w-1.j; do until grep -q " $n\\( \\|$\\)" $VOLCANO_HOSTS_FILE; do sleep 0.01; done; done;'
            f"grep ' w-1' $VOLCANO_HOSTS_FILE > {begun.out}/hosts-$HOSTNAME"
        )
        for index in (0, 1):
            begun.shell(script, f"w-{index}", hostname=f"w-{index}", subdomain="j", owner="job-uid")
        for index in (0, 1):
            begun.until_phase("Succeeded", f"w-{index}")
        assert begun.status("w-1")["podIP"] in (begun.out / "hosts-w-0").read_text()

    @pytest.mark.parametrize("names", [("w-0",), ("w-0", "w-1")], ids=["its last pod", "one of two"])
    def test_pod_that_is_taken_from_its_job_keeps_no_other_from_running(self, begun, names):
        for name in names:
            begun.shell("sleep 60", name, owner="job-uid")
            begun.until_phase("Running", name)
        store.write(Patch(PODS, "d", "w-0", {"metadata": {"ownerReferences": None}}))
        begun.shell("true", "later")
        begun.until_phase("Succeeded", "later")
        assert begun.status("w-0")["phase"] == "Running"

    def test_peer_that_has_finished_is_still_found(self, begun):
        begun.shell("true", "first", owner="job-uid")
        begun.shell(
            f"until [ -e {begun.out}/go ]; do sleep 0.01; done; grep -q ' first$' $VOLCANO_HOSTS_FILE", owner="job-uid"
        )
        begun.until_phase("Succeeded", "first")
        begun.annotate()
        (begun.out / "go").touch()
        begun.until_phase("Succeeded")


class TestWalls:
    def test_files_of_the_cluster_are_out_of_reach(self, begun):
        (begun.data / "secret-key").write_text("hush")
        begun.shell(f"pwd; touch here; cat {begun.data}/secret-key")
        begun.until_phase("Failed")
        made = [one.name for one in begun.data.glob("node/pods/*/_work/*")]
        assert made == ([] if begun.engine else ["here"])


class TestTemporaryFiles:
    """Where a pod's temporary files are, of which images have their own."""

    @pytest.fixture(params=["mounted", "directories"])
    def begun(self, request, node):
        node.shows_out = False
        return node.begin(node.allowed().mounts if request.param == "mounted" else "none")

    def test_they_are_the_pods_own_and_shared_by_its_containers(self, begun):
        script = "ls -A $TMPDIR; until [ -e $TMPDIR/ready ]; do sleep 0.01; done; touch $TMPDIR/{}"
        both = [{"name": name, "command": ["sh", "-c", script.format(name)]} for name in ("a", "b")]
        make = {"name": "make", "command": ["sh", "-c", "touch $TMPDIR/ready"]}
        uid = begun.submit(containers=both, initContainers=[make])
        begun.until_phase("Succeeded")
        made = begun.data / "node" / "pods" / uid / "_tmp"
        assert sorted(one.name for one in made.iterdir()) == ["a", "b", "ready"]
        assert not Path("/var/tmp/ready").exists()

    def test_a_socket_with_a_long_name_has_room_where_mounts_are_had(self, begun):
        name = "s" * 90  # Ray's are about as long; a whole path may have 107 bytes
        make = f"import os, socket; socket.socket(socket.AF_UNIX).bind(os.environ['TMPDIR'] + '/{name}')"
        begun.submit(command=["python3", "-c", make])
        begun.until_phase("Failed" if begun.mounts == "none" else "Succeeded")

    @pytest.mark.parametrize("path", ["/var/tmp", "/var"])
    def test_a_volume_of_the_pod_comes_first(self, begun, path):
        mount = {"name": "v", "mountPath": path}
        script = "touch $VOLUME_V/mine $TMPDIR/mine"
        uid = begun.submit(
            containers=[{"name": "main", "command": ["sh", "-c", script], "volumeMounts": [mount]}],
            volumes=[{"name": "v", "emptyDir": {}}],
        )
        begun.until_phase("Succeeded")
        home = begun.data / "node" / "pods" / uid
        assert [one.name for one in (home / "_volumes" / "v").iterdir()] == ["mine"]
        assert [one.name for one in (home / "_tmp").iterdir()] == ["mine"]


class TestBadLuck:
    def test_locked_database_loses_nothing(self, node):
        node.begin()
        if connection.vendor != "sqlite":
            pytest.skip("SQLite only")
        node.held("exit 9")
        node.until_phase("Running")
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 50")
        other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        node.let_go()
        until(lambda: node.daemon._wait(0.01) or not node.shims())
        node.agent._notice()
        for _ in range(5):
            node.agent._step()
            node.agent._write()
        other.execute("ROLLBACK")
        other.close()
        assert node.until_phase("Failed")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 9

    def test_pod_that_cannot_be_read_stops_nobody(self, node):
        node.begin()
        body = {"metadata": {"name": "odd", "namespace": "d"}, "spec": {"nodeName": "here", "containers": "what?"}}
        store.write(Create(PODS, body))
        node.shell("true")
        node.until_phase("Succeeded")

    def test_state_directory_without_room_is_said_and_waited_for(self, node, monkeypatch):
        node.begin()
        make = Path.mkdir

        def full(path, *args, **options):
            raise OSError(28, "No space left on device", str(path))

        monkeypatch.setattr(Path, "mkdir", full)
        node.shell("true")
        node.until(lambda: "No space left on device" in json.dumps(node.status()))
        assert node.state()["waiting"]["reason"] == "CreateContainerError"
        monkeypatch.setattr(Path, "mkdir", make)
        node.until_phase("Succeeded")

    def test_without_redis_the_store_is_asked(self, node, settings):
        settings.REDIS_URL = "redis://127.0.0.1:1/0"
        nudge.client.cache_clear()
        node.begin()
        node.shell("true")
        until(lambda: node.status().get("phase") == "Succeeded" or node.daemon.turn(), every_s=0)

    def test_with_redis_the_store_says_what_is_new(self, node, monkeypatch):
        """Nobody asks the store here, so what the agent does it has heard of."""
        node.begin()
        node.daemon.turn()  # what was written before it listened
        monkeypatch.setattr("node.listen.SAFETY_S", 2 * HANG_S)
        node.shell("exec sleep 600")
        until(lambda: node.status().get("phase") == "Running" or node.daemon.turn(), every_s=0)
        node.delete()
        until(lambda: node.pod() is None or node.daemon.turn(), every_s=0)


class TestSurvival:
    @pytest.mark.each_runtime
    def test_agent_killed_and_back_finds_its_pod_running(self, node):
        node.begin()
        uid = node.held("exit 6")
        node.until_phase("Running")
        before = node.status()["containerStatuses"][0]
        node.crash()
        node.again()
        node.let_go()
        status = node.until_phase("Failed")
        after = status["containerStatuses"][0]
        assert after["state"]["terminated"]["exitCode"] == 6
        assert after["state"]["terminated"]["startedAt"] == before["state"]["running"]["startedAt"]
        assert [one.name for one in node.directory(uid).parent.iterdir()] == ["0"]

    @pytest.mark.each_runtime
    def test_end_that_came_while_no_agent_was_there_is_reported(self, node):
        node.begin()
        uid = node.held("exit 6")
        node.until_phase("Running")
        node.crash()
        node.let_go()
        until((node.directory(uid) / "status.json").exists)
        node.again()
        assert node.until_phase("Failed")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 6

    @pytest.mark.each_runtime
    def test_nothing_runs_twice_however_often_the_agent_is_killed(self, node):
        node.begin()
        ran = node.out / "ran"
        for index in range(10):
            node.shell(f"echo {index} >> {ran}; sleep 0.1", f"p-{index}")
        for _ in range(15):
            node.agent.listener.hurry()
            node.agent._read_changes()
            node.agent._step()
            node.daemon._wait(0.005)
            node.crash()
            node.again()
        for index in range(10):
            node.until_phase("Succeeded", f"p-{index}")
        assert sorted(ran.read_text().split()) == sorted(map(str, range(10)))

    @pytest.mark.each_runtime
    def test_killed_shim_leaves_an_unknown_end_and_no_process(self, node):
        node.begin()
        node.shell("setsid sleep 1000 & sleep 1000")
        node.until_phase("Running")
        (uid,) = node.agent.pods
        marked = f"{attempts.MARK}=process://{uid}/main/0".encode()
        # A process that is about to become another program shows no variables, and is looked for once.
        until(lambda: [_program(pid) for pid in tree.with_variable({marked})].count("sleep") == 2)
        os.kill(node.shims()[0], signal.SIGKILL)
        node.until_phase("Failed")
        state = node.state()["terminated"]
        assert (state["exitCode"], state["reason"]) == (137, "ContainerStatusUnknown")
        until(lambda: not tree.with_variable({marked}))
        until(lambda: node.engine is None or not any(uid in each for each in node.engine.names()))

    @pytest.mark.each_runtime
    def test_killed_shim_of_a_pod_with_a_controller_has_the_pod_taken_away(self, node):
        """It never failed on the way: a policy for PodFailed has nothing to answer."""
        node.begin()
        uid = node.shell("sleep 1000", owner="of-a-job")
        node.until_phase("Running")
        os.kill(node.shims()[0], signal.SIGKILL)
        node.until(lambda: node.pod() is None)
        versions = [one for one in store.changes(0, limit=1000) if one.uid == uid]
        assert "Failed" not in {one.object["status"]["phase"] for one in versions}
        last = versions[-1].object["status"]
        assert last["containerStatuses"][0]["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
        assert ("DisruptionTarget", "True") in {(one["type"], one["status"]) for one in last["conditions"]}

    @pytest.mark.each_runtime
    def test_pod_deleted_while_no_agent_was_there_is_ended(self, node):
        node.begin()
        node.shell("sleep 60")
        node.until_phase("Running")
        node.crash()
        node.delete(grace=0)
        node.again()
        node.until(lambda: not node.shims())

    @ASLEEP
    def test_pod_deleted_while_the_machine_slept_longer_than_history_is_kept_is_ended(self, node, forgotten):
        node.begin()
        kept, gone = node.shell("sleep 60", "kept"), node.shell("sleep 60", "gone")
        for name in ("kept", "gone"):
            node.until_phase("Running", name)
        node.delete("gone", grace=0)
        node.annotate("kept")  # a change that stays behind the one that is forgotten
        with forgotten():
            node.agent.listener.hurry()
            node.agent._read_changes()
        node.until(lambda: gone not in node.agent.pods)
        assert list(node.agent.pods) == [kept]
        assert len([pid for pid in node.shims() if linux.start_ticks(pid)]) == 1

    def test_pod_made_while_the_machine_slept_longer_than_history_is_kept_runs(self, node):
        node.begin()
        node.shell("true")
        node.annotate()
        forget()
        node.until_phase("Succeeded")

    def test_volume_changed_while_the_machine_slept_longer_than_history_is_kept_is_brought_up_to_date(self, node):
        node.begin()
        store.write(Create(CONFIGMAPS, {"metadata": {"name": "c", "namespace": "d"}, "data": {"key": "old"}}))
        out = node.out / "seen"
        script = f"while ! grep -q new $VOLUME_V/key; do sleep 0.02; done; cp $VOLUME_V/key {out}"
        mount = {"name": "v", "mountPath": "/etc/volcano-test"}
        node.submit(
            containers=[{"name": "main", "command": ["sh", "-c", script], "volumeMounts": [mount]}],
            volumes=[{"name": "v", "configMap": {"name": "c"}}],
        )
        node.until_phase("Running")
        store.write(Patch(CONFIGMAPS, "d", "c", {"data": {"key": "new"}}))
        store.write(Patch(CONFIGMAPS, "d", "c", {"metadata": {"labels": {"a": "b"}}}))
        forget()
        node.until_phase("Succeeded")
        assert out.read_text() == "new"

    def test_database_that_goes_away_while_everything_is_looked_at_again_is_asked_again(self, node, monkeypatch):
        node.begin()
        node.shell("sleep 60")
        node.until_phase("Running")
        node.delete(grace=0)
        forget()
        with monkeypatch.context() as outage:
            outage.setattr(store, "find", _away)
            node.agent.listener.hurry()
            node.daemon.turn()
        node.until(lambda: not node.agent.pods)

    @pytest.mark.each_runtime
    def test_stopping_the_cluster_ends_pods_and_says_so(self, node):
        node.begin()
        node.shell(UNTIL_ASKED, "never")
        node.shell(UNTIL_ASKED, "always", restartPolicy="Always")
        owned = node.shell("trap 'exit 0' TERM; while :; do sleep 0.05; done", "owned", owner="of-a-job")
        for name in ("never", "always", "owned"):
            node.until_phase("Running", name)
        node.daemon.shut_down(AtStop.END)
        assert not node.shims()
        assert node.pod("owned") is None, "its job makes another one"
        told = [each.object for each in store.find(EVENTS) if each.object["involvedObject"]["uid"] == owned]
        warnings = [each["reason"] for each in told if each["type"] == "Warning"]
        assert warnings == ["NodeShutdown"]
        assert node.status("never")["reason"] == "NodeShutdown"
        assert node.status("never")["phase"] == "Failed"
        assert node.status("always")["phase"] == "Running"
        node.again()
        node.until(lambda: "running" in node.state("always"))
        assert node.status("always")["containerStatuses"][0]["restartCount"] == 1


class TestMachine:
    def test_node_says_what_it_has(self, node):
        node.begin()
        found = store.get(NODES, "", "here").object
        assert found["metadata"]["labels"]["kubernetes.io/hostname"] == "here"
        assert found["status"]["capacity"]["cpu"] == str(len(os.sched_getaffinity(0)))
        assert {one["type"]: one["status"] for one in found["status"]["conditions"]} == {
            "MemoryPressure": "False", "DiskPressure": "False", "Ready": "True",
        }  # fmt: skip
        assert found["metadata"]["annotations"]["ui.volcano.sh/volumes"].startswith("directories")

    def test_heartbeat_renews_the_lease(self, node):
        node.begin()
        first = store.get(LEASES, "kube-node-lease", "here").object["spec"]["renewTime"]
        node.agent.machine.due = 0
        node.agent.machine.beat()
        assert store.get(LEASES, "kube-node-lease", "here").object["spec"]["renewTime"] > first

    def test_database_that_is_away_is_told_of_once(self, node, monkeypatch, caplog):
        node.begin()
        caplog.clear()
        with monkeypatch.context() as outage:
            outage.setattr(store, "changes", _away)
            outage.setattr("node.agent.machine.renew", _away)
            for _ in range(3):
                node.agent.machine.due = 0
                node.agent.listener.hurry()
                node.daemon.turn()
        node.daemon.turn()
        node.agent.machine.due = 0
        node.daemon.turn()
        first, last = [each.getMessage() for each in caplog.records if each.name == "node.agent.agent"]
        assert first == "the node's work with the cluster is put off: heartbeat not written: gone"
        assert last.startswith("the node's work with the cluster goes on")

    def test_full_disk_is_a_condition_in_words(self, node, monkeypatch):
        node.begin()
        monkeypatch.setattr("node.agent.readings.DISK_LEAST_SHARE", 2)
        monkeypatch.setattr("node.agent.readings.DISK_LEAST_BYTES", 1 << 60)
        node.agent.machine.due = 0
        node.agent.machine.beat()
        found = {one["type"]: one for one in store.get(NODES, "", "here").object["status"]["conditions"]}
        assert found["DiskPressure"]["status"] == "True"
        assert "is full; make room" in found["DiskPressure"]["message"]

    def test_programs_that_are_installed_or_removed_are_listed_with_the_next_beat(self, node, monkeypatch):
        monkeypatch.setattr("node.agent.readings.SYSTEM_FOLDERS", [])
        monkeypatch.setenv("PATH", str(node.out))
        node.begin()
        assert self.listed(node) == ""
        for name in ("ssh", "mpirun", "sshd"):
            (node.out / name).touch(0o755 if name != "sshd" else 0o644)
        node.agent.machine.due = 0
        assert self.listed(node) == "mpirun,ssh"
        (node.out / "ssh").unlink()
        node.agent.machine.due = 0
        assert self.listed(node) == "mpirun"

    def test_programs_are_written_only_when_they_changed(self, node):
        node.begin()
        before = store.get(NODES, "", "here").version
        node.agent.machine.due = 0
        self.listed(node)
        assert store.get(NODES, "", "here").version == before

    def test_sshd_need_not_be_on_the_search_path(self, node, monkeypatch):
        monkeypatch.setattr("node.agent.readings.SYSTEM_FOLDERS", [str(node.out)])
        monkeypatch.setenv("PATH", "/nonexistent")
        (node.out / "sshd").touch(0o755)
        assert self.listed(node.begin()) == "sshd"

    def listed(self, node):
        node.agent.machine.beat()
        return store.get(NODES, "", "here").object["metadata"]["annotations"]["ui.volcano.sh/programs"]


def _program(pid):
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _away(*_, **__):
    raise OperationalError("gone")
