"""What is read of the arguments of plugins, and what is said of the plugins of a job before it is accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.plugins.arguments import parse
from jobs.plugins.contract import Draft, Place
from jobs.plugins.table import PLUGINS, of_job
from jobs.rules import admission
from tests.jobs.builders import CLUSTER, container, defaulted, job, refusals, task
from tests.tables import cases

# ---- arguments, as Go's package flag reads them

FLAGS = {"name": "none", "port": 22, "fast": False, "kind": "a"}


@pytest.mark.shows("5.1/arguments")
@cases("words, changed", {
    "none": ([], {}),
    "two dashes": (["--name=x"], {"name": "x"}),
    "one dash": (["-name=x"], {"name": "x"}),
    "a value of its own": (["--name", "x"], {"name": "x"}),
    "a value like a flag": (["--name", "--port=1"], {"name": "--port=1"}),
    "an empty value": (["--name="], {"name": ""}),
    "the first sign separates": (["--name=a=b="], {"name": "a=b="}),
    "the later one holds": (["--name=x", "--name=y"], {"name": "y"}),
    "yes": (["--fast"], {"fast": True}),
    "no": (["--fast=F"], {"fast": False}),
    "yes takes no value": (["--fast", "--name=x"], {"fast": True, "name": "x"}),
    "hexadecimal": (["--port=0x10"], {"port": 16}),
    "octal": (["--port=010"], {"port": 8}),
    "underscores": (["--port=1_000"], {"port": 1000}),
    "negative": (["--port", "-5"], {"port": -5}),
    "zero": (["--port=0"], {"port": 0}),
})  # fmt: skip
def test_flags_are_read(words, changed):
    assert parse(words, FLAGS) == ({**FLAGS, **changed}, "")


@pytest.mark.shows("5.1/wrong arguments")
@cases("word, problem", {
    "unknown": ("--no-root", "--no-root is not known (flags: --name, --port, --fast, --kind)"),
    "no number": ("--port=many", '--port must be a whole number, and is "many"'),
    "an empty number": ("--port=", '--port must be a whole number, and is ""'),
    "a blank": ("--port= 1", '--port must be a whole number, and is " 1"'),
    "no octal digit": ("--port=08", '--port must be a whole number, and is "08"'),
    "too large": ("--port=9223372036854775808", "--port must be a whole number of 64 bits"),
    "no truth": ("--fast=yes", '--fast must be true or false, and is "yes"'),
    "a bare word": ("x", '"x" is no flag'),
    "a dash": ("-", '"-" is no flag'),
    "three dashes": ("---name=x", '"---name=x" is no flag'),
    "no name": ("--=x", '"--=x" is no flag'),
    "nothing": ("", '"" is no flag'),
})  # fmt: skip
def test_reading_stops_at_what_is_wrong_and_says_what_it_is(word, problem):
    parsed = parse(["--name=before", word, "--kind=after"], FLAGS)
    assert parsed.values == {**FLAGS, "name": "before"}
    assert parsed.problem.startswith(problem)
    assert parsed.problem.endswith("; it and what follows it are ignored.")


def test_a_flag_at_the_end_needs_its_value_and_two_dashes_end_the_flags():
    assert parse(["--fast", "--port"], FLAGS) == ({**FLAGS, "fast": True}, "--port needs a value; it is ignored.")
    assert parse(["--"], FLAGS) == (FLAGS, "")
    assert parse(["--", "--name=x"], FLAGS).problem == '"--" ends the flags; it and what follows it are ignored.'


@given(st.lists(st.text(alphabet="-=abport0fn", max_size=8) | st.text(max_size=5), max_size=5))
def test_whatever_is_written_every_flag_has_a_value_of_its_type(words):
    values = parse(words, FLAGS).values
    assert {name: type(value) for name, value in values.items()} == {name: type(value) for name, value in FLAGS.items()}


@given(st.lists(st.sampled_from(["--name=x", "--fast", "--port=7", "--kind=b"]), max_size=4), st.text(max_size=3))
def test_what_stands_before_a_wrong_word_holds(words, rest):
    assert parse([*words, "--wrong", rest], FLAGS).values == parse(words, FLAGS).values


# ---- plugins of jobs

MPI = (task("master"), task("worker"))
GENERATED = {**job(plugins={"svc": []}), "metadata": {"generateName": "1a-", "namespace": "default"}}
KNOWN = "known plugins are env, svc, ssh, pytorch, tensorflow, mpi, ray, hcclrank."


def warned(obj):
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
    "a name that is generated, by its beginning": (GENERATED, "svc", "1a-xxxxx"),
    "a plugin that nobody knows | 5.1/unknown": (job(plugins={"nope": []}), "nope", KNOWN),
})  # fmt: skip
def test_what_cannot_work_is_refused(obj, plugin, message):
    assert message in refusals(obj)[f"spec.plugins[{plugin}]"]


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
    assert any(message in text for text in warned(obj)), warned(obj)


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
    assert (refusals(obj), warned(obj)) == ({}, [])


def written(name="main", kind="containers", **fields):
    """A task whose container is written with fields of its own, and a volume that is none of the plugin's."""
    pod = {"containers": [container()], "volumes": [{"name": "v", "emptyDir": {}}]}
    return task(name, pod=pod | {kind: [container("c", **fields)]})


def setting(variable, name="main", **fields):
    return written(name, env=[{"name": "MINE", "value": "1"}, {"name": variable, "value": "9"}], **fields)


def mounting(path):
    return written(volumeMounts=[{"name": "v", "mountPath": path}])


def overwritten(obj):
    """The fields that a plugin overwrites, each with the plugin's name."""
    found = (text.partition(": the plugin ") for text in admission.warn(defaulted(obj), None, CLUSTER))
    return {path: rest.split()[0] for path, mark, rest in found if mark}


ENV, MOUNT = "containers[0].env[1]", "containers[0].volumeMounts[0].mountPath"
RAYS_HEAD = task("head", pod={"containers": [container("head", args=["x"], env=[{"name": "POD_IP", "value": "9"}])]})
VOLUME_OF_SSH = task(pod={"volumes": [{"name": "demo-ssh", "emptyDir": {}}]})


@cases("first, wanted, paths", {
    "env": (setting("VC_TASK_INDEX"), {"env": []}, {ENV: "env"}),
    "env, init": (setting("VK_TASK_INDEX", kind="initContainers"), {"env": []}, {"initContainers[0].env[1]": "env"}),
    "svc's variables": (setting("VC_MAIN_HOSTS"), {"svc": []}, {ENV: "svc"}),
    "svc without variables": (setting("VC_MAIN_HOSTS"), {"svc": ["--inject-hosts-env=false"]}, {}),
    "svc's files": (mounting("/etc/volcano/"), {"svc": []}, {MOUNT: "svc"}),
    "ssh's files": (mounting("/root/.ssh"), {"ssh": []}, {MOUNT: "ssh"}),
    "ssh's files elsewhere": (mounting("/root/.ssh"), {"ssh": ["--ssh-key-file-path=/k"]}, {}),
    "pytorch": (setting("RANK", "master"), {"pytorch": [], "svc": []}, {ENV: "pytorch"}),
    "hcclrank takes what is written": (setting("RANK", "master"), {"hcclrank": []}, {}),
    "tensorflow": (setting("TF_CONFIG", "ps"), {"tensorflow": []}, {ENV: "tensorflow"}),
    "mpi": (setting("MPI_HOST", "master"), {"mpi": []}, {ENV: "mpi"}),
    "ray": (RAYS_HEAD, {"ray": []}, {f"containers[0].{field}": "ray" for field in ("command", "args", "env[0]")}),
    "a volume's name": (VOLUME_OF_SSH, {"ssh": []}, {"volumes[0].name": "ssh"}),
    "nothing": (setting("OTHER"), {"env": [], "svc": [], "ssh": []}, {}),
    "nothing above a mount": (mounting("/root"), {"env": [], "svc": [], "ssh": []}, {}),
})  # fmt: skip
def test_what_a_plugin_overwrites_is_said_at_its_field(first, wanted, paths):
    for number, tasks in enumerate(([first, task("worker")], [task("worker"), first])):
        expected = {f"spec.tasks[{number}].template.spec.{path}": plugin for path, plugin in paths.items()}
        assert overwritten(job(*tasks, plugins=wanted)) == expected


def test_a_volume_of_the_job_that_a_plugin_hides_is_named():
    obj = job(plugins={"ssh": []}, volumes=[{"mountPath": "/data"}, {"mountPath": "/root/.ssh"}])
    assert overwritten(obj) == {"spec.volumes[1].mountPath": "ssh"}


@pytest.mark.parametrize("name", PLUGINS)
def test_whatever_a_plugin_gives_a_container_is_said_where_it_is_written(name):
    """What the plugin made of a job is written into the job itself: each variable and mount is then there twice."""
    pod = {"containers": [container("head"), container("worker")]}
    tasks = [task(each, pod=pod) for each in ("head", "master", "worker")]
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
    assert {path for path, plugin in overwritten(made).items() if plugin == name} == wanted
