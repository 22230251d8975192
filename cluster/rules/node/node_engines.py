"""What a node says of the engine by which it runs images, in an annotation: its name and version, or `none` and why: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kube import lenient
from kube.meta import Object

ANNOTATION = "ui.volcano.sh/engine"
NONE = "none"
RUNTIME = "ui.volcano.sh/runtime"  # an annotation of pods
PROCESS = "process"  # its value for pods whose commands run without their images
WAY_OUT = f"annotation {RUNTIME}: {PROCESS} on the pod, or VOLCANO_UI_ENGINE={NONE} for the whole machine"


class NodeEngine(NamedTuple):
    """The engine of one node: `podman 4.3.1`, or `none: podman is not installed`."""

    node: str
    says: str

    @property
    def works(self) -> bool:
        """Whether images run there."""
        return not self.says.startswith(NONE)

    @property
    def why(self) -> str:
        """Why images do not run there, "" where the node reports no reason."""
        return "" if self.works else self.says.removeprefix(NONE).removeprefix(": ")

    @property
    def sentence(self) -> str:
        """What the node says, as a sentence."""
        if self.works:
            return f"Images run with {self.says}."
        return f"Images do not run, commands do{f': {self.why}' if self.why else ''}."


def wants_process(annotations: Mapping[str, Any]) -> bool:
    """Whether a pod with these annotations runs its commands as processes where images could run as well."""
    return annotations.get(RUNTIME) == PROCESS


def has_command(command: Sequence[str], args: Sequence[str]) -> bool:
    """Whether a container has something to run without its image: a command, or arguments that are one.

    They are to an image without an entrypoint, such as busybox, and `kubectl run NAME --image=… -- sh -c …` writes them.
    Options alone are meant for the program of the image.
    """
    return bool(command) or (bool(args) and not args[0].startswith("-"))


def startup_message(now: NodeEngine, before: NodeEngine | None) -> str:
    """Return what the log says of images when a node has started; `before` is its engine at the last start."""
    if not now.works or before is None or before.works:
        return now.sentence
    return f"Images run with {now.says} now, and commands ran before. What is to go on so: {WAY_OUT}."


def written(engine: str, why: str) -> str:
    """Return the annotation's value: the engine, or why there is none."""
    return engine or (f"{NONE}: {why}" if why else NONE)


def read(node: Object) -> NodeEngine | None:
    """Return what a node says of its engine; None when it says nothing, as simulated nodes and those of other clusters."""
    return of(lenient.text(node, "metadata", "name"), lenient.mapping(node, "metadata", "annotations"))


def of(name: str, annotations: Mapping[str, str]) -> NodeEngine | None:
    """Return what a node of a name and with these annotations says of its engine, None when it says nothing."""
    value = annotations.get(ANNOTATION)
    return NodeEngine(name, str(value)) if value else None
