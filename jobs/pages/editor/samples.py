"""Jobs to try at once: each does something real and shows one thing that the product is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from cluster.api import backend
from dashboard.pages import offers
from dashboard.pages.offers import Offer
from jobs.rules import job_text


@dataclass(frozen=True, slots=True)
class Sample:
    """A job that anybody may run: its YAML, and what it shows when it runs.

    An `only_here` sample requests what a shared cluster may have: it is for the embedded one.
    """

    slug: str
    title: str
    text: str
    yaml: str
    icon: str
    only_here: bool = False

    def object(self, namespace: str) -> dict[str, Any]:
        """Return the job as an object that gets a name of its own, so that a sample can run many times."""
        job = job_text.read(self.yaml).object
        job["metadata"].pop("name")
        job["metadata"] |= {"generateName": f"{self.slug}-", "namespace": namespace}
        return job


_PRIMES = """\
          command:
          - python3
          - "-c"
          - |
            import os, time
            worker = int(os.environ.get("VC_TASK_INDEX", "0"))
            first, size = worker * 50_000, 50_000
            found = 0
            began = time.monotonic()
            for number in range(first, first + size):
                if number > 1 and all(number % d for d in range(2, int(number**0.5) + 1)):
                    found += 1
                if (number - first) % 5_000 == 4_999:
                    done = (number - first + 1) * 100 // size
                    print(f"worker {worker}: {done:3d} %  {found} primes from {first} to {number}", flush=True)
                    time.sleep(0.5)
            print(f"worker {worker}: {found} primes in {time.monotonic() - began:.1f} s", flush=True)
"""
_WORKERS = f"""\
  - name: worker
    replicas: 4
    template:
      metadata:
        annotations:
          ui.volcano.sh/runtime: process  # runs without its image
      spec:
        restartPolicy: Never
        containers:
        - name: primes
          image: python:3-alpine
{_PRIMES}          resources:
            requests:
              cpu: 200m
              memory: 64Mi
"""

_ALL = (
    Sample(
        slug="primes",
        title="Count primes together",
        text="Four workers count primes and print their progress. All four start together, or none does.",
        icon="play",
        yaml=f"""\
# Four workers, one gang: nothing starts before all four fit.
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: primes
  namespace: default
spec:
  minAvailable: 4
  queue: default
  plugins:
    env: []  # gives each worker its number as VC_TASK_INDEX
  tasks:
{_WORKERS}""",
    ),
    Sample(
        slug="primes-and-failure",
        title="One task fails",
        text="The same four workers, and a fifth task that ends with exit code 3 on purpose. Four are enough, so the job completes.",
        icon="circle-x",
        yaml=f"""\
# Four workers succeed; the task "broken" ends with exit code 3 on purpose.
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: primes-and-failure
  namespace: default
spec:
  minAvailable: 4
  queue: default
  maxRetry: 1
  plugins:
    env: []
  tasks:
{_WORKERS}  - name: broken
    replicas: 1
    minAvailable: 0
    template:
      metadata:
        annotations:
          ui.volcano.sh/runtime: process  # runs without its image
      spec:
        restartPolicy: Never
        containers:
        - name: broken
          image: busybox
          command: ["sh", "-c", "echo 'working for three seconds'; sleep 3; echo 'something went wrong' >&2; exit 3"]
          resources:
            requests:
              cpu: 100m
""",
    ),
    Sample(
        slug="too-large",
        title="A gang that does not fit",
        text="Four members of 64 CPUs each. The job waits, and its page says what is missing, in numbers.",
        icon="hourglass",
        only_here=True,
        yaml="""\
# More than one machine has: the job waits and says why. Lower the request and submit it again.
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: too-large
  namespace: default
spec:
  minAvailable: 4
  queue: default
  tasks:
  - name: giant
    replicas: 4
    template:
      metadata:
        annotations:
          ui.volcano.sh/runtime: process  # runs without its image
      spec:
        restartPolicy: Never
        containers:
        - name: giant
          image: busybox
          command: ["sh", "-c", "echo I found room; sleep 5"]
          resources:
            requests:
              cpu: "64"
              memory: 1Gi
""",
    ),
    Sample(
        slug="forty-naps",
        title="Forty short pods",
        text="Forty pods sleep for a few seconds each, ten at least at a time: a timeline worth looking at.",
        icon="layers",
        yaml="""\
# Forty pods that sleep; ten must start together, the others when there is room.
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: forty-naps
  namespace: default
spec:
  minAvailable: 10
  queue: default
  tasks:
  - name: nap
    replicas: 40
    minAvailable: 10
    template:
      metadata:
        annotations:
          ui.volcano.sh/runtime: process  # runs without its image
      spec:
        restartPolicy: Never
        containers:
        - name: nap
          image: busybox
          command: ["sh", "-c", "n=$((RANDOM % 8 + 2)); echo sleeping $n s; sleep $n; echo awake"]
          resources:
            requests:
              cpu: 50m
              memory: 16Mi
""",
    ),
)
SAMPLES: dict[str, Sample] = {sample.slug: sample for sample in _ALL}


def offered(*, elsewhere: bool) -> dict[str, Sample]:
    """Return samples by slug; elsewhere: for a cluster with an API of its own."""
    return {slug: sample for slug, sample in SAMPLES.items() if not (elsewhere and sample.only_here)}


def run_at_once() -> dict[str, Sample]:
    """Return the samples that one click runs, by slug: none on a cluster with an API of its own, where other people work."""
    return {} if backend.is_mirror else SAMPLES


@offers.source
def sample_offers() -> list[Offer]:
    """Offer the samples that run with one click on the overview."""
    return [
        Offer(each.title, each.text, each.icon, reverse("jobs:run-sample", args=[slug]))
        for slug, each in run_at_once().items()
    ]
