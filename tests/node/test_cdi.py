"""Devices that vendors describe by the Container Device Interface, read from specs and given to pods."""

from __future__ import annotations

import json
import logging
import os

import pytest

from node import devices
from node.agent import cdi
from node.agent.cdi import CdiError, Specs
from node.agent.found_devices import FoundDevices
from node.devices import Device, Kind
from tests.node.walled import container
from tests.tables import cases

NPU = "vendor.com/npu"


def spec(*entries, kind=NPU, **edits):
    return {"cdiVersion": "0.6.0", "kind": kind, "devices": list(entries), "containerEdits": edits}


def entry(name, *nodes, **edits):
    return {"name": name, "containerEdits": {"deviceNodes": [{"path": path} for path in nodes], **edits}}


def ids(*entries, **edits):
    return [device.id for device in cdi.parse(json.dumps(spec(*entries, **edits))).devices]


def test_a_spec_is_a_kind_with_its_devices():
    both = {"path": "/dev/npu-control"}
    found = spec(
        entry("0", "/dev/npu0", env=["NPU=0"]), entry("1", "/dev/npu1"), deviceNodes=[both], env=["NPU_MODE=shared"]
    )  # fmt: skip
    devices_ = (
        Device("0", "", ("/dev/npu-control", "/dev/npu0"), (("NPU_MODE", "shared"), ("NPU", "0"))),
        Device("1", "", ("/dev/npu-control", "/dev/npu1"), (("NPU_MODE", "shared"),)),
    )
    assert cdi.parse(json.dumps(found)) == Kind(NPU, (), devices_)


def test_yaml_is_read_as_well():
    text = "cdiVersion: 0.6.0\nkind: vendor.com/npu\ndevices:\n- name: a\n  containerEdits:\n    env: [A=b=c]\n"
    assert cdi.parse(text).devices == (Device("a", env=(("A", "b=c"),)),)


def test_what_a_device_has_twice_a_name_is_offered_once():
    zero, one = entry("0", "/dev/npu0"), entry("1", "/dev/npu1")
    names = (entry("NPU-1a", "/dev/npu0"), entry("NPU-2b", "/dev/npu1"))
    assert ids(zero, one, *names) == ["0", "1"]


def test_what_stands_for_several_is_not_offered():
    assert ids(entry("0", "/dev/npu0"), entry("1", "/dev/npu1"), entry("all", "/dev/npu0", "/dev/npu1")) == ["0", "1"]


def test_files_of_all_make_devices_no_group():
    common = [{"path": "/dev/kfd"}]
    assert ids(entry("0", "/dev/kfd", "/dev/r0"), entry("1", "/dev/kfd", "/dev/r1"), deviceNodes=common) == ["0", "1"]


def test_devices_without_files_are_as_many_as_there_are_names():
    assert ids(entry("a", env=["A=1"]), entry("b", env=["A=2"])) == ["a", "b"]


HOOK = {"hookName": "createContainer", "path": "/usr/bin/true"}


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
def test_what_offers_nothing_says_why(text, told):
    with pytest.raises(CdiError, match=told):
        cdi.parse(text if isinstance(text, str) else json.dumps(text))


def test_a_mount_of_a_file_where_it_is_is_of_no_account():
    assert ids(entry("a", mounts=[{"hostPath": "/usr/lib/a.so", "containerPath": "/usr/lib/a.so"}])) == ["a"]


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


@cases("entries, names", {
    "its id": ([entry("x", "/dev/npu0")], ["x", ""]),
    "its file": ([entry("0", "/dev/npu0"), entry("1", "/dev/npu1")], ["0", "1"]),
    "never with another one's file": ([entry("all", "/dev/npu0", "/dev/npu1")], ["", ""]),
    "the fewest others": ([entry("wide", "/dev/npu0", "/dev/dri/card0"), entry("0", "/dev/npu0")], ["0", ""]),
    "whatever else it needs": ([entry("0", "/dev/ctl", "/dev/npu0", hooks=[HOOK], mounts=[ELSEWHERE])], ["0", ""]),
    "another file": ([entry("0", "/dev/npu9")], ["", ""]),
    "as the machine calls it": (
        [{"name": "0", "containerEdits": {"deviceNodes": [{"path": "/dev/npu", "hostPath": "/dev/npu1"}]}}], ["", "0"],
    ),
    "no name": ([entry("-bad", "/dev/npu0"), "none"], ["", ""]),
})  # fmt: skip
def test_an_engine_is_told_the_name_that_a_spec_has_for_a_device(entries, names):
    kind = Kind(NPU, ("NPU",), (Device("x", files=("/dev/npu0",)), Device("y", files=("/dev/npu1",))))
    text = json.dumps(spec(*entries, deviceNodes=[{"path": "/dev/ctl"}]))
    named = (*cdi.names_in(text), *cdi.names_in(text.replace(NPU, "vendor.com/other")))
    found = [cdi.name_of(kind, device, named) for device in kind.devices]
    assert found == [name and f"{NPU}={name}" for name in names]


@pytest.mark.parametrize("text", ["", "[]", "{", json.dumps(spec(kind="gpu"))])
def test_what_is_no_spec_names_nothing(text):
    assert cdi.names_in(text) == ()


def test_an_engine_is_told_names_and_else_files(tmp_path):
    (tmp_path / "npu.json").write_text(json.dumps(spec(entry("0", "/dev/npu0", hooks=[HOOK]))))
    seen = FoundDevices(devices.parse(f"{NPU}:NPU=/dev/npu0,/dev/npu1"), finders=(), folders=(tmp_path,)).seen
    share = {NPU: ["/dev/npu0", "/dev/npu1"]}
    assert seen.by_engine(share) == ("/dev/npu1", f"{NPU}=0")
    assert seen.by_engine({NPU: ["/dev/npu1"]}) == ("/dev/npu1",)
    assert seen.by_engine({}) == ()


def test_what_is_declared_goes_before_what_is_described(tmp_path):
    (tmp_path / "npu.json").write_text(json.dumps(spec(entry("a"))))
    seen = FoundDevices(devices.parse(f"{NPU}:NPU=x,y"), finders=(), folders=(tmp_path,)).seen
    assert [device.id for device in seen.kinds[0].devices] == ["x", "y"]


def test_a_device_whose_file_is_missing_or_whose_spec_went_is_gone(tmp_path):
    file = tmp_path / "npu.json"
    file.write_text(json.dumps(spec(entry("a", "/dev/null"), entry("b", "/dev/volcano-none"))))
    found = FoundDevices(finders=(), folders=(tmp_path,))
    assert found.seen.gone == {(NPU, "b")}
    assert found.seen.counts(healthy=True) == {NPU: 1}
    file.unlink()
    found.look()
    assert found.seen.gone == {(NPU, "a"), (NPU, "b")}


def test_a_pod_gets_a_device_with_its_variables(machine, tmp_path, monkeypatch):
    (tmp_path / "npu.json").write_text(json.dumps(spec(entry("a", env=["NPU=first"]), env=["NPU_MODE=alone"])))
    monkeypatch.setattr(cdi, "FOLDERS", (tmp_path,))
    machine.begin()
    script = f'echo "$NPU $NPU_MODE" > {machine.out}/has'
    asks = container(script) | {"resources": {"limits": {NPU: "1"}}}
    machine.submit("p", containers=[asks])
    machine.until_phase("Succeeded")
    assert (machine.out / "has").read_text() == "first alone\n"
