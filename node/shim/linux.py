"""The Linux system calls that Python has no function for."""

from __future__ import annotations

import ctypes
import os

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

CLONE_NEWTIME = 0x00000080
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def prctl(option: int, value: int | bytes, more: object = 0) -> None:
    """Set an attribute of this process."""
    _check(_libc.prctl(option, value, more, 0, 0), f"prctl {option}")


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call that the C library has no function for; return its result or raise OSError."""
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *given))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), f"system call {number}")
    return result


def unshare(flags: int) -> None:
    """Give this process namespaces of its own."""
    _check(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    """Join the namespace that a descriptor stands for."""
    _check(_libc.setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount source on target; kind is the file system's, empty for bind mounts and changes of flags."""
    arguments = [os.fsencode(text) if text else None for text in (source, target, kind)]
    _check(
        _libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(data) if data else None),
        f"mount {source} on {target}",
    )


def unmount(target: str, flags: int = 0) -> None:
    """Detach what is mounted on target."""
    _check(_libc.umount2(os.fsencode(target), flags), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make new the root directory; the former root appears at old."""
    _check(_libc.syscall(_PIVOT_ROOT, os.fsencode(new), os.fsencode(old)), f"pivot_root {new}")


# Numbers differ by architecture; the second one is of the generic table that newer ports share.
_PIVOT_ROOT = 155 if os.uname().machine == "x86_64" else 41


def content(path: str) -> bytes:
    """Return what a file holds, such as one of /proc."""
    with open(path, "rb") as file:
        return file.read()


def start_ticks(pid: int) -> int:
    """Return when a process started, in clock ticks since boot; 0 when it has ended or never was.

    Together with the process id it names a process for good, because a reused
    id has another start.
    """
    try:
        text = content(f"/proc/{pid}/stat")
    except OSError:
        return 0
    # The command's name, field 2, may hold spaces and brackets: count from the last bracket.
    fields = text[text.rindex(b")") + 2 :].split()
    return 0 if fields[0] in b"ZX" else int(fields[19])
