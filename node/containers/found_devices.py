"""The devices of this machine: those that the settings declare, GPUs that its drivers know, and what vendors describe (CDI).

NVIDIA's are what `nvidia-smi` lists, which comes with the driver; AMD's what
the kernel's driver amdgpu says in /sys. Neither needs a package of ours, and a
machine without them runs no program and reads no file.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from node.containers import cdi
from node.pods.environment import search_path
from node.rules.devices import Device, Kind

NVIDIA, AMD = "nvidia.com/gpu", "amd.com/gpu"
NVIDIA_PROC = Path("/proc/driver/nvidia")
AMD_TOPOLOGY = Path("/sys/class/kfd/kfd/topology/nodes")
DRM = Path("/sys/class/drm")
TOOL_S = 10.0
_FIELDS = "uuid,name,pci.bus_id,utilization.gpu,memory.used,memory.total,temperature.gpu"
log = logging.getLogger(__name__)

Figures = dict[str, float]  # use (0…1), memory and memoryTotal (bytes), temperature (°C); an unreported one is absent


class Inventory(NamedTuple):
    """The devices of one scan, and those of earlier ones that are gone."""

    kinds: tuple[Kind, ...] = ()
    gone: frozenset[tuple[str, str]] = frozenset()  # resource and id of what was there, or is declared
    figures: dict[str, dict[str, Figures]] = {}
    # By resource and id the name by which an engine gives the device, where it has one.
    named: dict[tuple[str, str], str] = {}

    def by_engine(self, share: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
        """Return what an engine is to give a container with such devices: their names in vendors' specs (CDI), else their files."""
        handles: set[str] = set()
        for kind in self.kinds:
            ids = set(share.get(kind.resource, ()))
            for device in kind.devices:
                if device.id in ids:
                    name = self.named.get((kind.resource, device.id))
                    handles.update((name,) if name else device.files)
        return tuple(sorted(handles))

    def problem(self) -> str:
        """Return which devices are gone, in words; empty when all are there."""
        missing = [f"{id_} ({resource})" for resource, id_ in sorted(self.gone)]
        return f"{', '.join(missing)} cannot be found any more; see to the device or its driver." if missing else ""

    def counts(self, *, healthy: bool) -> dict[str, int]:
        """Return how many devices there are by resource, or how many of them can be used."""
        return {
            kind.resource: sum(not healthy or (kind.resource, one.id) not in self.gone for one in kind.devices)
            for kind in self.kinds
        }


FoundKind = tuple[Kind, dict[str, Figures]]


class FoundDevices:
    """Scans for devices again and again; other threads read the result in `inventory`."""

    def __init__(
        self,
        declared: Sequence[Kind] = (),
        finders: Sequence[Callable[[], FoundKind | None]] | None = None,
        folders: Sequence[Path] | None = None,
    ) -> None:
        self._declared = tuple(declared)
        self._specs = cdi.Specs(cdi.FOLDERS if folders is None else folders)
        self._finders = (nvidia, amd) if finders is None else finders
        self.inventory = Inventory()
        self.scan()

    def figures(self) -> dict[str, dict[str, Figures]]:
        """Scan again, and return the figures of devices by resource and id."""
        self.scan()
        return self.inventory.figures

    def scan(self) -> None:
        """Scan once; a device that was found before and is missing now counts as gone, until the agent ends."""
        detected = [each for finder in self._finders if (each := finder())]
        declared = {kind.resource for kind in self._declared}
        detected = [each for each in detected if each[0].resource not in declared]
        resources = declared.union(kind.resource for kind, _ in detected)
        contents = self._specs.contents()
        described = [kind for kind in contents.kinds if kind.resource not in resources]
        gone = {
            (kind.resource, one.id)
            for kind in (*self._declared, *described)
            for one in kind.devices
            if not all(Path(file).exists() for file in one.files)
        }
        kinds = {kind.resource: kind for kind in (*self._declared, *(kind for kind, _ in detected), *described)}
        for previous in self.inventory.kinds:
            now = kinds.get(previous.resource, previous._replace(devices=()))
            present = {one.id for one in now.devices}
            missing = tuple(one for one in previous.devices if one.id not in present)
            kinds[previous.resource] = now._replace(devices=(*now.devices, *missing))
            gone |= {(previous.resource, one.id) for one in missing}
        figures = {kind.resource: each for kind, each in detected if each}
        named = {
            (kind.resource, device.id): name
            for kind in kinds.values()
            for device in kind.devices
            if (name := cdi.name_of(kind, device, contents.named))
        }
        self.inventory = Inventory(tuple(kinds.values()), frozenset(gone), figures, named)


def nvidia() -> FoundKind | None:
    """Return NVIDIA's GPUs, None where there is no driver or its tool does not answer."""
    tool = shutil.which("nvidia-smi", path=search_path())
    if tool is None:
        return None
    command = [tool, f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_S, check=True)  # noqa: S603 - the driver's own tool
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("nvidia-smi does not answer: %s", error)
        return None
    return of_nvidia(answer.stdout.splitlines())


def of_nvidia(lines: Iterable[str], proc: Path = NVIDIA_PROC) -> FoundKind:
    """Return the GPUs that nvidia-smi lists, one a line."""
    devices: list[Device] = []
    figures: dict[str, Figures] = {}
    for line in lines:
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(_FIELDS.split(",")):
            continue
        id_, name, bus, use, used, total, temperature = fields
        # The driver writes a GPU's bus with four digits of the domain, its tool with eight.
        information = _read(proc / "gpus" / bus.lower()[-12:] / "information").splitlines()
        minor = dict(each.partition(":")[::2] for each in information).get("Device Minor", "").strip()
        devices.append(Device(id_, name, (f"/dev/nvidia{minor}",) if minor else ()))
        figures[id_] = _without_missing(
            use=_scaled(use, 0.01),
            memory=_scaled(used, 1 << 20),
            memoryTotal=_scaled(total, 1 << 20),
            temperature=_scaled(temperature, 1),
        )
    variables = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    return Kind(NVIDIA, variables, tuple(devices), hides=True), figures


def amd(topology: Path = AMD_TOPOLOGY, drm: Path = DRM) -> FoundKind | None:
    """Return AMD's GPUs, in the order in which ROCm numbers them; None where the kernel knows none."""
    devices: list[Device] = []
    figures: dict[str, Figures] = {}
    for node in sorted(topology.glob("*"), key=lambda path: int(path.name)):
        if _read(node / "gpu_id").strip() in ("", "0"):
            continue  # a processor
        facts = dict(line.partition(" ")[::2] for line in _read(node / "properties").splitlines())
        unique, minor = int(facts.get("unique_id", 0)), int(facts.get("drm_render_minor", 0))
        id_ = f"GPU-{unique:016x}" if unique else str(len(devices))
        device = drm / f"renderD{minor}" / "device"
        devices.append(Device(id_, _read(device / "product_name").strip(), (f"/dev/dri/renderD{minor}",)))
        heat = next(iter(sorted(device.glob("hwmon/hwmon*/temp1_input"))), device / "none")
        figures[id_] = _without_missing(
            use=_scaled(_read(device / "gpu_busy_percent"), 0.01),
            memory=_scaled(_read(device / "mem_info_vram_used"), 1),
            memoryTotal=_scaled(_read(device / "mem_info_vram_total"), 1),
            temperature=_scaled(_read(heat), 0.001),
        )
    return (Kind(AMD, ("ROCR_VISIBLE_DEVICES",), tuple(devices), hides=True), figures) if devices else None


def _without_missing(**figures: float | None) -> Figures:
    return {name: value for name, value in figures.items() if value is not None}


def _scaled(text: str, unit: float) -> float | None:
    """Return a figure in our unit, None for "[N/A]" and the like."""
    try:
        return float(text) * unit
    except ValueError:
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def describe(inventory: Inventory) -> Iterable[tuple[str, str, str, bool]]:
    """Return each device as `cluster.rules.node.node_devices` lists it."""
    return [
        (kind.resource, one.id, one.name, (kind.resource, one.id) in inventory.gone)
        for kind in inventory.kinds
        for one in kind.devices
    ]
