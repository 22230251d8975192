"""A sweep of ten thousand jobs: from the form's POST until all are stored, and until its grid is on the page.

The jobs ask for more than the cluster has, so what is measured is the sweep and not its pods.
"""

from __future__ import annotations

import time

from cluster.store import store
from kube.resources import JOBS
from proof.benches.measure import percentile
from proof.systems.system import System
from proof.systems.work import Person

COUNT = 10_000
LOOKS = 20
TEXT = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: wide, namespace: default}
spec:
  tasks:
  - name: main
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: busybox
          command: ["sh", "-c", "echo {{row}} {{column}}"]
          resources: {requests: {cpu: 100k}}
"""


def run(system: System) -> dict[str, float]:
    """Return seconds until the jobs are stored, and ms until the server has answered with the grid of them."""
    values = ", ".join(map(str, range(100)))
    with Person(system) as person:
        person.get("/sweeps/-/new/")
        begun = time.monotonic()
        answer = person.post("/sweeps/-/new/", text=TEXT, do="submit", **{"grid-row": values, "grid-column": values})
        stored = time.monotonic() - begun
        assert answer.status_code == 302, answer.text[:500]
        assert sum(store.count(JOBS, text="wide-").values()) == COUNT
        looks = [_look(person) for _ in range(LOOKS)]
    milliseconds, sizes = zip(*looks, strict=True)
    return {
        "stored_s": round(stored, 2),
        "grid_p50_ms": round(percentile(milliseconds, 0.5)),
        "grid_p95_ms": round(percentile(milliseconds, 0.95)),
        "grid_kb": round(max(sizes) / 1000),
    }


def _look(person: Person) -> tuple[float, int]:
    begun = time.monotonic()
    answer = person.get("/sweeps/default/wide/")
    assert answer.status_code == 200
    return (time.monotonic() - begun) * 1000, len(answer.text)
