"""What an engine is told of one container of a pod, as Kubernetes has it: pure."""

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
    """Return how an engine calls the container of an attempt."""
    return f"volcano-ui-{pod.metadata.uid}-{container.name}-{number}"


def options(
    pod: Pod, container: Container, argv: Sequence[str], engine: Engine, more: Sequence[str] = (), *, user: str = ""
) -> tuple[str, ...]:
    """Return the options with which a container is created, but for its name, variables and mounts.

    argv are command and arguments with their variables expanded; more are options that do not follow from the pod;
    user is the image's.
    """
    place = pod.metadata
    labels = {
        "io.kubernetes.pod.namespace": place.namespace,
        "io.kubernetes.pod.name": place.name,
        "io.kubernetes.pod.uid": place.uid,
        "io.kubernetes.container.name": container.name,
    }
    said = [
        "--pull", "never", "--log-driver", "none", "--network", "host", "--no-healthcheck",
        "--hostname", (pod.spec.hostname or pod.metadata.name)[:HOSTNAME_MOST].rstrip("-."),
        "--stop-timeout", str(grace_s(pod)),
        *(part for key, value in labels.items() for part in ("--label", f"{key}={value}")),
        *more, *_wall(container, is_root=_is_root(pod, container, user)), *_user(pod, container),
    ]  # fmt: skip
    said += _limits(container) if engine.limits else []
    said += ["--workdir", container.working_dir] if container.working_dir else []
    said += ["--interactive"] if container.stdin else []
    said += ["--tty"] if container.tty else []
    return (*said, *(["--entrypoint", argv[0]] if container.command else []))


def words(container: Container, argv: Sequence[str]) -> list[str]:
    """Return what comes after the image.

    A command takes the place of the image's entry point and of its arguments; arguments alone take the place of its own.
    """
    return list(argv[1:] if container.command else argv)


def check_user(pod: Pod, container: Container, user: str) -> None:
    """Refuse to run as root what must not; user is the image's. ConfigError says what to do."""
    if not _first(pod, container, "run_as_non_root"):
        return
    if _is_root(pod, container, user):
        raise ConfigError(
            f"container {container.name} has runAsNonRoot, and its image runs as root; give it another runAsUser"
        )
    named = user.partition(":")[0]
    if _first(pod, container, "run_as_user") is None and not (named.isascii() and named.isdecimal()):
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
    given = _first(pod, container, "run_as_user")
    named = user.partition(":")[0]
    return given == 0 if given is not None else named == "root" or not named.strip("0")


def _wall(container: Container, *, is_root: bool) -> list[str]:
    """Return no new privileges, and the capabilities that processes of root have here, but for those that the pod gives up.

    Who is not root has only what the pod adds by name: podman makes other users able to do whatever it is told to add.
    """
    context = container.security_context
    asked = (context.capabilities or {}) if context else {}
    dropped = {str(each).removeprefix("CAP_") for each in asked.get("drop") or ()}
    kept = [each for each in NAMES if each not in dropped] if is_root and "ALL" not in dropped else []
    added = [str(each).removeprefix("CAP_") for each in asked.get("add") or ()]
    kept = sorted({*kept, *(each for each in added if each in NAMES)})
    said = ["--security-opt", "no-new-privileges", "--cap-drop", "ALL"]
    said += [part for each in kept for part in ("--cap-add", each)]
    return [*said, "--read-only"] if context and context.read_only_root_filesystem else said


def _first(pod: Pod, container: Container, field: str) -> int | None:
    """Return what a container's context says, else the pod's."""
    given = (getattr(each, field) for each in (container.security_context, pod.spec.security_context) if each)
    return next((value for value in given if value is not None), None)


def _user(pod: Pod, container: Container) -> list[str]:
    pods = pod.spec.security_context
    user, group = _first(pod, container, "run_as_user"), _first(pod, container, "run_as_group")
    said = []
    if user is not None:
        said = ["--user", f"{user}" if group is None else f"{user}:{group}"]
    groups = [*pods.supplemental_groups, *([pods.fs_group] if pods.fs_group is not None else [])] if pods else []
    return [*said, *(part for each in groups for part in ("--group-add", str(each)))]


def _limits(container: Container) -> list[str]:
    limits, requests = amounts.of(container.resources.limits), amounts.of(container.resources.requests)
    said = ["--pids-limit", str(PROCESSES)]
    if memory := limits.get("memory"):
        said += ["--memory", str(memory), "--memory-swap", str(memory)]
    if cpu := limits.get("cpu"):
        said += ["--cpus", f"{cpu / 1000:g}"]
    if cpu := requests.get("cpu", cpu):
        said += ["--cpu-shares", str(max(_SHARES_LEAST, cpu * _SHARES_OF_ONE // 1000))]
    return said
