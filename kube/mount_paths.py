"""Where in a container a volume may be, on the machines of this system: pure, standard library only."""

from __future__ import annotations

import posixpath

KERNELS = ("/proc", "/sys", "/dev")  # the container's own, made by the kernel
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a path in a container


def lies_in(path: str, folder: str) -> bool:
    """Whether a path is a directory or lies below it."""
    return (path + "/").startswith(folder.rstrip("/") + "/")


def problem(path: str) -> str:
    """Return why no volume may be mounted at a path, with the remedy; "" when it may."""
    normalized = posixpath.normpath("/" + path.lstrip("/"))
    if normalized != "/" and (
        lies_in(normalized, SHARED_MEMORY) or not any(lies_in(normalized, each) for each in KERNELS)
    ):
        return ""
    return (
        f"must not be /, nor at or below {', '.join(KERNELS[:-1])} or {KERNELS[-1]}, which are each container's own"
        f" ({SHARED_MEMORY} may be a volume); choose another path, such as /data."
    )
