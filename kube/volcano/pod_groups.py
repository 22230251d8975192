"""The names of pod groups, and how their conditions that are no words for people are called."""

from __future__ import annotations

import re

DATA = "ui.volcano.sh/"
"""How the type of a condition begins whose message is JSON of ours; under Volcano's own definition too a status keeps it, and no other field."""

_OF_JOB = re.compile(r"(?P<job>.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OF_PODS = "podgroup"  # with the uid of a pod or its controller: what is made for pods that name no group


def job_of(group: str) -> str:
    """Return the job to which a pod group of this name belongs, as the job controller names them: NAME-UID; "" for others."""
    match = _OF_JOB.fullmatch(group)
    return match["job"] if match and match["job"] != _OF_PODS else ""
