"""The LimitRange that a cluster has from its first start: what a container counts for that says nothing, and what it may use.

Without one such a container counts for nothing, so any number of them would be started on one machine, and each could
use all of its memory. The request is small, because most programs are and a gang of many has to start on a laptop.
"""

from __future__ import annotations

from kube.meta import Object

NAME = "default-limits"
REQUEST = {"cpu": "100m", "memory": "128Mi"}
MEMORY_SHARE = 2  # a container may use this part of the machine's memory
FEW_CPUS = 4  # from here on one processor is left to everybody else; on fewer it would be too much of what there is
_MI = 1 << 20


def of_machine(namespace: str, cpus: int, memory_bytes: int) -> Object:
    """Return the limits for the containers of a namespace on a machine with so many processors and so much memory."""
    most = {"memory": f"{max(memory_bytes // MEMORY_SHARE // _MI, 128)}Mi"}
    if cpus >= FEW_CPUS:
        most["cpu"] = str(cpus - 1)
    bounds = {"type": "Container", "defaultRequest": REQUEST, "default": most}
    return {"metadata": {"namespace": namespace, "name": NAME}, "spec": {"limits": [bounds]}}
