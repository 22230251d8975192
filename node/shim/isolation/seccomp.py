"""A filter of system calls: what no batch program needs is refused with EPERM, whatever the kernel would say to it.

It is a program for the kernel's classic BPF machine, put together here by
hand. It looks at numbers and plain arguments only, never behind pointers, so
nothing can be exchanged under it. References: seccomp(2), and the default
profile of container engines for what is on the list.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import Any, NamedTuple

from node.shim import linux

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_X32 = 0x40000000  # programs with short pointers have numbers of their own from here on
_LOAD, _EQUAL, _LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in what a filter sees of a call

_NAMESPACES = (
    linux.CLONE_NEWNS | linux.CLONE_NEWCGROUP | linux.CLONE_NEWUTS | linux.CLONE_NEWIPC | linux.CLONE_NEWUSER
    | linux.CLONE_NEWPID | linux.CLONE_NEWNET
)  # fmt: skip
# Families of sockets that programs use: local, IPv4 and IPv6, and questions to the kernel about the network. Of the others the
# kernel loads what nobody has looked at for years, and by some one talks to what runs a virtual machine.
_NETLINK, _NETLINK_ROUTE = 16, 0
FAMILIES = (1, 2, 10, _NETLINK)
# Requests to a terminal that put words into its input, as if somebody had typed them.
_TYPING = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX


class Machine(NamedTuple):
    """What differs from one architecture to the next."""

    audit: int  # its number in the kernel's audit, by which a filter knows it
    calls: dict[str, int]


# Since Linux 5.0 new calls have the same number on all.
_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "mount_setattr": 442, "quotactl_fd": 443, "open_tree_attr": 467,
}  # fmt: skip
MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        _COMMON
        | {
            "ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "ptrace": 101, "syslog": 103, "pivot_root": 155, "acct": 163,
            "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169,
            "init_module": 175, "delete_module": 176, "quotactl": 179, "clock_settime": 227, "kexec_load": 246,
            "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
            "fanotify_init": 300, "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310,
            "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321,
            "userfaultfd": 323, "prlimit64": 302, "iopl": 172, "ioperm": 173,
        },
    ),
    "aarch64": Machine(
        0xC00000B7,
        _COMMON
        | {
            "ioctl": 29, "umount2": 39, "mount": 40, "pivot_root": 41, "quotactl": 60, "acct": 89, "unshare": 97,
            "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112, "syslog": 116,
            "ptrace": 117, "reboot": 142, "settimeofday": 170, "add_key": 217, "request_key": 218, "keyctl": 219,
            "clone": 220, "swapon": 224, "swapoff": 225, "perf_event_open": 241, "fanotify_init": 262,
            "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
            "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, "socket": 198,
            "socketpair": 199, "prlimit64": 261,
        },
    ),
}  # fmt: skip
# Refused for some arguments only, or with another answer.
_BY_ARGUMENT = ("ioctl", "clone", "unshare", "clone3", "socket", "socketpair", "prlimit64")
# One process of the same user looks into another. Where nothing else keeps it among those of one container, nobody may;
# elsewhere debuggers work, and the ranks of an MPI program copy from one another's memory.
TRACING = ("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd")


def program(machine: str, *, tracing: bool, limiting: bool) -> bytes:
    """Return the filter for an architecture; KeyError for one that is not in `MACHINES`.

    tracing and limiting: processes may look into others, and set the limits of
    others, because something else confines that to those of one container.
    """
    arch = MACHINES[machine]
    allow, refuse = _return(_ALLOW), _return(_ERRNO | errno.EPERM)
    # Programs of another architecture, such as 32-bit ones, have other numbers: all of theirs are refused.
    lines = [_load(_ARCHITECTURE), _when(_EQUAL, arch.audit, 1), refuse, _load(_NUMBER)]
    lines += [_when(_LEAST, _X32, 0, 1), refuse]
    names = (name for name in arch.calls if name not in _BY_ARGUMENT)
    refused = [arch.calls[name] for name in names if not (tracing and name in TRACING)]
    for number in refused:
        lines += [_when(_EQUAL, number, 0, 1), refuse]
    # The C libraries then use clone(), whose flags are no structure behind a pointer.
    lines += [_when(_EQUAL, arch.calls["clone3"], 0, 1), _return(_ERRNO | errno.ENOSYS)]
    for name, flags in (("clone", _NAMESPACES), ("unshare", _NAMESPACES | linux.CLONE_NEWTIME)):
        lines += [
            _when(_EQUAL, arch.calls[name], 0, 4),
            _load(_argument(0)),
            _when(_ANY_BIT, flags, 0, 1),
            refuse,
            allow,
        ]
    for name in ("socket", "socketpair"):
        free = [family for family in FAMILIES if family != _NETLINK]
        lines += [_when(_EQUAL, arch.calls[name], 0, 7 + len(free)), _load(_argument(0))]
        lines += [_when(_EQUAL, family, 4 + len(free) - index) for index, family in enumerate(free)]
        lines += [_when(_EQUAL, _NETLINK, 1), _return(_ERRNO | errno.EAFNOSUPPORT)]
        # Of the kernel's protocols the one of addresses and routes, which getaddrinfo() asks. Others list all sockets of the
        # machine, or tell of its devices. What asks for those then goes on as with a kernel that was built without.
        lines += [_load(_argument(2)), _when(_EQUAL, _NETLINK_ROUTE, 1)]
        lines += [_return(_ERRNO | errno.EPROTONOSUPPORT), allow]
    if not limiting:
        # With a limit of its time a process is ended as by a signal. 0 is the caller itself, for which C libraries use it.
        lines += [_when(_EQUAL, arch.calls["prlimit64"], 0, 4), _load(_argument(0))]
        lines += [_when(_EQUAL, 0, 0, 1), allow, refuse]
    lines += [_when(_EQUAL, arch.calls["ioctl"], 0, 1 + len(_TYPING)), _load(_argument(1))]
    lines += [_when(_EQUAL, request, len(_TYPING) - index) for index, request in enumerate(_TYPING)]
    return b"".join([*lines, allow, refuse])


def profile(machine: str) -> dict[str, Any]:
    """Return the filter as container engines take it, for containers with processes of their own; KeyError as above."""
    always_refused = [name for name in MACHINES[machine].calls if name not in (*_BY_ARGUMENT, *TRACING)]
    namespace_rules = [
        _refused([name], errno.EPERM, _compared(0, "MASKED_EQ", 1 << bit, 1 << bit))
        for name, flags in (("clone", _NAMESPACES), ("unshare", _NAMESPACES | linux.CLONE_NEWTIME))
        for bit in range(32)
        if flags >> bit & 1
    ]
    last = max(FAMILIES)
    others = [_compared(0, "EQ", family) for family in range(last) if family not in FAMILIES]
    others.append(_compared(0, "GT", last))
    routes = _compared(0, "EQ", _NETLINK), _compared(2, "NE", _NETLINK_ROUTE)
    typing = [_compared(1, "MASKED_EQ", 0xFFFFFFFF, request) for request in _TYPING]
    sockets = ["socket", "socketpair"]
    return {
        "defaultAction": "SCMP_ACT_ALLOW",
        "architectures": [f"SCMP_ARCH_{machine.upper()}"],  # programs of others are ended
        "syscalls": [
            _refused(always_refused, errno.EPERM),
            _refused(["clone3"], errno.ENOSYS),
            *namespace_rules,
            *(_refused(sockets, errno.EAFNOSUPPORT, each) for each in others),
            _refused(sockets, errno.EPROTONOSUPPORT, *routes),
            *(_refused(["ioctl"], errno.EPERM, each) for each in typing),
        ],
    }


def _refused(names: list[str], error: int, *args: dict[str, Any]) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": error, "args": [*args]}


def _compared(index: int, test: str, value: int, second: int = 0) -> dict[str, Any]:
    return {"index": index, "op": f"SCMP_CMP_{test}", "value": value, "valueTwo": second}


def install(code: bytes) -> None:
    """Put this process, and all that it starts, behind a filter; no new privileges must have been given up before."""
    linux.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(_Filter(len(code) // 8, code)))


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def _load(offset: int) -> bytes:
    return struct.pack("=HBBI", _LOAD, 0, 0, offset)


def _when(test: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    """Skip so many of the next instructions when what was loaded passes a test, or does not."""
    return struct.pack("=HBBI", test, then, otherwise, value)


def _return(value: int) -> bytes:
    return struct.pack("=HBBI", _RETURN, 0, 0, value)


def _argument(index: int) -> int:
    """Return where the lower half of an argument is: both architectures are little-endian."""
    return _ARGUMENTS + 8 * index


def architecture() -> str:
    """Return this machine's architecture where there is a filter for it, else ""."""
    machine = os.uname().machine
    return machine if machine in MACHINES else ""
