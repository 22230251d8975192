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
    clusters: list[ApiCluster] = []
    client = Client(joined.server)

    def connect(selector: selectors.BaseSelector) -> ApiCluster:
        clusters.append(ApiCluster(client, joined.name, selector, joined.cluster))
        return clusters[0]

    agent_daemon = Daemon(data, name=joined.name, wall=wall, connect=connect, address=address_towards(joined.url))
    link = Dialer(joined.server, joined.name, agent_daemon.agent.layout)
    agent_daemon.companions += [clusters[0].listener, clusters[0].lookup, Renewal(data, joined), link]
    return agent_daemon
