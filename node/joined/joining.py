"""A machine joins: it finds out whom it speaks to, exchanges its token, and keeps what it got.

Done again, it comes to the same: with the node's own token it only says that it is there, and that token lasts
another year. So an agent does it at each start.
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
    """What was said on the command line or by settings; "" for what was not. `ca` is PEM, or a fingerprint."""

    url: str = ""
    token: str = ""
    ca: str = ""
    name: str = ""


class JoinError(Exception):
    """A machine cannot join so; the message says why, and what to do."""


def begin(data: Path, wish: JoinOptions) -> Membership:
    """Return the membership to join with: the one that is kept, as far as the wish is for the same, or a new one.

    Unreachable when the authority cannot be fetched.
    """
    kept = _kept(data)
    if not wish.url:
        if kept is None:
            raise JoinError(f"{data} knows of no cluster; say which one to join with --server and --token.")
        return kept
    try:
        url = addresses.checked(wish.url)
    except ValueError as error:
        raise JoinError(str(error)) from None
    if kept is not None and kept.has_joined and (not wish.name or valid_name(wish.name) == kept.name):
        if kept.url == url:
            return kept
        if not wish.token:  # the cluster has moved: whom the node trusts, and who it is, stays
            return replace(kept, url=url, ca=_authority(url, wish.ca) if wish.ca else kept.ca)
    if not wish.token:
        raise JoinError("A machine joins with a token; an administrator makes one on the page “Nodes”.")
    agent = kept.agent if kept is not None else membership.new_agent()
    cluster = kept.cluster if kept is not None else ""
    found = Membership(agent=agent, url=url, token=wish.token, ca=_authority(url, wish.ca), cluster=cluster)
    if kept is None:  # the id must be there before the token is used up
        membership.write(data, found)
    return found


def again(kept: Membership, wish: JoinOptions) -> Membership:
    """Return what is kept with the token that was given now. The node stays the one that it was, also in what it trusts."""
    return replace(kept, token=wish.token, ca=_authority(kept.url, wish.ca) if wish.ca else kept.ca)


def _kept(data: Path) -> Membership | None:
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
    """Return the certificates to believe in, for a fingerprint those that the server shows and that have it."""
    if not fingerprint.FORM.fullmatch(ca):
        return ca
    try:
        return client.authority(url, ca)
    except ValueError as error:
        raise JoinError(str(error)) from None


def join(data: Path, found: Membership, name: str) -> Membership:
    """Join, and return what is kept from then on. Unreachable when there is no answer, Dismissed for a token that is not known."""
    wanted = found.name or name
    try:
        answer = Client(found.server).ask("POST", "/node/join", body={"name": wanted, "agent": found.agent})
    except NotFound:
        raise JoinError(
            f"{found.url} is an API server, but not one that machines can join; is it that of volcano-ui?"
        ) from None
    except ApiError as error:
        raise JoinError(error.message) from None
    if found.cluster and answer["cluster"] != found.cluster:
        raise JoinError(
            f"{data} is the state directory of a node of another cluster than the one at {found.url}, whose pods may still "
            "run here. Give this node another directory, with VOLCANO_UI_DATA."
        )
    ahead_ms = answer["time"] - clock.milliseconds()
    if abs(ahead_ms) > SKEW_MS:
        log.warning(
            "this machine's clock is %d s %s the cluster's, and so are the times of its pods; set it, with NTP",
            abs(ahead_ms) // 1000,
            "behind" if ahead_ms > 0 else "ahead of",
        )
    kept = replace(found, name=answer["name"], token=answer["token"] or found.token, cluster=answer["cluster"])
    membership.write(data, kept)
    return kept


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
        family, kind, _, _, place = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(place)  # a datagram socket sends nothing for that
            found = str(probe.getsockname()[0])
    except OSError:
        return LOOPBACK
    return LOOPBACK if found == "::1" else found
