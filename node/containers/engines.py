"""The engine by which images run on this machine: podman or docker, found by having one run an image.

The trial has the options that containers of pods have later, so an engine
that is installed and cannot run them (no daemon, control groups that its runtime
refuses, limits that it may not set) is reported with its own error.
"""

from __future__ import annotations

import io
import json
import logging
import os
import platform
import re
import resource
import shutil
import struct
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from node.shim import users
from node.shim.contained import problem
from node.shim.isolation import seccomp
from node.shim.order import FILES, Ids, Wall

AUTO, NONE = "auto", "none"
SUPPORTED = ("podman", "docker")
IMAGE = "localhost/volcano-ui-probe:1"
TRY_S = 30.0
NPROC = 16_384  # more than podman itself may have is refused
INSTALL = "install podman or docker (Debian: apt-get install podman runc)"
# What of the agent's environment is an engine's: where it keeps things, and where its daemon is.
_OWN = re.compile(
    r"HOME|USER|LANG|XDG_RUNTIME_DIR|DBUS_SESSION_BUS_ADDRESS|(CONTAINERS?|DOCKER|STORAGE)_\w+|\w+_PROXY|\w+_proxy"
)
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")
log = logging.getLogger(__name__)


class Engine(NamedTuple):
    """An engine that works."""

    kind: str  # "podman" or "docker"
    version: str
    program: tuple[str, ...]  # with the options that it needs on this machine
    limits: bool = True  # whether it limits memory, processors and processes
    stages: bool = False  # whether it sees mounts of the process that starts it
    cdi: bool = False  # whether it gives devices by their names in vendors' specs
    maps: bool = False  # whether its containers can have users of their own: see `node.shim.users`
    filters: bool = False  # whether it takes our filter of system calls: see `node.shim.isolation.seccomp`

    @property
    def display_name(self) -> str:
        """The engine for people: `podman 4.3.1`."""
        return f"{self.kind} {self.version}"


class EngineLookup(NamedTuple):
    """The engine of this machine, or why there is none."""

    engine: Engine | None = None
    why: str = ""


def find(setting: str, wall: Wall) -> EngineLookup:
    """Return the engine that a setting names: `auto`, `none`, `podman`, `docker` or a path; each is tried until one works."""
    if setting == NONE:
        return EngineLookup(None, "VOLCANO_UI_ENGINE=none")
    problems = []
    for name in SUPPORTED if setting == AUTO else (setting,):
        program = shutil.which(name, path=environment()["PATH"])
        if program is None:
            problems.append(f"{name} is not installed")
            continue
        try:
            return EngineLookup(_try_engine(program, wall))
        except (OSError, subprocess.SubprocessError, EngineFails) as error:
            problems.append(f"{name} does not work: {error}")
    for each in problems:
        log.info("no images: %s", each)
    return EngineLookup(None, "; ".join(problems))


class EngineFails(Exception):
    """An engine failed at a command; the message is its own."""


def environment() -> dict[str, str]:
    """Return the environment that engines have: nothing of the cluster's own."""
    inherited = {name: value for name, value in os.environ.items() if _OWN.fullmatch(name)}
    folders = [*os.environ.get("PATH", "").split(os.pathsep), *_SYSTEM_FOLDERS]
    return {**inherited, "PATH": os.pathsep.join(dict.fromkeys(folder for folder in folders if folder))}


def ulimits() -> tuple[str, ...]:
    """Return the options with limits that every engine may set here: its own defaults are often above what it may."""
    files, processes = (_allowed(resource.RLIMIT_NOFILE, FILES), _allowed(resource.RLIMIT_NPROC, NPROC))
    return (
        "--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={processes}:{processes}", "--ulimit", "core=0:0",
    )  # fmt: skip


def _allowed(limit: int, wanted: int) -> int:
    _, hard = resource.getrlimit(limit)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _try_engine(program: str, wall: Wall) -> Engine:
    # Podman may go by docker's name.
    output = _output_of((program, "--version")).lower()
    match = re.search(r"(podman|docker) version ([^\s,]+)", output)
    if match is None:
        raise EngineFails(f"it calls itself {output.strip()[:60]!r}, neither podman nor docker")
    kind, version = match[1], match[2]
    failed = EngineFails("")
    for options in _options(kind):
        for limits in (True, False):
            try:
                _run((program, *options), limits=limits)
            except EngineFails as error:
                failed = failed if str(failed) else error
                continue
            stages = kind == "podman" and wall.mounts == "root" and "CONTAINER_HOST" not in os.environ
            limited, cdi = limits and _enforces_limits(kind, program), _supports_cdi(kind, version, program)
            maps = stages and _accepts((program, *options), users_of(users.subordinate(0)))
            filters = bool(seccomp.architecture()) and _takes_filter((program, *options))
            return Engine(kind, version, (program, *options), limited, stages, cdi, maps, filters)
    raise failed


def users_of(ids: Iterable[Ids]) -> tuple[str, ...]:
    """Return the options with which the users of a container are others on the machine."""
    lines = [f"{each.inside}:{each.outside}:{each.size}" for each in ids]
    return tuple(part for line in lines for part in ("--uidmap", line, "--gidmap", line))


def _accepts(program: tuple[str, ...], more: tuple[str, ...]) -> bool:
    """Whether an engine accepts options: for users of their own it may lack the rights, or storage that maps their files."""
    try:
        _run(program, limits=False, more=more)
    except EngineFails:
        return False
    return True


def _takes_filter(program: tuple[str, ...]) -> bool:
    """Whether an engine takes a filter: one on another machine does not see its file, and some are built without."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(seccomp.profile(seccomp.architecture()), file)
        file.flush()
        return _accepts(program, ("--security-opt", f"seccomp={file.name}"))


def _enforces_limits(kind: str, program: str) -> bool:
    """Whether an engine that took limits enforces them: without control groups it may drop them with a mere warning."""
    template = "{{json .Host.CgroupControllers}}" if kind == "podman" else "{{json .MemoryLimit}}"
    try:
        limited = json.loads(_output_of((program, "info", "--format", template)))
    except (EngineFails, ValueError):  # one without this information
        return True
    return "memory" in limited if isinstance(limited, list) else bool(limited)


def _supports_cdi(kind: str, version: str, program: str) -> bool:
    """Whether an engine reads vendors' specs of devices: podman from 4.1 on, docker where its daemon lists folders of them."""
    if kind == "podman":
        numbers = [int(each) for each in re.findall(r"\d+", version)[:2]]
        return numbers >= [4, 1]
    try:
        return bool(json.loads(_output_of((program, "info", "--format", "{{json .CDISpecDirs}}"))))
    except (EngineFails, ValueError):  # one that is older than CDI
        return False


def _options(kind: str) -> Iterator[tuple[str, ...]]:
    """Yield the options with which an engine may work: its own choice of a runtime, then runc."""
    yield ()
    if kind == "podman" and (runc := shutil.which("runc", path=environment()["PATH"])):
        yield "--runtime", runc


def _run(program: tuple[str, ...], *, limits: bool, more: tuple[str, ...] = ()) -> None:
    try:
        _output_of((*program, "image", "inspect", "--format", "{{.Id}}", IMAGE))
    except EngineFails:
        _output_of((*program, "import", "-", IMAGE), _tar())
    bounds = ("--memory", "64m", "--cpus", "1", "--pids-limit", "100") if limits else ()
    _output_of((
        *program, "run", "--rm", "--pull", "never", "--network", "host", "--log-driver", "none", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", *ulimits(), *bounds, *more, IMAGE, "/true",
    ))  # fmt: skip


def _output_of(argv: tuple[str, ...], stdin: bytes = b"") -> str:
    env: Mapping[str, str] = environment()
    done = subprocess.run(argv, input=stdin, capture_output=True, env=env, timeout=TRY_S, check=False)  # noqa: S603 - its name is the administrator's
    if done.returncode:
        problem_text = problem(done.stderr.decode(errors="replace"))
        raise EngineFails(problem_text or f"it ended with exit code {done.returncode}")
    return done.stdout.decode(errors="replace")


# What the image of the trial has to execute: a program that ends with 0, as few bytes as an ELF file can have.
_ENDS = {
    "x86_64": (62, bytes.fromhex("31ffb83c0000000f05")),  # xor edi, edi; mov eax, 60; syscall
    "aarch64": (183, bytes.fromhex("000080d2a80b80d2010000d4")),  # mov x0, 0; mov x8, 93; svc 0
}


def _tar() -> bytes:
    """Return an image's file system with nothing but `/true`."""
    try:
        machine, code = _ENDS[platform.machine()]
    except KeyError:
        raise EngineFails(f"there is nothing to try it with on {platform.machine()}") from None
    start, size = 0x400000, 64 + 56
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 2, machine, 1, start + size, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )
    whole = size + len(code)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, start, start, whole, whole, 0x1000)
    program = head + segment + code
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("true")
        entry.size, entry.mode = len(program), 0o755
        tar.addfile(entry, io.BytesIO(program))
    return packed.getvalue()
