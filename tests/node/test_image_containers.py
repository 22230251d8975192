"""What an engine is told of a container."""

from __future__ import annotations

import msgspec
import pytest

from kube.kinds.core import Pod
from node.agent import image_containers
from node.agent.engines import Engine
from node.agent.environment import ConfigError
from node.shim.capabilities import KEPT, NAMES
from node.shim.order import Bind
from tests.tables import cases

ENGINE = Engine("podman", "4.3.1", ("podman",))


def pod(container=None, annotations=None, **spec):
    one = {"name": "main", "image": "i", **(container or {})}
    metadata = {"name": "p", "namespace": "d", "uid": "u", "annotations": annotations or {}}
    return msgspec.convert({"metadata": metadata, "spec": {"containers": [one], **spec}}, Pod)


def options(made, argv=(), engine=ENGINE):
    return image_containers.options(made, made.spec.containers[0], list(argv), engine)


def values(said, name):
    return [said[place + 1] for place, each in enumerate(said) if each == name]


@cases("container, argv, entrypoint, words", {
    "the image's own": ({}, [], [], []),
    "its entry point with other arguments": ({"args": ["x"]}, ["x"], [], ["x"]),
    "a command, no arguments of the image": ({"command": ["c", "d"]}, ["c", "d"], ["c"], ["d"]),
    "a command with arguments": ({"command": ["c"], "args": ["x"]}, ["c", "x"], ["c"], ["x"]),
})  # fmt: skip
def test_entry_point_command_and_arguments_are_combined_as_kubernetes_has_it(container, argv, entrypoint, words):
    made = pod(container)
    assert values(options(made, argv), "--entrypoint") == entrypoint
    assert image_containers.words(made.spec.containers[0], argv) == words


def test_walls_are_always_there():
    said = options(pod({"securityContext": {"privileged": True, "allowPrivilegeEscalation": True}}))
    assert values(said, "--security-opt") == ["no-new-privileges"]
    assert values(said, "--cap-drop") == ["ALL"]
    assert values(said, "--network") == ["host"]
    assert not {"--privileged", "--pid", "--ipc", "--userns"} & set(said)


@pytest.mark.parametrize(("asked", "kept"), [
    ({}, set(NAMES)),
    ({"drop": ["ALL"]}, set()),
    ({"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}, {"NET_BIND_SERVICE"}),
    ({"drop": ["CAP_KILL"]}, set(NAMES) - {"KILL"}),
    ({"add": ["SYS_ADMIN", "NET_ADMIN"]}, set(NAMES)),
])  # fmt: skip
def test_capabilities_are_at_most_those_of_processes(asked, kept):
    assert set(values(options(pod({"securityContext": {"capabilities": asked}})), "--cap-add")) == kept


@cases("container, user, kept", {
    "the image's user": ({}, "nobody", set()),
    "the image's root": ({}, "0:0", set(NAMES)),
    "the pod's user": ({"runAsUser": 7}, "", set()),
    "the pod's root": ({"runAsUser": 0}, "nobody", set(NAMES)),
    "one by name": ({"runAsUser": 7, "capabilities": {"add": ["KILL"]}}, "", {"KILL"}),
})  # fmt: skip
def test_who_is_not_root_has_no_capabilities_but_those_that_the_pod_names(container, user, kept):
    made = pod({"securityContext": container})
    said = image_containers.options(made, made.spec.containers[0], [], ENGINE, user=user)
    assert set(values(said, "--cap-add")) == kept


def test_capabilities_have_names_for_all_their_numbers():
    assert len(NAMES) == len(KEPT)


@pytest.mark.parametrize(("name", "shown"), [("p", "p"), ("a" * 70, "a" * 63), ("a" * 62 + "-" + "b" * 9, "a" * 62)])
def test_host_name_is_as_much_of_the_pods_name_as_the_kernel_takes(name, shown):
    made = pod()
    named = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, name=name))
    assert values(options(named), "--hostname") == [shown]


@pytest.mark.parametrize(("given", "seconds"), [({}, "30"), ({"terminationGracePeriodSeconds": 0}, "0")])
def test_no_grace_is_not_the_default_one(given, seconds):
    assert values(options(pod(**given)), "--stop-timeout") == [seconds]


def test_limits_are_the_engines():
    made = pod({"resources": {"requests": {"cpu": "250m"}, "limits": {"cpu": "1500m", "memory": "64Mi"}}})
    said = options(made)
    assert values(said, "--memory") == values(said, "--memory-swap") == [str(64 << 20)]
    assert (values(said, "--cpus"), values(said, "--cpu-shares")) == (["1.5"], ["256"])
    assert "--memory" not in options(made, engine=ENGINE._replace(limits=False))


def test_who_runs_it_is_what_the_container_says_before_the_pod():
    pods = {"runAsUser": 1, "runAsGroup": 2, "fsGroup": 3, "supplementalGroups": [4]}
    said = options(pod({"securityContext": {"runAsUser": 5}}, securityContext=pods))
    assert (values(said, "--user"), values(said, "--group-add")) == (["5:2"], ["4", "3"])


@pytest.mark.parametrize(("user", "context", "is_refused"), [
    ("", {}, False),
    ("", {"runAsNonRoot": True}, True),
    ("0:0", {"runAsNonRoot": True}, True),
    ("00", {"runAsNonRoot": True}, True),
    ("7:0", {"runAsNonRoot": True}, False),
    ("nobody", {"runAsNonRoot": True}, True),
    ("nobody", {}, False),
    ("root", {"runAsNonRoot": True, "runAsUser": 7}, False),
    ("nobody", {"runAsNonRoot": True, "runAsUser": 0}, True),
])  # fmt: skip
def test_root_is_refused_where_the_pod_says_so(user, context, is_refused):
    made = pod({"securityContext": context})
    if not is_refused:
        image_containers.check_user(made, made.spec.containers[0], user)
        return
    with pytest.raises(ConfigError, match=r"give it (a|another) runAsUser"):
        image_containers.check_user(made, made.spec.containers[0], user)


@cases("bind, staged, said", {
    "another option in a path": (Bind("/v", "/a,src=/etc"), True, "no comma"),
    "a quote": (Bind("/v", '/a"'), True, "no comma, quote"),
    "a subPath that a pod could exchange": (Bind("/v", "/a", below="x"), False, "a subPath"),
    "a hostPath": (Bind("/v", "/a", within=("/",)), False, "a hostPath"),
    "a subPath that is mounted before": (Bind("/v", "/a", below="x"), True, ""),
    "a whole volume": (Bind("/v", "/a"), False, ""),
})  # fmt: skip
def test_mounts_that_cannot_be_had_are_refused(bind, staged, said):
    if not said:
        image_containers.check_binds([bind], staged=staged)
        return
    with pytest.raises(ConfigError, match=said):
        image_containers.check_binds([bind], staged=staged)


@pytest.mark.parametrize(("container", "annotations", "wants"), [
    ({}, {}, True),
    ({"image": ""}, {}, False),
    ({}, {"ui.volcano.sh/runtime": "process"}, False),
    ({}, {"ui.volcano.sh/runtime": "image"}, True),
])  # fmt: skip
def test_pods_may_wish_for_processes(container, annotations, wants):
    made = pod(container, annotations)
    assert image_containers.wants_image(made, made.spec.containers[0]) is wants
