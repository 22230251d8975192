"""A copy of the tree that has all defects of the list, each asleep."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from proof.mutants import mutations
from proof.mutants.listing import ROOT
from proof.mutants.mutations import Mutation

FUTURE = "from __future__ import annotations\n"
IMPORT = "from __future__ import annotations; from proof.mutants.switch import mutant as _mutant\n"
INSTALLED = (".venv", "node_modules", "static/build", ".cache/kubernetes")


def plant(folder: Path, places: Mapping[int, tuple[str, Mutation]]) -> str:
    """Make the copy in a folder, and return a hash of all that it is made of."""
    shutil.rmtree(folder, ignore_errors=True)
    by_module: dict[str, dict[int, Mutation]] = defaultdict(dict)
    for number, (path, mutation) in places.items():
        by_module[path][number] = mutation
    digest = hashlib.sha256()
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, copy = ROOT / name, folder / name
        if not source.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy, follow_symlinks=False)
        if chosen := by_module.get(name):
            text = mutations.applied(source.read_text(), chosen, "_mutant")
            copy.write_text(text.replace(FUTURE, IMPORT, 1))
        if name.endswith(".py") and not name.startswith("proof/mutants/"):
            digest.update(f"{name}\0".encode() + copy.read_bytes())
    for name in INSTALLED:
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(ROOT / name)
    return digest.hexdigest()
