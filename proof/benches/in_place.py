"""Our controllers and scheduler on a cluster with a kube-apiserver and played nodes: how soon jobs are bound, and what bounds that.

* ceiling: pods that are created and bound by nothing but the API's requests, as many at a time as the sender has.
* shapes: from the submission of jobs through the cluster's API to the last of their pods bound and running and the last of them completed, as a watch tells it.

It needs what `make kubernetes-programs` builds, and is not part of `make bench` unless asked for (`--only in-place`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cluster import clock
from cluster.remote.dispatch.sending import AT_ONCE
from kube.resources import PODS
from proof.benches import placing
from proof.kubernetes import world
from proof.kubernetes.cluster import Kubernetes, missing
from proof.systems.system import System

SHAPES = ((1, 500), (20, 50), (50, 10), (500, 1))  # jobs, and pods of each
NODES = 50
CEILING = 500


def run(system: System) -> dict[str, Any]:
    """Return seconds and pods per second; the embedded system of the other parts is only where the folder is."""
    if lacking := missing():
        return {"not_run": f"{', '.join(lacking)} not built; make kubernetes-programs"}
    folder = Path(system.data).with_name("in-place")
    with Kubernetes(folder / "kubernetes", nodes=NODES) as cluster:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}})
        figures: dict[str, Any] = {"ceiling": _ceiling(cluster)}
        with world.showing(folder, cluster.config, VOLCANO_UI_WAY="in-place") as ours:
            world.live(ours)
            for jobs, replicas in SHAPES:
                figures[f"{jobs}x{replicas}"] = _shape(cluster, jobs, replicas)
    return figures


def _ceiling(cluster: Kubernetes) -> dict[str, float]:
    """Create pods and bind them with as many threads as the sender has."""
    with cluster.administrator() as client, ThreadPoolExecutor(AT_ONCE) as threads:

        def bind_pod(number: int) -> None:
            name = f"ceiling-{number}"
            url = f"{cluster.server}/api/v1/namespaces/default/pods"
            client.post(url, json=placing.pod(name)).raise_for_status()
            target = {"apiVersion": "v1", "kind": "Node", "name": f"node-{number % NODES}"}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            client.post(f"{url}/{name}/binding", json=binding).raise_for_status()

        begun = clock.monotonic()
        list(threads.map(bind_pod, range(CEILING)))
        took = clock.monotonic() - begun
    cluster.clear(PODS)
    return {"s": round(took, 1), "pods_per_s": round(CEILING / took)}


def _shape(cluster: Kubernetes, jobs: int, replicas: int) -> dict[str, float]:
    took = placing.measure(cluster, jobs, replicas)
    figures = {f"{stage}_s": round(seconds, 1) for stage, seconds in took.items()}
    return {**figures, "pods_per_s": round(jobs * replicas / took["bound"])}
