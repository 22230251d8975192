"""What a node says of the engine by which it runs images, in an annotation: its name and version, or `none` and why: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kube import lenient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kube.meta import Object

ANNOTATION = "ui.volcano.sh/engine"
NONE = "none"


class NodeEngine(NamedTuple):
    """The engine of one node: `podman 4.3.1`, or `none: podman is not installed`."""

    node: str
    says: str

    @property
    def works(self) -> bool:
        """Whether images run there."""
        return not self.says.startswith(NONE)


def written(engine: str, why: str) -> str:
    """Return the annotation's value: the engine, or why there is none."""
    return engine or (f"{NONE}: {why}" if why else NONE)


def read(node: Object) -> NodeEngine | None:
    """Return what a node says of its engine; None when it says nothing, as simulated nodes and those of other clusters."""
    return of(lenient.text(node, "metadata", "name"), lenient.mapping(node, "metadata", "annotations"))


def of(name: str, annotations: Mapping[str, str]) -> NodeEngine | None:
    """Return what a node of a name and with these annotations says of its engine, None when it says nothing."""
    said = annotations.get(ANNOTATION)
    return NodeEngine(name, str(said)) if said else None
