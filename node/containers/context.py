"""What a node prepares containers with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from node.containers.control_groups import Groups
from node.containers.device_holders import DeviceHolders
from node.containers.engines import EngineLookup
from node.containers.images import Images
from node.containers.user_ranges import UserRanges
from node.paths import Layout
from node.pods.environment import Lookup
from node.shim.order import Wall


class NodeContext(NamedTuple):
    """What this node has to prepare containers with."""

    layout: Layout
    lookup: Lookup
    wall: Wall  # as the spawner's probe found
    reach: tuple[str, ...]  # directories of programs beside the usual
    allocatable: Mapping[str, int]
    devices: DeviceHolders
    ranges: UserRanges
    engine: EngineLookup = EngineLookup()
    groups: Groups = Groups()
    images: Images | None = None  # where there is an engine
