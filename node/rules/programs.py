"""Programs that plugins of jobs need on the machine of a pod, and how a node says which of them it has: pure.

Containers run their machine's programs, whatever image they name. A node whose
agent runs them so lists those that it has in an annotation; a node without the
annotation says nothing of its programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

ANNOTATION = "ui.volcano.sh/programs"


class Program(StrEnum):
    """A program that a plugin needs, by the name of its file."""

    MPIRUN = "mpirun"
    RAY = "ray"
    SSH = "ssh"
    SSHD = "sshd"


PACKAGES = {
    Program.MPIRUN: "Debian's openmpi-bin",
    Program.RAY: "the Python package ray[default]",
    Program.SSH: "Debian's openssh-client",
    Program.SSHD: "Debian's openssh-server",
}


def to_install(name: str) -> str:
    """Return what has to be installed for a program; "it" for one that no plugin needs."""
    return next((package for program, package in PACKAGES.items() if program == name), "it")


def written(found: Iterable[Program]) -> str:
    """Return the annotation's value for the programs that a machine has."""
    return ",".join(sorted(found))


def read(annotations: Mapping[str, str]) -> frozenset[str] | None:
    """Return which programs a node with these annotations says it has; None when it says nothing of them."""
    if ANNOTATION not in annotations:
        return None
    return frozenset(annotations[ANNOTATION].split(",")) - {""}
