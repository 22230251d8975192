"""What each plugin gives and what its arguments change (reference: volcano-job §5; whole pods: tests/golden/jobs), and what is said before."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.plugins import addresses
from jobs.plugins.arguments import parse
from jobs.plugins.contract import Draft, KeyPair, PodIdentity
from jobs.plugins.table import PLUGINS, of_job
from jobs.rules import admission
from tests.jobs.builders import CLUSTER, container, defaulted, job, listed, refusals, task
from tests.tables import cases

NAMED = ["--master=boss", "--worker=hand"]
RANK_7 = {"containers": [container(env=[{"name": "RANK", "value": "7"}])]}
PAIR = [task("master", 2), task("worker", 2)]
FLAGS = {"name": "none", "port": 22, "fast": False, "kind": "a"}
RIGHT = st.lists(st.sampled_from(["--name=x", "--fast", "--port=7", "--kind=b"]), max_size=4)
ANY = st.lists(st.text(alphabet="-=abport0fn", max_size=8) | st.text(max_size=5), max_size=5)
MPI = (task("master"), task("worker"))
GENERATED = {**job(plugins={"svc": []}), "metadata": {"generateName": "1a-", "namespace": "default"}}
ENV, MOUNT = "containers[0].env[1]", "containers[0].volumeMounts[0].mountPath"
RAYS_HEAD = task("head", pod={"containers": [container("head", args=["x"], env=[{"name": "POD_IP", "value": "9"}])]})
VOLUME_OF_SSH = task(pod={"volumes": [{"name": "demo-ssh", "emptyDir": {}}]})


@cases("name", {
    "env": "env", "hcclrank | 5.9/--master, --worker": "hcclrank", "mpi | 5.7/--master, --worker + 5.7/--port": "mpi",
    "svc | 5.3/--publish-not-ready-addresses + 5.3/--disable-network-policy + 5.3/--inject-hosts-env": "svc",
    "ssh | 5.4/--ssh-key-file-path + 5.4/--ssh-private-key, --ssh-public-key + 5.4/--ssh-port": "ssh",
    "pytorch | 5.5/--master, --worker + 5.5/--port + 5.5/--wait-master-enabled + 5.5/--wait-master-timeout"
    " + 5.5/--wait-master-image": "pytorch",
    "tensorflow | 5.6/--ps, --worker, --chief, --evaluator + 5.6/--port": "tensorflow",
    "ray | 5.8/--head, --worker + 5.8/--headContainer, --workerContainer + 5.8/--port, --dashboardPort, --clientPort": "ray",
})  # fmt: skip
def test_arguments_and_their_defaults(golden, name):
    golden("flags", " ".join(f"--{flag}={default}" for flag, default in PLUGINS[name].flags.items()))


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
        found = plugin.pods(context)(found, PodIdentity(first["name"], index, f"demo-{first['name']}-{index}"))
    return found


def made(wanted, *tasks, index=0):
    return draft(wanted, *tasks, index=index).spec


def both(**fields):
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


# ---- ssh
def secret(*arguments):
    pairs = [*of_job(job(task(), plugins={"ssh": [*arguments]}), KeyPair("private", "public"))]
    (content,) = (product.content(context) for plugin, context in pairs for product in plugin.objects)
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


def test_ssh_uses_a_port_that_there_is():
    ports = {"": 22, "--ssh-port=2022": 2022, "--ssh-port=0": 22, "--ssh-port=70000": 22}
    for argument, port in ports.items():
        assert f"  HostName demo-main-0.demo\n  Port {port}\n" in secret(*filter(None, [argument]))["config"]


@cases("arguments, path, mode", {
    "root's": ([], "/root/.ssh", 0o600),
    "root's, with a flag that it once had | 5.4/--no-root": (["--no-root"], "/root/.ssh", 0o600),
    "another's | 5.4/mount + 5.4/volume + 5.4/--ssh-key-file-path": (["--ssh-key-file-path=/home/me"], "/home/me", 0o644),
})  # fmt: skip
def test_ssh_mounts_its_files(arguments, path, mode):
    spec = made({"ssh": arguments}, task(pod=both()))
    for kind in ("containers", "initContainers"):
        assert spec[kind][0]["volumeMounts"] == [{"name": "demo-ssh", "mountPath": path, "subPath": ".ssh"}]
    assert spec["volumes"][0]["secret"]["defaultMode"] == mode


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


# ---- arguments, as Go's package flag reads them
@pytest.mark.shows("5.1/arguments")
@cases("words, changed", {
    "none": ([], {}), "two dashes": (["--name=x"], {"name": "x"}), "one dash": (["-name=x"], {"name": "x"}),
    "a value of its own": (["--name", "x"], {"name": "x"}), "an empty value": (["--name="], {"name": ""}),
    "a value like a flag": (["--name", "--port=1"], {"name": "--port=1"}),
    "the first sign separates": (["--name=a=b="], {"name": "a=b="}),
    "the later one holds": (["--name=x", "--name=y"], {"name": "y"}),
    "yes": (["--fast"], {"fast": True}), "no": (["--fast=F"], {"fast": False}),
    "yes takes no value": (["--fast", "--name=x"], {"fast": True, "name": "x"}),
    "hexadecimal": (["--port=0x10"], {"port": 16}), "octal": (["--port=010"], {"port": 8}),
    "underscores": (["--port=1_000"], {"port": 1000}),
    "negative": (["--port", "-5"], {"port": -5}), "zero": (["--port=0"], {"port": 0}),
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
    "a bare word": ("x", '"x" is no flag'), "a dash": ("-", '"-" is no flag'),
    "three dashes": ("---name=x", '"---name=x" is no flag'),
    "no name": ("--=x", '"--=x" is no flag'), "nothing": ("", '"" is no flag'),
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


@given(RIGHT, ANY)
def test_what_stands_before_a_wrong_word_holds_and_every_flag_has_a_value_of_its_type(right, rest):
    assert parse([*right, "--wrong", *rest], FLAGS).values == parse(right, FLAGS).values
    values = parse(rest, FLAGS).values
    assert {name: type(value) for name, value in values.items()} == {name: type(value) for name, value in FLAGS.items()}


# ---- what is said of the plugins of a job before it is accepted
def warned(obj):
    return [text for text in admission.warn(defaulted(obj), None, CLUSTER) if text.startswith("spec.plugins")]


@cases("obj", {
    "mpi without a master": job(plugins={"mpi": []}),
    "ray without a head | 5.8/no head": job(plugins={"ray": []}),
    "mpi port": job(*MPI, plugins={"mpi": ["--port=0"]}),
    "pytorch port": job(plugins={"pytorch": ["--port=65536"]}),
    "tensorflow port": job(plugins={"tensorflow": ["--port=-1"]}),
    "ray port": job(task("head"), plugins={"ray": ["--clientPort=0"]}),
    "a name with a dot": job(plugins={"svc": []}, name="a.b"),
    "a name that begins with a digit": job(plugins={"svc": []}, name="1a"),
    "a name that is generated, by its beginning": GENERATED,
    "a plugin that nobody knows | 5.1/unknown": job(plugins={"nope": []}),
})  # fmt: skip
def test_what_cannot_work_is_refused(golden, obj):
    golden("plugins", listed(refusals(obj)))


@cases("obj", {
    "unknown flag | 5.1/wrong arguments + 5.4/--no-root": job(plugins={"ssh": ["--no-root"]}),
    "no flags at all": job(plugins={"env": ["--x"]}),
    "ssh port": job(plugins={"ssh": ["--ssh-port=0"]}),
    "half a pair": job(plugins={"ssh": ["--ssh-public-key=k"]}),
    "the other half": job(plugins={"ssh": ["--ssh-private-key=k"]}),
    "a pair for all to read": job(plugins={"ssh": ["--ssh-private-key=k", "--ssh-public-key=p"]}),
    "pytorch": job(plugins={"pytorch": []}),
    "mpi": job(task("master"), plugins={"mpi": []}),
    "tensorflow": job(plugins={"tensorflow": []}),
    "hcclrank": job(plugins={"hcclrank": []}),
    "ray": job(task("head"), plugins={"ray": []}),
    "too many hosts": job(task(replicas=8000), plugins={"svc": []}),
})  # fmt: skip
def test_what_is_likely_not_meant_is_said(golden, obj):
    assert refusals(obj) == {}
    golden("plugins", "\n".join(warned(obj)))


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
    found = (text.partition(": the plugin ") for text in admission.warn(defaulted(obj), None, CLUSTER))
    return {path: rest.split()[0] for path, mark, rest in found if mark}


@cases("first, wanted, paths", {
    "env, init": (setting("VK_TASK_INDEX", kind="initContainers"), {"env": []}, {"initContainers[0].env[1]": "env"}),
    "svc without variables": (setting("VC_MAIN_HOSTS"), {"svc": ["--inject-hosts-env=false"]}, {}),
    "svc's files": (mounting("/etc/volcano/"), {"svc": []}, {MOUNT: "svc"}),
    "ssh's files elsewhere": (mounting("/root/.ssh"), {"ssh": ["--ssh-key-file-path=/k"]}, {}),
    "pytorch": (setting("RANK", "master"), {"pytorch": [], "svc": []}, {ENV: "pytorch"}),
    "hcclrank takes what is written": (setting("RANK", "master"), {"hcclrank": []}, {}),
    "ray": (RAYS_HEAD, {"ray": []}, {f"containers[0].{field}": "ray" for field in ("command", "args", "env[0]")}),
    "a volume's name": (VOLUME_OF_SSH, {"ssh": []}, {"volumes[0].name": "ssh"}),
    "nothing": (setting("OTHER"), {"env": [], "svc": [], "ssh": []}, {}),
    "nothing above a mount": (mounting("/root"), {"env": [], "svc": [], "ssh": []}, {}),
})  # fmt: skip
def test_what_a_plugin_overwrites_is_said_at_its_field(first, wanted, paths):
    for number, tasks in enumerate(([first, task("worker")], [task("worker"), first])):
        expected = {f"spec.tasks[{number}].template.spec.{path}": plugin for path, plugin in paths.items()}
        assert overwritten(job(*tasks, plugins=wanted)) == expected
    hidden = job(plugins={"ssh": []}, volumes=[{"mountPath": "/data"}, {"mountPath": "/root/.ssh"}])
    assert overwritten(hidden) == {"spec.volumes[1].mountPath": "ssh"}


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
        spec = hook(Draft(each["template"]["spec"], {}), PodIdentity(each["name"], 0, f"demo-{each['name']}-0")).spec
        each["template"]["spec"]["containers"] = [{**one, "command": ["true"]} for one in spec["containers"]]
        for at, one in enumerate(spec["containers"]):
            path = f"spec.tasks[{number}].template.spec.containers[{at}]"
            wanted |= {f"{path}.env[{n}]" for n, _ in enumerate(one.get("env", ()))}
            wanted |= {f"{path}.volumeMounts[{n}].mountPath" for n, _ in enumerate(one.get("volumeMounts", ()))}
            wanted |= {f"{path}.command"} if one["command"] != ["true"] else set()
    assert {path for path, plugin in overwritten(made).items() if plugin == name} == wanted
