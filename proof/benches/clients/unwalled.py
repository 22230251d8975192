"""Runs a program where the kernel grants no layer of a wall: `python -m proof.benches.clients.unwalled PROGRAM ARGUMENT…`.

So what a wall costs can be measured beside one: nobody can leave the wall out
of a node, but a kernel, or who restricts it, can refuse everything that it is made of.
"""

from __future__ import annotations

import errno
import os
import struct
import sys

from node.shim import linux
from node.shim.isolation import seccomp

X86 = os.uname().machine == "x86_64"
REFUSED = (272 if X86 else 97, 444, 317 if X86 else 277)  # unshare, landlock_create_ruleset, seccomp
PRCTL, SET_SECCOMP = (157 if X86 else 167), 22
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST_ARGUMENT = 0, 16
ALLOW, EPERM = 0x7FFF0000, 0x00050000 | errno.EPERM


def _filter() -> bytes:
    lines = [(LOAD, 0, 0, NUMBER)]
    for number in REFUSED:
        lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, EPERM)]
    lines += [(EQUAL, 0, 3, PRCTL), (LOAD, 0, 0, FIRST_ARGUMENT), (EQUAL, 0, 1, SET_SECCOMP)]
    lines += [(RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def main() -> None:
    """Become the program, where every layer of a wall is refused from now on."""
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(_filter())
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
