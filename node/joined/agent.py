"""The agent of a joined machine: that of any node, on a cluster's API instead of the store."""

from __future__ import annotations

import selectors
from pathlib import Path

from node.agent.daemon import Daemon
from node.joined.api_cluster import ApiCluster
from node.joined.client import Client
from node.joined.joining import Renewal, address_towards
from node.link.dialer import Dialer
from node.membership import Membership
from node.shim.order import Wall


def daemon(data: Path, joined: Membership, *, wall: Wall | None = None) -> Daemon:
    """Return the agent of a machine that has joined, with all that works beside it."""
    made: list[ApiCluster] = []
    client = Client(joined.server)

    def connect(selector: selectors.BaseSelector) -> ApiCluster:
        made.append(ApiCluster(client, joined.name, selector, joined.cluster))
        return made[0]

    found = Daemon(data, name=joined.name, wall=wall, connect=connect, address=address_towards(joined.url))
    link = Dialer(joined.server, joined.name, found.agent.layout)
    found.companions += [made[0].listener, made[0].lookup, Renewal(data, joined), link]
    return found
