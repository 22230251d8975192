"""What each plugin gives, and what each of its arguments changes (reference: volcano-job §5)."""

from __future__ import annotations

import base64
import json

import pytest

from jobs.plugins.contract import Draft, KeyPair, Place
from jobs.plugins.table import PLUGINS, of_job
from tests.jobs.builders import container, job, task
from tests.tables import cases

shows = pytest.mark.shows
LABELS = {"volcano.sh/job-name": "demo", "volcano.sh/job-namespace": "default"}


@cases("name, flags", {
    "env": ("env", {}),
    "svc | 5.3/--publish-not-ready-addresses + 5.3/--disable-network-policy + 5.3/--inject-hosts-env": ("svc",
        {"publish-not-ready-addresses": False, "disable-network-policy": False, "inject-hosts-env": True}),
    "ssh | 5.4/--ssh-key-file-path + 5.4/--ssh-private-key, --ssh-public-key + 5.4/--ssh-port": ("ssh",
        {"ssh-key-file-path": "/root/.ssh", "ssh-private-key": "", "ssh-public-key": "", "ssh-port": 22}),
    "pytorch | 5.5/--master, --worker + 5.5/--port + 5.5/--wait-master-enabled + 5.5/--wait-master-timeout + 5.5/--wait-master-image": (
        "pytorch",
        {"master": "master", "worker": "worker", "port": 23456, "wait-master-enabled": False, "wait-master-timeout": 300, "wait-master-image": "busybox:1.36.1"}),
    "tensorflow | 5.6/--ps, --worker, --chief, --evaluator + 5.6/--port": ("tensorflow",
        {"ps": "ps", "worker": "worker", "chief": "chief", "evaluator": "evaluator", "port": 2222}),
    "mpi | 5.7/--master, --worker + 5.7/--port": ("mpi", {"master": "master", "worker": "worker", "port": 22}),
    "ray | 5.8/--head, --worker + 5.8/--headContainer, --workerContainer + 5.8/--port, --dashboardPort, --clientPort": (
        "ray",
        {"head": "head", "headContainer": "head", "worker": "worker", "workerContainer": "worker", "port": 6379, "dashboardPort": 8265, "clientPort": 10001}),
    "hcclrank | 5.9/--master, --worker": ("hcclrank", {"master": "master", "worker": "worker"}),
})  # fmt: skip
def test_arguments_and_their_defaults(name, flags):
    assert PLUGINS[name].flags == flags


@shows("5.1/names")
def test_every_plugin_of_the_reference_is_there():
    assert set(PLUGINS) == {"ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray"}


def made(wanted, *tasks, index=0):
    """The pod with an index of the first task, as the plugins make it."""
    first = tasks[0]
    draft = Draft(first["template"]["spec"], {})
    for plugin, context in of_job(job(*tasks, plugins=wanted)):
        draft = plugin.pods(context)(draft, Place(first["name"], index, f"demo-{first['name']}-{index}"))
    return draft.spec


def products(wanted, *tasks, keys=None):
    """What the plugins want to exist, by kind; None is what they want not."""
    whole = job(*tasks, plugins=wanted)
    pairs = [(plugin, context) for plugin, context in of_job(whole, keys)]
    return {each.resource.kind: each.content(context) for plugin, context in pairs for each in plugin.products}


def variables(spec, kind="containers"):
    return {each["name"]: each.get("value") for each in spec[kind][0].get("env", ())}


def both(**fields):
    """A pod with a container and an init container."""
    return {"containers": [container(**fields)], "initContainers": [container("first", **fields)]}


@shows("5.2/VK_TASK_INDEX, VC_TASK_INDEX", "9.1/19")
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_env_tells_the_index(kind):
    spec = made({"env": []}, task("main", 3, pod=both(env=[{"name": "OWN", "value": "1"}])), index=2)
    assert list(variables(spec, kind).items()) == [("OWN", "1"), ("VK_TASK_INDEX", "2"), ("VC_TASK_INDEX", "2")]


# ---- svc

PEERS = (task("web-server", 2), task("named", 3, pod={"hostname": "h", "subdomain": "s"}), task("none", 0))


@shows("5.3/ConfigMap", "5.3/no replicas", "5.1/address", "5.1/one host")
def test_svc_lists_the_hosts_of_each_task():
    assert products({"svc": []}, *PEERS)["ConfigMap"] == {
        "data": {
            "web_server.host": "demo-web-server-0.demo\ndemo-web-server-1.demo",
            "VC_WEB_SERVER_HOSTS": "demo-web-server-0.demo,demo-web-server-1.demo",
            "VC_WEB_SERVER_NUM": "2",
            "named.host": "h.s",
            "VC_NAMED_HOSTS": "h.s",
            "VC_NAMED_NUM": "1",
            "none.host": "",
            "VC_NONE_HOSTS": "",
            "VC_NONE_NUM": "0",
        }
    }


@cases("arguments, published", {
    "ready ones | 5.3/Service": ([], None),
    "all | 5.3/--publish-not-ready-addresses": (["--publish-not-ready-addresses"], True),
})  # fmt: skip
def test_svc_has_a_service_for_the_pods_of_the_job(arguments, published):
    spec = products({"svc": arguments}, task())["Service"]["spec"]
    assert (spec["clusterIP"], spec["selector"], spec.get("ports")) == ("None", LABELS, None)
    assert spec.get("publishNotReadyAddresses") is published


@shows("5.3/NetworkPolicy")
def test_svc_lets_pods_of_the_job_in_to_each_other():
    pods = {"matchLabels": LABELS}
    assert products({"svc": []}, task())["NetworkPolicy"] == {
        "spec": {"podSelector": pods, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": pods}]}]}
    }


@shows("5.3/--disable-network-policy")
def test_svc_makes_no_policy_that_is_not_wanted():
    found = products({"svc": ["--disable-network-policy"]}, task())
    assert (found["NetworkPolicy"], found["Service"] is None) == (None, False)


@cases("arguments, names", {
    "told | 5.3/variables + 5.3//etc/volcano": ([], ["VC_MAIN_HOSTS", "VC_MAIN_NUM", "VC_B_C_HOSTS", "VC_B_C_NUM"]),
    "not told | 5.3/--inject-hosts-env": (["--inject-hosts-env=false"], []),
})  # fmt: skip
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_svc_tells_hosts_by_variables_and_files(kind, arguments, names):
    spec = made({"svc": arguments}, task("main", pod=both()), task("b-c"))
    told = spec[kind][0].get("env", [])
    assert [each["name"] for each in told] == names
    assert all(each["valueFrom"]["configMapKeyRef"] == {"name": "demo-svc", "key": each["name"]} for each in told)
    assert spec["volumes"] == [{"name": "demo-svc", "configMap": {"name": "demo-svc"}}]
    assert spec[kind][0]["volumeMounts"] == [{"name": "demo-svc", "mountPath": "/etc/volcano"}]


@shows("5.3/hostname, subdomain")
def test_svc_names_a_pod_as_its_address_says():
    spec = made({"svc": []}, task("main", 2), index=1)
    assert (spec["hostname"], spec["subdomain"]) == ("demo-main-1", "demo")


# ---- ssh


def secret(*arguments, tasks=()):
    content = products({"ssh": list(arguments)}, *(tasks or [task()]), keys=KeyPair("private", "public"))["Secret"]
    return {name: base64.b64decode(text).decode() for name, text in content["data"].items()}


@shows("5.4/Secret")
def test_ssh_has_a_pair_that_opens_every_pod():
    found = secret()
    assert (found["id_rsa"], found["id_rsa.pub"], found["authorized_keys"]) == ("private", "public", "public")


@shows("5.4/--ssh-private-key, --ssh-public-key")
@cases("arguments, pair", {
    "both": (["--ssh-private-key=a", "--ssh-public-key=b"], ("a", "b")),
    "the public one alone": (["--ssh-public-key=b"], ("private", "public")),
})  # fmt: skip
def test_ssh_takes_a_pair_that_is_given(arguments, pair):
    found = secret(*arguments)
    assert (found["id_rsa"], found["id_rsa.pub"]) == pair


@shows("5.4/config", "5.4/--ssh-port")
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


@shows("5.4/--no-root")
def test_ssh_is_not_stopped_by_a_flag_that_it_once_had():
    assert made({"ssh": ["--no-root"]}, task()) == made({"ssh": []}, task())


@shows("5.4/mount", "5.4/volume", "5.4/--ssh-key-file-path")
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
@cases("arguments, path, mode", {
    "root's": ([], "/root/.ssh", 0o600),
    "another's": (["--ssh-key-file-path=/home/me"], "/home/me", 0o644),
})  # fmt: skip
def test_ssh_mounts_its_files(kind, arguments, path, mode):
    spec = made({"ssh": arguments}, task(pod=both()))
    assert spec[kind][0]["volumeMounts"] == [{"name": "demo-ssh", "mountPath": path, "subPath": ".ssh"}]
    source = spec["volumes"][0]["secret"]
    assert (spec["volumes"][0]["name"], source["secretName"], source["defaultMode"]) == ("demo-ssh", "demo-ssh", mode)
    assert {each["key"]: each["path"] for each in source["items"]} == {
        name: f".ssh/{name}" for name in ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
    }


# ---- pytorch

BOSS = ["--master=boss", "--worker=hand", "--port=2000"]


@shows("5.5/--master, --worker", "5.5/--port", "5.5/MASTER_ADDR, MASTER_PORT, WORLD_SIZE", "5.5/RANK")
def test_pytorch_goes_by_the_names_and_the_port_that_are_given():
    spec = made({"pytorch": BOSS}, task("hand", 3), task("boss", 2), task("other"), index=1)
    assert variables(spec) == {
        "MASTER_ADDR": "demo-boss-0.demo", "MASTER_PORT": "2000", "WORLD_SIZE": "5", "RANK": "2",
    }  # fmt: skip


@shows("5.5/port", "5.5/init containers")
def test_pytorch_opens_its_port_in_containers_that_do_not():
    own = [{"containerPort": 23456, "name": "own"}]
    pod = {"containers": [container("a"), container("b", ports=own)], "initContainers": [container("first")]}
    spec = made({"pytorch": []}, task("master", pod=pod))
    assert [[each["name"] for each in c["ports"]] for c in spec["containers"]] == [["pytorchjob-port"], ["own"]]
    assert spec["initContainers"] == [container("first")]


@shows("5.5/--wait-master-enabled", "5.5/--wait-master-timeout", "5.5/--wait-master-image")
@cases("arguments, image, seconds", {
    "left out": ([], "busybox:1.36.1", 300),
    "given": (["--wait-master-timeout=7", "--wait-master-image=own"], "own", 7),
})  # fmt: skip
def test_pytorch_workers_wait(arguments, image, seconds):
    wanted = {"pytorch": ["--wait-master-enabled", *arguments]}
    (waiter,) = made(wanted, task("worker"), task("master"))["initContainers"]
    assert (waiter["name"], waiter["image"], waiter["command"][:2]) == ("wait-for-master", image, ["sh", "-c"])
    script = waiter["command"][2]
    assert "nc -z demo-master-0.demo 23456" in script
    assert f"+ {seconds} " in script
    assert "sleep 2" in script
    assert "initContainers" not in made({"pytorch": arguments}, task("worker"), task("master"))


# ---- tensorflow, mpi, ray


@shows("5.6/TF_CONFIG", "5.6/--ps, --worker, --chief, --evaluator", "5.6/--port", "5.6/one host")
def test_tensorflow_describes_the_cluster():
    arguments = ["--ps=a", "--worker=b", "--chief=c", "--evaluator=d", "--port=9"]
    tasks = (task("b", 2, pod={"hostname": "h"}), task("a"), task("c"), task("d", 0))
    spec = made({"tensorflow": arguments}, *tasks, index=1)
    assert json.loads(variables(spec)["TF_CONFIG"]) == {
        "cluster": {"ps": ["demo-a-0.demo:9"], "worker": ["h.demo:9", "h.demo:9"], "chief": ["demo-c-0.demo:9"]},
        "task": {"type": "worker", "index": 1},
    }
    assert "ports" not in spec["containers"][0]


@shows("5.7/MPI_HOST", "5.7/--master, --worker", "5.7/port", "5.7/--port")
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_mpi_tells_the_master_where_the_workers_are(kind):
    arguments = ["--master=boss", "--worker=hand", "--port=2022"]
    spec = made({"mpi": arguments}, task("boss", pod=both()), task("hand", 2))
    assert variables(spec, kind) == {"MPI_HOST": "demo-hand-0.demo,demo-hand-1.demo"}
    assert [(each["name"], each["containerPort"]) for each in spec[kind][0]["ports"]] == [("mpijob-port", 2022)]
    hand = made({"mpi": arguments}, task("hand", 2, pod=both()), task("boss"))
    assert variables(hand, kind) == {}


@shows("5.7/port")
def test_mpi_leaves_a_port_that_is_declared():
    own = [{"containerPort": 22, "name": "own"}]
    assert made({"mpi": []}, task("worker", pod=both(ports=own)), task("master"))["containers"][0]["ports"] == own


RAY = ["--head=boss", "--headContainer=lead", "--worker=hand", "--workerContainer=run", "--port=1", "--dashboardPort=2", "--clientPort=3"]  # fmt: skip
BOSS_TASK = task("boss", pod={"containers": [container("lead", ports=[{"containerPort": 2, "name": "own"}]), container("beside")]})  # fmt: skip
HAND_TASK = task("hand", 2, pod={"containers": [container("run"), container("beside")]})


@shows(
    "5.8/head",
    "5.8/--head, --worker",
    "5.8/--headContainer, --workerContainer",
    "5.8/--port, --dashboardPort, --clientPort",
)
def test_ray_starts_the_head_with_its_ports():
    lead, beside = made({"ray": RAY}, BOSS_TASK, HAND_TASK)["containers"]
    assert lead["command"] == [
        "sh",
        "-c",
        "ray start --head --block --dashboard-host=0.0.0.0 --port=1 --dashboard-port=2 --ray-client-server-port=3 --node-ip-address=$(POD_IP)",
    ]
    ports = {each["name"]: each["containerPort"] for each in lead["ports"]}
    assert ports == {"gcs": 1, "own": 2, "client-server": 3}
    assert beside == container("beside")


@shows("5.8/worker", "5.8/--head, --worker", "5.8/--headContainer, --workerContainer")
def test_ray_workers_join_the_head():
    run, beside = made({"ray": RAY}, HAND_TASK, BOSS_TASK)["containers"]
    assert run["command"] == ["sh", "-c", "ray start --block --address=demo-boss-0.demo:1 --node-ip-address=$(POD_IP)"]
    assert beside == container("beside")


@shows("5.8/Service", "5.8/--port, --dashboardPort, --clientPort")
def test_ray_has_a_service_for_its_head():
    spec = products({"ray": RAY}, BOSS_TASK, HAND_TASK)["Service"]["spec"]
    assert (spec["type"], spec["selector"]) == ("ClusterIP", LABELS | {"volcano.sh/task-spec": "boss"})
    assert spec["ports"] == [
        {"name": name, "port": port, "protocol": "TCP", "targetPort": name}
        for name, port in (("gcs", 1), ("dashboard", 2), ("client-server", 3))
    ]


@shows("5.9/--master, --worker", "5.9/hccl/rankIndex")
def test_hcclrank_goes_by_the_names_that_are_given():
    whole = job(task("hand", 2), task("boss", 3), plugins={"hcclrank": ["--master=boss", "--worker=hand"]})
    ((plugin, context),) = of_job(whole)
    draft = plugin.pods(context)(Draft({}, {}), Place("hand", 1, "demo-hand-1"))
    assert draft.annotations == {"hccl/rankIndex": "4"}
