"""A machine joins: it verifies the server, exchanges its token, and stores its membership.

Joining is idempotent: with the node's own token it only renews that, for another year. So an agent joins at each start.
"""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from cluster import clock, fingerprint
from cluster.remote.http.request import Unreachable
from kube.errors import ApiError, NotFound
from node import membership
from node.agent.machine import LOOPBACK, valid_name
from node.faults import Repeated
from node.joined import addresses, client
from node.joined.client import Client
from node.membership import Membership
from node.pods.cluster import Dismissed

RENEW_S = 86_400.0
SKEW_MS = 5_000  # of two clocks; more is worth a word
log = logging.getLogger(__name__)


class JoinOptions(NamedTuple):
    """The options of the command line or the settings; "" for one that is not set. `ca` is PEM, or a fingerprint."""

    url: str = ""
    token: str = ""
    ca: str = ""
    name: str = ""


class JoinError(Exception):
    """A machine cannot join so; the message says why, and what to do."""


def begin(data: Path, options: JoinOptions) -> Membership:
    """Return the membership to join with: the stored one, as far as the options are for the same, or a new one.

    Unreachable when the authority cannot be fetched.
    """
    stored = _stored(data)
    if not options.url:
        if stored is None:
            raise JoinError(f"{data} knows of no cluster; say which one to join with --server and --token.")
        return stored
    try:
        url = addresses.checked(options.url)
    except ValueError as error:
        raise JoinError(str(error)) from None
    if stored is not None and stored.has_joined and (not options.name or valid_name(options.name) == stored.name):
        if stored.url == url:
            return stored
        if not options.token:  # the cluster has moved: the node's identity, and whom it trusts, stay
            return replace(stored, url=url, ca=_authority(url, options.ca) if options.ca else stored.ca)
    if not options.token:
        raise JoinError("A machine joins with a token; an administrator makes one on the page “Nodes”.")
    agent = stored.agent if stored is not None else membership.new_agent()
    cluster = stored.cluster if stored is not None else ""
    candidate = Membership(agent=agent, url=url, token=options.token, ca=_authority(url, options.ca), cluster=cluster)
    if stored is None:  # the id must be there before the token is used up
        membership.write(data, candidate)
    return candidate


def with_token(stored: Membership, options: JoinOptions) -> Membership:
    """Return the stored membership with the token of the options. The node's identity stays, and whom it trusts."""
    return replace(stored, token=options.token, ca=_authority(stored.url, options.ca) if options.ca else stored.ca)


def _stored(data: Path) -> Membership | None:
    for name in ("db.sqlite3", "pki"):
        if (data / name).exists():
            raise JoinError(
                f"{data} is the state directory of a cluster of its own. Give the node another one, with VOLCANO_UI_DATA."
            )
    try:
        return membership.read(data)
    except ValueError as error:
        raise JoinError(str(error)) from None


def _authority(url: str, ca: str) -> str:
    """Return the authority's certificates to trust: for a fingerprint those of the server that have it."""
    if not fingerprint.FORM.fullmatch(ca):
        return ca
    try:
        return client.authority(url, ca)
    except ValueError as error:
        raise JoinError(str(error)) from None


def join(data: Path, joining: Membership, name: str) -> Membership:
    """Join, and store and return the membership. Unreachable when there is no answer, Dismissed for a token that is refused."""
    requested = joining.name or name
    try:
        answer = Client(joining.server).call("POST", "/node/join", body={"name": requested, "agent": joining.agent})
    except NotFound:
        raise JoinError(
            f"{joining.url} is an API server, but not one that machines can join; is it that of volcano-ui?"
        ) from None
    except ApiError as error:
        raise JoinError(error.message) from None
    if joining.cluster and answer["cluster"] != joining.cluster:
        raise JoinError(
            f"{data} is the state directory of a node of another cluster than the one at {joining.url}, whose pods may still "
            "run here. Give this node another directory, with VOLCANO_UI_DATA."
        )
    ahead_ms = answer["time"] - clock.milliseconds()
    if abs(ahead_ms) > SKEW_MS:
        log.warning(
            "this machine's clock is %d s %s the cluster's, and so are the times of its pods; set it, with NTP",
            abs(ahead_ms) // 1000,
            "behind" if ahead_ms > 0 else "ahead of",
        )
    stored = replace(joining, name=answer["name"], token=answer["token"] or joining.token, cluster=answer["cluster"])
    membership.write(data, stored)
    return stored


class Renewal(Repeated):
    """A companion of the agent: joins again each day, so that the token of a node that runs for years does not end."""

    def __init__(self, data: Path, joined: Membership) -> None:
        super().__init__(self._renew, "renewal", RENEW_S, "renewing the node's token", log)
        self._data, self._joined = data, joined

    def _renew(self) -> None:
        try:
            join(self._data, self._joined, self._joined.name)
        except (Unreachable, Dismissed, JoinError, OSError) as error:
            log.warning("the node's token was not renewed: %s", error)  # tomorrow, or the watch says why


def address_towards(url: str) -> str:
    """Return the address of this machine by which it reaches a server: others there reach it by that, too."""
    parts = urlsplit(url)
    port = parts.port or 443
    try:
        family, kind, _, _, target = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(target)  # a datagram socket sends nothing for that
            address = str(probe.getsockname()[0])
    except OSError:
        return LOOPBACK
    return LOOPBACK if address == "::1" else address
