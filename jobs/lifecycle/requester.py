"""Who asked for what a job is doing: one of its policies, or somebody by a Command.

The job's status holds it while the job ends its pods, so that the final message can say it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from kube.kinds.batch import Action, JobEvent

FIELD = "requestedBy"  # of the status


class Source(StrEnum):
    """What asked the job for an action."""

    POLICY = "Policy"
    COMMAND = "Command"


class Requester(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Who asked, and for what.

    For a policy, `event` or `exit_code` is what it answered, and `task` where that happened, "" for none.
    """

    source: Source
    action: Action
    event: JobEvent | None = None
    exit_code: int | None = None
    task: str = ""

    @property
    def is_policy(self) -> bool:
        return self.source is Source.POLICY


def written(by: Requester | None) -> dict[str, Any] | None:
    """Return the value of the status field; None, which removes it, for nobody."""
    return None if by is None else msgspec.to_builtins(by)


def of_status(status: Mapping[str, Any]) -> Requester | None:
    """Return who asked, by a job's status; None if the status does not say or cannot be read."""
    try:
        return msgspec.convert(status.get(FIELD), Requester | None)
    except msgspec.ValidationError:
        return None
