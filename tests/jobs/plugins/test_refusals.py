"""What is said of the plugins of a job before it is accepted."""

from __future__ import annotations

import pytest

from jobs.plugins.contract import Draft, Place
from jobs.plugins.table import PLUGINS, of_job
from jobs.rules import admission
from tests.jobs.builders import CLUSTER, container, defaulted, job, refusals, task
from tests.tables import cases

MPI = (task("master"), task("worker"))


def warnings(obj):
    return [text for text in admission.warn(defaulted(obj), None, CLUSTER) if text.startswith("spec.plugins")]


@cases("obj, plugin, message", {
    "mpi without a master": (job(plugins={"mpi": []}), "mpi", "no task is named master"),
    "ray without a head | 5.8/no head": (job(plugins={"ray": []}), "ray", "no task is named head"),
    "mpi port": (job(*MPI, plugins={"mpi": ["--port=0"]}), "mpi", "--port must be a port from 1 to 65535, and is 0"),
    "pytorch port": (job(plugins={"pytorch": ["--port=65536"]}), "pytorch", "and is 65536"),
    "tensorflow port": (job(plugins={"tensorflow": ["--port=-1"]}), "tensorflow", "and is -1"),
    "ray port": (job(task("head"), plugins={"ray": ["--clientPort=0"]}), "ray", "--clientPort must be"),
    "a name with a dot": (job(plugins={"svc": []}, name="a.b"), "svc", "a Service of the job's name, a.b"),
    "a name that begins with a digit": (job(plugins={"svc": []}, name="1a"), "svc", "a Service of the job's name, 1a"),
})  # fmt: skip
def test_what_cannot_work_is_refused(obj, plugin, message):
    assert message in refusals(obj)[f"spec.plugins[{plugin}]"]


def test_a_name_that_is_generated_is_judged_by_its_beginning():
    obj = job(plugins={"svc": []})
    obj["metadata"] = {"generateName": "1a-", "namespace": "default"}
    assert "1a-xxxxx" in refusals(obj)["spec.plugins[svc]"]


@pytest.mark.shows("5.1/unknown")
def test_a_plugin_that_nobody_knows_is_refused_with_those_that_there_are():
    found = refusals(job(plugins={"nope": []}))["spec.plugins[nope]"]
    assert "known plugins are env, svc, ssh, pytorch, tensorflow, mpi, ray, hcclrank." in found


@cases("obj, message", {
    "unknown flag | 5.1/wrong arguments + 5.4/--no-root": (job(plugins={"ssh": ["--no-root"]}),
        "spec.plugins[ssh]: --no-root is not known"),
    "no flags at all": (job(plugins={"env": ["--x"]}), "--x is not known (flags: none); it is ignored."),
    "ssh port": (job(plugins={"ssh": ["--ssh-port=0"]}), "and is 0; 22 is used."),
    "half a pair": (job(plugins={"ssh": ["--ssh-public-key=k"]}), "is used only with --ssh-private-key"),
    "the other half": (job(plugins={"ssh": ["--ssh-private-key=k"]}), "without --ssh-public-key lets nobody in"),
    "a pair for all to read": (job(plugins={"ssh": ["--ssh-private-key=k", "--ssh-public-key=p"]}),
        "can be read by everybody"),
    "pytorch": (job(plugins={"pytorch": []}), "no task is named master, so the plugin does nothing"),
    "mpi": (job(task("master"), plugins={"mpi": []}), "no task is named worker, so the master gets no MPI_HOST"),
    "tensorflow": (job(plugins={"tensorflow": []}), "TF_CONFIG describes an empty cluster"),
    "hcclrank": (job(plugins={"hcclrank": []}), "no task is named master"),
    "ray": (job(task("head"), plugins={"ray": []}), "no container of task head is named head"),
    "too many hosts": (job(task(replicas=8000), plugins={"svc": []}),
        "give --inject-hosts-env=false and read /etc/volcano/main.host"),
})  # fmt: skip
def test_what_is_likely_not_meant_is_said(obj, message):
    assert refusals(obj) == {}
    assert any(message in text for text in warnings(obj)), warnings(obj)


@cases("obj", {
    "mpi": job(*MPI, plugins={"mpi": []}),
    "pytorch": job(*MPI, plugins={"pytorch": [], "hcclrank": []}),
    "tensorflow": job(task("ps"), task("worker"), plugins={"tensorflow": []}),
    "ray": job(task("head", pod={"containers": [container("head")]}), plugins={"ray": []}),
    "many hosts in a file": job(task(replicas=8000), plugins={"svc": ["--inject-hosts-env=false"]}),
    "one host of many pods": job(task(replicas=8000, pod={"hostname": "h"}), plugins={"svc": []}),
    "the three of the seed": job(plugins={"env": [], "svc": [], "ssh": None}),
})  # fmt: skip
def test_of_what_works_nothing_is_said(obj):
    assert (refusals(obj), warnings(obj)) == ({}, [])


def _with(name="main", kind="containers", **fields):
    """A task whose container is written with fields of its own."""
    own = container("c", **fields)
    return task(name, pod={kind: [own], **({} if kind == "containers" else {"containers": [container()]})})


def _env(name):
    return [{"name": "MINE", "value": "1"}, {"name": name, "value": "9"}]


def _mount(path):
    return {"volumeMounts": [{"name": "v", "mountPath": path}]}


POD = "spec.tasks[0].template.spec"


def overwritten(obj):
    """The fields that a plugin overwrites, each with the plugin's name."""
    found = (text.partition(": the plugin ") for text in admission.warn(defaulted(obj), None, CLUSTER))
    return {path: rest.split()[0] for path, mark, rest in found if mark}


@cases("tasks, wanted, fields", {
    "env": ([_with(env=_env("VC_TASK_INDEX"))], {"env": []}, {f"{POD}.containers[0].env[1]": "env"}),
    "env, init": ([_with(env=_env("VK_TASK_INDEX"), kind="initContainers")], {"env": []},
        {f"{POD}.initContainers[0].env[1]": "env"}),
    "svc's variables": ([_with(env=_env("VC_MAIN_HOSTS"))], {"svc": []}, {f"{POD}.containers[0].env[1]": "svc"}),
    "svc without variables": ([_with(env=_env("VC_MAIN_HOSTS"))], {"svc": ["--inject-hosts-env=false"]}, {}),
    "svc's files": ([_with(**_mount("/etc/volcano/"))], {"svc": []},
        {f"{POD}.containers[0].volumeMounts[0].mountPath": "svc"}),
    "ssh's files": ([_with(**_mount("/root/.ssh"))], {"ssh": []},
        {f"{POD}.containers[0].volumeMounts[0].mountPath": "ssh"}),
    "ssh's files elsewhere": ([_with(**_mount("/root/.ssh"))], {"ssh": ["--ssh-key-file-path=/k"]}, {}),
    "pytorch": ([_with("master", env=_env("RANK"))], {"pytorch": [], "svc": []},
        {f"{POD}.containers[0].env[1]": "pytorch"}),
    "hcclrank takes what is written": ([_with("master", env=_env("RANK"))], {"hcclrank": []}, {}),
    "tensorflow": ([_with("ps", env=_env("TF_CONFIG")), task("worker")], {"tensorflow": []},
        {f"{POD}.containers[0].env[1]": "tensorflow"}),
    "mpi": ([_with("master", env=_env("MPI_HOST")), task("worker")], {"mpi": []},
        {f"{POD}.containers[0].env[1]": "mpi"}),
    "mpi, second task": ([task("worker"), _with("master", env=_env("MPI_HOST"))], {"mpi": []},
        {"spec.tasks[1].template.spec.containers[0].env[1]": "mpi"}),
    "ray": ([task("head", pod={"containers": [container("head", args=["x"], env=_env("POD_IP"))]})], {"ray": []},
        {f"{POD}.containers[0].{field}": "ray" for field in ("command", "args", "env[1]")}),
    "a volume's name": ([task(pod={"volumes": [{"name": "demo-ssh", "emptyDir": {}}]})], {"ssh": []},
        {f"{POD}.volumes[0].name": "ssh"}),
    "nothing": ([_with(env=_env("OTHER"), **_mount("/root"))], {"env": [], "svc": [], "ssh": []}, {}),
})  # fmt: skip
def test_what_a_plugin_overwrites_is_said_at_its_field(tasks, wanted, fields):
    for each in tasks:  # the mounts' volume, which is none of the plugin's
        each["template"]["spec"].setdefault("volumes", [{"name": "v", "emptyDir": {}}])
    assert overwritten(job(*tasks, plugins=wanted)) == fields


def test_a_volume_of_the_job_that_a_plugin_hides_is_named():
    obj = job(plugins={"ssh": []}, volumes=[{"mountPath": "/data"}, {"mountPath": "/root/.ssh"}])
    assert overwritten(obj) == {"spec.volumes[1].mountPath": "ssh"}


@pytest.mark.parametrize("name", PLUGINS)
def test_whatever_a_plugin_gives_a_container_is_said_where_it_is_written(name):
    """Write what the plugin made of a job into the job itself: each variable and each mount of it is then written twice."""
    tasks = [
        task(each, pod={"containers": [container("head"), container("worker")]})
        for each in ("head", "master", "worker")
    ]
    made = defaulted(job(*tasks, plugins={name: []}))
    ((_, context),) = [each for each in of_job(made) if each[0].name == name]
    hook = PLUGINS[name].pods(context)
    wanted = set()
    for number, each in enumerate(made["spec"]["tasks"]):
        spec = hook(Draft(each["template"]["spec"], {}), Place(each["name"], 0, f"demo-{each['name']}-0")).spec
        each["template"]["spec"]["containers"] = [{**one, "command": ["true"]} for one in spec["containers"]]
        for at, one in enumerate(spec["containers"]):
            path = f"spec.tasks[{number}].template.spec.containers[{at}]"
            wanted |= {f"{path}.env[{n}]" for n, _ in enumerate(one.get("env", ()))}
            wanted |= {f"{path}.volumeMounts[{n}].mountPath" for n, _ in enumerate(one.get("volumeMounts", ()))}
            wanted |= {f"{path}.command"} if one["command"] != ["true"] else set()
    own = {path for path, plugin in overwritten(made).items() if plugin == name}
    assert own == wanted
