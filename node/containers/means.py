"""What a node prepares containers with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from node.containers.control_groups import Groups
from node.containers.engines import Found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from node.containers.device_holders import DeviceHolders
    from node.containers.images import Images
    from node.containers.user_ranges import UserRanges
    from node.paths import Layout
    from node.pods.environment import Lookup
    from node.shim.order import Wall


class Means(NamedTuple):
    """What this node has to prepare containers with."""

    layout: Layout
    lookup: Lookup
    wall: Wall  # as the spawner's probe found
    reach: tuple[str, ...]  # directories of programs beside the usual
    allocatable: Mapping[str, int]
    devices: DeviceHolders
    ranges: UserRanges
    engine: Found = Found()
    groups: Groups = Groups()
    images: Images | None = None  # where there is an engine
