"""Devices that their vendors describe by the Container Device Interface (CDI): pure, but for `Specs`, which reads the files.

A spec names the devices of one kind, `vendor.com/class`, and what a container needs for each: files of
/dev, variables, mounts and hooks. Containers here run their machine's programs,
so a mount that shows a file where it is anyway is of no account, and one that shows it elsewhere, or a
hook, which is a program that an engine runs beside the container, cannot be had: such a device is not offered.
An engine does all of that for its own containers, also for devices that were found or declared
otherwise: it gets the device's name in a spec (`name_of`).
Source: the Container Device Interface specification, versions 0.3 to 1.0.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kube import lenient, names
from node.rules.devices import Device, Kind

# In this order; of two specs of a kind the later one holds.
FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
ENDINGS = (".json", ".yaml", ".yml")
SPEC_BYTES = 1 << 20  # bytes of a spec
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]*")
log = logging.getLogger(__name__)


class CdiError(ValueError):
    """A spec offers no devices; the message says why, and what to do."""


class Named(NamedTuple):
    """A device by the name that an engine takes, `vendor.com/class=device`, and the files of /dev that are its own."""

    kind: str
    device: str
    files: frozenset[str]

    def __str__(self) -> str:
        """Return the qualified name."""
        return f"{self.kind}={self.device}"


class Contents(NamedTuple):
    """What specs describe: kinds whose devices every container can have, and the names that engines take."""

    kinds: tuple[Kind, ...] = ()
    named: tuple[Named, ...] = ()


def parse(text: str) -> Kind:
    """Return the kind that a spec in YAML or JSON describes, with the devices that containers can have; CdiError if none."""
    spec = _read(text)
    kind = lenient.text(spec, "kind")
    if "/" not in kind or names.qualified_name(kind):
        raise CdiError(f"its kind {kind!r} is no name of a resource; write vendor.com/class.")
    common = _edits(spec, kind)
    devices = [_device(each, common) for each in lenient.sequence(spec, "devices") if isinstance(each, dict)]
    offered = _distinct(devices, common)
    if not offered:
        raise CdiError("it describes no devices; write some with a name and containerEdits each.")
    return Kind(kind, (), offered)


def names_in(text: str) -> tuple[Named, ...]:
    """Return the devices of a spec by the names that engines take, whatever else they need; none of what is no spec."""
    try:
        spec = _read(text)
    except CdiError:
        return ()
    kind, common = lenient.text(spec, "kind"), _nodes(spec)
    return tuple(
        Named(kind, lenient.text(each, "name"), _nodes(each) - common)
        for each in lenient.sequence(spec, "devices")
        if isinstance(each, dict) and _NAME.fullmatch(lenient.text(each, "name"))
    )


def name_of(kind: Kind, device: Device, named: Iterable[Named]) -> str:
    """Return the name by which an engine gives a device of a kind, "" where no spec has it.

    That of its id, else the one that has its files and fewest others. None that has a file of another device, as `all` has.
    """
    others = {file for other in kind.devices if other.id != device.id for file in other.files}
    own = frozenset(device.files) - others
    fitting = [
        each
        for each in named
        if each.kind == kind.resource
        and not each.files & (others - own)
        and (each.device == device.id or (own and own <= each.files))
    ]
    best = min(fitting, key=lambda each: (each.device != device.id, len(each.files), each.device), default=None)
    return "" if best is None else str(best)


def _read(text: str) -> dict[str, Any]:
    try:
        spec = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise CdiError(f"it is neither YAML nor JSON: {str(error).splitlines()[0]}") from None
    if not isinstance(spec, dict):
        raise CdiError("it is no object; write one with cdiVersion, kind and devices.")
    return spec


def _device(entry: dict[str, Any], common: Device) -> Device:
    name = lenient.text(entry, "name")
    if not _NAME.fullmatch(name):
        raise CdiError(f"{name!r} cannot be the name of a device; write letters, digits and _.:-")
    own = _edits(entry, name)
    return own._replace(files=(*common.files, *own.files), env=(*common.env, *own.env))


def _edits(holder: dict[str, Any], name: str) -> Device:
    """Return the files and variables of a device, or of all in a spec."""
    if lenient.sequence(holder, "containerEdits", "hooks"):
        raise CdiError(f"{name} has hooks, programs that only an engine of containers runs; describe it without.")
    for mount in lenient.sequence(holder, "containerEdits", "mounts"):
        source, target = (lenient.text(mount, field) for field in ("hostPath", "containerPath"))
        if source != target:
            raise CdiError(f'{name} shows "{source}" as "{target}"; containers here see files where they are.')
    files = []
    for node in lenient.sequence(holder, "containerEdits", "deviceNodes"):
        path = lenient.text(node, "path")
        if not path.startswith("/dev/") or ".." in path.split("/"):
            raise CdiError(f'the file "{path}" of {name} does not lie in /dev.')
        if lenient.text(node, "hostPath") not in ("", path):
            raise CdiError(f'the file "{path}" of {name} has another name on the machine; name it as it is there.')
        files.append(path)
    return Device(name, files=tuple(files), env=tuple(_variables(holder, name)))


def _nodes(holder: dict[str, Any]) -> frozenset[str]:
    """Return the files of /dev of a device, or of all in a spec, as the machine names them."""
    nodes = [each for each in lenient.sequence(holder, "containerEdits", "deviceNodes") if isinstance(each, dict)]
    return frozenset(lenient.text(each, "hostPath") or lenient.text(each, "path") for each in nodes)


def _variables(holder: dict[str, Any], name: str) -> Iterable[tuple[str, str]]:
    for line in lenient.sequence(holder, "containerEdits", "env"):
        variable, equals, value = str(line).partition("=")
        if not equals or names.env_name(variable):
            raise CdiError(f"{str(line)!r} of {name} sets no variable; write NAME=VALUE.")
        yield variable, value


def _distinct(devices: Sequence[Device], common: Device) -> tuple[Device, ...]:
    """Leave out other names of a device, and those that stand for several: nothing may be given out twice."""
    own = {device.id: frozenset(device.files) - set(common.files) for device in devices}
    if len(own) < len(devices):
        raise CdiError("it has a name twice; give each device one of its own.")
    first = {files: name for name, files in reversed(own.items()) if files}
    return tuple(
        device
        for device in devices
        if first.get(own[device.id], device.id) == device.id and not any(files < own[device.id] for files in first)
    )


class _File(NamedTuple):
    """A spec as it was read: when it was written (ns), and what it describes."""

    written: int
    kind: Kind | None = None
    named: tuple[Named, ...] = ()


class Specs:
    """The specs of this machine: files that are read again when they have changed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._read: dict[Path, _File] = {}

    def contents(self) -> Contents:
        """Return what the specs describe by now; what is wrong with one is logged once."""
        files = [file for folder in self._folders for file in _files(folder)]
        self._read = {file: spec for file in files if (spec := self._load(file)) is not None}
        kinds = {each.kind.resource: each.kind for each in self._read.values() if each.kind is not None}
        names = {str(name): name for each in self._read.values() for name in each.named}
        return Contents(tuple(kinds.values()), tuple(names.values()))

    def _load(self, file: Path) -> _File | None:
        named: tuple[Named, ...] = ()
        try:
            state = file.stat()
            previous = self._read.get(file)
            if previous is not None and previous.written == state.st_mtime_ns:
                return previous
            if state.st_size > SPEC_BYTES:
                raise CdiError(f"it has more than {SPEC_BYTES:,} bytes.")
            text = file.read_text()
            named = names_in(text)
            return _File(state.st_mtime_ns, parse(text), named)
        except OSError:  # it went meanwhile, or is not ours to read
            return None
        except ValueError as error:
            more = "; engines give them to containers of images" if named else ""
            log.warning("devices of %s are not offered: %s%s", file, error, more)
            return _File(state.st_mtime_ns, None, named)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix in ENDINGS)
    except OSError:
        return []
