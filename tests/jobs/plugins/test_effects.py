"""What each plugin gives, and what its arguments change (reference: volcano-job §5); whole pods: tests/golden/jobs."""

from __future__ import annotations

import base64
import json

import pytest

from jobs.plugins import addresses
from jobs.plugins.contract import Draft, KeyPair, Place
from jobs.plugins.table import PLUGINS, of_job
from tests.jobs.builders import container, job, task
from tests.tables import cases

KINDS = pytest.mark.parametrize("kind", ["containers", "initContainers"])


@cases("name, flags", {
    "env": ("env", {}),
    "svc | 5.3/--publish-not-ready-addresses + 5.3/--disable-network-policy + 5.3/--inject-hosts-env": (
        "svc", {"publish-not-ready-addresses": False, "disable-network-policy": False, "inject-hosts-env": True}),
    "ssh | 5.4/--ssh-key-file-path + 5.4/--ssh-private-key, --ssh-public-key + 5.4/--ssh-port": (
        "ssh", {"ssh-key-file-path": "/root/.ssh", "ssh-private-key": "", "ssh-public-key": "", "ssh-port": 22}),
    "pytorch | 5.5/--master, --worker + 5.5/--port + 5.5/--wait-master-enabled + 5.5/--wait-master-timeout"
    " + 5.5/--wait-master-image": (
        "pytorch", {"master": "master", "worker": "worker", "port": 23456, "wait-master-enabled": False,
                    "wait-master-timeout": 300, "wait-master-image": "busybox:1.36.1"}),
    "tensorflow | 5.6/--ps, --worker, --chief, --evaluator + 5.6/--port": (
        "tensorflow", {"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator", "port": 2222}),
    "mpi | 5.7/--master, --worker + 5.7/--port": ("mpi", {"master": "master", "worker": "worker", "port": 22}),
    "ray | 5.8/--head, --worker + 5.8/--headContainer, --workerContainer + 5.8/--port, --dashboardPort, --clientPort": (
        "ray", {"head": "head", "headContainer": "head", "worker": "worker", "workerContainer": "worker", "port": 6379,
                "dashboardPort": 8265, "clientPort": 10001}),
    "hcclrank | 5.9/--master, --worker": ("hcclrank", {"master": "master", "worker": "worker"}),
})  # fmt: skip
def test_arguments_and_their_defaults(name, flags):
    assert PLUGINS[name].flags == flags


@pytest.mark.shows("5.1/names", "5.1/order", "4.1/plugins", "10/Q-21")
def test_every_plugin_of_the_reference_is_there_in_the_order_in_which_plugins_need_each_other():
    names = [*PLUGINS]
    assert {*names} == {"ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray"}
    assert all(names.index("svc") < names.index(each) for each in ("ssh", "pytorch", "tensorflow", "mpi", "ray"))
    assert names.index("pytorch") < names.index("hcclrank")


def draft(wanted, *tasks, index=0, annotations=None):
    """The pod with an index of the first task, as the plugins make it."""
    first = tasks[0]
    found = Draft(first["template"]["spec"], annotations or {})
    for plugin, context in of_job(job(*tasks, plugins=wanted)):
        found = plugin.pods(context)(found, Place(first["name"], index, f"demo-{first['name']}-{index}"))
    return found


def made(wanted, *tasks, index=0):
    return draft(wanted, *tasks, index=index).spec


def products(wanted, *tasks, keys=None):
    """What the plugins want to exist, by kind; None is what they want not."""
    pairs = [*of_job(job(*tasks, plugins=wanted), keys)]
    return {each.resource.kind: each.content(context) for plugin, context in pairs for each in plugin.products}


def both(**fields):
    """A pod with a container and an init container."""
    return {"containers": [container(**fields)], "initContainers": [container("first", **fields)]}


@pytest.mark.parametrize("name", PLUGINS)
def test_pods_of_a_task_share_what_no_plugin_changes_and_no_arguments_may_be_written_as_nothing(name):
    first = task(pod={"initContainers": [container("init")]})
    before = json.dumps(first)
    made({name: []}, first, task("master"), task("worker"))
    assert json.dumps(first) == before
    assert draft({name: None}, task("master")) == draft({name: []}, task("master"))


@cases("wanted, alone", {
    "pytorch without a master | 5.5/no master": ({"pytorch": []}, [task("worker", 2)]),
    "tensorflow of a single pod | 5.6/single pod": ({"tensorflow": []}, [task("worker")]),
    "mpi without a worker | 5.7/no worker": ({"mpi": []}, [task("master")]),
    "ray beside containers of other names": ({"ray": []}, [task("head"), task("worker")]),
})  # fmt: skip
def test_a_plugin_does_nothing_where_it_has_nothing_to_do(wanted, alone):
    assert made(wanted, *alone) == alone[0]["template"]["spec"]


# ---- svc


@pytest.mark.shows("5.1/address", "5.1/one host")
@cases("pod, replicas, expected", {
    "names of pod and job": ({}, 2, ["demo-main-0.demo", "demo-main-1.demo"]),
    "its own subdomain": ({"subdomain": "own"}, 1, ["demo-main-0.own"]),
    "one host for all pods": ({"hostname": "h"}, 3, ["h.demo"]),
    "both its own": ({"hostname": "h", "subdomain": "own"}, 1, ["h.own"]),
    "a host of no pod": ({"hostname": "h"}, 0, []),
    "no pod": ({}, 0, []),
})  # fmt: skip
def test_addresses_of_a_task(pod, replicas, expected):
    assert [host.address for host in addresses.of_task("demo", task(replicas=replicas, pod=pod))] == expected


def test_a_pod_has_an_address_before_it_exists_and_what_is_no_task_has_none():
    assert addresses.of_pod("demo", task(replicas=0), 4).address == "demo-main-4.demo"
    for junk in (None, 1, {}, {"template": [], "replicas": "x"}, {"name": 1}):
        assert addresses.of_task("demo", junk) == []


@cases("arguments, published, has_policy", {
    "ready ones | 5.3/Service": ([], None, True),
    "all | 5.3/--publish-not-ready-addresses": (["--publish-not-ready-addresses"], True, True),
    "without a policy | 5.3/--disable-network-policy": (["--disable-network-policy"], None, False),
})  # fmt: skip
def test_svc_has_a_service_for_the_pods_of_the_job(arguments, published, has_policy):
    found = products({"svc": arguments}, task())
    assert found["Service"]["spec"].get("publishNotReadyAddresses") is published
    assert (found["NetworkPolicy"] is not None) is has_policy


# ---- ssh


def secret(*arguments, tasks=()):
    content = products({"ssh": [*arguments]}, *(tasks or [task()]), keys=KeyPair("private", "public"))["Secret"]
    return {name: base64.b64decode(text).decode() for name, text in content["data"].items()}


@cases("arguments, pair", {
    "made | 5.4/Secret": ([], ("private", "public")),
    "given | 5.4/--ssh-private-key, --ssh-public-key": (["--ssh-private-key=a", "--ssh-public-key=b"], ("a", "b")),
    "half of it given | 5.4/--ssh-private-key, --ssh-public-key": (["--ssh-public-key=b"], ("private", "public")),
})  # fmt: skip
def test_ssh_has_a_pair_that_opens_every_pod(arguments, pair):
    found = secret(*arguments)
    assert (found["id_rsa"], found["id_rsa.pub"]) == pair
    assert found["authorized_keys"] == pair[1]


@pytest.mark.shows("5.4/config", "5.4/--ssh-port")
@cases("arguments, port", {
    "left out": ([], 22),
    "given": (["--ssh-port=2022"], 2022),
    "too small": (["--ssh-port=0"], 22),
    "too large": (["--ssh-port=70000"], 22),
})  # fmt: skip
def test_ssh_configures_every_pod(arguments, port):
    assert secret(*arguments, tasks=(task("main", 1), task("named", 2, pod={"hostname": "h"})))["config"] == (
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        f"Host demo-main-0 demo-main-0.demo\n  HostName demo-main-0.demo\n  Port {port}\n"
        f"Host h h.demo\n  HostName h.demo\n  Port {port}\n"
    )


@pytest.mark.shows("5.4/mount", "5.4/volume", "5.4/--ssh-key-file-path")
@KINDS
@cases("arguments, path, mode", {
    "root's": ([], "/root/.ssh", 0o600),
    "root's, with a flag that it once had | 5.4/--no-root": (["--no-root"], "/root/.ssh", 0o600),
    "another's": (["--ssh-key-file-path=/home/me"], "/home/me", 0o644),
})  # fmt: skip
def test_ssh_mounts_its_files(kind, arguments, path, mode):
    spec = made({"ssh": arguments}, task(pod=both()))
    assert spec[kind][0]["volumeMounts"] == [{"name": "demo-ssh", "mountPath": path, "subPath": ".ssh"}]
    (volume,) = spec["volumes"]
    source = volume["secret"]
    assert (volume["name"], source["secretName"], source["defaultMode"]) == ("demo-ssh", "demo-ssh", mode)
    names = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
    assert {each["key"]: each["path"] for each in source["items"]} == {name: f".ssh/{name}" for name in names}


# ---- pytorch and hcclrank


@pytest.mark.shows("5.5/--wait-master-enabled")
@cases("first, there, waits", {
    "a worker": ("worker", [], ["wait-for-master"]),
    "last": ("worker", [container("own")], ["own", "wait-for-master"]),
    "written by hand": ("worker", [container("wait-for-master")], ["wait-for-master"]),
    "the master": ("master", [], []),
})  # fmt: skip
def test_pytorch_workers_wait_for_the_master(first, there, waits):
    others = [task(name) for name in ("master", "worker") if name != first]
    pod = {"initContainers": there} if there else {}
    spec = made({"pytorch": ["--wait-master-enabled"]}, task(first, pod=pod), *others)
    assert [each["name"] for each in spec.get("initContainers", ())] == waits


NAMED = ["--master=boss", "--worker=hand"]
RANK_7 = {"containers": [container(env=[{"name": "RANK", "value": "7"}])]}
PAIR = [task("master", 2), task("worker", 2)]


@pytest.mark.shows("5.9/hccl/rankIndex")
@cases("wanted, tasks, annotations, rank", {
    "a master": ({"hcclrank": []}, PAIR, {}, "1"),
    "a worker": ({"hcclrank": []}, PAIR[::-1], {}, "3"),
    "another task": ({"hcclrank": []}, [task("other", 2), *PAIR], {}, None),
    "told to a container": ({"hcclrank": []}, [task("worker", 2, pod=RANK_7), PAIR[0]], {}, "7"),
    "written by hand | 5.9/written": ({"hcclrank": []}, PAIR[::-1], {"hccl/rankIndex": "9"}, "9"),
    "pytorch's": ({"hcclrank": [], "pytorch": []}, PAIR[::-1], {}, "2"),
    "names that are given | 5.9/--master, --worker": ({"hcclrank": NAMED}, [task("hand", 2), task("boss", 3)], {}, "4"),
})  # fmt: skip
def test_hcclrank_notes_the_rank(wanted, tasks, annotations, rank):
    found = draft(wanted, *tasks, index=1, annotations=annotations)
    assert found.annotations.get("hccl/rankIndex") == rank
