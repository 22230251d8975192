"""What each plugin does to a pod, beside what the golden files of tests/golden/jobs show."""

from __future__ import annotations

import json

import pytest

from jobs.plugins.contract import Draft, Place
from jobs.plugins.table import PLUGINS, of_job
from tests.jobs.builders import container, job, task
from tests.tables import cases


def made(wanted, *tasks, index=0, annotations=None):
    """The pod with an index of the first task, as the plugins make it."""
    whole = job(*tasks, plugins=wanted)
    first = tasks[0]
    place = Place(first["name"], index, f"demo-{first['name']}-{index}")
    draft = Draft(first["template"]["spec"], annotations or {})
    for plugin, context in of_job(whole):
        draft = plugin.pods(context)(draft, place)
    return draft


def variables(draft, kind="containers"):
    return {each["name"]: each.get("value") for each in draft.spec[kind][0].get("env", ())}


@pytest.mark.shows("5.1/order", "4.1/plugins", "10/Q-21")
def test_the_order_is_that_in_which_plugins_need_each_other():
    names = list(PLUGINS)
    assert all(names.index("svc") < names.index(each) for each in ("ssh", "pytorch", "tensorflow", "mpi", "ray"))
    assert names.index("pytorch") < names.index("hcclrank")


@pytest.mark.parametrize("name", PLUGINS)
def test_pods_of_a_task_share_what_no_plugin_changes(name):
    first = task(pod={"initContainers": [container("init")]})
    before = json.dumps(first)
    made({name: []}, first, task("master"), task("worker"))
    assert json.dumps(first) == before


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_without_arguments_may_be_written_as_nothing(name):
    assert made({name: None}, task("master")) == made({name: []}, task("master"))


@pytest.mark.shows("5.3/hostname, subdomain", "4.1/hostname, subdomain")
def test_svc_leaves_a_hostname_and_a_subdomain_that_are_written():
    spec = made({"svc": []}, task(pod={"hostname": "h", "subdomain": "s"})).spec
    assert (spec["hostname"], spec["subdomain"]) == ("h", "s")


@cases("arguments, path, mode", {
    "root's": ([], "/root/.ssh", 0o600),
    "somebody else's": (["--ssh-key-file-path=/home/me/.ssh"], "/home/me/.ssh", 0o644),
})  # fmt: skip
def test_ssh_mounts_the_files_of_the_secret(arguments, path, mode):
    spec = made({"ssh": arguments}, task()).spec
    (volume,) = spec["volumes"]
    assert volume["secret"]["defaultMode"] == mode
    assert {each["path"] for each in volume["secret"]["items"]} == {
        ".ssh/id_rsa", ".ssh/id_rsa.pub", ".ssh/authorized_keys", ".ssh/config",
    }  # fmt: skip
    assert spec["containers"][0]["volumeMounts"] == [{"name": volume["name"], "mountPath": path, "subPath": ".ssh"}]


@pytest.mark.shows("5.5/no master")
def test_pytorch_does_nothing_without_a_master():
    alone = task("worker", 2)
    assert made({"pytorch": []}, alone).spec == alone["template"]["spec"]


@pytest.mark.shows("5.5/RANK", "5.5/MASTER_ADDR, MASTER_PORT, WORLD_SIZE")
@cases("tasks, index, rank, size", {
    "a master": ([task("master", 2), task("worker", 3)], 1, "0", "5"),
    "a worker": ([task("worker", 3), task("master")], 2, "3", "4"),
    "another task": ([task("other", 3), task("master")], 2, None, "1"),
})  # fmt: skip
def test_pytorch_ranks(tasks, index, rank, size):
    found = variables(made({"pytorch": []}, *tasks, index=index))
    assert (found.get("RANK"), found["WORLD_SIZE"]) == (rank, size)
    assert (found["MASTER_ADDR"], found["MASTER_PORT"]) == ("demo-master-0.demo", "23456")


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
    spec = made({"pytorch": ["--wait-master-enabled"]}, task(first, pod=pod), *others).spec
    assert [each["name"] for each in spec.get("initContainers", ())] == waits


@pytest.mark.shows("5.6/single pod")
def test_tensorflow_leaves_a_single_pod_alone():
    alone = task("worker", 1)
    assert made({"tensorflow": []}, alone).spec == alone["template"]["spec"]


@cases("arguments, first, role", {
    "a role's own name": ([], "worker", "worker"),
    "a name that an argument gives": (["--chief=boss"], "boss", "chief"),
    "a task of no role | 5.6/other task": ([], "viewer", "viewer"),
})  # fmt: skip
def test_tensorflow_says_who_a_pod_is(arguments, first, role):
    draft = made({"tensorflow": arguments}, task(first, 3), task("ps"), index=2)
    config = json.loads(variables(draft)["TF_CONFIG"])
    assert config["task"] == {"type": role, "index": 2}
    assert config["cluster"]["ps"] == ["demo-ps-0.demo:2222"]
    assert set(config["cluster"]) == {"ps", role} - {"viewer"}


@pytest.mark.shows("5.7/no worker")
def test_mpi_leaves_the_master_alone_when_there_is_no_worker():
    alone = task("master")
    assert made({"mpi": []}, alone).spec == alone["template"]["spec"]


def test_mpi_opens_its_port_also_in_init_containers():
    pod = {"initContainers": [container("init")]}
    spec = made({"mpi": ["--port=2022"]}, task("worker", pod=pod), task("master")).spec
    for kind in ("containers", "initContainers"):
        assert [each["containerPort"] for each in spec[kind][0]["ports"]] == [2022]


@pytest.mark.shows("5.9/hccl/rankIndex")
@cases("first, annotations, rank", {
    "a master": (task("master", 2), {}, "1"),
    "a worker": (task("worker", 2), {}, "3"),
    "another task": (task("other", 2), {}, None),
    "told to a container": (task("worker", 2, pod={"containers": [container(env=[{"name": "RANK", "value": "7"}])]}),
        {}, "7"),
    "written by hand | 5.9/written": (task("worker", 2), {"hccl/rankIndex": "9"}, "9"),
})  # fmt: skip
def test_hcclrank_notes_the_rank(first, annotations, rank):
    others = [task(name, 2) for name in ("master", "worker") if name != first["name"]]
    draft = made({"hcclrank": []}, first, *others, index=1, annotations=annotations)
    assert draft.annotations.get("hccl/rankIndex") == rank


@pytest.mark.shows("5.9/hccl/rankIndex")
def test_hcclrank_takes_the_rank_that_pytorch_gives():
    wanted = {"hcclrank": [], "pytorch": []}
    draft = made(wanted, task("worker", 2), task("master", 2), index=1)
    assert draft.annotations["hccl/rankIndex"] == "2"


def test_ray_leaves_containers_of_other_names_alone():
    spec = made({"ray": []}, task("head"), task("worker")).spec
    assert spec["containers"] == [container()]
