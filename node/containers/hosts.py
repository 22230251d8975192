"""Host names: each pod has an address of its own on the loopback, and resolves the names of its job's other pods."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from kube.kinds.core import Pod
from node.shim.order import Bind
from node.shim.path_walk import WRITE

HOSTS = Path("/etc/hosts")


def address(uid: str, taken: Collection[str]) -> str:
    """Return a loopback address for a pod, the same for the same uid unless another pod has it.

    The whole of 127.0.0.0/8 reaches this machine without any set-up, so every
    pod can listen on the same port. 127.0.x.y is left to the machine itself.
    """
    for attempt in range(1000):
        digest = hashlib.blake2b(f"{uid}/{attempt}".encode(), digest_size=3).digest()
        candidate = f"127.{digest[0] % 255 + 1}.{digest[1]}.{digest[2] % 254 + 1}"
        if candidate not in taken:
            return candidate
    raise OSError("No free loopback address was found for the pod.")


def is_mounted(binds: Iterable[Bind]) -> bool:
    """Whether a pod mounts a hosts file of its own."""
    return any(bind.target == str(HOSTS) for bind in binds)


def group_of(pod: Pod) -> str:
    """Return what groups pods that know each other: the uid of their controller, otherwise their own."""
    owners = [owner.uid for owner in pod.metadata.owner_references if owner.controller]
    return owners[0] if owners else pod.metadata.uid


def names(pod: Pod) -> list[str]:
    """Return every name under which a pod's peers may look it up, as cluster DNS has them."""
    hostname = pod.spec.hostname or pod.metadata.name
    subdomain, namespace = pod.spec.subdomain, pod.metadata.namespace
    aliases = [pod.metadata.name, hostname]
    if subdomain:
        full = f"{hostname}.{subdomain}"
        service = f"{subdomain}.{namespace}.svc.cluster.local"
        aliases += [full, f"{full}.{namespace}", f"{full}.{namespace}.svc", f"{hostname}.{service}", subdomain, service]
    return list(dict.fromkeys(aliases))


def render(pods: Iterable[tuple[Pod, str]]) -> str:
    """Return a hosts file: the machine's own entries, then one line for each pod and its address."""
    try:
        text = HOSTS.read_text().rstrip("\n") + "\n"
    except OSError:
        text = "127.0.0.1 localhost\n::1 localhost\n"
    lines = [f"{ip} {' '.join(names(pod))}\n" for pod, ip in pods]
    return text + "# the pods of this job\n" + "".join(lines)


def write(path: Path, text: str) -> None:
    """Bring a hosts file up to date in place, because containers have the file itself mounted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():  # nobody's but a pod's, where the machine lets pods have no mounts
        path.unlink()
    if path.exists() and path.read_text() == text:
        return
    fd = os.open(path, WRITE, 0o644)
    try:
        data = text.encode()
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)
