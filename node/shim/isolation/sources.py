"""What is mounted into a container: opened, and judged as what was opened, so that nothing can be exchanged in between."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kube.mount_paths import lies_in
from node.shim.path_walk import Links, Make, PathRefused, Walk, identity, lineage

if TYPE_CHECKING:
    from node.shim.order import Bind

_OWN = '"{}" holds files of the cluster itself; choose another directory.'


def open_source(bind: Bind, state: str) -> int:
    """Return an O_PATH descriptor of what a bind shows; missing directories below a volume are made.

    state is the state directory. PathRefused says why a pod may not have it.
    Who mounts something opens it here, in its own process and mount namespace,
    and mounts the descriptor.
    """
    with _host_walk(bind, state) if bind.within else own_walk(bind.source, state) as walk:
        if not bind.below:
            return walk.dup()
        with Walk(walk.fd, Links.INSIDE, Make.DIRECTORY) as inner:
            return inner.go(bind.below).dup()


def own_walk(path: str, state: str) -> Walk:
    """Return the way to a directory or file of the cluster's own; no link below the state directory is followed."""
    root = state if state and path.startswith(state + "/") else "/"
    walk = Walk(root)
    try:
        return walk.go(os.path.relpath(path, root))
    except BaseException:
        walk.__exit__(None, None, None)
        raise


def _host_walk(bind: Bind, state: str) -> Walk:
    """Go to a path of this machine that a pod may have: below one of the directories, and not of the state directory."""

    own = _lineage_of(state)
    # Those above it by name first: another may lie on a file system that does not answer.
    within = sorted(bind.within, key=lambda path: not lies_in(bind.source, path))

    def check(folder: int) -> None:
        above = set(lineage(folder))
        if own[0] in above:
            raise PathRefused(_OWN.format(bind.source))
        if not any(_identity_of(path) in above for path in within):
            raise PathRefused(f'"{bind.source}" does not lie below {" or ".join(bind.within)}.')

    walk = Walk("/", Links.SYSTEM, Make(bind.make), check)
    try:
        walk.go(bind.source)
        check(walk.folder)
        if identity(walk.fd) in own:
            raise PathRefused(_OWN.format(bind.source))
    except BaseException:
        walk.__exit__(None, None, None)
        raise
    return walk


def _lineage_of(path: str) -> list[tuple[int, int]]:
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return list(lineage(fd))
    finally:
        os.close(fd)


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
