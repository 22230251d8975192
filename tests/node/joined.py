"""Driving the agent of a joined machine in the test's own thread, against a real API server and real processes."""

from __future__ import annotations

from cluster import access
from cluster.access import joining as invitations
from node.agent.machine import valid_name
from node.joined import agent, joining
from node.joined.joining import Wish
from tests.node.driving import NODE, Node


class JoinedNode(Node):
    """A machine that joins at an address, its agent driven as that of `Node`."""

    def __init__(self, data, url) -> None:
        super().__init__(data)
        self.wish = Wish(url, invitations.invite(access.CONSOLE, NODE, 3600).secret)

    def join(self, **changes):
        """Join, or come back; return what is kept of it."""
        wish = self.wish._replace(**changes)
        return joining.join(self.data, joining.begin(self.data, wish), valid_name(wish.name or NODE))

    def begin(self, mounts="none", **layers):
        self.mounts, self.layers = mounts, layers
        wall = self.allowed()._replace(mounts=mounts, root=mounts == "root", **layers)
        self.daemon = agent.daemon(self.data, self.join(), wall=wall)
        self.agent.begin()
        self.agent.listener.start()
        return self

    def revoked(self):
        """Whether the agent has heard that it is no node any more."""
        return self.agent.is_dismissed
