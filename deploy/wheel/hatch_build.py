"""What hatchling asks when it builds the wheel: which packages it needs, and whether the front end is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

STATIC = Path(".cache/static/.stamp")


class Dependencies(MetadataHookInterface):
    """Fills in the packages that the wheel needs."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Read them from the lock and its source."""
        root = Path(self.root)
        asked, locked = ((root / name).read_text() for name in ("requirements.in", "requirements.txt"))
        metadata["dependencies"] = dependencies(asked, locked)


class FrontEnd(BuildHookInterface[Any]):
    """Refuses to build a wheel without its front end."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Look whether there are built files."""
        if not (Path(self.root) / STATIC).exists():
            raise SystemExit("The front end is not built; `make wheel` builds it and then the wheel.")


def dependencies(asked: str, locked: str) -> list[str]:
    """Return what requirements.in asks for, from the locked version up to the next that may break something.

    That is the next major version, or the next minor one before 1.0, or sooner where requirements.in says so.
    """
    pins = dict(line.split()[0].split("==") for line in locked.splitlines() if "==" in line.split("#")[0])
    wanted = (line.partition("#")[0].strip() for line in asked.splitlines())
    return [_ranged(Requirement(line), pins) for line in wanted if line]


def _ranged(requirement: Requirement, pins: dict[str, str]) -> str:
    version = Version(pins[canonicalize_name(requirement.name)])
    limit = f"{version.major + 1}" if version.major else f"0.{version.minor + 1}"
    requirement.specifier &= f">={version.public},<{limit}"
    return str(requirement)
