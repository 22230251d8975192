"""What is new in a queue that takes no work.

A queue notes since when it is not Open, for as long as it is not, and the pod group of a Volcano Job when its job was
made, as a job that begins again gets another group. Where nothing is noted, nothing is new: who was there is not to be
stopped by what nobody remembers. Clocks of API servers write whole seconds, so what was made within the second in which
its queue was closed was there before. All these times are the API server's: where the queue controller works on another
cluster, it notes when that says that the queue's status was written.
"""

from __future__ import annotations

from kube.meta import parse_time

SHUT_SINCE = "ui.volcano.sh/not-open-since"
"""On a queue: since when it is not Open."""
JOB_MADE = "ui.volcano.sh/job-created"
"""On the pod group of a Volcano Job: when the job was made."""


def is_new(made: int, shut_since: int | None) -> bool:
    """Tell whether what was made at a time came after its queue was shut; times are in ms."""
    return shut_since is not None and made > shut_since


def moment(written: str) -> int | None:
    """Return a time that was noted, in ms; None where none is, or none that can be read."""
    try:
        return parse_time(written) if written else None
    except ValueError:
        return None
