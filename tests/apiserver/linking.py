"""A link of a node in this process to an API server in this process, as a node on another machine has one to its server.

Server and node share a state directory here: that what is asked goes by the link is seen by `asked`.
"""

from __future__ import annotations

import contextlib

from cluster import clock
from cluster.access import SYSTEM, tokens
from cluster.models import Token
from node.joined.membership import Server
from node.link import presence
from node.link.dialer import Dialer
from node.paths import Layout
from proof.harness.waiting import until


def token_of(node):
    """Return a token with which a node comes."""
    row = Token(node=node, agent="a", name="node")
    return tokens.issued(SYSTEM, row, 3600, clock.milliseconds()).secret


@contextlib.contextmanager
def linked(url, data, node="here"):
    """Keep a node linked to the server of an address."""
    dialer = Dialer(Server(url, token_of(node), ""), node, Layout(data))
    dialer.start()
    try:
        until(lambda: presence.is_held(data, node), what="the link")
        yield dialer
    finally:
        dialer.stop()
