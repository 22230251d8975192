"""What a node says of the wall round its pods, in an annotation: a sentence whose first word is the answer."""

from __future__ import annotations

from typing import NamedTuple

from kube import lenient
from kube.meta import Object

ANNOTATION = "ui.volcano.sh/wall"
HOLDS = "holds"
NONE = "none: "
NO_PODS = "no pods run: "


class NodeWall(NamedTuple):
    """The wall of one node."""

    node: str
    says: str

    @property
    def holds(self) -> bool:
        """Whether pods are kept from the cluster and from each other."""
        return self.says.startswith(HOLDS)

    @property
    def runs_nothing(self) -> bool:
        """Whether pods are to have what their machine cannot give them, and so do not run there."""
        return NO_PODS in self.says

    @property
    def sentence(self) -> str:
        """What the node says, as a sentence."""
        if self.holds:
            return f"The wall round pods {self.says}."
        return f"There is no wall round pods: {self.why}."

    @property
    def why(self) -> str:
        """What is so where no wall holds."""
        return self.says.removeprefix(NONE)


def read(node: Object) -> NodeWall | None:
    """Return what a node says of its wall; None when it says nothing, as simulated nodes and those of other clusters."""
    written = lenient.mapping(node, "metadata", "annotations").get(ANNOTATION)
    return NodeWall(lenient.text(node, "metadata", "name"), str(written)) if written else None
