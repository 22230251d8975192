"""What tests of sweeps share: jobs with placeholders, people, and what is stored."""

from __future__ import annotations

import pytest

from cluster import access
from cluster.store import store
from jobs.sweeps import submission
from jobs.sweeps.draft import Draft
from kube.resources import CONFIGMAPS, JOBS
from tests.dashboard.pages.conftest import reader

TRAIN = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
  namespace: default
spec:
  minAvailable: 1
  queue: default
  tasks:
  - name: main
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: busybox
          command: ["sh", "-c", "echo lr {{lr}}, batch {{ batch }}"]
          env:
          - name: LR
            value: "{{lr}}"
"""


def job(*lines, name="train"):
    """A job whose spec has the given lines besides; what they say need not be a job that would be accepted."""
    head = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata:\n  name: {name}\nspec:\n"
    return head + "".join(f"  {line}\n" for line in (*lines, "queue: default"))


@pytest.fixture
def stranger(sam):
    return reader("olaf", "submitter", "elsewhere")


def made(browser, text=TRAIN, csv="", **grid):
    """Make a sweep of a grid or of CSV; return its ConfigMap."""
    source = "csv" if csv else "grid"
    draft = Draft(text=text, source=source, csv=csv, grid=grid or {"lr": "0.1, 0.2", "batch": "32, 64, 128"})
    return submission.submit(access.for_user(browser.user), draft)


def kept():
    """The names of what records sweeps, and how many jobs are stored."""
    return [stored.name for stored in store.find(CONFIGMAPS, phase="sweep")], len(store.find(JOBS))
