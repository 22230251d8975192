"""Devices given out to pods that really run, by agents that are killed, on nodes that lose some."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from cluster.rules import node_devices
from cluster.store import store
from kube.resources import NODES
from node.devices import parse
from tests.tables import cases

LICENCE = "example.org/licence"
DECLARED = f"{LICENCE}:LICENCE=blue,red,green"


@pytest.fixture
def licences(machine, settings):
    settings.DEVICES = parse(DECLARED)
    return machine.begin()


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


def test_node_offers_what_is_declared(licences):
    assert node_status()["capacity"][LICENCE] == node_status()["allocatable"][LICENCE] == "3"
    found = node_devices.read(store.get(NODES, "", "here").object["metadata"]["annotations"])
    assert [one.id for one in found] == ["blue", "red", "green"]
    assert (condition()["status"], condition()["reason"]) == ("False", "AllDevicesThere")


def test_pods_get_particular_ones_and_show_them(licences):
    for name, count in (("two", 2), ("one", 1)):
        asks(licences, count, "true", name)
        licences.until_phase("Running", name)
    for get in (has, told):
        assert (get(licences, "two"), get(licences, "one")) == (["blue", "red"], ["green"])


def test_who_asks_for_nothing_is_told_nothing_and_no_pod_can_tell_itself_of_others(licences):
    assert licences.ran('echo "${LICENCE-unset}"', "none") == ["unset"]
    environment = [{"name": "LICENCE", "value": "blue,red,green"}, {"name": "MINE", "value": "$(LICENCE)"}]
    assert licences.ran('echo "$LICENCE $MINE"', main={**needs(LICENCE, 1), "env": environment}) == [
        "blue blue,red,green"
    ]


def test_pod_waits_for_what_others_have_and_gets_it_when_they_have_ended(licences):
    node = licences
    asks(node, 2, "true", "first")
    node.until_phase("Running", "first")
    asks(node, 2, "true", "second")
    node.until_waits(f"asks for 2 {LICENCE}, of which 1 are free at the moment", name="second")
    node.let_go()
    node.until_phase("Succeeded", "second")
    assert has(node, "second") == ["blue", "red"]


def test_nothing_is_given_out_twice_after_the_agent_was_killed(licences):
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
def test_container_that_starts_again_keeps_its_devices_and_waits_where_they_are_gone(licences, settings, gone):
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


def test_device_that_vanishes_makes_a_condition_and_is_not_offered(machine, settings, tmp_path, monkeypatch):
    shown, program = tmp_path / "shown", tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat {shown}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    lines = [f"GPU-{number}, A100, 00000000:0{number}:00.0, 5, 10, 100, 40\n" for number in (1, 2)]
    shown.write_text("".join(lines))
    machine.begin()
    assert node_status()["allocatable"]["nvidia.com/gpu"] == "2"
    script = f'echo "$CUDA_VISIBLE_DEVICES" > {machine.out}/gpus; until [ -e {machine.out}/go ]; do sleep 0.01; done'
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
def character_devices():
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
def test_file_of_a_device_is_opened_only_by_the_pod_that_has_it(machine, settings, character_devices, mounts, layers):
    allowed = machine.allowed()
    if not allowed.landlock and not layers:
        pytest.skip("this machine has no Landlock")
    if mounts != "none" and allowed.mounts == "none":
        pytest.skip("this machine lets this user make no mounts")
    one, two = character_devices
    settings.DEVICES = parse(f"example.org/scope:SCOPE={one},{two}")
    machine.begin(mounts, **layers)
    script = (
        f"for each in {one} {two}; do head -c 1 $each 2> /dev/null | od -An -tx1 | grep -q 00 && echo $each; done > {machine.out}/$HOSTNAME;"
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
