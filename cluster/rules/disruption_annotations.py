"""Annotations that say how many pods of a group a disruption must leave (Volcano's pod webhook; reference: volcano-queue-podgroup-cli §3.8).

Only pods of Volcano's scheduler are looked at, when they are created.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kube import lenient
from kube.errors import Cause, forbidden, invalid
from kube.meta import Object

SCHEDULER = "volcano"
KEYS = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")  # of a job's the first one counts
WHERE = "metadata.annotations"
_AMOUNT = re.compile(r"0*[1-9][0-9]*")
_SHARE = re.compile(r"0*[1-9][0-9]?%")
_REMEDY = "must be a positive integer, or a percentage between 1% and 99%; write it like 2 or 50%."


def check_pod(pod: Object) -> Iterator[Cause]:
    """Refuse what a new pod's annotations say wrongly."""
    if lenient.text(pod, "spec", "schedulerName") == SCHEDULER:
        yield from _check(lenient.mapping(pod, "metadata", "annotations"), WHERE)


def check_job(job: Object) -> Iterator[Cause]:
    """Refuse a job whose pods would get such annotations: its own first one, and those of their template."""
    annotations = lenient.mapping(job, "metadata", "annotations")
    own = next((key for key in KEYS if key in annotations), None)
    usual = lenient.text(job, "spec", "schedulerName")
    tasks = {
        f"spec.tasks[{number}].template": lenient.mapping(task, "template")
        for number, task in enumerate(lenient.sequence(job, "spec", "tasks"))
        if (lenient.text(task, "template", "spec", "schedulerName") or usual) == SCHEDULER
    }
    if tasks and own:
        yield from _check({own: annotations[own]}, WHERE)
    for path, template in tasks.items():
        written = lenient.mapping(template, "metadata", "annotations")
        yield from _check(written, f"{path}.{WHERE}")
        for other in KEYS:
            if own and other in written and own not in written:
                of_job = f"{WHERE}[{own}] of the job, which its pods get too"
                yield _both(f"{path}.{WHERE}[{other}]", of_job)


def _check(annotations: dict[str, Any], path: str) -> Iterator[Cause]:
    present = [key for key in KEYS if key in annotations]
    for key in present:
        value = annotations[key]
        if isinstance(value, str) and not (_AMOUNT.fullmatch(value) or _SHARE.fullmatch(value)):
            yield invalid(f"{path}[{key}]", value, _REMEDY)
    if len(present) > 1:
        yield _both(f"{path}[{present[1]}]", present[0])


def _both(path: str, other: str) -> Cause:
    return forbidden(path, f"may not be given beside {other}; remove one of the two.")
