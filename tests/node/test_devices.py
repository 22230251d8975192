"""Which pod gets which devices, and how a node finds them: rules, pods that really run, and the tools of vendors."""

import json
import logging
import os
import stat
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.rules.node import node_devices
from cluster.store import store
from kube import amounts
from kube.kinds.core import Pod
from kube.resources import NODES
from node.containers import cdi, found_devices
from node.containers.cdi import CdiError, Specs
from node.containers.device_holders import DeviceHolders
from node.containers.found_devices import FoundDevices
from node.paths import Layout
from node.rules import devices
from node.rules.devices import Device, DevicesError, Kind, Short, parse
from tests.tables import cases

LICENCE, PORT = "example.org/licence", "example.org/port"
KINDS = devices.parse(f"{LICENCE}:LICENCE=blue,red,green\n{PORT}:PORT=5000..5003")


def wanting(name, licences=0, ports=0, **fields):
    counts = {LICENCE: str(licences), PORT: str(ports)}
    limits = {each: count for each, count in counts.items() if count != "0"}
    return {"name": name, "command": ["x"], "resources": {"limits": limits}, **fields}


def pod(*containers, inits=(), uid="u"):
    body = {"metadata": {"uid": uid}, "spec": {"containers": containers, "initContainers": inits}}
    return msgspec.convert(body, Pod)


SIDECAR = wanting("s", 1, restartPolicy="Always")
steps = st.lists(
    st.tuples(st.sampled_from(["give", "release", "crash"]), st.integers(0, 4), st.integers(0, 2), st.integers(0, 3)),
    max_size=25,
)


class TestRules:
    def test_what_is_declared_is_read(self):
        licences = Kind(LICENCE, ("LICENCE",), (Device("blue"), Device("red"), Device("green")))
        assert (licences, Kind(PORT, ("PORT",), tuple(Device(str(number)) for number in range(5000, 5004)))) == KINDS
        (scope,) = devices.parse("lab.org/scope:SCOPE=/dev/ttyUSB0")
        assert scope.devices == (Device("/dev/ttyUSB0", files=("/dev/ttyUSB0",)),)
        assert devices.parse("") == ()

    @cases("text, message", {
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
    def test_what_declares_nothing_is_refused(self, text, message):
        with pytest.raises(DevicesError, match=message):
            devices.parse(text)

    def test_first_free_ones_that_are_there_are_given_or_none(self):
        held = [{LICENCE: ("blue",)}, {PORT: ("5001",)}]
        assert devices.assign(KINDS, held, {LICENCE: 1, PORT: 2}) == {LICENCE: ("red",), PORT: ("5000", "5002")}
        assert devices.assign(KINDS, [], {LICENCE: 1}, gone={(LICENCE, "blue")}) == {LICENCE: ("red",)}
        with pytest.raises(Short, match=r"asks for 2 example.org/licence, of which 1 are free"):
            devices.assign(KINDS, [{LICENCE: ("blue", "green")}], {LICENCE: 2})

    @cases("given, expected", {
        "side by side": (pod(wanting("a", 1), wanting("b", 2)), {"a": "x", "b": "yz"}),
        "one has none": (pod(wanting("a", 1), wanting("b")), {"a": "x"}),
        "one after another": (pod(wanting("a", 2), inits=[wanting("i", 1)]), {"i": "x", "a": "xy"}),
        "beside a sidecar": (pod(wanting("a", 1), inits=[SIDECAR, wanting("i", 1)]), {"s": "x", "i": "y", "a": "y"}),
    })  # fmt: skip
    def test_containers_that_run_side_by_side_share_no_device(self, given, expected):
        total = amounts.pod_request(given.spec)[LICENCE]
        found = devices.shares(given, {LICENCE: tuple("xyz"[:total])})
        assert {name: "".join(share[LICENCE]) for name, share in found.items()} == expected

    def test_variables_and_files_name_what_a_container_has_and_hide_what_it_has_not(self):
        gpus = Kind("nvidia.com/gpu", ("CUDA_VISIBLE_DEVICES",), (Device("GPU-1"),), hides=True)
        kinds = (*KINDS, gpus)
        assert devices.variables(kinds, {PORT: ("5000", "5002")}) == {"PORT": "5000,5002", "CUDA_VISIBLE_DEVICES": ""}
        assert devices.variables(kinds, {"nvidia.com/gpu": ("GPU-1",)}) == {"CUDA_VISIBLE_DEVICES": "GPU-1"}
        scopes = Kind("a.org/b", ("B",), tuple(Device(each, files=("/dev/all", f"/dev/{each}")) for each in "12"))
        assert devices.files([scopes], {"a.org/b": ("1",)}) == (("/dev/1", "/dev/all"), ("/dev/2",))
        assert devices.files([scopes], {}) == ((), ("/dev/1", "/dev/2", "/dev/all"))

    def test_node_and_pod_say_what_they_have(self):
        listed = [node_devices.NodeDevice(LICENCE, "blue"), node_devices.NodeDevice(PORT, "5000", "first", gone=True)]
        assert node_devices.read({node_devices.ANNOTATION: node_devices.written(listed)}) == listed
        assert node_devices.written([]) == ""
        for text in ("", "no JSON", "[1]", '[["a"]]', "7", "[" * 100_000):
            assert node_devices.read({node_devices.ANNOTATION: text}) == []
        statuses = node_devices.status({PORT: ["5000"], LICENCE: ["blue"]}, gone=[(PORT, "5000")])
        assert [(each["name"], each["resources"]) for each in statuses] == [
            (LICENCE, [{"resourceID": "blue", "health": "Healthy"}]),
            (PORT, [{"resourceID": "5000", "health": "Unhealthy"}]),
        ]
        status = {"containerStatuses": [{"name": "a", node_devices.STATUS_FIELD: statuses}]}
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
                wanted, before = has.get(uid, (Counter({LICENCE: licences, PORT: ports}), None))
                try:
                    got = holders.assign(pod(wanting("main", wanted[LICENCE], wanted[PORT]), uid=uid))
                except Short:
                    left = Counter({LICENCE: 3, PORT: 4})
                    for other, _ in has.values():
                        left.subtract(other)
                    assert any(wanted[name] > left[name] for name in left)
                    continue
                assert before in (None, got), "a pod keeps what it was given first"
                assert {name: len(ids) for name, ids in got.items()} == +wanted
                has[uid] = wanted, got
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


def devices_of(node, name="p"):
    return [one for resource, one in node_devices.of_pod(node.pod(name)) if resource == LICENCE]


def has(node, name="p"):
    file = node.out / name
    text = node.until(lambda: file.exists() and file.read_text().strip())
    return text.split(",")


def node_status():
    return store.get(NODES, "", "here").object["status"]


def nvidia_smi(folder, monkeypatch, text):
    """Put a program of NVIDIA's name on the path that prints a file; return the file."""
    listing, program = folder / "shown", folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat {listing}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    listing.write_text(text)
    return listing


def condition(kind="DevicesMissing"):
    return next(one for one in node_status()["conditions"] if one["type"] == kind)


class TestPods:
    @pytest.fixture
    def licences(self, machine, settings):
        settings.DEVICES = parse(DECLARED)
        return machine.begin()

    def test_node_offers_what_is_declared_and_pods_get_particular_ones_and_show_them(self, licences):
        assert node_status()["capacity"][LICENCE] == node_status()["allocatable"][LICENCE] == "3"
        found = node_devices.read(store.get(NODES, "", "here").object["metadata"]["annotations"])
        assert [one.id for one in found] == ["blue", "red", "green"]
        assert (condition()["status"], condition()["reason"]) == ("False", "AllDevicesThere")
        for name, count in (("two", 2), ("one", 1)):
            asks(licences, count, "true", name, until="Running")
        for get in (has, devices_of):
            assert (get(licences, "two"), get(licences, "one")) == (["blue", "red"], ["green"])

    def test_who_asks_for_nothing_is_told_nothing_and_no_pod_can_tell_itself_of_others(self, licences):
        assert licences.ran('echo "${LICENCE-unset}"', "none") == ["unset"]
        environment = [{"name": "LICENCE", "value": "blue,red,green"}, {"name": "MINE", "value": "$(LICENCE)"}]
        main = {**needs(LICENCE, 1), "env": environment}
        assert licences.ran('echo "$LICENCE $MINE"', main=main) == ["blue blue,red,green"]

    def test_pod_waits_for_what_others_have_also_after_the_agent_was_killed(self, licences):
        node = licences
        asks(node, 2, "true", "before", until="Running")
        asks(node, 2, "true", "waits")
        node.until_waits(f"asks for 2 {LICENCE}, of which 1 are free at the moment", name="waits")
        node.crash()
        asks(node, 1, "true", "after")
        node.again()
        node.until_phase("Running", "after")
        assert (has(node, "before"), has(node, "after")) == (["blue", "red"], ["green"])
        node.let_go()
        node.until_phase("Succeeded", "before", "after", "waits")
        assert has(node, "waits") == ["blue", "red"]
        asks(node, 3, "true", "all", until="Succeeded")
        assert has(node, "all") == ["blue", "red", "green"]

    def test_container_that_starts_again_keeps_its_devices_and_waits_where_they_are_gone(self, licences, settings):
        file = licences.out / "said"
        script = f"echo $LICENCE >> {file}; [ $(wc -l < {file}) -gt 1 ]"
        asks(licences, 1, script, restartPolicy="OnFailure", until="Running")
        asks(licences, 1, "exit 1", "gone", restartPolicy="OnFailure", until="Running")
        licences.let_go()
        licences.until_phase("Succeeded")
        assert file.read_text().split() == ["blue", "blue"]
        licences.crash()
        settings.DEVICES = ()
        licences.again()
        missing = f"the device red ({LICENCE}), which the pod has, is gone"
        licences.until(lambda: missing in str(licences.status("gone")))

    def test_device_that_vanishes_makes_a_condition_and_is_not_offered(self, machine, tmp_path, monkeypatch):
        lines = [f"GPU-{number}, A100, 00000000:0{number}:00.0, 5, 10, 100, 40\n" for number in (1, 2)]
        listing = nvidia_smi(tmp_path, monkeypatch, "".join(lines))
        machine.begin()
        assert node_status()["allocatable"]["nvidia.com/gpu"] == "2"
        seen = machine.out / "gpus"
        script = f'echo "$CUDA_VISIBLE_DEVICES" > {seen}; until [ -e {machine.out}/go ]; do sleep 0.01; done'
        machine.shell(script, main=needs("nvidia.com/gpu", 2))
        assert machine.ran('echo "has=$NVIDIA_VISIBLE_DEVICES"', "none") == ["has="]
        assert machine.until(lambda: seen.exists() and seen.read_text().strip()) == "GPU-1,GPU-2"
        listing.write_text(lines[0])
        machine.daemon.sampler._machine = machine.daemon.sampler._machine._replace(at=0.0)  # as if its time had come
        machine.daemon.sampler.sample()
        machine.agent.machine.due = 0
        machine.until(lambda: condition()["status"] == "True")
        assert "GPU-2 (nvidia.com/gpu) cannot be found any more" in condition()["message"]
        offered = [node_status()[each]["nvidia.com/gpu"] for each in ("allocatable", "capacity")]
        assert offered == ["1", "2"]
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
            yield files
        except OSError as error:
            pytest.skip(f"this user cannot make devices here: {error}")
        finally:
            for file in files:
                file.unlink(missing_ok=True)

    @cases("mounts, layers", {
        "Landlock": ("none", {}),
        "user namespace and Landlock": ("user", {}),
        "mounts and Landlock": ("root", {}),
        "user namespace": ("user", {"landlock": 0}),
        "mounts": ("root", {"landlock": 0}),
    })  # fmt: skip
    def test_a_devices_file_is_opened_by_the_pod_that_has_it(
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
        opened = "head -c 1 $each 2> /dev/null | od -An -tx1 | grep -q 00 && echo $each"
        script = f"for each in {one} {two}; do {opened}; done > {machine.out}/$HOSTNAME;"
        script += f"until [ -e {machine.out}/go ]; do sleep 0.01; done"
        for name, count in (("first", 1), ("second", 1), ("without", 0)):
            machine.shell(script, name, needs("example.org/scope", count) if count else None, until="Running")
            machine.until((machine.out / name).exists)
        machine.let_go()
        for name, expected in (("first", [str(one)]), ("second", [str(two)]), ("without", [])):
            machine.until_phase("Succeeded", name)
            assert (machine.out / name).read_text().split() == expected


SMI = """GPU-1a, NVIDIA A100-SXM4-40GB, 00000000:07:00.0, 37, 1024, 40960, 41
GPU-2b, NVIDIA A100-SXM4-40GB, 00000000:0F:00.0, [N/A], 0, 40960, [N/A]
"""


class TestGpus:
    @pytest.fixture
    def smi(self, tmp_path, monkeypatch):
        return nvidia_smi(tmp_path, monkeypatch, SMI)

    def test_nvidias_gpus_are_those_that_its_tool_lists_and_their_files_have_minor_numbers(self, smi, tmp_path):
        kind, figures = found_devices.nvidia()
        assert (kind.resource, kind.hides) == ("nvidia.com/gpu", True)
        name = "NVIDIA A100-SXM4-40GB"
        assert [(one.id, one.name) for one in kind.devices] == [("GPU-1a", name), ("GPU-2b", name)]
        assert figures["GPU-1a"] == {"use": 0.37, "memory": 1 << 30, "memoryTotal": 40 << 30, "temperature": 41}
        assert figures["GPU-2b"] == {"memory": 0, "memoryTotal": 40 << 30}
        for bus, minor in (("0000:07:00.0", 1), ("0000:0f:00.0", 0)):
            folder = tmp_path / "gpus" / bus
            folder.mkdir(parents=True)
            (folder / "information").write_text(f"Model: \t\t NVIDIA A100\nDevice Minor: \t {minor}\n")
        kind, _ = found_devices.of_nvidia(SMI.splitlines(), tmp_path)
        assert [one.files for one in kind.devices] == [("/dev/nvidia1",), ("/dev/nvidia0",)]

    def test_machine_without_gpus_has_no_devices(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        assert found_devices.nvidia() is None
        assert found_devices.amd(tmp_path / "none") is None

    def test_amds_gpus_are_those_of_the_kernel(self, tmp_path):
        device, properties = "drm/renderD128/device", "cpu_cores_count 0\nunique_id {}\ndrm_render_minor {}\n"
        files = {
            "nodes/0/gpu_id": "0", "nodes/1/gpu_id": "51000", "nodes/2/gpu_id": "52000",  # the first is the processor
            "nodes/1/properties": properties.format(0x1F2E, 128), "nodes/2/properties": properties.format(0, 129),
            f"{device}/product_name": "Instinct", f"{device}/gpu_busy_percent": "50",
            f"{device}/mem_info_vram_used": "1000", f"{device}/mem_info_vram_total": "4000",
            f"{device}/hwmon/hwmon3/temp1_input": "42000",
        }  # fmt: skip
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(f"{text}\n")
        kind, figures = found_devices.amd(tmp_path / "nodes", tmp_path / "drm")
        first = Device("GPU-0000000000001f2e", "Instinct", ("/dev/dri/renderD128",))
        assert kind.devices == (first, Device("1", "", ("/dev/dri/renderD129",)))
        used = {"use": 0.5, "memory": 1000, "memoryTotal": 4000, "temperature": 42}
        assert figures == {"GPU-0000000000001f2e": used, "1": {}}

    def test_gpu_that_vanishes_and_returns_is_told(self, smi):
        found, gpu, one = FoundDevices(folders=()), "nvidia.com/gpu", SMI.splitlines()[0]
        missing = f"GPU-2b ({gpu}) cannot be found any more"
        for text, healthy, problem in ((SMI, 2, ""), (one, 1, missing), ("", 0, "GPU-1a"), (SMI, 2, "")):
            smi.write_text(text)
            found.scan()
            assert (found.inventory.counts(healthy=True), found.inventory.counts(healthy=False)) == (
                {gpu: healthy},
                {gpu: 2},
            )
            assert found.inventory.problem().startswith(problem)
            assert bool(problem) == bool(found.inventory.problem())
        smi.unlink()
        found.scan()
        assert found.inventory.counts(healthy=True) == {gpu: 0}

    def test_declared_file_that_is_not_there_is_gone_and_what_is_declared_goes_before_what_is_found(self, smi):
        seen = FoundDevices(parse("a.org/b:B=/dev/null,/dev/volcano-none"), finders=(), folders=()).inventory
        assert (seen.counts(healthy=True), seen.gone) == ({"a.org/b": 1}, {("a.org/b", "/dev/volcano-none")})
        seen = FoundDevices(parse("nvidia.com/gpu:CUDA_VISIBLE_DEVICES=0"), folders=()).inventory
        assert [one.id for kind in seen.kinds for one in kind.devices] == ["0"]


NPU = "vendor.com/npu"


def spec(*entries, kind=NPU, **edits):
    return {"cdiVersion": "0.6.0", "kind": kind, "devices": list(entries), "containerEdits": edits}


def entry(name, *nodes, **edits):
    return {"name": name, "containerEdits": {"deviceNodes": [{"path": path} for path in nodes], **edits}}


ZERO, ONE = entry("0", "/dev/npu0"), entry("1", "/dev/npu1")
HOOK = {"hookName": "createContainer", "path": "/usr/bin/true"}


class TestSpecs:
    @pytest.fixture
    def folders(self, tmp_path):
        found = tmp_path / "etc", tmp_path / "run"
        for folder in found:
            folder.mkdir()
        return found

    def test_what_changed_is_read_again_of_the_later_folder_first_and_what_went_is_gone(self, folders):
        specs = Specs((*folders, folders[0] / "missing"))
        (folders[0] / "unreadable.json").symlink_to(folders[0] / "nowhere")
        assert specs.contents().kinds == ()
        files = [folder / "npu.yaml" for folder in folders]
        for file, name in ((files[0], "a"), (files[0], "b"), (files[1], "c")):
            file.write_text(json.dumps(spec(entry(name))))
            os.utime(file, ns=(0, ord(name)))
            (kind,) = specs.contents().kinds
            assert [device.id for device in kind.devices] == [name]
        for file in files:
            file.unlink()
        assert specs.contents().kinds == ()

    def test_what_is_wrong_is_told_once_and_keeps_nothing_from_the_others(self, folders, caplog):
        (folders[0] / "bad.json").write_text(json.dumps(spec(entry("a", hooks=[HOOK]))))
        (folders[0] / "good.json").write_text(json.dumps(spec(entry("a"), kind="vendor.com/fpga")))
        (folders[0] / "readme.txt").write_text("no spec")
        specs = Specs(folders)
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                assert [kind.resource for kind in specs.contents().kinds] == ["vendor.com/fpga"]
        assert len(caplog.messages) == 1
        assert "bad.json are not offered: a has hooks" in caplog.text


def mounted(host, inside):
    return {"hostPath": host, "containerPath": inside}


def renamed(name, path, host):
    return {"name": name, "containerEdits": {"deviceNodes": [{"path": path, "hostPath": host}]}}


class TestDescribed:
    def test_a_spec_is_a_kind_with_its_devices(self):
        first = entry("0", "/dev/npu0", env=["NPU=0"])
        both = {"deviceNodes": [{"path": "/dev/npu-control"}], "env": ["NPU_MODE=shared"]}
        found = spec(first, entry("1", "/dev/npu1"), **both)
        devices_ = (
            Device("0", "", ("/dev/npu-control", "/dev/npu0"), (("NPU_MODE", "shared"), ("NPU", "0"))),
            Device("1", "", ("/dev/npu-control", "/dev/npu1"), (("NPU_MODE", "shared"),)),
        )
        assert cdi.parse(json.dumps(found)) == Kind(NPU, (), devices_)
        text = "cdiVersion: 0.6.0\nkind: vendor.com/npu\ndevices:\n- name: a\n  containerEdits:\n    env: [A=b=c]\n"
        assert cdi.parse(text).devices == (Device("a", env=(("A", "b=c"),)),)

    @cases("entries, common, offered", {
        "one that has twice a name": ([ZERO, ONE, entry("A", "/dev/npu0"), entry("B", "/dev/npu1")], "", ["0", "1"]),
        "what stands for several": ([ZERO, ONE, entry("all", "/dev/npu0", "/dev/npu1")], "", ["0", "1"]),
        "files of all make no group": ([entry("0", "/dev/k", "/dev/0"), entry("1", "/dev/k", "/dev/1")], "/dev/k", ["0", "1"]),
        "without files, as many as there are names": ([entry("a", env=["A=1"]), entry("b", env=["A=2"])], "", ["a", "b"]),
        "a mount of a file where it is": ([entry("a", mounts=[mounted("/usr/a.so", "/usr/a.so")])], "", ["a"]),
    })  # fmt: skip
    def test_what_is_offered(self, entries, common, offered):
        text = json.dumps(spec(*entries, **({"deviceNodes": [{"path": common}]} if common else {})))
        assert [device.id for device in cdi.parse(text).devices] == offered

    @cases("text, message", {
        "no YAML": ("[", "neither YAML nor JSON"),
        "no object": ("a", "it is no object"),
        "no vendor": (spec(kind="npu"), "write vendor.com/class"),
        "no devices": (spec(), "it describes no devices"),
        "name": (spec(entry("a b")), "cannot be the name of a device"),
        "a name twice": (spec(entry("a"), entry("a")), "has a name twice"),
        "hooks of a device": (spec(entry("a", hooks=[HOOK])), "a has hooks"),
        "hooks of all": (spec(entry("a"), hooks=[HOOK]), "has hooks"),
        "a file elsewhere": (spec(entry("a", "/etc/shadow")), "does not lie in /dev"),
        "a file by ..": (spec(entry("a", "/dev/../etc/shadow")), "does not lie in /dev"),
        "a file under another name": (spec(renamed("a", "/dev/a", "/dev/b")), "has another name on the machine"),
        "a mount elsewhere": (spec(entry("a", mounts=[mounted("/opt/a", "/opt/b")])), "see files where they are"),
        "no value": (spec(entry("a", env=["A"])), "sets no variable"),
    })  # fmt: skip
    def test_what_offers_nothing_says_why(self, text, message):
        with pytest.raises(CdiError, match=message):
            cdi.parse(text if isinstance(text, str) else json.dumps(text))

    @cases("entries, names", {
        "its id": ([entry("x", "/dev/npu0")], ["x", ""]),
        "its file": ([entry("0", "/dev/npu0"), entry("1", "/dev/npu1")], ["0", "1"]),
        "never with another one's file": ([entry("all", "/dev/npu0", "/dev/npu1")], ["", ""]),
        "the fewest others": ([entry("wide", "/dev/npu0", "/dev/dri/card0"), entry("0", "/dev/npu0")], ["0", ""]),
        "whatever else it needs": ([entry("0", "/dev/ctl", "/dev/npu0", hooks=[HOOK], mounts=[mounted("/usr/lib/a.so", "/lib/a.so")])], ["0", ""]),
        "another file": ([entry("0", "/dev/npu9")], ["", ""]),
        "as the machine calls it": ([renamed("0", "/dev/npu", "/dev/npu1")], ["", "0"]),
        "no name": ([entry("-bad", "/dev/npu0"), "none"], ["", ""]),
    })  # fmt: skip
    def test_an_engine_is_told_the_name_that_a_spec_has_for_a_device(self, entries, names):
        kind = Kind(NPU, ("NPU",), (Device("x", files=("/dev/npu0",)), Device("y", files=("/dev/npu1",))))
        text = json.dumps(spec(*entries, deviceNodes=[{"path": "/dev/ctl"}]))
        named = (*cdi.names_in(text), *cdi.names_in(text.replace(NPU, "vendor.com/other")))
        found = [cdi.name_of(kind, device, named) for device in kind.devices]
        assert found == [name and f"{NPU}={name}" for name in names]

    def test_an_engine_is_told_names_and_else_files(self, tmp_path):
        (tmp_path / "npu.json").write_text(json.dumps(spec(entry("0", "/dev/npu0", hooks=[HOOK]))))
        seen = FoundDevices(devices.parse(f"{NPU}:NPU=/dev/npu0,/dev/npu1"), finders=(), folders=(tmp_path,)).inventory
        assert seen.by_engine({NPU: ["/dev/npu0", "/dev/npu1"]}) == ("/dev/npu1", f"{NPU}=0")
        assert (seen.by_engine({NPU: ["/dev/npu1"]}), seen.by_engine({})) == (("/dev/npu1",), ())
        for text in ("", "[]", "{", json.dumps(spec(kind="gpu"))):
            assert cdi.names_in(text) == ()

    def test_a_device_whose_file_is_missing_or_whose_spec_went_is_gone(self, tmp_path):
        file = tmp_path / "npu.json"
        file.write_text(json.dumps(spec(entry("a", "/dev/null"), entry("b", "/dev/volcano-none"))))
        found = FoundDevices(finders=(), folders=(tmp_path,))
        assert found.inventory.gone == {(NPU, "b")}
        assert found.inventory.counts(healthy=True) == {NPU: 1}
        file.unlink()
        found.scan()
        assert found.inventory.gone == {(NPU, "a"), (NPU, "b")}

    def test_a_pod_gets_a_device_with_its_variables(self, machine, tmp_path, monkeypatch):
        (tmp_path / "npu.json").write_text(json.dumps(spec(entry("a", env=["NPU=first"]), env=["NPU_MODE=alone"])))
        monkeypatch.setattr(cdi, "FOLDERS", (tmp_path,))
        machine.begin()
        assert machine.ran('echo "$NPU $NPU_MODE"', main={"resources": {"limits": {NPU: "1"}}}) == ["first alone"]
