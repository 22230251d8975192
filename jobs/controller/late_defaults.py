"""Defaults for jobs without admission: those made through a cluster's own API that has no webhook for Volcano's kinds."""

from __future__ import annotations

from typing import cast

import msgspec

from jobs.rules import admission
from jobs.rules.admission import JobRulesView
from kube.kinds.fields import View
from kube.meta import Object


class _Task(View):
    name: str = ""


class _Spec(View):
    queue: str = ""
    scheduler_name: str = ""
    max_retry: int | None = None
    tasks: list[_Task] = []

    @property
    def is_open(self) -> bool:
        """Whether a field is missing that every admission sets, ours and Volcano's."""
        is_plain = self.queue and self.scheduler_name and self.max_retry is not None
        return not (is_plain and all(task.name for task in self.tasks))


class _Job(View):
    spec: _Spec = _Spec()


_read = msgspec.json.Decoder(_Job).decode


def filled_in(body: bytes) -> bytes:
    """Return a job as our admission would have stored it; raise msgspec.ValidationError if it cannot be read as one.

    vcctl sets neither the queue nor task names, and pod names need the task's name.
    """
    if not _read(body).spec.is_open:
        return body
    job: Object = msgspec.json.decode(body)
    admission.default(job, None, cast("JobRulesView", None))  # the defaults ask nothing of the cluster
    return msgspec.json.encode(job)
