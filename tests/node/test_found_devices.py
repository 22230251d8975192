"""Finding GPUs: by a tool in place of NVIDIA's that prints what that prints, and by a tree of files as AMD's driver shows."""

from __future__ import annotations

import pytest

from node.agent import found_devices
from node.agent.found_devices import FoundDevices
from node.devices import Device, parse

SMI = """GPU-1a, NVIDIA A100-SXM4-40GB, 00000000:07:00.0, 37, 1024, 40960, 41
GPU-2b, NVIDIA A100-SXM4-40GB, 00000000:0F:00.0, [N/A], 0, 40960, [N/A]
"""


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """Put a program of NVIDIA's name on the path that prints a file; return the file."""
    shown, program = tmp_path / "shown", tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat {shown}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    shown.write_text(SMI)
    return shown


def test_nvidias_gpus_are_those_that_its_tool_lists(smi):
    kind, figures = found_devices.nvidia()
    assert (kind.resource, kind.hides) == ("nvidia.com/gpu", True)
    assert [(one.id, one.name) for one in kind.devices] == [
        ("GPU-1a", "NVIDIA A100-SXM4-40GB"),
        ("GPU-2b", "NVIDIA A100-SXM4-40GB"),
    ]
    assert figures["GPU-1a"] == {"use": 0.37, "memory": 1 << 30, "memoryTotal": 40 << 30, "temperature": 41}
    assert figures["GPU-2b"] == {"memory": 0, "memoryTotal": 40 << 30}


def test_file_of_a_gpu_is_named_by_its_minor_number(tmp_path):
    for bus, minor in (("0000:07:00.0", 1), ("0000:0f:00.0", 0)):
        folder = tmp_path / "gpus" / bus
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"Model: \t\t NVIDIA A100\nDevice Minor: \t {minor}\n")
    kind, _ = found_devices.of_nvidia(SMI.splitlines(), tmp_path)
    assert [one.files for one in kind.devices] == [("/dev/nvidia1",), ("/dev/nvidia0",)]


def test_machine_without_gpus_has_no_devices(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found_devices.nvidia() is None
    assert found_devices.amd(tmp_path / "none") is None


def test_amds_gpus_are_those_of_the_kernel(tmp_path):
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


def test_gpu_that_vanishes_and_returns_is_told(smi):
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


def test_declared_file_that_is_not_there_is_gone(tmp_path):
    kinds = parse(f"a.org/b:B=/dev/null,/dev/{tmp_path.name}-none")
    seen = FoundDevices(kinds, finders=(), folders=()).seen
    assert seen.counts(healthy=True) == {"a.org/b": 1}
    assert seen.gone == {("a.org/b", f"/dev/{tmp_path.name}-none")}


def test_what_is_declared_goes_before_what_is_found(smi):
    seen = FoundDevices(parse("nvidia.com/gpu:CUDA_VISIBLE_DEVICES=0"), folders=()).seen
    assert [one.id for kind in seen.kinds for one in kind.devices] == ["0"]
