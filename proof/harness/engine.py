"""Podman with images of its own, in a directory of the test run: nothing of the user's is touched.

Images are made of Debian's busybox-static; a registry of Debian's docker-registry serves them.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from node.containers import engines
from node.shim.order import Wall
from proof.harness.ports import free_port
from proof.harness.waiting import until

BUSYBOX = "/bin/busybox"
PROGRAMS = (
    "sh", "cat", "cp", "date", "dd", "echo", "env", "false", "grep", "head", "hostname", "id", "ls", "mkdir", "mv", "printf",
    "ps", "pwd", "rm", "seq", "setsid", "sleep", "stty", "tee", "test", "touch", "tr", "true", "tty", "wc", "yes",
)  # fmt: skip
SHELL = "localhost/shell:1"  # no entry point, /bin/sh as its command
GREETER = "localhost/greeter:1"  # an entry point, arguments, a variable, a directory and a user
PYTHON = "localhost/python:1"  # the interpreter of this machine by which the tests run, and a setuid program
# What typeshed leaves out: the interpreter itself, not its name in a virtual environment.
INTERPRETER = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
SETUID = os.path.realpath(shutil.which("id") or "/usr/bin/id")
UNUSED = (
    "__pycache__", "test", "idlelib", "ensurepip", "lib2to3", "tkinter", "site-packages", "dist-packages",
)  # fmt: skip
VARIABLES = {
    "CONTAINERS_STORAGE_CONF": "storage.conf",
    "CONTAINERS_CONF": "containers.conf",
    "CONTAINERS_REGISTRIES_CONF": "registries.conf",
}


class Podman:
    """Podman with storage of its own in a folder."""

    kind = "podman"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
            f'rootless_storage_path = "{folder}/graph"\n'
        )
        (folder / "containers.conf").write_text(f'[engine]\ntmp_dir = "{folder}/tmp"\nevents_logger = "file"\n')
        self.trust()
        self.variables = {name: str(folder / file) for name, file in VARIABLES.items()}
        self._found: dict[Wall, engines.EngineLookup] = {}

    def found(self, wall: Wall) -> engines.EngineLookup:
        """Return what an agent finds behind a wall, asked once: trying an engine takes half a second, and gives the same each time."""
        if wall not in self._found:
            self._found[wall] = engines.find(self.kind, wall)
        return self._found[wall]

    def trust(self, *registries: str) -> None:
        """Let podman pull from registries of this machine without TLS."""
        lines = [f'[[registry]]\nlocation = "{each}"\ninsecure = true\n' for each in registries]
        (self.folder / "registries.conf").write_text("".join(lines) or "unqualified-search-registries = []\n")

    def redirect(self, name: str, location: str) -> None:
        """Have a registry of this machine answer for another one's name."""
        text = f'[[registry]]\nprefix = "{name}"\nlocation = "{location}"\ninsecure = true\n'
        (self.folder / "registries.conf").write_text(text)

    def run(self, *words: str | Path, given: bytes = b"", check: bool = True) -> str:
        """Run a command of the engine; return what it prints, and fail where it fails, unless it is not checked."""
        env = {**engines.environment(), **self.variables}
        done = subprocess.run([self.kind, *words], input=given, capture_output=True, env=env, check=False)
        assert not check or done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def make(self, name: str, *changes: str, files: bytes | None = None) -> str:
        """Make an image of busybox or of other files, with changes as in a Dockerfile."""
        self.run("import", *(f"--change={each}" for each in changes), "-", name, given=files or _files())
        return name

    def names(self) -> list[str]:
        """Return the containers that there are, running or not."""
        return self.run("ps", "--all", "--format", "{{.Names}}").split()

    def clear(self) -> None:
        """Remove what tests left that killed shims; nothing is left by an engine that does not work."""
        if names := self.run("ps", "--all", "--format", "{{.Names}}", check=False).split():
            self.run("rm", "--force", *names, check=False)

    def close(self) -> None:
        self.clear()
        if os.geteuid() != 0:  # ends the process that keeps podman's namespaces
            self.run("system", "migrate", check=False)
        subprocess.run(["umount", "-l", self.folder / "graph" / "overlay"], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


class Docker(Podman):
    """Docker with a daemon and storage of its own in a folder; its daemon trusts registries of this machine by itself."""

    kind = "docker"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        socket = f"unix://{folder}/docker.sock"
        self.variables = {"DOCKER_HOST": socket, "DOCKER_CONFIG": str(folder)}
        # Podman looks for logins there as well, and fails where the folder is named and has no such file.
        (folder / "config.json").write_text("{}")
        self._found: dict[Wall, engines.EngineLookup] = {}
        with (folder / "log").open("w") as log:
            self._daemon = subprocess.Popen(
                ["dockerd", "--data-root", folder / "data", "--exec-root", folder / "exec", "--pidfile", folder / "pid",
                 "--host", socket, "--bridge", "none", "--iptables=false"],
                stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        until(self._is_ready, what=lambda: (folder / "log").read_text()[-2000:])

    def _is_ready(self) -> bool:
        return self._daemon.poll() is not None or self.run("version", check=False).count("Version:") > 1

    def trust(self, *registries: str) -> None:
        """Nothing: it trusts registries on 127.0.0.1."""

    def close(self) -> None:
        self.clear()
        self._daemon.terminate()
        self._daemon.wait()
        for mounted in (self.folder / "exec" / "netns").glob("*"):  # which dockerd leaves
            subprocess.run(["umount", "-l", mounted], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def _files() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(BUSYBOX, "bin/busybox")
        for name in PROGRAMS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        for name, text, mode in (
            ("etc/passwd", "root:x:0:0::/root:/bin/sh\nsomebody:x:1234:1234::/home:/bin/sh\n", 0o644),
            ("bin/greet", '#!/bin/sh\necho "$GREETING $*"\n', 0o755),
        ):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), mode
            tar.addfile(entry, io.BytesIO(text.encode()))
        for name in ("tmp", "home", "var/tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(folder)
    return packed.getvalue()


def python() -> bytes:
    """Return the files of the image with Python: its standard library, and the shared libraries that all of it needs."""
    library = sysconfig.get_path("stdlib")
    programs = [INTERPRETER, SETUID, *Path(library, "lib-dynload").glob("*.so")]
    output = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in (INTERPRETER, *sorted(set(re.findall(r"(/\S+) \(0x", output)))):
            tar.add(os.path.realpath(path), path)
        setuid = tar.gettarinfo(SETUID)
        setuid.mode = 0o4755
        with Path(SETUID).open("rb") as file:
            tar.addfile(setuid, file)
        tar.add(library, filter=lambda one: one if one.name.rpartition("/")[2] not in UNUSED else None)
    return packed.getvalue()


@contextlib.contextmanager
def working(kind: str) -> Iterator[Podman | None]:
    """Give an engine with the two images; None where there is none that works, or nothing to make images of."""
    if shutil.which("dockerd" if kind == "docker" else kind) is None:
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="volcano-engine-"))
    one = Docker(folder) if kind == "docker" else Podman(folder)
    try:
        os.environ.update(one.variables)
        found = one.found(Wall("root" if os.geteuid() == 0 else "none"))
        if found.engine is None or not Path(BUSYBOX).exists():
            yield None
            return
        one.make(SHELL, 'CMD ["/bin/sh"]')
        one.make(
            GREETER, 'ENTRYPOINT ["/bin/greet"]', 'CMD ["all"]', "ENV GREETING=hello", "WORKDIR /tmp", "USER 1234",
        )  # fmt: skip
        yield one
    finally:
        for name in one.variables:
            os.environ.pop(name, None)
        one.close()


class Registry:
    """A registry on this machine; with users one that asks for a password."""

    def __init__(self, folder: Path, users: str = "") -> None:
        self.address = f"127.0.0.1:{free_port()}"
        auth = ""
        if users:
            (folder / "users").write_text(users)
            auth = f"auth:\n  htpasswd:\n    realm: here\n    path: {folder}/users\n"
        (folder / "registry.yml").write_text(
            f"version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {folder}/images\n"
            f"http:\n  addr: {self.address}\n{auth}"
        )
        command = ["docker-registry", "serve", str(folder / "registry.yml")]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self._is_ready)

    def _is_ready(self) -> bool:
        import httpx

        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://{self.address}/v2/").status_code in (200, 401)
        return False

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
