"""A sweep to begin with: it does real work, and every combination ends within seconds."""

from __future__ import annotations

from dataclasses import replace

from jobs.sweeps.draft import Draft

_TEXT = """\
# {{rate}} and {{batch}} stand for a value that each job has of its own.
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: descent
  namespace: default
spec:
  minAvailable: 1
  queue: default
  tasks:
  - name: main
    replicas: 1
    template:
      metadata:
        annotations:
          ui.volcano.sh/runtime: process  # runs without its image
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: python:3-alpine
          command:
          - python3
          - "-c"
          - |
            import random
            rate, batch = {{rate}}, {{batch}}
            random.seed(batch)
            slope = 0.0
            for step in range(200):
                points = [random.uniform(-1, 1) for _ in range(batch)]
                slope -= rate * sum(2 * (slope - 3) * x * x for x in points) / batch
            print(f"rate {rate}, batch {batch}: learned y = {slope:.2f} x")
            if abs(slope - 3) > 0.1:
                raise SystemExit("not learned: the rate is too small, or so large that it goes astray")
          resources:
            requests:
              cpu: 100m
              memory: 32Mi
"""
DESCENT = Draft(text=_TEXT, grid={"rate": "0.001, 0.01, 0.1, 1, 4", "batch": "4, 16, 64"})


def at(namespace: str, draft: Draft) -> Draft:
    """Return a draft with its jobs in a namespace."""
    return replace(draft, text=draft.text.replace("  namespace: default\n", f"  namespace: {namespace}\n", 1))
