import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from cluster.rules.node.leases import LEASE_NAMESPACE, STATE_DIRECTORY
from cluster.runtime import nudge
from cluster.store import Delete, Patch, store
from kube.resources import CONFIGMAPS, EVENTS, LEASES, NODES, PODS, SECRETS
from node import attempts
from node.agent.daemon import SHUTDOWN_S
from node.agent.machine import Occupied
from node.leftovers import AtStop
from node.shim import linux, tree
from proof.harness.waiting import HANG_S, until
from tests.cluster.store.forgetting import ASLEEP, forget
from tests.node.driving import CLAIM, UNTIL_TERM, Node, change, conditions, container, env, field, in_ways, mount, put
from tests.tables import cases

MICROSECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
REMEDY = "; give another command, or install it on node here, whose programs containers run, whatever their image"
SIDECAR = {"name": "side", "command": ["sh", "-c", UNTIL_TERM], "restartPolicy": "Always"}
SLEEPS, FAILS = {"name": "b", "command": ["sleep", "60"]}, {"name": "first", "command": ["false"]}
LOST = {"status": {"phase": "Failed", "reason": "NodeLost", "message": "gone"}}
TWICE = "echo x >> {out}/count; [ $(wc -l < {out}/count) = 2 ]"


def words(status):
    """What a pod's status says of the pod and of each of its containers, in a line."""
    parts = [" ".join(filter(None, (status.get("phase"), status.get("reason"))))]
    for each in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        ((state, found),) = each["state"].items()
        again = each["restartCount"] and f"after {each['restartCount']}"
        parts.append(" ".join(str(part) for part in (each["name"], state, found.get("exitCode"), again) if part))
    return ", ".join(parts)


class TestOneAgent:
    @pytest.fixture
    def other(self, node, tmp_path):
        with contextlib.closing(Node(tmp_path / "other")) as found:
            yield found

    def lease_ends(self):
        store.write(Patch(LEASES, LEASE_NAMESPACE, "here", {"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}}))

    def test_second_agent_follows_the_first_when_that_stopped_or_its_lease_has_ended(self, node, other):
        location = f"{socket.gethostname()}:{node.data}"
        lease = store.get(LEASES, LEASE_NAMESPACE, "here").object
        assert lease["metadata"]["annotations"] == {STATE_DIRECTORY: location}
        with pytest.raises(Occupied, match=f"the node here is the agent's in {location}$"):
            other.begin()
        node.crash()
        self.lease_ends()
        other.again()
        with pytest.raises(Occupied):
            node.again()
        other.agent.depart()
        assert store.count(NODES) == {"NotReady": 1}
        node.again()

    def test_first_agent_stops_when_it_stood_still_until_another_was_its_node(self, node, other, caplog):
        """It finds that before it starts or tells anything, and ends what it runs."""
        node.shell(UNTIL_TERM, "before", until="Running")
        self.lease_ends()
        other.begin()
        uid = node.shell("true", "meanwhile")
        lease, before = store.get(LEASES, LEASE_NAMESPACE, "here"), node.pod("before")
        node.agent.machine.due = node.agent.listener._asked_at = 0.0  # it stood still for longer than all its pauses
        node.agent.work()
        assert f"the node here is the agent's in {socket.gethostname()}:{other.data}" in caplog.text
        assert node.agent.stopping
        assert node.shims()
        node.daemon.shut_down(AtStop.END)
        assert not node.shims()
        assert not node.directory(uid).exists()
        assert store.get(LEASES, LEASE_NAMESPACE, "here").object == lease.object
        assert node.pod("before") == before

    def test_agent_goes_on_when_its_lease_is_deleted_or_somebody_writes_it(self, node):
        labels = {"metadata": {"labels": {"a": "b"}}}
        for write in (Delete(LEASES, LEASE_NAMESPACE, "here"), Patch(LEASES, LEASE_NAMESPACE, "here", labels)):
            store.write(write)
            node.agent.machine.due = 0.0
            node.agent.work()
            assert not node.agent.stopping
        found = store.get(LEASES, LEASE_NAMESPACE, "here").object
        assert found["metadata"]["annotations"] == {STATE_DIRECTORY: f"{socket.gethostname()}:{node.data}"}


@pytest.mark.each_runtime
@cases("script, spec, expected", {
    "it fails": ("exit 3", {}, "Failed, main terminated 3"),
    "it cannot start": (["nosuch-program"], {}, "Failed, main terminated 128"),
    "a failed init container fails it": ("true", {"initContainers": [FAILS]}, "Failed, first terminated 1, main waiting"),
    "a sidecar ends with it": ("sleep 0.1", {"initContainers": [SIDECAR]}, "Succeeded, side terminated 143, main terminated"),
    "it runs until its last container ends": ("exit 2", {"beside": SLEEPS}, "Running, main terminated 2, b running"),
    "a success is not repeated": (TWICE, {"restartPolicy": "OnFailure"}, "Succeeded, main terminated after 1"),
    "its deadline ends it": (UNTIL_TERM.replace("; ", "; touch {out}/up; ", 1), {"deadline": 1}, "Failed DeadlineExceeded, main terminated 143"),
})  # fmt: skip
def test_what_is_said_of_a_pod(node, script, spec, expected):
    beside = [spec.pop("beside")] if "beside" in (spec := {**spec}) else []
    deadline = spec.pop("deadline", 0)
    command = script if isinstance(script, list) else ["sh", "-c", script.replace("{out}", str(node.out))]
    node.submit(containers=[{"name": "main", "command": command}, *beside], **spec)
    if deadline:
        # It counts from before the container is there, whose first process SIGTERM does not end before it is handled.
        node.until_phase("Running")
        node.until(lambda: (node.out / "up").exists())
        change(PODS, "p", spec={"activeDeadlineSeconds": deadline})
    node.until(lambda: words(node.status()) == expected, lambda: f"{expected} of {words(node.status())}")


def of(command, **fields):
    return {"containers": [{"name": "main", "command": command, **fields}]}


def with_volume(**source):
    return {"volumes": [{"name": "v", **source}]}


TOKEN = {"sources": [{"serviceAccountToken": {"path": "token"}}]}


def test_pods_that_cannot_run_here_say_why_and_the_remedy(machine, settings):
    settings.HOST_PATHS = ["/"]
    machine.begin()
    pods = {
        "bare": ({"containers": [{"name": "web", "image": "nginx"}]}, "NoCommand", "give container web a command"),
        "grpc": (of(["true"], livenessProbe={"grpc": {"port": 1}}), "UnsupportedProbe", "exec"),
        "nfs": (with_volume(nfs={"server": "s", "path": "/"}), "UnsupportedVolume"),
        "token": (with_volume(projected=TOKEN), "cannot have serviceAccountToken", "CreateContainerConfigError"),
        "user": (of(["true"], securityContext={"runAsUser": 65533}), "runAsUser 65533 cannot be had"),
        "root": (of(["true"], securityContext={"runAsNonRoot": True, "runAsUser": 0}), "root"),
        **{
            f"path-{number}": (with_volume(hostPath={"path": str(path)}), "UnsupportedVolume")
            for number, path in enumerate(["/", machine.data, machine.data / "node", "relative", "/no/such"])
        },
        "unknown": (of(["nosuch-program"]), "StartError", f"executable file not found in $PATH{REMEDY}"),
        "in-a-shell": (of(["sh", "-c", "echo begun >&2; nosuch-program"]), "'exitCode': 127", f"not found{REMEDY}"),
    }  # fmt: skip
    for name, (spec, *_) in pods.items():
        machine.submit(name, **spec)
    for name, (_, *says) in pods.items():
        machine.until_waits(*says, name=name)


class TestOnePod:
    @pytest.mark.each_runtime
    def test_running_and_success_are_told_as_a_kubelet_tells_them(self, node):
        uid = node.held("echo hello")
        status = node.until_phase("Running")
        assert (conditions(status)["Ready"], status["containerStatuses"][0]["ready"]) == ("True", True)
        assert MICROSECONDS.fullmatch(node.state()["running"]["startedAt"])
        node.let_go()
        status, state = node.until_phase("Succeeded"), node.state()["terminated"]
        assert (state["exitCode"], state["reason"]) == (0, "Completed")
        if node.engine:
            assert re.fullmatch("podman://[0-9a-f]{64}", state["containerID"])
            assert status["containerStatuses"][0]["imageID"].startswith("localhost/shell@sha256:")
        else:
            assert state["containerID"] == f"process://{uid}/main/0"
        for text in (state["startedAt"], state["finishedAt"], status["startTime"]):
            assert MICROSECONDS.fullmatch(text)
        expected = {"PodScheduled": "True", "Initialized": "True", "ContainersReady": "False", "Ready": "False"}
        assert conditions(status) == expected
        assert (status["podIP"].startswith("127."), status["hostIP"]) == (True, "127.0.0.1")

    def test_arguments_alone_are_run_as_busybox_runs_them_and_changes_by_somebody_else_lose_nothing(self, node):
        script = "sleep 0.2; exit 7"
        node.submit(containers=[{"name": "web", "image": "busybox", "args": ["sh", "-c", script]}])
        for _ in range(20):
            node.annotate()
            node.daemon._wait(0.01)
            node.agent._collect()
            node.agent._step()
            node.agent._write()
        assert node.until_end()["exitCode"] == 7

    @pytest.mark.each_runtime
    def test_init_containers_run_one_after_another_then_all_together(self, node):
        out = node.out / "out"

        def say(name, word, meanwhile):
            script = f"echo {word} >> {out}; {meanwhile}; echo -{word} >> {out}"
            return {"name": name, "command": ["sh", "-c", script]}

        inits = [say(f"init-{n}", f"i{n}", "sleep 0.05") for n in (1, 2)]
        meet = "until grep -q m{} {}; do sleep 0.01; done"
        mains = [say(f"main-{n}", f"m{n}", meet.format(3 - n, out)) for n in (1, 2)]
        node.submit(containers=mains, initContainers=inits, until="Succeeded")
        lines = out.read_text().split()
        assert lines[:4] == ["i1", "-i1", "i2", "-i2"]
        assert set(lines[4:6]) == {"m1", "m2"}, "neither ended before the other began"

    @pytest.mark.each_runtime
    def test_first_restart_is_at_once_and_the_next_waits_and_is_told_as_kubernetes_tells_it(self, node):
        node.submit("missing", command=["nosuch-program"], restartPolicy="OnFailure")
        uid = node.shell("exit 5", restartPolicy="OnFailure")
        node.until(lambda: node.events_of(uid, "BackOff"))
        assert words(node.status()) == "Running, main waiting after 1"
        container = node.status()["containerStatuses"][0]
        assert container["lastState"]["terminated"]["exitCode"] == 5
        assert container["state"]["waiting"]["message"].startswith("back-off 10s restarting failed container=main")
        (event,) = (each.object for each in store.find(EVENTS, owner=uid) if each.object["reason"] == "BackOff")
        assert (event["type"], event["count"]) == ("Warning", 1)
        assert event["message"] == f"Back-off restarting failed container main in pod p_d({uid})"
        assert event["involvedObject"]["fieldPath"] == "spec.containers{main}"
        assert event["source"] == {"component": "kubelet"}
        node.until(lambda: "CrashLoopBackOff" in str(node.status("missing")))
        assert "found in $PATH" in node.state("missing")["waiting"]["message"]


@pytest.mark.each_runtime
def test_pods_that_are_deleted_or_given_up_elsewhere_end_with_their_processes(node):
    endless = "echo up; while :; do sleep 0.01; done"
    scripts = {
        "in-order": ("trap 'exit 0' TERM; " + endless, 30), "killed": ("trap '' TERM; " + endless, 1),
        "forced": ("trap '' TERM; " + endless, 30), "lost": (UNTIL_TERM.replace(";", "; echo up;", 1), 30),
    }  # fmt: skip
    uids = {}
    for name, (script, grace) in scripts.items():
        uids[name] = node.shell(script, name, terminationGracePeriodSeconds=grace)
    node.shell("true", "waits", main={"envFrom": [{"configMapRef": {"name": "missing"}}]})
    node.until_waits("not found", name="waits")
    for name, uid in uids.items():
        node.until_phase("Running", name)
        until(lambda uid=uid: node.printed(uid))
    store.write(Patch(PODS, "d", "lost", LOST, "status"))
    node.delete("forced", grace=0)
    node.delete("waits")
    for name, code in (("in-order", 0), ("killed", 137)):
        node.remove(name)
        assert json.loads((node.directory(uids[name]) / "status.json").read_text())["exitCode"] == code
        last = next(one for one in store.history(PODS, "d", name) if one.verb == "DELETED").object
        assert last["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code
    node.until(lambda: not node.shims() and node.pod("waits") is None and "terminated" in node.state("lost"))
    assert words(node.status("lost")) == "Failed NodeLost, main terminated 143"


class TestEnvironment:
    @pytest.mark.each_runtime
    def test_everything_that_kubernetes_offers(self, node):
        put(CONFIGMAPS, "c", data={"K": "from-map", "not a name=": "x"})
        put(SECRETS, "s", data={"P": "aHVzaA=="})
        variables = env(
            A="1", B="$(A)-$(NOPE)-$$(A)", NAME=field("metadata.name"), IP=field("status.podIP"),
            TIER=field("metadata.labels['tier']"),
            CPU={"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}},
            MAPPED={"configMapKeyRef": {"name": "c", "key": "K"}}, SECRET={"secretKeyRef": {"name": "s", "key": "P"}},
            ABSENT={"secretKeyRef": {"name": "s", "key": "Q", "optional": True}},
        )  # fmt: skip
        env_from, limits = [{"prefix": "X_", "configMapRef": {"name": "c"}}], {"limits": {"cpu": "1500m"}}
        main = {"env": variables, "envFrom": env_from, "resources": limits}
        node.shell(f"env -0 > {node.out}/env", main=main, labels={"tier": "gold"})
        status = node.until_phase("Succeeded")
        found = dict(one.split("=", 1) for one in (node.out / "env").read_text().split("\0") if one)
        expected = {
            "B": "1-$(NOPE)-$(A)", "NAME": "p", "IP": status["podIP"], "TIER": "gold", "CPU": "1500",
            "MAPPED": "from-map", "SECRET": "hush", "X_K": "from-map", "HOSTNAME": "p",
        }  # fmt: skip
        assert found | expected == found
        assert node.engine or found["HOME"] == found["PWD"]
        assert not {each for each in found if each.startswith(("VOLCANO_UI", "DJANGO", "DATABASE", "ABSENT"))}


@in_ways("as allowed", "none", "podman")
class TestVolumes:
    def test_config_map_volume_follows_its_config_map(self, begun):
        put(CONFIGMAPS, "c", data={"key": "one"})
        seen, mounts = begun.out / "seen", {"volumeMounts": [mount("conf", "/etc/volcano-test")]}
        script = f"cat $VOLUME_CONF/key > {seen}; while [ $(cat $VOLUME_CONF/key) = one ]; do sleep 0.01; done"
        absent = {"name": "absent", "projected": {"sources": [{"secret": {"name": "s", "optional": True}}]}}
        begun.shell(script, main=mounts, volumes=[{"name": "conf", "configMap": {"name": "c"}}, absent])
        begun.until(lambda: seen.exists() and seen.read_text() == "one")
        change(CONFIGMAPS, "c", data={"key": "two"})
        begun.until_phase("Succeeded")

    def test_empty_dir_is_shared_by_containers_and_a_claim_by_pods(self, begun):
        begun.claim()
        mounts, volumes = [mount("v", "/kept/deep"), mount("w", "/scratch")], [CLAIM, {"name": "w", "emptyDir": {}}]
        uses = {"mounts": mounts, "volumes": volumes, "until": "Succeeded"}
        first = container("echo kept > $VOLUME_V/f; echo shared > $VOLUME_W/f", *mounts, name="write")
        begun.shell("[ $(cat $VOLUME_W/f) = shared ]", "one", initContainers=[first], **uses)
        begun.shell("[ $(cat $VOLUME_V/f) = kept ] && ! [ -e $VOLUME_W/f ]", "two", **uses)

    def test_pods_of_a_job_find_each_other_by_name_also_one_that_has_finished(self, begun):
        seen = 'until grep -q " $n\\( \\|$\\)" $VOLCANO_HOSTS_FILE; do sleep 0.01; done'
        copy = f"grep ' w-1' $VOLCANO_HOSTS_FILE > {begun.out}/hosts-$HOSTNAME"
        script = f"for n in first w-0 w-1 w-1.j; do {seen}; done; {copy}"
        begun.shell("true", "first", owner="job-uid")
        for name in ("w-0", "w-1"):
            begun.held(script, name, hostname=name, subdomain="j", owner="job-uid")
        begun.until_phase("Succeeded", "first")
        begun.annotate("w-0")
        begun.let_go()
        begun.until_phase("Succeeded", "w-0", "w-1")
        assert begun.status("w-1")["podIP"] in (begun.out / "hosts-w-0").read_text()


def test_pod_that_is_taken_from_its_job_keeps_no_other_from_running(node):
    names = ("w-0", "w-1")
    for name in names:
        node.shell("sleep 60", name, owner="job-uid", until="Running")
    for name in names:
        change(PODS, name, metadata={"ownerReferences": None})
        node.shell("true", f"after-{name}", until="Succeeded")
        assert node.status(name)["phase"] == "Running"


@in_ways("as allowed", "none")
class TestTemporaryFiles:
    def test_they_are_the_pods_own_and_shared_by_its_containers_with_room_for_a_socket_of_a_long_name(self, begun):
        begun.shows_out = False
        script = "ls -A $TMPDIR; until [ -e $TMPDIR/ready ]; do sleep 0.01; done; touch $TMPDIR/{}"
        both = [container(script.format(name), name=name) for name in ("a", "b")]
        make = container("touch $TMPDIR/ready", name="make")
        uid = begun.submit(containers=both, initContainers=[make], until="Succeeded")
        made = begun.data / "node" / "pods" / uid / "_tmp"
        assert sorted(one.name for one in made.iterdir()) == ["a", "b", "ready"]
        assert not Path("/var/tmp/ready").exists()
        name = "s" * 90  # Ray's are about as long; a whole path may have 107 bytes
        make = f"import os, socket; socket.socket(socket.AF_UNIX).bind(os.environ['TMPDIR'] + '/{name}')"
        begun.submit("ray", command=["python3", "-c", make])
        begun.until_phase("Failed" if begun.mounts == "none" else "Succeeded", "ray")


class TestBadLuck:
    @pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite only")
    def test_locked_database_loses_nothing(self, node):
        node.held("exit 9", until="Running")
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 50")
        with contextlib.closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            node.let_go()
            until(lambda: node.daemon._wait(0.01) or not node.shims())
            node.agent._collect()
            for _ in range(5):
                node.agent._step()
                node.agent._write()
            other.execute("ROLLBACK")
        assert node.until_end()["exitCode"] == 9

    def test_state_directory_without_room_is_said_and_waited_for(self, node, monkeypatch):
        """A pod that cannot be read stops nobody."""

        def full(path, *args, **options):
            raise OSError(28, "No space left on device", str(path))

        put(PODS, "odd", spec={"nodeName": "here", "containers": "what?"})
        with monkeypatch.context() as patch:
            patch.setattr(Path, "mkdir", full)
            node.shell("true")
            node.until_waits("No space left on device", "CreateContainerError")
        node.until_phase("Succeeded")

    def test_without_redis_the_store_is_asked(self, machine, settings):
        settings.REDIS_URL = "redis://127.0.0.1:1/0"
        nudge.client.cache_clear()
        machine.begin().shell("true")
        until(lambda: machine.status().get("phase") == "Succeeded" or machine.daemon.turn(), every_s=0)

    def test_with_redis_the_store_says_what_is_new(self, node, monkeypatch):
        """Nobody asks the store here, so what the agent does it has heard of."""
        node.daemon.turn()  # what was written before it listened
        monkeypatch.setattr("node.listen.SAFETY_S", 2 * HANG_S)
        node.shell("exec sleep 600")
        until(lambda: node.status().get("phase") == "Running" or node.daemon.turn(), every_s=0)
        node.delete()
        until(lambda: node.pod() is None or node.daemon.turn(), every_s=0)


class TestSurvival:
    @pytest.mark.each_runtime
    def test_pods_go_on_end_or_are_deleted_while_no_agent_is_there(self, node):
        script = "until [ -e {}/{} ]; do sleep 0.01; done; exit 6"
        names = ("ends", "stays", "deleted", "lost")
        uids = {name: node.shell(script.format(node.out, name), name) for name in names}
        before = {name: node.until_phase("Running", name)["containerStatuses"][0] for name in uids}
        node.crash()
        for name in ("ends", "lost"):
            (node.out / name).touch()
            until((node.directory(uids[name]) / "status.json").exists)
        node.delete("deleted", grace=0)
        node.delete("lost")
        store.write(Patch(PODS, "d", "lost", LOST, "status"))
        node.again()
        (node.out / "stays").touch()
        for name in ("ends", "stays"):
            after = node.until_end(name)
            assert (after["exitCode"], after["startedAt"]) == (6, before[name]["state"]["running"]["startedAt"])
            assert [one.name for one in node.directory(uids[name]).parent.iterdir()] == ["0"]
        node.until(lambda: not node.shims() and node.pod("lost") is None)

    def test_an_agent_is_certain_once_each_attempt_that_it_ordered_has_begun(self, node):
        node.shell(UNTIL_TERM, "before", until="Running")
        assert node.agent.is_certain
        node.shell(UNTIL_TERM)
        node.agent.listener.hurry()
        node.agent._read_changes()
        node.agent._step()
        assert not node.agent.is_certain
        node.until_phase("Running")
        assert node.agent.is_certain

    @pytest.mark.each_runtime
    def test_nothing_runs_twice_however_often_the_agent_is_killed(self, node):
        ran, numbers = node.out / "ran", range(4 if node.engine else 10)
        for index in numbers:
            node.shell(f"echo {index} >> {ran}; sleep 0.1", f"p-{index}")
        for _ in range(15):
            node.agent.listener.hurry()
            node.agent._read_changes()
            node.agent._step()
            node.daemon._wait(0.005)
            node.again()
        node.until_phase("Succeeded", *(f"p-{index}" for index in numbers))
        assert sorted(ran.read_text().split()) == [*map(str, numbers)]

    @pytest.mark.each_runtime
    def test_killed_shim_leaves_an_unknown_end_and_no_process(self, node):
        """A pod with a controller is taken away and never fails: a policy for PodFailed has nothing to answer."""
        uid = node.shell("setsid sleep 1000 & sleep 1000", until="Running")
        owned = node.shell("sleep 1000", "owned", owner="of-a-job", until="Running")
        marked = f"{attempts.MARK}=process://{uid}/main/0".encode()
        # A process that is about to become another program shows no variables, and is looked for once.
        programs = lambda: [Path(f"/proc/{pid}/comm").read_text() for pid in tree.with_variable({marked})]  # noqa: E731
        until(lambda: programs().count("sleep\n") == 2)
        for pid in node.shims():
            os.kill(pid, signal.SIGKILL)
        state = node.until_end()
        assert (state["exitCode"], state["reason"]) == (137, "ContainerStatusUnknown")
        until(lambda: not tree.with_variable({marked}))
        until(lambda: node.engine is None or not any(uid in each for each in node.engine.names()))
        node.until(lambda: node.pod("owned") is None)
        versions = [one for one in store.changes(0, limit=1000) if one.uid == owned]
        assert "Failed" not in {one.object["status"]["phase"] for one in versions}
        last = versions[-1].object["status"]
        assert last["containerStatuses"][0]["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
        assert conditions(last)["DisruptionTarget"] == "True"

    @ASLEEP
    def test_pod_deleted_while_the_machine_slept_longer_than_history_is_kept_is_ended(self, node, forgotten):
        remaining, gone = (node.shell("sleep 60", name, until="Running") for name in ("kept", "gone"))
        node.delete("gone", grace=0)
        node.annotate("kept")  # a change that stays behind the one that is forgotten
        with forgotten():
            node.agent.listener.hurry()
            node.agent._read_changes()
        node.until(lambda: gone not in node.agent.pods)
        assert list(node.agent.pods) == [remaining]
        assert len([pid for pid in node.shims() if linux.start_ticks(pid)]) == 1

    def test_after_a_longer_sleep_than_history_new_pods_run_and_volumes_are_up_to_date(self, node, monkeypatch):
        """Also where the database goes away while everything is looked at again."""
        put(CONFIGMAPS, "c", data={"key": "old"})
        out = node.out / "seen"
        script = f"while ! grep -q new $VOLUME_V/key; do sleep 0.02; done; cp $VOLUME_V/key {out}"
        uses = {"mounts": [mount("v", "/etc/volcano-test")], "volumes": [{"name": "v", "configMap": {"name": "c"}}]}
        node.shell(script, "before", **uses, until="Running")
        node.shell("sleep 60", "gone", until="Running")
        node.shell("true", "made")
        node.annotate("made")
        change(CONFIGMAPS, "c", data={"key": "new"})
        change(CONFIGMAPS, "c", metadata={"labels": {"a": "b"}})
        node.delete("gone", grace=0)
        forget()
        with monkeypatch.context() as outage:
            outage.setattr(store, "find", _away)
            node.agent.listener.hurry()
            node.daemon.turn()
        node.until_phase("Succeeded", "before", "made")
        assert out.read_text() == "new"
        node.until(lambda: not node.agent.pods)

    @pytest.mark.each_runtime
    def test_stopping_the_cluster_ends_pods_and_says_so(self, node):
        node.shell(UNTIL_TERM, "never", until="Running")
        node.shell(UNTIL_TERM, "always", restartPolicy="Always", until="Running")
        polite = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
        owned = node.shell(polite, "owned", owner="of-a-job", until="Running")
        node.daemon.shut_down(AtStop.END)
        request = json.loads((node.directory(owned) / "stop.json").read_text())
        assert request["grace"] < SHUTDOWN_S < 5, "`up` waits five seconds"
        assert not node.shims()
        assert node.pod("owned") is None, "its job makes another one"
        events = [each.object for each in store.find(EVENTS, owner=owned)]
        assert [each["reason"] for each in events if each["type"] == "Warning"] == ["NodeShutdown"]
        assert words(node.status("never")) == "Failed NodeShutdown, main terminated 143"
        assert node.status("always")["phase"] == "Running"
        node.again()
        node.until(lambda: words(node.status("always")) == "Running, main running after 1")


class TestMachine:
    def beat(self, node):
        node.agent.machine.due = 0
        node.agent.machine.beat()
        return store.get(NODES, "", "here")

    def test_node_says_what_it_has_and_renews_its_lease(self, node):
        found = store.get(NODES, "", "here").object
        assert found["metadata"]["labels"]["kubernetes.io/hostname"] == "here"
        assert found["status"]["capacity"]["cpu"] == str(len(os.sched_getaffinity(0)))
        assert conditions(found["status"]) == {"MemoryPressure": "False", "DiskPressure": "False", "Ready": "True"}
        assert found["metadata"]["annotations"]["ui.volcano.sh/volumes"].startswith("directories")
        first = store.get(LEASES, "kube-node-lease", "here").object["spec"]["renewTime"]
        self.beat(node)
        assert store.get(LEASES, "kube-node-lease", "here").object["spec"]["renewTime"] > first

    def test_database_that_is_away_is_told_of_once(self, node, monkeypatch, caplog):
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
        monkeypatch.setattr("node.agent.readings.DISK_LEAST_SHARE", 2)
        monkeypatch.setattr("node.agent.readings.DISK_LEAST_BYTES", 1 << 60)
        (found,) = (one for one in self.beat(node).object["status"]["conditions"] if one["type"] == "DiskPressure")
        assert (found["status"], "is full; make room" in found["message"]) == ("True", True)

    def test_programs_are_listed_with_the_next_beat_when_they_are_installed_or_removed(self, machine, monkeypatch):
        """Those of sshd's folders also where they are not on the search path."""
        path, system = machine.out, machine.out / "sbin"
        monkeypatch.setattr("node.agent.readings.SYSTEM_FOLDERS", [str(system)])
        monkeypatch.setenv("PATH", str(path))
        machine.begin()
        listed = lambda: self.beat(machine).object["metadata"]["annotations"]["ui.volcano.sh/programs"]  # noqa: E731
        assert listed() == ""
        before = store.get(NODES, "", "here").version
        assert self.beat(machine).version == before, "written only when they changed"
        for name in ("ssh", "mpirun", "sshd"):
            (path / name).touch(0o755 if name != "sshd" else 0o644)
        assert listed() == "mpirun,ssh"
        (path / "ssh").unlink()
        system.mkdir()
        (system / "sshd").touch(0o755)
        assert listed() == "mpirun,sshd"


def _away(*_, **__):
    raise OperationalError("gone")
