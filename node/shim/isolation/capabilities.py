"""What of root's power a command has that is started by root: what container engines leave to root by default.

The rest would open every wall: mounting, tracing, loading modules, making
devices, reading the disk under the file system.
"""

from __future__ import annotations

import contextlib
from functools import cache

from node.shim import linux

_CHOWN, _DAC_OVERRIDE, _FOWNER, _FSETID, _KILL, _SETGID, _SETUID, _SETPCAP = 0, 1, 3, 4, 5, 6, 7, 8
_NET_BIND_SERVICE, _SYS_CHROOT, _AUDIT_WRITE, _SETFCAP = 10, 18, 29, 31
ALLOWED = frozenset((
    _CHOWN, _DAC_OVERRIDE, _FOWNER, _FSETID, _KILL, _SETGID, _SETUID, _SETPCAP,
    _NET_BIND_SERVICE, _SYS_CHROOT, _AUDIT_WRITE, _SETFCAP,
))  # fmt: skip

NAMES = (
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "NET_BIND_SERVICE", "SYS_CHROOT", "AUDIT_WRITE", "SETFCAP",
)  # fmt: skip


@cache
def supported() -> tuple[int, ...]:
    """Return the capabilities that this kernel has."""
    try:
        last = int(linux.content("/proc/sys/kernel/cap_last_cap"))
    except OSError:  # not to be read here: more than there are do no harm
        last = 63
    return tuple(range(last + 1))


def drop() -> None:
    """See to it that what this process executes from here on has no capability but those; others than root never have any."""
    for number in supported():
        if number not in ALLOWED:
            with contextlib.suppress(OSError):  # past the last one, or without the right to drop
                linux.prctl(linux.PR_CAPBSET_DROP, number)
