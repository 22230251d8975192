"""Where the node's files are, below `DATA/node`.

`pods/<uid>/<container>/<attempt>/` is one attempt (see `node.shim`).
What belongs to the whole pod has a name that no container can have, because
container names have no underscore.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

LONGEST = 255  # bytes of a file's name
WORK, TMP, VOLUMES, IDENTITY, DEVICES = "_work", "_tmp", "_volumes", "_pod.json", "_devices.json"
CLAIMS = "_claims.json"  # of a pod: the uids of the claims that it was given, by name
CLAIM, FILES = "claim.json", "files"  # of a claim: whose it is, and what is mounted

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a directory there is made for nobody else and judged before it is used


class Layout:
    """The directories of one node."""

    def __init__(self, data: Path) -> None:
        self.root = data / "node"
        self.pods = self.root / "pods"
        self.claims = self.root / "claims"
        self.named_claims = self.root / "volumes"  # where earlier versions had them, by namespace and name
        self.trash = self.root / "trash"
        self.hosts = self.root / "hosts"
        self.networks = self.root / "networks"
        self.resolver = self.root / "resolv.conf"  # of pods in networks of their own
        self.pulls = self.root / "pulls"  # credentials, as long as an image is pulled with them
        # Volumes in memory: a name of its own for each state directory, of which there may be several on a machine.
        digest = hashlib.blake2b(str(data.absolute()).encode(), digest_size=6).hexdigest()
        self.memory = SHARED_MEMORY / f"volcano-ui-{digest}"
        self.groups = self.memory.name  # of the control group that holds those of its pods
        self.memory_trash = self.memory / "_trash"

    def pod(self, uid: str) -> Path:
        """Return a pod's directory."""
        return self.pods / checked(uid)

    def container(self, uid: str, container: str) -> Path:
        """Return the directory with a container's attempts."""
        return self.pod(uid) / checked(container)

    def attempt(self, uid: str, container: str, number: int) -> Path:
        """Return one attempt's directory."""
        return self.container(uid, container) / str(number)

    def network(self, namespace: str) -> Path:
        """Return the directory of the network of a namespace's pods."""
        return self.networks / checked(namespace)

    def claim(self, uid: str) -> Path:
        """Return the directory of a persistent volume claim, in which its files are in `FILES`."""
        return self.claims / checked(uid)


def checked(name: str) -> str:
    """Return a name that stays one path component; ValueError when it would lead elsewhere.

    Names were validated when their objects were created. This is the second
    lock on the door through which a process could write anywhere.
    """
    if not name or "/" in name or "\0" in name or name in (".", "..") or len(name.encode()) > LONGEST:
        raise ValueError(f"{name!r} cannot be the name of a directory.")
    return name


def inside(root: Path, relative: str) -> Path:
    """Return root/relative; ValueError when that lies outside of root."""
    parts = Path(relative).parts
    if Path(relative).is_absolute() or ".." in parts or "\0" in relative:
        raise ValueError(f"{relative!r} must be a relative path without '..'.")
    return root.joinpath(*parts)
