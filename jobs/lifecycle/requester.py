"""Who asked for what a job does to itself: a policy of its own, or somebody by a Command.

It stands in the job's status while the job ends its pods, so that the message of the end says it as well.
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
    """By what something is asked of a job."""

    POLICY = "Policy"
    COMMAND = "Command"


class Requester(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Who asked, and for what.

    Of a policy there is the event or the exit code that it answers, and the task where it happened to one.
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
    """Return the field of a status; None where nobody is to be named, so that it is taken away."""
    return None if by is None else msgspec.to_builtins(by)


def of_status(status: Mapping[str, Any]) -> Requester | None:
    """Return who asked, by a job's status; None where that does not say, or in a way that cannot be read."""
    try:
        return msgspec.convert(status.get(FIELD), Requester | None)
    except msgspec.ValidationError:
        return None
