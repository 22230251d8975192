"""Jobs with placeholders, as people write them."""

from __future__ import annotations

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
