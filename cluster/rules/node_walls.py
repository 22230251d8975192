"""What a node says of the wall round its pods, in an annotation: a sentence whose first word is the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kube import lenient

if TYPE_CHECKING:
    from kube.meta import Object

ANNOTATION = "ui.volcano.sh/wall"
HOLDS = "holds"


class NodeWall(NamedTuple):
    """The wall of one node."""

    node: str
    says: str

    @property
    def holds(self) -> bool:
        """Whether pods are kept from the cluster and from each other."""
        return self.says.startswith(HOLDS)


def read(node: Object) -> NodeWall | None:
    """Return what a node says of its wall; None when it says nothing, as simulated nodes and those of other clusters."""
    said = lenient.mapping(node, "metadata", "annotations").get(ANNOTATION)
    return NodeWall(lenient.text(node, "metadata", "name"), str(said)) if said else None
