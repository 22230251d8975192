"""Becoming the user whom a pod names: the last step before its command takes over.

Where root starts the cluster, a container's users are subordinate ones of the machine, in a user namespace: its root is
nobody there, and owns what the pod made.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from node.shim.order import Ids

if TYPE_CHECKING:
    from collections.abc import Sequence

# Numbers of users that neither people, nor services, nor /etc/subuid have, by systemd's list (systemd.io/UIDS-GIDS).
FIRST, LAST = 0x70000000, 0x7FFDFFFF
PLAIN = 1 << 16  # users that every container has: what Linux calls 16 bits
EXTRA = 64  # more that a pod may name, of any number
RANGES = (LAST + 1 - FIRST) // (PLAIN + EXTRA)


def subordinate(range_: int, more: Sequence[int] = ()) -> tuple[Ids, ...]:
    """Return the users of a range: those up to 65535, and more that a pod names, of which there may be 64."""
    first = FIRST + range_ % RANGES * (PLAIN + EXTRA)
    beyond = sorted({each for each in more if each >= PLAIN})[:EXTRA]
    return (Ids(0, first, PLAIN), *(Ids(each, first + PLAIN + index, 1) for index, each in enumerate(beyond)))


def outside(ids: Sequence[Ids], number: int) -> int:
    """Return who a user of a container is on its machine."""
    return next((each.outside + number - each.inside for each in ids if 0 <= number - each.inside < each.size), number)


def give_streams(user: tuple[int, int, list[int]], ids: Sequence[Ids]) -> None:
    """Let a container's user open its standard streams by name."""
    for fd in (0, 1, 2):
        if stat.S_ISFIFO(os.fstat(fd).st_mode) or os.isatty(fd):
            os.fchown(fd, outside(ids, user[0]), outside(ids, user[1]))


def become(user: tuple[int, int, list[int]]) -> None:
    """Become another user with these groups, for good."""
    uid, gid, groups = user
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def give_folder(fd: int, group: int | None) -> None:
    """Let everybody in a pod write in a directory of its own, which is new; what is made there belongs to the group."""
    path = f"/proc/self/fd/{fd}"
    if group is not None:
        os.chown(path, -1, group)
    os.chmod(path, 0o777 if group is None else 0o2777)
