"""What each plugin gives, and what its arguments change (reference: volcano-job §5); tests/golden/jobs has whole pods."""

from __future__ import annotations

import base64
import json

import pytest

from jobs.plugins import addresses
from jobs.plugins.contract import Draft, KeyPair, Place
from jobs.plugins.table import PLUGINS, of_job
from tests.jobs.builders import container, job, task
from tests.tables import cases

LABELS = {"volcano.sh/job-name": "demo", "volcano.sh/job-namespace": "default"}
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


def variables(spec, kind="containers"):
    return {each["name"]: each.get("value") for each in spec[kind][0].get("env", ())}


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


@pytest.mark.shows("5.2/VK_TASK_INDEX, VC_TASK_INDEX", "9.1/19")
@KINDS
def test_env_tells_the_index(kind):
    spec = made({"env": []}, task("main", 3, pod=both(env=[{"name": "OWN", "value": "1"}])), index=2)
    assert [*variables(spec, kind).items()] == [("OWN", "1"), ("VK_TASK_INDEX", "2"), ("VC_TASK_INDEX", "2")]


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


@pytest.mark.shows("5.3/ConfigMap", "5.3/no replicas", "5.1/address", "5.1/one host")
def test_svc_lists_the_hosts_of_each_task():
    named = task("named", 3, pod={"hostname": "h", "subdomain": "s"})
    assert products({"svc": []}, task("web-server", 2), named, task("none", 0))["ConfigMap"]["data"] == {
        "web_server.host": "demo-web-server-0.demo\ndemo-web-server-1.demo",
        "VC_WEB_SERVER_HOSTS": "demo-web-server-0.demo,demo-web-server-1.demo",
        "VC_WEB_SERVER_NUM": "2",
        "named.host": "h.s", "VC_NAMED_HOSTS": "h.s", "VC_NAMED_NUM": "1",
        "none.host": "", "VC_NONE_HOSTS": "", "VC_NONE_NUM": "0",
    }  # fmt: skip


@cases("arguments, published", {
    "ready ones | 5.3/Service": ([], None),
    "all | 5.3/--publish-not-ready-addresses": (["--publish-not-ready-addresses"], True),
})  # fmt: skip
def test_svc_has_a_service_for_the_pods_of_the_job(arguments, published):
    spec = products({"svc": arguments}, task())["Service"]["spec"]
    assert (spec["clusterIP"], spec["selector"], spec.get("ports")) == ("None", LABELS, None)
    assert spec.get("publishNotReadyAddresses") is published


@pytest.mark.shows("5.3/NetworkPolicy", "5.3/--disable-network-policy")
def test_svc_lets_pods_of_the_job_in_to_each_other_unless_no_policy_is_wanted():
    pods = {"matchLabels": LABELS}
    assert products({"svc": []}, task())["NetworkPolicy"] == {
        "spec": {"podSelector": pods, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": pods}]}]}
    }
    without = products({"svc": ["--disable-network-policy"]}, task())
    assert (without["NetworkPolicy"], without["Service"] is None) == (None, False)


@KINDS
@cases("arguments, names", {
    "told | 5.3/variables + 5.3//etc/volcano": ([], ["VC_MAIN_HOSTS", "VC_MAIN_NUM", "VC_B_C_HOSTS", "VC_B_C_NUM"]),
    "not told | 5.3/--inject-hosts-env": (["--inject-hosts-env=false"], []),
})  # fmt: skip
def test_svc_tells_hosts_by_variables_and_files(kind, arguments, names):
    spec = made({"svc": arguments}, task("main", pod=both()), task("b-c"))
    told = spec[kind][0].get("env", [])
    assert [each["name"] for each in told] == names
    assert all(each["valueFrom"]["configMapKeyRef"] == {"name": "demo-svc", "key": each["name"]} for each in told)
    assert spec["volumes"] == [{"name": "demo-svc", "configMap": {"name": "demo-svc"}}]
    assert spec[kind][0]["volumeMounts"] == [{"name": "demo-svc", "mountPath": "/etc/volcano"}]


@pytest.mark.shows("5.3/hostname, subdomain", "4.1/hostname, subdomain")
@cases(
    "pod, name",
    {
        "as its address says": ({}, ("demo-main-1", "demo")),
        "as is written": ({"hostname": "h", "subdomain": "s"}, ("h", "s")),
    },
)
def test_svc_names_a_pod(pod, name):
    spec = made({"svc": []}, task("main", 2, pod=pod), index=1)
    assert (spec["hostname"], spec["subdomain"]) == name


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


# ---- pytorch

BOSS = ["--master=boss", "--worker=hand", "--port=2000"]
BOSSES = (task("boss", 2), task("other"))


@pytest.mark.shows("5.5/RANK", "5.5/MASTER_ADDR, MASTER_PORT, WORLD_SIZE")
@cases("arguments, tasks, index, expected", {
    "a master": ([], [task("master", 2), task("worker", 3)], 1, ("0", "5", "demo-master-0.demo", "23456")),
    "a worker": ([], [task("worker", 3), task("master")], 2, ("3", "4", "demo-master-0.demo", "23456")),
    "another task": ([], [task("other", 3), task("master")], 2, (None, "1", "demo-master-0.demo", "23456")),
    "names and port that are given | 5.5/--master, --worker + 5.5/--port": (
        BOSS, [task("hand", 3), *BOSSES], 1, ("2", "5", "demo-boss-0.demo", "2000")),
})  # fmt: skip
def test_pytorch_ranks(arguments, tasks, index, expected):
    found = variables(made({"pytorch": arguments}, *tasks, index=index))
    assert tuple(found.get(name) for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")) == expected


@pytest.mark.shows("5.5/port", "5.5/init containers")
def test_pytorch_opens_its_port_in_containers_that_do_not():
    own = [{"containerPort": 23456, "name": "own"}]
    pod = {"containers": [container("a"), container("b", ports=own)], "initContainers": [container("first")]}
    spec = made({"pytorch": []}, task("master", pod=pod))
    assert [[each["name"] for each in c["ports"]] for c in spec["containers"]] == [["pytorchjob-port"], ["own"]]
    assert spec["initContainers"] == [container("first")]


@pytest.mark.shows("5.5/--wait-master-enabled", "5.5/--wait-master-timeout", "5.5/--wait-master-image")
@cases("arguments, image, seconds", {
    "left out": ([], "busybox:1.36.1", 300),
    "given": (["--wait-master-timeout=7", "--wait-master-image=own"], "own", 7),
})  # fmt: skip
def test_pytorch_workers_wait(arguments, image, seconds):
    tasks = task("worker"), task("master")
    (waiter,) = made({"pytorch": ["--wait-master-enabled", *arguments]}, *tasks)["initContainers"]
    assert (waiter["name"], waiter["image"], waiter["command"][:2]) == ("wait-for-master", image, ["sh", "-c"])
    words = "nc -z demo-master-0.demo 23456", f"+ {seconds} ", "sleep 2"
    assert all(each in waiter["command"][2] for each in words)
    assert "initContainers" not in made({"pytorch": arguments}, *tasks)


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


# ---- tensorflow, mpi, ray, hcclrank

NAMES = ["--ps=a", "--worker=b", "--chief=c", "--evaluator=d", "--port=9"]
A, PS_0 = task("a"), ["demo-ps-0.demo:2222"]
HOSTS = {"ps": ["demo-a-0.demo:9"], "worker": ["h.demo:9", "h.demo:9"], "chief": ["demo-c-0.demo:9"]}
WORKERS, CHIEFS = ([f"demo-{name}-{n}.demo:2222" for n in range(3)] for name in ("worker", "boss"))


@cases("arguments, tasks, role, hosts", {
    "a role's own name": ([], [task("worker", 3), task("ps")], "worker", {"ps": PS_0, "worker": WORKERS}),
    "a name that is given": (["--chief=boss"], [task("boss", 3), task("ps")], "chief", {"ps": PS_0, "chief": CHIEFS}),
    "a task of no role | 5.6/other task": ([], [task("viewer", 3), task("ps")], "viewer", {"ps": PS_0}),
    "all names and one host | 5.6/TF_CONFIG + 5.6/--ps, --worker, --chief, --evaluator + 5.6/--port + 5.6/one host": (
        NAMES, [task("b", 2, pod={"hostname": "h"}), A, task("c"), task("d", 0)], "worker", HOSTS),
})  # fmt: skip
def test_tensorflow_describes_the_cluster_and_who_a_pod_is(arguments, tasks, role, hosts):
    spec = made({"tensorflow": arguments}, *tasks, index=1)
    config = json.loads(variables(spec)["TF_CONFIG"])
    assert config == {"cluster": hosts, "task": {"type": role, "index": 1}}
    assert "ports" not in spec["containers"][0]


@pytest.mark.shows("5.7/MPI_HOST", "5.7/--master, --worker", "5.7/port", "5.7/--port")
@KINDS
def test_mpi_tells_the_master_where_the_workers_are_and_opens_its_port(kind):
    arguments = ["--master=boss", "--worker=hand", "--port=2022"]
    boss, hand = task("boss", pod=both()), task("hand", 2, pod=both())
    of_boss, of_hand = made({"mpi": arguments}, boss, hand), made({"mpi": arguments}, hand, boss)
    assert variables(of_boss, kind) == {"MPI_HOST": "demo-hand-0.demo,demo-hand-1.demo"}
    assert variables(of_hand, kind) == {}
    for spec in (of_boss, of_hand):
        assert [(each["name"], each["containerPort"]) for each in spec[kind][0]["ports"]] == [("mpijob-port", 2022)]
    own = [{"containerPort": 22, "name": "own"}]
    assert made({"mpi": []}, task("worker", pod=both(ports=own)), task("master"))[kind][0]["ports"] == own


RAY = ["--head=boss", "--headContainer=lead", "--worker=hand", "--workerContainer=run", "--port=1", "--dashboardPort=2",
       "--clientPort=3"]  # fmt: skip
LEAD = container("lead", ports=[{"containerPort": 2, "name": "own"}])
BOSS_TASK, HAND_TASK = (
    task(name, replicas, pod={"containers": [first, container("beside")]})
    for name, replicas, first in (("boss", 1, LEAD), ("hand", 2, container("run")))
)
START = "ray start --head --block --dashboard-host=0.0.0.0 --port=1 --dashboard-port=2 --ray-client-server-port=3"


@pytest.mark.shows("5.8/--head, --worker", "5.8/--headContainer, --workerContainer")
@cases("tasks, command, ports", {
    "the head | 5.8/head + 5.8/--port, --dashboardPort, --clientPort": (
        (BOSS_TASK, HAND_TASK), START, {"gcs": 1, "own": 2, "client-server": 3}),
    "a worker | 5.8/worker": ((HAND_TASK, BOSS_TASK), "ray start --block --address=demo-boss-0.demo:1", {}),
})  # fmt: skip
def test_ray_is_started_in_the_container_of_its_name(tasks, command, ports):
    first, beside = made({"ray": RAY}, *tasks)["containers"]
    assert first["command"] == ["sh", "-c", f"{command} --node-ip-address=$(POD_IP)"]
    assert {each["name"]: each["containerPort"] for each in first.get("ports", ())} == ports
    assert beside == container("beside")


@pytest.mark.shows("5.8/Service", "5.8/--port, --dashboardPort, --clientPort")
def test_ray_has_a_service_for_its_head():
    spec = products({"ray": RAY}, BOSS_TASK, HAND_TASK)["Service"]["spec"]
    assert (spec["type"], spec["selector"]) == ("ClusterIP", LABELS | {"volcano.sh/task-spec": "boss"})
    ports = ("gcs", 1), ("dashboard", 2), ("client-server", 3)
    assert spec["ports"] == [{"name": name, "port": n, "protocol": "TCP", "targetPort": name} for name, n in ports]


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
