"""The options by which an engine runs one container of a pod, as Kubernetes has it: pure."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.rules.node import node_engines
from cluster.rules.node.node_engines import PROCESS, RUNTIME
from kube import amounts
from kube.kinds.core import Container, Pod
from node.containers.engines import Engine
from node.pods.environment import ConfigError
from node.rules.lifecycle import grace_s
from node.shim.isolation.capabilities import NAMES
from node.shim.order import PROCESSES, Bind

LABEL = "ui.volcano.sh/node"  # of containers: the state directory whose pods they belong to
HOSTNAME_MOST = 63  # the kernel takes one more; Kubernetes cuts there, too
_SHARES_OF_ONE, _SHARES_LEAST = 1024, 2  # of processor time, as the kernel weighs them
_SPLITS = ',"\n\r'  # in an option with several fields


def wants_image(pod: Pod, container: Container) -> bool:
    """Whether a container is to run from its image, on a machine with an engine."""
    return bool(container.image) and not node_engines.wants_process(pod.metadata.annotations)


def name(pod: Pod, container: Container, number: int) -> str:
    """Return the engine's name for the container of an attempt."""
    return f"volcano-ui-{pod.metadata.uid}-{container.name}-{number}"


def options(
    pod: Pod, container: Container, argv: Sequence[str], engine: Engine, extra: Sequence[str] = (), *, user: str = ""
) -> tuple[str, ...]:
    """Return the options with which a container is created, but for its name, variables and mounts.

    argv are command and arguments with their variables expanded; more are options that do not follow from the pod;
    user is the image's.
    """
    metadata = pod.metadata
    labels = {
        "io.kubernetes.pod.namespace": metadata.namespace,
        "io.kubernetes.pod.name": metadata.name,
        "io.kubernetes.pod.uid": metadata.uid,
        "io.kubernetes.container.name": container.name,
    }
    arguments = [
        "--pull", "never", "--log-driver", "none", "--network", "host", "--no-healthcheck",
        "--hostname", (pod.spec.hostname or pod.metadata.name)[:HOSTNAME_MOST].rstrip("-."),
        "--stop-timeout", str(grace_s(pod)),
        *(part for key, value in labels.items() for part in ("--label", f"{key}={value}")),
        *extra, *_wall(container, is_root=_is_root(pod, container, user)), *_user(pod, container),
    ]  # fmt: skip
    arguments += _limits(container) if engine.limits else []
    arguments += ["--workdir", container.working_dir] if container.working_dir else []
    arguments += ["--interactive"] if container.stdin else []
    arguments += ["--tty"] if container.tty else []
    return (*arguments, *(["--entrypoint", argv[0]] if container.command else []))


def image_arguments(container: Container, argv: Sequence[str]) -> list[str]:
    """Return the arguments after the image.

    A command replaces the image's entry point and its arguments; arguments alone replace the image's arguments.
    """
    return list(argv[1:] if container.command else argv)


def check_user(pod: Pod, container: Container, user: str) -> None:
    """Refuse to run as root what must not; user is the image's. ConfigError says what to do."""
    if not _setting(pod, container, "run_as_non_root"):
        return
    if _is_root(pod, container, user):
        raise ConfigError(
            f"container {container.name} has runAsNonRoot, and its image runs as root; give it another runAsUser"
        )
    named = user.partition(":")[0]
    if _setting(pod, container, "run_as_user") is None and not (named.isascii() and named.isdecimal()):
        # The image says which number that is, and it may be root's.
        raise ConfigError(
            f'container {container.name} has runAsNonRoot, and its image names the user "{named}" without a number, '
            "so nobody can say that this is not root; give it a runAsUser"
        )


def check_binds(binds: Sequence[Bind], *, staged: bool) -> None:
    """Refuse a mount that the engine would not understand, or whose source a pod could exchange; ConfigError says which."""
    for bind in binds:
        if any(letter in f"{bind.source}{bind.target}" for letter in _SPLITS):
            raise ConfigError(
                f'nothing can be mounted at "{bind.target}": engines take no comma, quote or line break there'
            )
        if not staged and (bind.below or bind.within):
            what = "a subPath" if bind.below else "a hostPath"
            raise ConfigError(
                f'"{bind.target}" is {what}, which containers of images have only where root runs the cluster, with podman; '
                f"mount the whole volume, or let the pod run as processes with the annotation {RUNTIME}: {PROCESS}"
            )


def _is_root(pod: Pod, container: Container, user: str) -> bool:
    """Whether a container runs as root, whose image names a user."""
    run_as = _setting(pod, container, "run_as_user")
    named = user.partition(":")[0]
    return run_as == 0 if run_as is not None else named == "root" or not named.strip("0")


def _wall(container: Container, *, is_root: bool) -> list[str]:
    """Return the options for no new privileges, and the capabilities of root's processes here but those that the pod drops.

    Another user has only those that the pod adds by name: podman gives other users every capability that is added.
    """
    context = container.security_context
    capabilities = (context.capabilities or {}) if context else {}
    dropped = {str(each).removeprefix("CAP_") for each in capabilities.get("drop") or ()}
    granted = [each for each in NAMES if each not in dropped] if is_root and "ALL" not in dropped else []
    added = [str(each).removeprefix("CAP_") for each in capabilities.get("add") or ()]
    granted = sorted({*granted, *(each for each in added if each in NAMES)})
    arguments = ["--security-opt", "no-new-privileges", "--cap-drop", "ALL"]
    arguments += [part for each in granted for part in ("--cap-add", each)]
    return [*arguments, "--read-only"] if context and context.read_only_root_filesystem else arguments


def _setting(pod: Pod, container: Container, field: str) -> int | None:
    """Return a field of a container's security context, else of the pod's."""
    values = (getattr(each, field) for each in (container.security_context, pod.spec.security_context) if each)
    return next((value for value in values if value is not None), None)


def _user(pod: Pod, container: Container) -> list[str]:
    context = pod.spec.security_context
    user, group = _setting(pod, container, "run_as_user"), _setting(pod, container, "run_as_group")
    arguments = []
    if user is not None:
        arguments = ["--user", f"{user}" if group is None else f"{user}:{group}"]
    groups = (
        [*context.supplemental_groups, *([context.fs_group] if context.fs_group is not None else [])] if context else []
    )
    return [*arguments, *(part for each in groups for part in ("--group-add", str(each)))]


def _limits(container: Container) -> list[str]:
    limits, requests = amounts.of(container.resources.limits), amounts.of(container.resources.requests)
    arguments = ["--pids-limit", str(PROCESSES)]
    if memory := limits.get("memory"):
        arguments += ["--memory", str(memory), "--memory-swap", str(memory)]
    if cpu := limits.get("cpu"):
        arguments += ["--cpus", f"{cpu / 1000:g}"]
    if cpu := requests.get("cpu", cpu):
        arguments += ["--cpu-shares", str(max(_SHARES_LEAST, cpu * _SHARES_OF_ONE // 1000))]
    return arguments
