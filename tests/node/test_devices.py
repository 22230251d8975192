"""Which pod gets which devices: the rules, and pods that really run, by agents that are killed."""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.rules import node_devices
from cluster.store import store
from kube import amounts
from kube.kinds.core import Pod
from kube.resources import NODES
from node import devices
from node.agent.device_holders import DeviceHolders
from node.agent.found_devices import FoundDevices
from node.devices import Device, DevicesError, Kind, Short, parse
from node.paths import Layout
from tests.tables import cases

LICENCE, PORT = "example.org/licence", "example.org/port"


KINDS = devices.parse(f"{LICENCE}:LICENCE=blue,red,green\n{PORT}:PORT=5000..5003")


def wanting(name, licences=0, ports=0, **fields):
    asked = {LICENCE: str(licences), PORT: str(ports)}
    limits = {each: count for each, count in asked.items() if count != "0"}
    return {"name": name, "command": ["x"], "resources": {"limits": limits}, **fields}


def pod(*containers, inits=(), uid="u"):
    body = {"metadata": {"uid": uid}, "spec": {"containers": containers, "initContainers": inits}}
    return msgspec.convert(body, Pod)


steps = st.lists(
    st.tuples(st.sampled_from(["give", "release", "crash"]), st.integers(0, 4), st.integers(0, 2), st.integers(0, 3)),
    max_size=25,
)


class TestRules:
    def test_what_is_declared_is_read(self):
        assert (
            Kind(LICENCE, ("LICENCE",), (Device("blue"), Device("red"), Device("green"))),
            Kind(PORT, ("PORT",), tuple(Device(str(number)) for number in range(5000, 5004))),
        ) == KINDS
        (scope,) = devices.parse("lab.org/scope:SCOPE=/dev/ttyUSB0")
        assert scope.devices == (Device("/dev/ttyUSB0", files=("/dev/ttyUSB0",)),)
        assert devices.parse("") == ()

    @cases("text, told", {
        "no variable": ("example.org/licence=a", "does not have the form RESOURCE:VARIABLE=ID"),
        "no ids": ("example.org/licence:L", "does not have the form"),
        "no domain": ("licence:L=a", "write a domain before it"),
        "a resource that every node has": ("cpu:L=a", "write a domain before it"),
        "two slashes": ("a.org/b/c:L=a", "cannot be the name of a resource"),
        "empty variable": ("a.org/b:=a", "cannot be a variable's name"),
        "empty id": ("a.org/b:L=a,,b", "'' cannot be an id"),
        "an id twice": ("a.org/b:L=a,b,a", "has an id twice"),
        "range that goes down": ("a.org/b:L=7..3", "is no range"),
        "range that is too long": ("a.org/b:L=0..99999", "name at most 10,000"),
        "a resource twice": ("a.org/b:L=a a.org/b:L=b", "is declared twice"),
    })  # fmt: skip
    def test_what_declares_nothing_is_refused(self, text, told):
        with pytest.raises(DevicesError, match=told):
            devices.parse(text)

    def test_first_free_ones_are_given(self):
        held = [{LICENCE: ("blue",)}, {PORT: ("5001",)}]
        assert devices.assign(KINDS, held, {LICENCE: 1, PORT: 2}) == {LICENCE: ("red",), PORT: ("5000", "5002")}

    def test_what_is_gone_is_not_given(self):
        assert devices.assign(KINDS, [], {LICENCE: 1}, gone={(LICENCE, "blue")}) == {LICENCE: ("red",)}

    def test_who_asks_for_more_than_is_free_gets_nothing(self):
        with pytest.raises(Short, match=r"asks for 2 example.org/licence, of which 1 are free"):
            devices.assign(KINDS, [{LICENCE: ("blue", "green")}], {LICENCE: 2})

    @cases("given, expected", {
        "side by side": (pod(wanting("a", 1), wanting("b", 2)), {"a": "x", "b": "yz"}),
        "one has none": (pod(wanting("a", 1), wanting("b")), {"a": "x"}),
        "one after another": (pod(wanting("a", 2), inits=[wanting("i", 1)]), {"i": "x", "a": "xy"}),
        "beside a sidecar": (
            pod(wanting("a", 1), inits=[wanting("s", 1, restartPolicy="Always"), wanting("i", 1)]),
            {"s": "x", "i": "y", "a": "y"},
        ),
    })  # fmt: skip
    def test_containers_that_run_side_by_side_share_no_device(self, given, expected):
        total = amounts.pod_request(given.spec)[LICENCE]
        found = devices.shares(given, {LICENCE: tuple("xyz"[:total])})
        assert {name: "".join(share[LICENCE]) for name, share in found.items()} == expected

    def test_variables_name_what_a_container_has_and_hide_what_it_has_not(self):
        gpus = Kind("nvidia.com/gpu", ("CUDA_VISIBLE_DEVICES",), (Device("GPU-1"),), hides=True)
        kinds = (*KINDS, gpus)
        assert devices.variables(kinds, {PORT: ("5000", "5002")}) == {"PORT": "5000,5002", "CUDA_VISIBLE_DEVICES": ""}
        assert devices.variables(kinds, {"nvidia.com/gpu": ("GPU-1",)}) == {"CUDA_VISIBLE_DEVICES": "GPU-1"}

    def test_file_that_two_devices_need_is_reached_by_who_has_either(self):
        scopes = Kind(
            "a.org/b", ("B",), (Device("1", files=("/dev/all", "/dev/1")), Device("2", files=("/dev/all", "/dev/2")))
        )
        assert devices.files([scopes], {"a.org/b": ("1",)}) == (("/dev/1", "/dev/all"), ("/dev/2",))
        assert devices.files([scopes], {}) == ((), ("/dev/1", "/dev/2", "/dev/all"))

    def test_node_and_pod_say_what_they_have(self):
        listed = [node_devices.NodeDevice(LICENCE, "blue"), node_devices.NodeDevice(PORT, "5000", "first", gone=True)]
        assert node_devices.read({node_devices.ANNOTATION: node_devices.written(listed)}) == listed
        assert node_devices.written([]) == ""
        for text in ("", "no JSON", "[1]", '[["a"]]', "7", "[" * 100_000):
            assert node_devices.read({node_devices.ANNOTATION: text}) == []
        said = node_devices.status({PORT: ["5000"], LICENCE: ["blue"]}, gone=[(PORT, "5000")])
        assert [(each["name"], each["resources"]) for each in said] == [
            (LICENCE, [{"resourceID": "blue", "health": "Healthy"}]),
            (PORT, [{"resourceID": "5000", "health": "Unhealthy"}]),
        ]
        status = {"containerStatuses": [{"name": "a", node_devices.STATUS_FIELD: said}]}
        assert sorted(node_devices.of_pod({"status": status})) == [(LICENCE, "blue"), (PORT, "5000")]

    @given(steps=steps)
    def test_nothing_is_given_out_twice_whenever_the_agent_is_killed(self, tmp_path_factory, steps):
        layout = Layout(tmp_path_factory.mktemp("node"))
        found = FoundDevices(KINDS, finders=(), folders=())
        holders, has = DeviceHolders(layout, found), {}
        for step, number, licences, ports in steps:
            uid = f"pod-{number}"
            layout.pod(uid).mkdir(parents=True, exist_ok=True)
            if step == "give":
                wanted = has[uid][0] if uid in has else Counter({LICENCE: licences, PORT: ports})
                asks = pod(wanting("main", wanted[LICENCE], wanted[PORT]), uid=uid)
                try:
                    got = holders.give(asks)
                except Short:
                    left = {LICENCE: 3, PORT: 4}
                    for other in has.values():
                        left = {name: count - other[0][name] for name, count in left.items()}
                    assert any(wanted[name] > left[name] for name in left)
                    continue
                has[uid] = wanted, has.get(uid, (None, got))[1]
                assert got == has[uid][1], "a pod keeps what it was given first"
                assert {name: len(ids) for name, ids in got.items()} == +wanted
            elif step == "release":
                holders.release(uid)
                has.pop(uid, None)
            else:
                holders = DeviceHolders(layout, found)
                for each in range(5):
                    holders.take_over(f"pod-{each}")
            given_out = [(name, one) for _, got in has.values() for name, ids in got.items() for one in ids]
            assert len(set(given_out)) == len(given_out)


DECLARED = f"{LICENCE}:LICENCE=blue,red,green"


def asks(node, count, script, name="p", **spec):
    """Submit a pod that does nothing but say what it has until it is let go, then what the script says."""
    script = f'echo "$LICENCE" > {node.out}/{name}; until [ -e {node.out}/go ]; do sleep 0.01; done; {script}'
    node.shell(script, name, needs(LICENCE, count), **spec)


def needs(resource, count):
    return {"resources": {"limits": {resource: str(count)}}}


def told(node, name="p"):
    """Return the devices that the store says a pod has."""
    return [one for resource, one in node_devices.of_pod(node.pod(name)) if resource == LICENCE]


def has(node, name="p"):
    """Return the devices that the pod itself was told of."""
    file = node.out / name
    text = node.until(lambda: file.exists() and file.read_text().strip())
    return text.split(",")


def node_status():
    return store.get(NODES, "", "here").object["status"]


def condition(kind="DevicesMissing"):
    return next(one for one in node_status()["conditions"] if one["type"] == kind)


class TestPods:
    @pytest.fixture
    def licences(self, machine, settings):
        settings.DEVICES = parse(DECLARED)
        return machine.begin()

    def test_node_offers_what_is_declared(self, licences):
        assert node_status()["capacity"][LICENCE] == node_status()["allocatable"][LICENCE] == "3"
        found = node_devices.read(store.get(NODES, "", "here").object["metadata"]["annotations"])
        assert [one.id for one in found] == ["blue", "red", "green"]
        assert (condition()["status"], condition()["reason"]) == ("False", "AllDevicesThere")

    def test_pods_get_particular_ones_and_show_them(self, licences):
        for name, count in (("two", 2), ("one", 1)):
            asks(licences, count, "true", name)
            licences.until_phase("Running", name)
        for get in (has, told):
            assert (get(licences, "two"), get(licences, "one")) == (["blue", "red"], ["green"])

    def test_who_asks_for_nothing_is_told_nothing_and_no_pod_can_tell_itself_of_others(self, licences):
        assert licences.ran('echo "${LICENCE-unset}"', "none") == ["unset"]
        environment = [{"name": "LICENCE", "value": "blue,red,green"}, {"name": "MINE", "value": "$(LICENCE)"}]
        assert licences.ran('echo "$LICENCE $MINE"', main={**needs(LICENCE, 1), "env": environment}) == [
            "blue blue,red,green"
        ]

    def test_pod_waits_for_what_others_have_and_gets_it_when_they_have_ended(self, licences):
        node = licences
        asks(node, 2, "true", "first")
        node.until_phase("Running", "first")
        asks(node, 2, "true", "second")
        node.until_waits(f"asks for 2 {LICENCE}, of which 1 are free at the moment", name="second")
        node.let_go()
        node.until_phase("Succeeded", "second")
        assert has(node, "second") == ["blue", "red"]

    def test_nothing_is_given_out_twice_after_the_agent_was_killed(self, licences):
        node = licences
        asks(node, 2, "true", "before")
        node.until_phase("Running", "before")
        node.crash()
        asks(node, 1, "true", "after")
        node.again()
        node.until_phase("Running", "after")
        assert (has(node, "before"), has(node, "after")) == (["blue", "red"], ["green"])
        node.let_go()
        for name in ("before", "after"):
            node.until_phase("Succeeded", name)
        asks(node, 3, "true", "all")
        node.until_phase("Succeeded", "all")
        assert has(node, "all") == ["blue", "red", "green"]

    @pytest.mark.parametrize("gone", [False, True])
    def test_container_that_starts_again_keeps_its_devices_and_waits_where_they_are_gone(
        self, licences, settings, gone
    ):
        again = licences.out / "again"
        asks(licences, 1, f"echo $LICENCE >> {again}; [ $(wc -l < {again}) -gt 1 ]", restartPolicy="OnFailure")
        licences.until_phase("Running")
        if gone:
            licences.crash()
            settings.DEVICES = ()
            licences.again()
        licences.let_go()
        if gone:
            licences.until(lambda: f"the device blue ({LICENCE}), which the pod has, is gone" in str(licences.status()))
        else:
            licences.until_phase("Succeeded")
            assert again.read_text().split() == ["blue", "blue"]

    def test_device_that_vanishes_makes_a_condition_and_is_not_offered(self, machine, settings, tmp_path, monkeypatch):
        shown, program = tmp_path / "shown", tmp_path / "bin" / "nvidia-smi"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\ncat {shown}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        lines = [f"GPU-{number}, A100, 00000000:0{number}:00.0, 5, 10, 100, 40\n" for number in (1, 2)]
        shown.write_text("".join(lines))
        machine.begin()
        assert node_status()["allocatable"]["nvidia.com/gpu"] == "2"
        script = (
            f'echo "$CUDA_VISIBLE_DEVICES" > {machine.out}/gpus; until [ -e {machine.out}/go ]; do sleep 0.01; done'
        )
        machine.shell(script, main=needs("nvidia.com/gpu", 2))
        assert machine.ran('echo "has=$NVIDIA_VISIBLE_DEVICES"', "none") == ["has="]
        machine.until(lambda: (machine.out / "gpus").exists() and (machine.out / "gpus").read_text())
        assert (machine.out / "gpus").read_text().strip() == "GPU-1,GPU-2"
        shown.write_text(lines[0])
        machine.daemon.sampler._machine = machine.daemon.sampler._machine._replace(at=0.0)  # as if its time had come
        machine.daemon.sampler.sample()
        machine.agent.machine.due = 0
        machine.until(lambda: condition()["status"] == "True")
        assert "GPU-2 (nvidia.com/gpu) cannot be found any more" in condition()["message"]
        assert node_status()["allocatable"]["nvidia.com/gpu"] == "1"
        assert node_status()["capacity"]["nvidia.com/gpu"] == "2"
        machine.annotate()
        machine.until(lambda: "Unhealthy" in json.dumps(machine.status()))
        figures = json.loads((machine.data / "node" / "usage.json").read_text())["devices"]["nvidia.com/gpu"]
        assert figures == {"GPU-1": {"use": 0.05, "memory": 10 << 20, "memoryTotal": 100 << 20, "temperature": 40.0}}

    @pytest.fixture
    def character_devices(self):
        """Two devices in /dev that are like /dev/zero; only root can make some."""
        files = [Path(f"/dev/nvidia-volcano-test-{number}") for number in (1, 2)]
        try:
            for file in files:
                os.mknod(file, stat.S_IFCHR | 0o666, os.makedev(1, 5))
                with file.open("rb") as opened:
                    opened.read(1)
        except OSError as error:
            for file in files:
                file.unlink(missing_ok=True)
            pytest.skip(f"this user cannot make devices here: {error}")
        yield files
        for file in files:
            file.unlink()

    @cases("mounts, layers", {
        "Landlock": ("none", {}),
        "user namespace and Landlock": ("user", {}),
        "mounts and Landlock": ("root", {}),
        "user namespace": ("user", {"landlock": 0}),
        "mounts": ("root", {"landlock": 0}),
    })  # fmt: skip
    def test_file_of_a_device_is_opened_only_by_the_pod_that_has_it(
        self, machine, settings, character_devices, mounts, layers
    ):
        allowed = machine.allowed()
        if not allowed.landlock and not layers:
            pytest.skip("this machine has no Landlock")
        if mounts != "none" and allowed.mounts == "none":
            pytest.skip("this machine lets this user make no mounts")
        one, two = character_devices
        settings.DEVICES = parse(f"example.org/scope:SCOPE={one},{two}")
        machine.begin(mounts, **layers)
        script = (
            f"for each in {one} {two}; do head -c 1 $each 2> /dev/null | od -An -tx1 | grep -q 00 && echo $each; done"
            f" > {machine.out}/$HOSTNAME;"
            f"until [ -e {machine.out}/go ]; do sleep 0.01; done"
        )
        for name, count in (("first", 1), ("second", 1), ("without", 0)):
            machine.shell(script, name, needs("example.org/scope", count) if count else None)
            machine.until_phase("Running", name)
            machine.until((machine.out / name).exists)
        machine.let_go()
        for name, expected in (("first", [str(one)]), ("second", [str(two)]), ("without", [])):
            machine.until_phase("Succeeded", name)
            assert (machine.out / name).read_text().split() == expected
