"""The Linux system calls that Python has no function for."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct

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

# What a mount allows less than another: the first four of mount_setattr(2).
RDONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8

_libc = ctypes.CDLL(None, use_errno=True)
_libc_locked = ctypes.PyDLL(None, use_errno=True)  # called without letting go of the interpreter


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def prctl(option: int, value: int | bytes, more: object = 0) -> None:
    """Set an attribute of this process."""
    _check(_libc.prctl(option, value, more, 0, 0), f"prctl {option}")


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call that the C library has no function for; return its result or raise OSError."""
    c_arguments = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = int(_libc.syscall(ctypes.c_long(number), *c_arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), f"system call {number}")
    return result


def fork_into(group: int) -> int:
    """Fork this process, which has one thread, as os.fork() does; the child begins in the control group of a directory's descriptor.

    A child of clone3(2) has all of this process but other threads, and the C library would only have told its own records
    the child's number, which it keeps for locks that know their owner; Python is told here. So it does what a child of a
    fork may do in any program: it goes on to exec, and starts no thread.
    """
    clone_args = struct.pack("=11Q", _INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, group)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(_libc_locked.syscall(ctypes.c_long(_CLONE3), clone_args, ctypes.c_long(len(clone_args))))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "clone3")
    return pid


def unshare(flags: int) -> None:
    """Give this process namespaces of its own."""
    _check(_libc.unshare(flags), "unshare")


def own_users(more: int = 0) -> None:
    """Give this process a user namespace in which it is who it is, and may do everything; `more` namespaces belong to that."""
    id_maps = f"{os.getuid()} {os.getuid()} 1", f"{os.getgid()} {os.getgid()} 1"
    unshare(CLONE_NEWUSER | more)
    for name, text in zip(("setgroups", "uid_map", "gid_map"), ("deny", *id_maps), strict=True):
        write(f"/proc/self/{name}", text)


def setns(fd: int, kind: int) -> None:
    """Join the namespace that a descriptor stands for."""
    _check(_libc.setns(fd, kind), "setns")


def file_system(kind: str, attributes: int = 0, **options: str | int) -> int:
    """Return a new file system as a descriptor of its root, which is mounted nowhere yet."""
    context = syscall(_FSOPEN, kind.encode(), _CLOEXEC)
    try:
        for name, value in options.items():
            syscall(_FSCONFIG, context, _SET_STRING, name.encode(), str(value).encode(), 0)
        syscall(_FSCONFIG, context, _CREATE, None, None, 0)
        return syscall(_FSMOUNT, context, _CLOEXEC, attributes)
    finally:
        os.close(context)


def copy_of_mount(fd: int, *, whole: bool = True) -> int:
    """Return a copy of the mount that a descriptor lies in, from there down, which is mounted nowhere yet.

    The descriptor must be of this process's mount namespace. `whole`: with what is mounted below.
    """
    flags = _COPY | os.O_CLOEXEC | _EMPTY_PATH | (_RECURSIVE if whole else 0)
    return syscall(_OPEN_TREE, fd, b"", flags)


def restrict_mount(fd: int, attributes: int, *, whole: bool = True) -> None:
    """Have a mount, of which fd is the root, allow less; `whole`: with what is mounted below."""
    _set_mount(fd, struct.pack("=QQQQ", attributes, 0, 0, 0), whole=whole)


def map_mount(fd: int, users: int, *, whole: bool = True) -> None:
    """Show files in a mount that is mounted nowhere yet as those of the ids of a user namespace, and write them back as they were."""
    _set_mount(fd, struct.pack("=QQQQ", _ID_MAP, 0, 0, users), whole=whole)


def can_restrict_mounts() -> bool:
    """Whether there is mount_setattr(2), since Linux 5.12: the newest call of those that this module mounts with."""
    try:
        _set_mount(-1, struct.pack("=QQQQ", NOSUID, 0, 0, 0), whole=False)
    except OSError as error:
        return error.errno != errno.ENOSYS
    return True


def keep_mounts_private() -> None:
    """See to it that what this process mounts is seen in its mount namespace only."""
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    _set_mount(root, struct.pack("=QQQQ", 0, 0, _PRIVATE, 0), whole=True)
    os.close(root)


def _set_mount(fd: int, attributes: bytes, *, whole: bool) -> None:
    flags = _EMPTY_PATH | (_RECURSIVE if whole else 0)
    syscall(_MOUNT_SETATTR, fd, b"", flags, attributes, len(attributes))


def attach(mount: int, point: int) -> None:
    """Mount what is mounted nowhere yet on what a descriptor stands for: a directory on a directory, a file on a file."""
    syscall(_MOVE_MOUNT, mount, b"", point, b"", _FROM_EMPTY_PATH | _TO_EMPTY_PATH)


def open_beneath(folder: int, path: str) -> int:
    """Return a descriptor (O_PATH) of what is at a path below a directory, on which no link is followed."""
    open_how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _BENEATH)
    return syscall(_OPENAT2, folder, os.fsencode(path.lstrip("/") or "."), open_how, len(open_how))


def change_root(root: int) -> None:
    """Make a mount the root directory and the working directory; the former root is not to be reached any more."""
    os.fchdir(root)
    # The second "." puts the former root over the new one, where it is found by the same name. See pivot_root(2).
    syscall(_PIVOT_ROOT, b".", b".")
    _check(_libc.umount2(b".", _DETACH), "unmount the former root")
    os.chdir("/")


# New system calls have the same number on every architecture; of older ones the second is that of the table which newer ports share.
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _MOUNT_SETATTR = 428, 429, 430, 431, 432, 442
_CLONE3, _INTO_CGROUP = 435, 0x200000000
_OPENAT2, _BENEATH = 437, 0x02 | 0x04 | 0x08  # RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH
_PIVOT_ROOT = 155 if os.uname().machine == "x86_64" else 41
_COPY, _CLOEXEC = 1, 1
_EMPTY_PATH, _RECURSIVE = 0x1000, 0x8000
_FROM_EMPTY_PATH, _TO_EMPTY_PATH = 0x04, 0x40
_SET_STRING, _CREATE = 1, 6
_ID_MAP, _PRIVATE, _DETACH = 1 << 20, 1 << 18, 2


def write(path: str, text: str) -> None:
    """Write what the kernel takes in one piece, such as a file of /proc."""
    with open(path, "w") as file:
        file.write(text)


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
