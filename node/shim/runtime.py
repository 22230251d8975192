"""How one container runs: as a process of this machine, or in a container of an engine. Everything else is the shim's.

There are two implementations, `node.shim.processes` and `node.shim.contained`; `of` chooses. Above the node nobody
knows which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.shim.contained import Contained
from node.shim.processes import Processes

if TYPE_CHECKING:
    from node.shim.container_runtime import ContainerRuntime
    from node.shim.network import Network
    from node.shim.order import Order


def of(order: Order, network: Network | None = None) -> ContainerRuntime:
    """Return the runtime that an order asks for, in a network; None: the machine's."""
    if order.image is None:
        return Processes(order, network)
    return Contained(order, order.image, network)
