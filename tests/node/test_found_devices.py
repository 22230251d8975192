"""Finding devices: by NVIDIA's tool, by the files of AMD's driver, by specs of the Container Device Interface."""

from __future__ import annotations

import json
import logging
import os

import pytest

from node import devices
from node.agent import cdi, found_devices
from node.agent.cdi import CdiError, Specs
from node.agent.found_devices import FoundDevices
from node.devices import Device, Kind, parse
from tests.node.walled import container
from tests.tables import cases

SMI = """GPU-1a, NVIDIA A100-SXM4-40GB, 00000000:07:00.0, 37, 1024, 40960, 41
GPU-2b, NVIDIA A100-SXM4-40GB, 00000000:0F:00.0, [N/A], 0, 40960, [N/A]
"""


class TestGpus:
    @pytest.fixture
    def smi(self, tmp_path, monkeypatch):
        """Put a program of NVIDIA's name on the path that prints a file; return the file."""
        shown, program = tmp_path / "shown", tmp_path / "bin" / "nvidia-smi"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\ncat {shown}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        shown.write_text(SMI)
        return shown

    def test_nvidias_gpus_are_those_that_its_tool_lists(self, smi):
        kind, figures = found_devices.nvidia()
        assert (kind.resource, kind.hides) == ("nvidia.com/gpu", True)
        assert [(one.id, one.name) for one in kind.devices] == [
            ("GPU-1a", "NVIDIA A100-SXM4-40GB"),
            ("GPU-2b", "NVIDIA A100-SXM4-40GB"),
        ]
        assert figures["GPU-1a"] == {"use": 0.37, "memory": 1 << 30, "memoryTotal": 40 << 30, "temperature": 41}
        assert figures["GPU-2b"] == {"memory": 0, "memoryTotal": 40 << 30}

    def test_file_of_a_gpu_is_named_by_its_minor_number(self, tmp_path):
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
        def write(path, text):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)

        write("nodes/0/gpu_id", "0\n")  # the processor
        for node, (gpu, unique, minor) in enumerate([(51000, 0x1F2E, 128), (52000, 0, 129)], 1):
            write(f"nodes/{node}/gpu_id", f"{gpu}\n")
            write(f"nodes/{node}/properties", f"cpu_cores_count 0\nunique_id {unique}\ndrm_render_minor {minor}\n")
        device = "drm/renderD128/device"
        write(f"{device}/product_name", "Instinct\n")
        write(f"{device}/gpu_busy_percent", "50\n")
        write(f"{device}/mem_info_vram_used", "1000\n")
        write(f"{device}/mem_info_vram_total", "4000\n")
        write(f"{device}/hwmon/hwmon3/temp1_input", "42000\n")
        kind, figures = found_devices.amd(tmp_path / "nodes", tmp_path / "drm")
        assert kind.devices == (
            Device("GPU-0000000000001f2e", "Instinct", ("/dev/dri/renderD128",)),
            Device("1", "", ("/dev/dri/renderD129",)),
        )
        assert figures == {
            "GPU-0000000000001f2e": {"use": 0.5, "memory": 1000, "memoryTotal": 4000, "temperature": 42},
            "1": {},
        }

    def test_gpu_that_vanishes_and_returns_is_told(self, smi):
        found = FoundDevices(folders=())
        assert (found.seen.counts(healthy=True), found.seen.problem()) == ({"nvidia.com/gpu": 2}, "")
        smi.write_text(SMI.splitlines()[0])
        found.look()
        assert found.seen.counts(healthy=False) == {"nvidia.com/gpu": 2}
        assert found.seen.counts(healthy=True) == {"nvidia.com/gpu": 1}
        assert found.seen.problem().startswith("GPU-2b (nvidia.com/gpu) cannot be found any more")
        smi.unlink()
        found.look()
        assert found.seen.counts(healthy=True) == {"nvidia.com/gpu": 0}
        smi.write_text(SMI)
        found.look()
        assert (found.seen.counts(healthy=True), found.seen.problem()) == ({"nvidia.com/gpu": 2}, "")

    def test_declared_file_that_is_not_there_is_gone(self, tmp_path):
        kinds = parse(f"a.org/b:B=/dev/null,/dev/{tmp_path.name}-none")
        seen = FoundDevices(kinds, finders=(), folders=()).seen
        assert seen.counts(healthy=True) == {"a.org/b": 1}
        assert seen.gone == {("a.org/b", f"/dev/{tmp_path.name}-none")}

    def test_what_is_declared_goes_before_what_is_found(self, smi):
        seen = FoundDevices(parse("nvidia.com/gpu:CUDA_VISIBLE_DEVICES=0"), folders=()).seen
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

    def test_the_later_folder_goes_first(self, folders):
        for folder, name in zip(folders, ("old", "new"), strict=True):
            (folder / "npu.json").write_text(json.dumps(spec(entry(name))))
        (kind,) = Specs(folders).contents().kinds
        assert [device.id for device in kind.devices] == ["new"]

    def test_what_changed_is_read_again_and_what_went_is_gone(self, folders):
        file, specs = folders[0] / "npu.yaml", Specs(folders)
        assert specs.contents().kinds == ()
        for name in ("a", "b"):
            file.write_text(json.dumps(spec(entry(name))))
            os.utime(file, ns=(0, ord(name)))
            assert [device.id for device in specs.contents().kinds[0].devices] == [name]
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

    def test_links_and_folders_that_cannot_be_read_are_no_specs(self, folders):
        (folders[0] / "gone.json").symlink_to(folders[0] / "nowhere")
        assert Specs((*folders, folders[0] / "missing")).contents().kinds == ()


ELSEWHERE = {"hostPath": "/usr/lib/a.so", "containerPath": "/lib/a.so"}


class TestDescribed:
    def test_a_spec_is_a_kind_with_its_devices(self):
        both = {"path": "/dev/npu-control"}
        found = spec(
            entry("0", "/dev/npu0", env=["NPU=0"]), entry("1", "/dev/npu1"), deviceNodes=[both], env=["NPU_MODE=shared"]
        )  # fmt: skip
        devices_ = (
            Device("0", "", ("/dev/npu-control", "/dev/npu0"), (("NPU_MODE", "shared"), ("NPU", "0"))),
            Device("1", "", ("/dev/npu-control", "/dev/npu1"), (("NPU_MODE", "shared"),)),
        )
        assert cdi.parse(json.dumps(found)) == Kind(NPU, (), devices_)

    def test_yaml_is_read_as_well(self):
        text = "cdiVersion: 0.6.0\nkind: vendor.com/npu\ndevices:\n- name: a\n  containerEdits:\n    env: [A=b=c]\n"
        assert cdi.parse(text).devices == (Device("a", env=(("A", "b=c"),)),)

    @cases("entries, common, offered", {
        "one that has twice a name": (
            [ZERO, ONE, entry("NPU-1a", "/dev/npu0"), entry("NPU-2b", "/dev/npu1")], [], ["0", "1"],
        ),
        "what stands for several": ([ZERO, ONE, entry("all", "/dev/npu0", "/dev/npu1")], [], ["0", "1"]),
        "files of all make no group": (
            [entry("0", "/dev/kfd", "/dev/r0"), entry("1", "/dev/kfd", "/dev/r1")], [{"path": "/dev/kfd"}], ["0", "1"],
        ),
        "without files, as many as there are names": (
            [entry("a", env=["A=1"]), entry("b", env=["A=2"])], [], ["a", "b"],
        ),
        "a mount of a file where it is": (
            [entry("a", mounts=[{"hostPath": "/usr/lib/a.so", "containerPath": "/usr/lib/a.so"}])], [], ["a"],
        ),
    })  # fmt: skip
    def test_what_is_offered(self, entries, common, offered):
        text = json.dumps(spec(*entries, **({"deviceNodes": common} if common else {})))
        assert [device.id for device in cdi.parse(text).devices] == offered

    @cases("text, told", {
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
        "a file under another name": (
            spec({"name": "a", "containerEdits": {"deviceNodes": [{"path": "/dev/a", "hostPath": "/dev/b"}]}}),
            "has another name on the machine",
        ),
        "a mount elsewhere": (
            spec(entry("a", mounts=[{"hostPath": "/opt/a", "containerPath": "/opt/b"}])),
            "containers here see files where they are",
        ),
        "no value": (spec(entry("a", env=["A"])), "sets no variable"),
    })  # fmt: skip
    def test_what_offers_nothing_says_why(self, text, told):
        with pytest.raises(CdiError, match=told):
            cdi.parse(text if isinstance(text, str) else json.dumps(text))

    @cases("entries, names", {
        "its id": ([entry("x", "/dev/npu0")], ["x", ""]),
        "its file": ([entry("0", "/dev/npu0"), entry("1", "/dev/npu1")], ["0", "1"]),
        "never with another one's file": ([entry("all", "/dev/npu0", "/dev/npu1")], ["", ""]),
        "the fewest others": ([entry("wide", "/dev/npu0", "/dev/dri/card0"), entry("0", "/dev/npu0")], ["0", ""]),
        "whatever else it needs": ([entry("0", "/dev/ctl", "/dev/npu0", hooks=[HOOK], mounts=[ELSEWHERE])], ["0", ""]),
        "another file": ([entry("0", "/dev/npu9")], ["", ""]),
        "as the machine calls it": (
            [{"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/npu", "hostPath": "/dev/npu1"}]}}],
            ["", "0"],
        ),
        "no name": ([entry("-bad", "/dev/npu0"), "none"], ["", ""]),
    })  # fmt: skip
    def test_an_engine_is_told_the_name_that_a_spec_has_for_a_device(self, entries, names):
        kind = Kind(NPU, ("NPU",), (Device("x", files=("/dev/npu0",)), Device("y", files=("/dev/npu1",))))
        text = json.dumps(spec(*entries, deviceNodes=[{"path": "/dev/ctl"}]))
        named = (*cdi.names_in(text), *cdi.names_in(text.replace(NPU, "vendor.com/other")))
        found = [cdi.name_of(kind, device, named) for device in kind.devices]
        assert found == [name and f"{NPU}={name}" for name in names]

    @pytest.mark.parametrize("text", ["", "[]", "{", json.dumps(spec(kind="gpu"))])
    def test_what_is_no_spec_names_nothing(self, text):
        assert cdi.names_in(text) == ()

    def test_an_engine_is_told_names_and_else_files(self, tmp_path):
        (tmp_path / "npu.json").write_text(json.dumps(spec(entry("0", "/dev/npu0", hooks=[HOOK]))))
        seen = FoundDevices(devices.parse(f"{NPU}:NPU=/dev/npu0,/dev/npu1"), finders=(), folders=(tmp_path,)).seen
        share = {NPU: ["/dev/npu0", "/dev/npu1"]}
        assert seen.by_engine(share) == ("/dev/npu1", f"{NPU}=0")
        assert seen.by_engine({NPU: ["/dev/npu1"]}) == ("/dev/npu1",)
        assert seen.by_engine({}) == ()

    def test_a_device_whose_file_is_missing_or_whose_spec_went_is_gone(self, tmp_path):
        file = tmp_path / "npu.json"
        file.write_text(json.dumps(spec(entry("a", "/dev/null"), entry("b", "/dev/volcano-none"))))
        found = FoundDevices(finders=(), folders=(tmp_path,))
        assert found.seen.gone == {(NPU, "b")}
        assert found.seen.counts(healthy=True) == {NPU: 1}
        file.unlink()
        found.look()
        assert found.seen.gone == {(NPU, "a"), (NPU, "b")}

    def test_a_pod_gets_a_device_with_its_variables(self, machine, tmp_path, monkeypatch):
        (tmp_path / "npu.json").write_text(json.dumps(spec(entry("a", env=["NPU=first"]), env=["NPU_MODE=alone"])))
        monkeypatch.setattr(cdi, "FOLDERS", (tmp_path,))
        machine.begin()
        script = f'echo "$NPU $NPU_MODE" > {machine.out}/has'
        asks = container(script) | {"resources": {"limits": {NPU: "1"}}}
        machine.submit("p", containers=[asks])
        machine.until_phase("Succeeded")
        assert (machine.out / "has").read_text() == "first alone\n"
