"""Our controllers and scheduler and Volcano's own on the same cluster, in turns: how soon jobs are placed, run and are over.

One kube-apiserver with etcd and played nodes serves all of them. In each repetition each of them starts, gets every shape,
and stops, so what else the machine does meets all alike. Volcano runs as its installer has it, which allows its controllers
50 requests a second and its scheduler 2,000, and once more with 2,000 for both; its webhooks are left out, since ours are.
Figures are the least, the median and the most of the repetitions; a ratio below 1 says that ours was sooner.

It needs what `make kubernetes-programs` and `make volcano-programs` build, and is not part of `make bench` unless asked
for (`--only beside-volcano`, with `--shape 500x1` for one shape, `--repetitions 1` for a first look).
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from kube.resources import LEASES
from proof.benches import placing
from proof.benches.in_place import NODES, SHAPES
from proof.harness.waiting import until
from proof.kubernetes import volcano, world
from proof.kubernetes.cluster import ADMINISTRATORS, Kubernetes, missing
from proof.kubernetes.volcano import Volcano
from proof.systems.system import System

Shape = tuple[int, int]  # jobs, and pods of each

RAISED = 2000  # requests a second
OURS = "ours"
WORKING = "The controllers and the scheduler of these pages work there."


def run(system: System, shapes: Sequence[str] | None, repetitions: int) -> dict[str, Any]:
    """Return seconds of each stage and requests, by shape and who worked; the system is only where the folder is."""
    if lacking := [*missing(), *volcano.missing()]:
        return {"not_run": f"{', '.join(lacking)} not built; make kubernetes-programs, make volcano-programs"}
    chosen = [_shape(each) for each in shapes] if shapes else SHAPES
    folder = Path(system.data).with_name("beside-volcano")
    with Kubernetes(folder / "kubernetes", nodes=NODES) as cluster:
        Volcano(cluster).install()
        found: dict[tuple[str, Shape], list[dict[str, float]]] = {
            (name, shape): [] for shape in chosen for name in (OURS, *_VOLCANOS)
        }
        for number in range(repetitions):
            for name, work in _contenders(cluster, folder / str(number)):
                with work:
                    for shape in chosen:
                        took = _counted(cluster, shape)
                        found[name, shape].append(took)
                        _say(f"{number + 1} of {repetitions}: {name} {shape}", took)
                _free(cluster)
    return {"x".join(map(str, shape)): _compared(found, shape) for shape in chosen}


def _shape(text: str) -> Shape:
    """Return the shape that is written as `500x1`."""
    jobs, replicas = map(int, text.split("x"))
    return jobs, replicas


_VOLCANOS: dict[str, int | None] = {
    "volcano": None,
    "volcano_raised": RAISED,
}  # with how many requests a second; None is its default


def _contenders(cluster: Kubernetes, folder: Path) -> Iterator[tuple[str, AbstractContextManager[object]]]:
    """Yield who is to work next, and what makes them work and stop."""
    yield OURS, _ours(cluster, folder)
    for name, requests_per_s in _VOLCANOS.items():
        yield name, Volcano(cluster, requests_per_s=requests_per_s)


@contextmanager
def _ours(cluster: Kubernetes, folder: Path) -> Iterator[None]:
    config = cluster.kubeconfig("ours", ADMINISTRATORS)
    with world.showing(folder, config, VOLCANO_UI_WAY="in-place") as system:
        world.live(system)
        until(lambda: WORKING in world.strip_text(system), every_s=0.2, what="that ours work")
        yield


def _counted(cluster: Kubernetes, shape: Shape) -> dict[str, float]:
    """Place a shape; return its stages, and how many requests were made but for those that submit the jobs."""
    begun = cluster.audit_log.stat().st_size
    took = placing.measure(cluster, *shape)
    with cluster.audit_log.open("rb") as file:
        file.seek(begun)
        entries = [json.loads(line) for line in file.read().splitlines() if line.endswith(b"}")]
    workers = {"ours", volcano.CONTROLLERS, volcano.SCHEDULER}
    return {**took, "requests": sum(each["user"]["username"] in workers for each in entries)}


def _say(what: str, took: Mapping[str, float]) -> None:
    """Tell whoever waits how far it is."""
    sys.stderr.write(f"{what}: {', '.join(f'{stage} {value:.1f}' for stage, value in took.items())}\n")
    sys.stderr.flush()


def _free(cluster: Kubernetes) -> None:
    """Forget who led, so that whoever comes next need not wait until the Leases run out."""
    cluster.kubectl("delete", LEASES.id, "--all", "-n", volcano.NAMESPACE)


def _compared(found: Mapping[tuple[str, Shape], Sequence[Mapping[str, float]]], shape: Shape) -> dict[str, Any]:
    figures: dict[str, Any] = {name: _spread(found[name, shape]) for name in (OURS, *_VOLCANOS)}
    for name in _VOLCANOS:
        figures[f"ratio_to_{name}"] = {
            stage: round(_median(found[OURS, shape], stage) / _median(found[name, shape], stage), 2)
            for stage in placing.STAGES
        }
    return figures


def _spread(runs: Sequence[Mapping[str, float]]) -> dict[str, str]:
    values = {name: sorted(each[name] for each in runs) for name in runs[0]}
    return {name: f"{each[0]:.1f} / {statistics.median(each):.1f} / {each[-1]:.1f}" for name, each in values.items()}


def _median(runs: Sequence[Mapping[str, float]], stage: str) -> float:
    return statistics.median(each[stage] for each in runs)
