"""Which pod gets which devices: declared in the settings, given out once, divided among containers."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.rules import node_devices
from kube import amounts
from kube.kinds.core import Pod
from node import devices
from node.agent.device_holders import DeviceHolders
from node.agent.found_devices import FoundDevices
from node.devices import Device, DevicesError, Kind, Short
from node.paths import Layout
from tests.tables import cases

LICENCE, PORT = "example.org/licence", "example.org/port"
DECLARED = devices.parse(f"{LICENCE}:LICENCE=blue,red,green\n{PORT}:PORT=5000..5003")


def container(name, licences=0, ports=0, **fields):
    asked = {LICENCE: str(licences), PORT: str(ports)}
    limits = {each: count for each, count in asked.items() if count != "0"}
    return {"name": name, "command": ["x"], "resources": {"limits": limits}, **fields}


def pod(*containers, inits=(), uid="u"):
    body = {"metadata": {"uid": uid}, "spec": {"containers": containers, "initContainers": inits}}
    return msgspec.convert(body, Pod)


def test_what_is_declared_is_read():
    assert (
        Kind(LICENCE, ("LICENCE",), (Device("blue"), Device("red"), Device("green"))),
        Kind(PORT, ("PORT",), tuple(Device(str(number)) for number in range(5000, 5004))),
    ) == DECLARED
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
def test_what_declares_nothing_is_refused(text, told):
    with pytest.raises(DevicesError, match=told):
        devices.parse(text)


def test_first_free_ones_are_given():
    held = [{LICENCE: ("blue",)}, {PORT: ("5001",)}]
    assert devices.assign(DECLARED, held, {LICENCE: 1, PORT: 2}) == {LICENCE: ("red",), PORT: ("5000", "5002")}


def test_what_is_gone_is_not_given():
    assert devices.assign(DECLARED, [], {LICENCE: 1}, gone={(LICENCE, "blue")}) == {LICENCE: ("red",)}


def test_who_asks_for_more_than_is_free_gets_nothing():
    with pytest.raises(Short, match=r"asks for 2 example.org/licence, of which 1 are free"):
        devices.assign(DECLARED, [{LICENCE: ("blue", "green")}], {LICENCE: 2})


@cases("given, expected", {
    "side by side": (pod(container("a", 1), container("b", 2)), {"a": "x", "b": "yz"}),
    "one has none": (pod(container("a", 1), container("b")), {"a": "x"}),
    "one after another": (pod(container("a", 2), inits=[container("i", 1)]), {"i": "x", "a": "xy"}),
    "beside a sidecar": (
        pod(container("a", 1), inits=[container("s", 1, restartPolicy="Always"), container("i", 1)]),
        {"s": "x", "i": "y", "a": "y"},
    ),
})  # fmt: skip
def test_containers_that_run_side_by_side_share_no_device(given, expected):
    total = amounts.pod_request(given.spec)[LICENCE]
    found = devices.shares(given, {LICENCE: tuple("xyz"[:total])})
    assert {name: "".join(share[LICENCE]) for name, share in found.items()} == expected


def test_variables_name_what_a_container_has_and_hide_what_it_has_not():
    gpus = Kind("nvidia.com/gpu", ("CUDA_VISIBLE_DEVICES",), (Device("GPU-1"),), hides=True)
    kinds = (*DECLARED, gpus)
    assert devices.variables(kinds, {PORT: ("5000", "5002")}) == {"PORT": "5000,5002", "CUDA_VISIBLE_DEVICES": ""}
    assert devices.variables(kinds, {"nvidia.com/gpu": ("GPU-1",)}) == {"CUDA_VISIBLE_DEVICES": "GPU-1"}


def test_file_that_two_devices_need_is_reached_by_who_has_either():
    scopes = Kind(
        "a.org/b", ("B",), (Device("1", files=("/dev/all", "/dev/1")), Device("2", files=("/dev/all", "/dev/2")))
    )
    assert devices.files([scopes], {"a.org/b": ("1",)}) == (("/dev/1", "/dev/all"), ("/dev/2",))
    assert devices.files([scopes], {}) == ((), ("/dev/1", "/dev/2", "/dev/all"))


def test_node_and_pod_say_what_they_have():
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


steps = st.lists(
    st.tuples(st.sampled_from(["give", "release", "crash"]), st.integers(0, 4), st.integers(0, 2), st.integers(0, 3)),
    max_size=25,
)


@given(steps=steps)
def test_nothing_is_given_out_twice_whenever_the_agent_is_killed(tmp_path_factory, steps):
    layout = Layout(tmp_path_factory.mktemp("node"))
    found = FoundDevices(DECLARED, finders=(), folders=())
    holders, has = DeviceHolders(layout, found), {}
    for step, number, licences, ports in steps:
        uid = f"pod-{number}"
        layout.pod(uid).mkdir(parents=True, exist_ok=True)
        if step == "give":
            wanted = has[uid][0] if uid in has else Counter({LICENCE: licences, PORT: ports})
            asks = pod(container("main", wanted[LICENCE], wanted[PORT]), uid=uid)
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
