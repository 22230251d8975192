"""Landlock: a process gives up, for good and for all that it starts, every file but those below some directories.

It needs no rights and no namespace, so it holds where nothing else can be had,
in a container for example. The kernel numbers what it can do (the ABI):

| ABI | Linux | adds |
|---|---|---|
| 2 | 5.19 | moving files from one directory to another, which ABI 1 forbids altogether: so 2 is the least used here |
| 3 | 6.2 | truncating files |
| 6 | 6.12 | signals, and sockets without a path, end at the wall |

Whatever the ABI, a process behind the wall cannot trace those outside, nor read their environment, memory or
descriptors in /proc, and cannot mount. It can look at what a file is (its size, owner and times), and connect to a
socket whose path it knows. Documentation: https://docs.kernel.org/userspace-api/landlock.html
"""

from __future__ import annotations

import os
import stat
import struct
from typing import TYPE_CHECKING

from node.shim import linux

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST_ABI = 2
SCOPES_ABI = 6

# The numbers are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_SCOPES = 0b11  # abstract sockets, signals

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = (1 << bit for bit in range(4))
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE = 1 << 14
READ = EXECUTE | READ_FILE | READ_DIR
CHANGE_FILE = WRITE_FILE | TRUNCATE
# What a rule about a file, and not a directory, can speak of.
_OF_FILES = EXECUTE | READ_FILE | CHANGE_FILE


def abi() -> int:
    """Return the ABI that this kernel has; 0 where it has none that is of use here."""
    try:
        version = linux.syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    except OSError:
        return 0
    return version if version >= LEAST_ABI else 0


def handled(abi: int) -> int:
    """Return the rights that rules of an ABI are about: those on files that are known up to ABI 3."""
    return (1 << 14) - 1 if abi < 3 else (1 << 15) - 1


def write(abi: int) -> int:
    """Return the rights of who may write: all but making devices."""
    return handled(abi) & ~(MAKE_CHAR | MAKE_BLOCK)


def confine(abi: int) -> None:
    """Keep signals of this process, and its sockets without a path, among what shares its wall, as far as the ABI can."""
    if abi >= SCOPES_ABI:
        scopes = _ruleset(0, _SCOPES)
        restrict(scopes)
        os.close(scopes)


def ruleset(abi: int, rules: Iterable[tuple[int, int]]) -> int:
    """Return a descriptor of rules that allow no file but these: descriptors of directories or files, and rights below them."""
    descriptor = _ruleset(handled(abi))
    for fd, rights in rules:
        add(descriptor, abi, fd, rights)
    return descriptor


def add(ruleset: int, abi: int, fd: int, rights: int) -> None:
    """Have rules allow more, to who is restricted by them from then on."""
    allowed = rights & handled(abi)
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        allowed &= _OF_FILES
    linux.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", allowed, fd), 0)


def restrict(ruleset: int) -> None:
    """Give up every file but what rules allow, for good; the right to new privileges must have been given up before."""
    linux.syscall(_RESTRICT_SELF, ruleset, 0)


def _ruleset(files: int, scopes: int = 0) -> int:
    # A kernel takes the shorter forms of the structure, of before it had rules for the network and scopes.
    attributes = struct.pack("=QQQ", files, 0, scopes) if scopes else struct.pack("=Q", files)
    return linux.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
