"""The filter of system calls, run by a machine made here after the kernel's description of it (classic BPF)."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.shim import seccomp
from tests.tables import cases

ALLOW, EPERM, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT = (0x7FFF0000, 0x00050001, 0x00050026, 0x00050061, 0x0005005D)
NAMESPACES = (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000)
NETLINK = (socket.AF_NETLINK, socket.SOCK_RAW)
FORK, THREAD = 17, 0x3D0F00  # the flags of fork() and of pthread_create()


def answer(code, audit, number, *arguments):
    given = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    seen = struct.pack("=IIQ6Q", number, audit, 0, *(each & (2**64 - 1) for each in given))
    lines = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    at, loaded = 0, 0
    while True:
        operation, then, otherwise, value = lines[at]
        at += 1
        if operation == 0x06:
            return value
        if operation == 0x20:
            (loaded,) = struct.unpack_from("=I", seen, value)
        else:
            passed = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[operation]
            at += then if passed else otherwise


ARGUMENTS = st.integers(0, 64) | st.sampled_from((*NAMESPACES, FORK, THREAD, 0x80, 0x5412, 0x541C, 0x5401))


def judged(machine, name, arguments):
    tests = {
        "EQ": lambda given, value, _: given == value,
        "NE": lambda given, value, _: given != value,
        "GT": lambda given, value, _: given > value,
        "MASKED_EQ": lambda given, mask, value: given & mask == value,
    }
    for rule in seccomp.profile(machine)["syscalls"]:
        passed = (
            tests[each["op"].removeprefix("SCMP_CMP_")](arguments[each["index"]], each["value"], each["valueTwo"])
            for each in rule["args"]
        )
        if name in rule["names"] and all(passed):
            return 0x00050000 | rule["errnoRet"]
    return ALLOW


class TestFilter:
    @pytest.fixture(params=sorted(seccomp.MACHINES))
    def machine(self, request):
        return request.param

    @pytest.mark.parametrize("tracing", [False, True])
    def test_every_number_is_refused_or_allowed_as_the_table_says(self, machine, tracing):
        known = seccomp.MACHINES[machine]
        code = seccomp.program(machine, tracing=tracing, limiting=tracing)
        by_argument = ("ioctl", "clone", "unshare", "clone3", "socket", "socketpair", "prlimit64")
        refused = {number for name, number in known.calls.items() if name not in by_argument}
        if tracing:
            refused -= {known.calls[name] for name in seccomp.TRACING}
        said = {number: answer(code, known.audit, number) for number in range(1200)}
        other = {known.calls["clone3"]: ENOSYS}
        other |= {known.calls[name]: EAFNOSUPPORT for name in ("socket", "socketpair")}  # of no family
        assert said == {number: EPERM if number in refused else other.get(number, ALLOW) for number in range(1200)}

    def said(self, machine, name, *arguments, allowing=False):
        """What a filter says to a call; `allowing` is one that allows tracing, and limits of others."""
        known = seccomp.MACHINES[machine]
        code = seccomp.program(machine, tracing=allowing, limiting=allowing)
        return answer(code, known.audit, known.calls[name], *arguments)

    @pytest.mark.parametrize("name", ["clone", "unshare"])
    def test_flags_of_namespaces_are_refused(self, machine, name):
        for flag in NAMESPACES:
            for flags in (flag | FORK, flag | 1 << 40):
                assert self.said(machine, name, flags, allowing=True) == EPERM, hex(flags)

    def test_limits_of_others_are_its_containers_where_only_those_can_be_named(self, machine):
        assert self.said(machine, "prlimit64", 7, 0, allowing=True) == ALLOW
        code = seccomp.program(machine, tracing=False, limiting=False)
        assert len(code) // 8 < 4096, "short enough for the kernel"
        assert struct.unpack("=HBBI", code[-8:])[0] == 0x06, "it ends everywhere"

    @pytest.mark.parametrize("name", ["socket", "socketpair"])
    def test_sockets_are_of_four_families(self, machine, name):
        said = {family: self.said(machine, name, family, 1, 0) for family in range(64)}
        allowed = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
        assert said == {family: ALLOW if family in allowed else EAFNOSUPPORT for family in range(64)}

    @cases("name, arguments, said", {
        "fork": ("clone", [FORK], ALLOW),
        "thread": ("clone", [THREAD], ALLOW),
        "vfork": ("clone", [0x4111], ALLOW),
        "TIOCSTI": ("ioctl", [0, 0x5412], EPERM),
        "TIOCLINUX": ("ioctl", [0, 0x541C], EPERM),
        "TIOCSTI, with upper bits that the kernel does not look at": ("ioctl", [0, 0x5412 | 1 << 32], EPERM),
        "TIOCGWINSZ": ("ioctl", [0, 0x5413], ALLOW),
        "TCGETS": ("ioctl", [0, 0x5401], ALLOW),
        "limits of its own": ("prlimit64", [0, 0], ALLOW),
        "those of another process of the user": ("prlimit64", [7, 0], EPERM),
        "another family than netlink": ("socket", [socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP], ALLOW),
        "netlink: addresses and routes": ("socket", [*NETLINK, 0], ALLOW),
        "with upper bits that the kernel does not look at": ("socket", [*NETLINK, 1 << 32], ALLOW),
        **{
            f"netlink: {name}": ("socket", [*NETLINK, number], EPROTONOSUPPORT)
            for name, number in {"sock_diag": 4, "audit": 9, "uevent": 15, "generic": 16, "rdma": 20}.items()
        },
    })  # fmt: skip
    def test_calls_are_judged_by_their_arguments(self, machine, name, arguments, said):
        assert self.said(machine, name, *arguments) == said

    @given(audit=st.integers(0, 2**32 - 1), number=st.integers(0, 2**32 - 1))
    def test_calls_of_other_architectures_and_with_short_pointers_are_refused(self, audit, number):
        for machine, known in seccomp.MACHINES.items():
            code = seccomp.program(machine, tracing=True, limiting=True)
            if audit != known.audit:
                assert answer(code, audit, number) == EPERM
            assert answer(code, known.audit, number | 0x40000000) == EPERM

    @given(data=st.data(), arguments=st.tuples(*[ARGUMENTS] * 3), upper=st.sampled_from((0, 0, 1 << 32)))
    def test_engines_are_given_the_same_filter(self, data, arguments, upper):
        for machine, known in seccomp.MACHINES.items():
            name = data.draw(st.sampled_from(sorted(known.calls)))
            values = [each | upper for each in arguments]
            ours = self.said(machine, name, *values, allowing=True)
            theirs = judged(machine, name, values)
            # What the kernel does not look at, theirs refuses where it cannot tell.
            assert theirs == ours or (upper and ours == ALLOW)
