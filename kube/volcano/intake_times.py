"""What is new in a queue that takes no work.

An annotation says since when a queue is not Open, and another when the job of a Volcano Job's pod group was
created, as a job that begins again gets another group. Without these nothing is new: work that was there is not to be
stopped for lack of a record. Clocks of API servers write whole seconds, so what was created within the second in which
its queue was closed was there before. All these times are the API server's: where the queue controller works on another
cluster, it records when that cluster has written the queue's status.
"""

from __future__ import annotations

from kube.meta import parse_time

SHUT_SINCE = "ui.volcano.sh/not-open-since"
"""On a queue: since when it is not Open."""
JOB_CREATED = "ui.volcano.sh/job-created"
"""On the pod group of a Volcano Job: when the job was made."""


def is_new(created: int, shut_since: int | None) -> bool:
    """Whether something was created after its queue was shut; times are in ms."""
    return shut_since is not None and created > shut_since


def moment(written: str) -> int | None:
    """Return a time that was noted, in ms; None where none is, or none that can be read."""
    try:
        return parse_time(written) if written else None
    except ValueError:
        return None
