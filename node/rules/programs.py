"""Programs that plugins of jobs need on the machine of a pod, and how a node says which of them it has: pure.

Containers run their machine's programs, whatever image they name. A node whose
agent runs them so lists those that it has in an annotation; of a node without the
annotation the programs are unknown.
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


def written(installed: Iterable[Program]) -> str:
    """Return the annotation's value for the programs that a machine has."""
    return ",".join(sorted(installed))


def read(annotations: Mapping[str, str]) -> frozenset[str] | None:
    """Return the programs of a node with these annotations; None where they are unknown."""
    if ANNOTATION not in annotations:
        return None
    return frozenset(annotations[ANNOTATION].split(",")) - {""}
