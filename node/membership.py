"""A joined machine's membership in its cluster: where the API is, and by which token it is which node there.

One file, `DATA/membership.json`, for its owner only, and like all of the state directory out of reach of pods. It is
written whole or not at all, and synced: a token that was handed out once must not be lost.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import NamedTuple

import msgspec

FILE = "membership.json"


class Server(NamedTuple):
    """A joined machine's API server: its address, such as https://host:8443, the token to authenticate with there,
    and the certificates of the server's authority, in PEM; "" stands for the system's authorities.
    """

    url: str
    token: str
    ca: str

    def __repr__(self) -> str:
        return f"Server({self.url})"


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """A machine's place in a cluster.

    `agent` is the id of the state directory, for good. Before the machine has joined `name` and `cluster` (the uid of
    the cluster's namespace kube-system) are "", and the token is the one to join with.
    """

    agent: str
    url: str
    token: str
    ca: str = ""
    name: str = ""
    cluster: str = ""

    @property
    def server(self) -> Server:
        """How this node reaches the API server."""
        return Server(self.url, self.token, self.ca)

    @property
    def has_joined(self) -> bool:
        """Whether the token is the node's own."""
        return bool(self.name)


def new_agent() -> str:
    """Return an id for a state directory that has none."""
    return str(uuid.uuid4())


def read(data: Path) -> Membership | None:
    """Return the stored membership, None where no machine joins from there; ValueError for a file that is broken."""
    try:
        body = (data / FILE).read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(body, type=Membership)
    except msgspec.DecodeError as error:
        raise ValueError(f"{data / FILE} cannot be read: {error}. Remove it and join again.") from None


def write(data: Path, membership: Membership) -> None:
    """Store a membership, replacing the former one."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = data / f"{FILE}.new"
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(msgspec.json.encode(membership))
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(data / FILE)
