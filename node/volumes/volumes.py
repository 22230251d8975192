"""A pod's volumes as directories, and where its containers see them."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cluster.access import hostpaths
from kube.kinds.core import Container, KeyToPath, Pod, Volume
from node import file_trees
from node.file_trees import Beyond
from node.paths import VOLUMES, Layout, checked, inside
from node.pods import environment
from node.pods.environment import ConfigError, Lookup
from node.rules import storage, users
from node.rules.lifecycle import Refusal
from node.shim import users as shim_users
from node.shim.isolation.sources import open_source
from node.shim.order import Bind
from node.shim.path_walk import Make, PathRefused, Walk
from node.status import PodAddress
from node.volumes import claims, memory_volumes, published_files

SUPPORTED = "emptyDir, configMap, secret, downwardAPI, projected, persistentVolumeClaim and hostPath"
PUBLISHED = ("config_map", "secret", "downward_api", "projected")
GROUP_READS = 0o440
FILE_SYSTEM_S = 1.0
_checks: dict[Path, threading.Thread] = {}
CREATED = {"DirectoryOrCreate": Make.DIRECTORY, "FileOrCreate": Make.FILE}


def refusal(pod: Pod, layout: Layout) -> Refusal | None:
    """Return why this node cannot give the pod its volumes, None when it can.

    A hostPath is checked again when it is mounted, because a pod can exchange
    it meanwhile.
    """
    for volume in pod.spec.volumes:
        if volume.host_path is not None:
            problem = _host_path_problem(volume, layout)
        elif all(getattr(volume, kind) is None for kind in ("empty_dir", "persistent_volume_claim", *PUBLISHED)):
            problem = f"This cluster has no volumes of its kind, only {SUPPORTED}."
        else:
            continue
        if problem:
            return Refusal("UnsupportedVolume", f"Volume {volume.name} cannot be had. {problem}")
    mounted = [
        mount.mount_path
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        for mount in container.volume_mounts
    ]
    wrong = [
        path for path in mounted if not path.startswith("/") or os.path.normpath(path) == "/" or ".." in path.split("/")
    ]
    if wrong:
        return Refusal("UnsupportedVolume", f'Nothing can be mounted at "{wrong[0]}"; give an absolute path below /.')
    return None


def _host_path_problem(volume: Volume, layout: Layout) -> str:
    path = Path(volume.host_path.path if volume.host_path else "")
    own = layout.root.parent.resolve()
    if not path.is_absolute() or ".." in path.parts:
        return f'"{path}" is not an absolute path without "..".'
    if not answers(path):  # whether it is there is found out when the pod starts
        return ""
    real = path.resolve()
    if real == own or own in real.parents or real in own.parents:
        return f'"{path}" holds files of the cluster itself; choose another directory.'
    creates = volume.host_path is not None and (volume.host_path.type or "").endswith("OrCreate")
    if not real.exists() and not creates:
        return f'"{path}" does not exist on this machine.'
    return ""


def answers(path: Path) -> bool:
    """Whether the file system at a path of the machine answers, which one on the network may not for hours.

    A thread waits for it, so that pods without it go on; until that has an answer, further calls return False at once.
    """
    thread = _checks.pop(path, None)
    if thread is None:
        thread = threading.Thread(target=os.access, args=(path, os.F_OK), name="file system", daemon=True)
        thread.start()
        thread.join(FILE_SYSTEM_S)
    if thread.is_alive():
        _checks[path] = thread
    return not thread.is_alive()


class Prepared(NamedTuple):
    """Where a volume's files are, and how they may be mounted (see `node.shim.order.Bind`)."""

    path: Path
    read_only: bool = False
    within: tuple[str, ...] = ()
    make: Make = Make.NOTHING


class Volumes:
    """Makes the directories of one pod's volumes."""

    def __init__(
        self, pod: Pod, address: PodAddress, layout: Layout, lookup: Lookup, *, in_memory: bool = False
    ) -> None:
        self.pod = pod
        self.address = address
        self.layout = layout
        self.lookup = lookup
        self.in_memory = in_memory  # whether emptyDirs that ask for memory get it

    @property
    def group(self) -> int | None:
        """To which group the volumes are given, where that can be done and is asked for."""
        return users.group_of(self.pod) if os.geteuid() == 0 else None

    def prepare(self) -> dict[str, Prepared]:
        """Create every volume's directory with its content; return them by volume name.

        ConfigError says which ConfigMap, Secret or claim is missing. Called again, it
        brings the content up to date.
        """
        return {volume.name: self._prepare(volume) for volume in self.pod.spec.volumes}

    def refresh(self) -> None:
        """Bring the content of the volumes up to date that are made from objects."""
        for volume in self.pod.spec.volumes:
            if any(getattr(volume, kind) is not None for kind in PUBLISHED):
                self._prepare(volume)

    def _prepare(self, volume: Volume) -> Prepared:
        if volume.host_path is not None:
            source = volume.host_path
            within = self.lookup.host_paths(self.pod)
            if not within:
                raise ConfigError(
                    f'volume "{volume.name}": hostPath "{source.path}" is not allowed. {hostpaths.remedy()}'
                )
            return Prepared(Path(source.path), within=within, make=CREATED.get(source.type or "", Make.NOTHING))
        claim = volume.persistent_volume_claim
        if claim is not None:
            root = claims.directory(self.layout, self.pod, claim.claim_name, self.lookup)
        else:
            root = inside(self.layout.pod(self.pod.metadata.uid) / VOLUMES, volume.name)
        top = self.layout.root
        if self.in_memory and storage.is_in_memory(volume) and memory_volumes.begin(self.layout.memory):
            top = self.layout.memory
            root = inside(top / checked(self.pod.metadata.uid), volume.name)
        files = self._files(volume)
        is_new = not root.exists()
        with Walk(str(top), make=Make.DIRECTORY) as way:
            way.go(str(root.relative_to(top)))
            if files is not None and self.group is not None:
                files = {path: (content, mode | GROUP_READS) for path, (content, mode) in files.items()}
                published_files.publish(way.fd, files, self.group)
            elif files is not None:
                published_files.publish(way.fd, files)
            elif is_new:
                shim_users.give_folder(way.fd, self.group)
            elif claim is not None and self.group is not None:
                try:
                    file_trees.give_to_group(way.fd, self.group)
                except Beyond as error:
                    raise ConfigError(
                        f'persistentvolumeclaim "{claim.claim_name}" cannot be given to the group {self.group}: it has {error}; '
                        "give it on the node with chgrp and chmod, its own directory last, or leave out fsGroup"
                    ) from None
        return Prepared(root, read_only=files is not None or (claim is not None and claim.read_only))

    def _files(self, volume: Volume) -> dict[str, tuple[bytes, int]] | None:
        """Return the content of a volume that is made from objects: path → bytes and mode."""
        if volume.config_map is not None:
            source = volume.config_map
            return self._keys("configmap", source.name, source.items, bool(source.optional), source.default_mode)
        if volume.secret is not None:
            secret = volume.secret
            return self._keys("secret", secret.secret_name, secret.items, bool(secret.optional), secret.default_mode)
        if volume.downward_api is not None:
            return self._downward(volume.downward_api)
        if volume.projected is not None:
            files: dict[str, tuple[bytes, int]] = {}
            for part in volume.projected.get("sources") or ():
                files |= self._projected(part, volume.projected.get("defaultMode"))
            return files
        return None

    def _projected(self, part: dict[str, Any], mode: int | None) -> dict[str, tuple[bytes, int]]:
        if "downwardAPI" in part:
            return self._downward(part["downwardAPI"])
        for field, kind in (("configMap", "configmap"), ("secret", "secret")):
            if field in part:
                source = part[field]
                items = msgspec.convert(source.get("items") or [], list[KeyToPath])
                return self._keys(kind, source.get("name", ""), items, bool(source.get("optional")), mode)
        raise ConfigError(
            f"a projected volume cannot have {', '.join(part) or 'nothing'}: pods are given no tokens and certificates "
            "here; take a secret as its source"
        )

    def _keys(
        self, kind: str, name: str, items: Sequence[KeyToPath], optional: bool, default_mode: int | None
    ) -> dict[str, tuple[bytes, int]]:
        get = self.lookup.config_map if kind == "configmap" else self.lookup.secret
        values = get(self.pod.metadata.namespace, name)
        if values is None:
            if optional:
                return {}
            raise ConfigError(f'{kind} "{name}" not found')
        mode = default_mode if default_mode is not None else 0o644
        if not items:
            return {key: (value, mode) for key, value in values.items()}
        missing = [item.key for item in items if item.key not in values]
        if missing and not optional:
            raise ConfigError(f'{kind} "{name}" has no key "{missing[0]}"')
        return {
            item.path: (values[item.key], item.mode if item.mode is not None else mode)
            for item in items
            if item.key in values
        }

    def _downward(self, source: dict[str, Any]) -> dict[str, tuple[bytes, int]]:
        files = {}
        for item in source.get("items") or ():
            path = (item.get("fieldRef") or {}).get("fieldPath", "")
            text = environment.pod_field(self.pod, path, self.address) if path else ""
            files[item.get("path", "")] = (text.encode(), item.get("mode") or 0o644)
        return files


def expressions(
    pod: Pod,
    container: Container,
    address: PodAddress,
    initial: Mapping[str, str],
    lookup: Lookup,
    allocatable: Mapping[str, int],
) -> Mapping[str, str]:
    """Return the variables that a container's subPathExpr may name: its own, and the initial ones."""
    if not any(mount.sub_path_expr for mount in container.volume_mounts):
        return initial
    return environment.command(pod, container, address, initial, lookup, allocatable).env


def binds(
    container: Container, directories: Mapping[str, Prepared], env: Mapping[str, str], state: Path
) -> tuple[Bind, ...]:
    """Return where a container sees its volumes; ConfigError for a volume that it cannot have, with the reason.

    The launcher opens each again when it mounts it, and that is what counts.
    Here the same is tried in order that the pod says what is wrong, and that a
    missing subPath is there where nothing is mounted.
    """
    mounts = []
    for mount in container.volume_mounts:
        if mount.name not in directories:
            raise ConfigError(f'the pod has no volume "{mount.name}"')
        volume = directories[mount.name]
        if name := environment.unknown(mount.sub_path_expr, env):
            raise ConfigError(
                f'the subPathExpr of volumeMount "{mount.name}" names the variable "{name}", '
                f"which container {container.name} does not have; give it one in env"
            )
        below = mount.sub_path or environment.expand(mount.sub_path_expr, env)
        bind = Bind(
            str(volume.path),
            os.path.normpath(mount.mount_path),
            mount.read_only or volume.read_only,
            str(inside(Path(), below)) if below else "",
            volume.within,
            volume.make.value,
        )
        if volume.within and not answers(volume.path):
            raise ConfigError(
                f'volume "{mount.name}": the file system of hostPath "{volume.path}" does not answer on this node; '
                "the pod starts when it does"
            )
        try:
            os.close(open_source(bind, str(state)))
        except (PathRefused, OSError) as error:
            reason = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error)
            what = "subPath" if below else "volume"
            raise ConfigError(
                f'failed to prepare {what} for volumeMount "{mount.name}" of container "{container.name}": {reason}'
            ) from None
        mounts.append(bind)
    return tuple(mounts)


def variables(container: Container, binds: Sequence[Bind], *, mounted: bool) -> dict[str, str]:
    """Return VOLUME_<NAME> for each volume of a container: where it finds it, mounted or not."""
    return {
        f"VOLUME_{mount.name.upper().replace('-', '_')}": bind.target
        if mounted
        else os.path.join(bind.source, bind.below)  # noqa: PTH118
        for mount, bind in zip(container.volume_mounts, binds, strict=True)
    }
