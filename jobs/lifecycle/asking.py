"""Who asked for what a job does to itself, as a clause: a policy of its own, or somebody by a Command.

The message of a job that ends its pods begins with it, `Completed by its policy TaskCompleted → CompleteJob (ps). …`, and is
read for it in the rounds that follow: the status has no other place that Volcano's controllers and clients would leave alone.
"""

from __future__ import annotations

import re

ON_REQUEST = "on request"
_POLICY = "by its policy "
_SAID = re.compile(rf"\w+ ({ON_REQUEST}|{_POLICY}(?:exitCode )?\S+ → \w+(?: \(\S+\))?)[.,:] ")


def by_policy(answered: str, action: str, task: str) -> str:
    """`by its policy TaskCompleted → CompleteJob (ps)`, `… exitCode 3 → …`, as the policy is written; `task` is empty where it happened to no task."""
    return f"{_POLICY}{answered} → {action}{f' ({task})' if task else ''}"


def is_policy(by: str) -> bool:
    """Tell whether a policy asked."""
    return by.startswith(_POLICY)


def read(message: str) -> str:
    """Return who asked, by the message of a job that ends its pods; "" where it does not say."""
    found = _SAID.match(message)
    return found[1] if found else ""
