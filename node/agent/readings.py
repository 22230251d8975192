"""What an agent reads of its machine: how much there is, how it is, and what it calls itself."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path
from typing import Protocol

from node.pods.environment import search_path
from node.rules.programs import Program

DISK_LEAST_SHARE = 0.02  # of the file system with the state directory
DISK_LEAST_BYTES = 256 << 20
MEMORY_LEAST_BYTES = 128 << 20
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}


class Readings(Protocol):
    """A machine as it is at the moment."""

    def capacity(self) -> dict[str, int]:
        """Return thousandths of processors, and bytes of memory and disk, by resource."""

    def memory_problem(self) -> str:
        """Return what is wrong with the memory, in words; empty when nothing is."""

    def disk_problem(self) -> str:
        """Return what is wrong with the disk under the state directory, in words; empty when nothing is."""

    def info(self) -> dict[str, str]:
        """Return the `nodeInfo` of a Node."""

    def programs(self) -> list[Program]:
        """Return which of the programs that plugins need are there for containers."""


class ThisMachine:
    """The machine that this process runs on: its `Readings`."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def capacity(self) -> dict[str, int]:
        """Return the processors that this process may use, the whole memory, and the disk with the state directory."""
        return {
            "cpu": len(os.sched_getaffinity(0)) * 1000,
            "memory": _meminfo().get("MemTotal", 0),
            "ephemeral-storage": shutil.disk_usage(_existing(self.data)).total,
        }

    def memory_problem(self) -> str:
        """Return that the memory is nearly used up, if it is."""
        if _meminfo().get("MemAvailable", MEMORY_LEAST_BYTES) >= MEMORY_LEAST_BYTES:
            return ""
        return "This machine has less than 128 MiB of memory left; stop something."

    def disk_problem(self) -> str:
        """Return that the disk is full or not to be written, if it is so."""
        folder = _existing(self.data)
        usage = shutil.disk_usage(folder)
        if usage.free < min(int(usage.total * DISK_LEAST_SHARE), DISK_LEAST_BYTES):
            return (
                f"The disk with the state directory {self.data} is full; make room, and what waits goes on by itself."
            )
        if not os.access(folder, os.W_OK):
            return f"The state directory {self.data} cannot be written; correct its owner or permissions."
        return ""

    def info(self) -> dict[str, str]:
        """Return the node info from this machine's files and kernel."""
        release = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
        return {
            "machineID": _first_line("/etc/machine-id"),
            "systemUUID": _first_line("/etc/machine-id"),
            "bootID": _first_line("/proc/sys/kernel/random/boot_id"),
            "kernelVersion": platform.release(),
            "osImage": release.get("PRETTY_NAME", "Linux"),
            "containerRuntimeVersion": "process://1.0",
            "kubeletVersion": "volcano-ui",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        }

    def programs(self) -> list[Program]:
        """Return those found on the search path of containers, or in the directories of system programs.

        sshd is in one of those, has to be started by its whole path, and need not be on the search path.
        """
        folders = os.pathsep.join((search_path(), *SYSTEM_FOLDERS))
        return [program for program in Program if shutil.which(program, path=folders)]


def _meminfo() -> dict[str, int]:
    amounts = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        amounts[name] = int(rest.split()[0]) * 1024
    return amounts


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text().splitlines()[0]
    except (OSError, IndexError):
        return ""
