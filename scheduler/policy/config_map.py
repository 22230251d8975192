"""The ConfigMap that configures the scheduler, as stored, and the policy in force as it changes."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kube import lenient
from kube.meta import Object
from kube.volcano.scheduler_configuration import KEY, NAME
from scheduler.policy import policy
from scheduler.policy.configuration import Reading, read
from scheduler.policy.findings import Finding, Severity, nearest

FIELD = f"data[{KEY}]"


def text_of(config_map: Object) -> str | None:
    """Return the configuration that a ConfigMap holds, None when it has none."""
    text = lenient.mapping(config_map, "data").get(KEY)
    return text if isinstance(text, str) else None


def reading_of(config_map: Object) -> Reading:
    """Read the configuration that a ConfigMap holds; a ConfigMap without one gives an error."""
    text = text_of(config_map)
    if text is not None:
        return read(text)
    hint = nearest(KEY, lenient.mapping(config_map, "data"))
    message = f"The config map {NAME} has no entry {KEY} with the configuration.{hint}"
    return Reading(None, (), (Finding(Severity.ERROR, "", message),))


def refusal_text(reading: Reading) -> str:
    """Return why a configuration cannot be used, in a sentence or two: `Line 1: There is no action alocate. …`."""
    errors = reading.errors
    first = f"Line {errors[0].line}: {errors[0].message}" if errors[0].line else errors[0].message
    more = len(errors) - 1
    return f"{first} And {more} more {'error' if more == 1 else 'errors'}." if more else first


class Refused(NamedTuple):
    """A configuration that cannot be used: the uid of its object, and why."""

    uid: str
    message: str


class Configuration:
    """The policy in force, kept up to date with the ConfigMap: its newest usable version, or the default if there is none.

    refused is the newest version if it cannot be used, so that its owner can be told; else None.
    """

    def __init__(self) -> None:
        self.policy = policy.DEFAULT
        self.refused: Refused | None = None

    def take(self, body: bytes | None) -> None:
        """Take over the next version; None when the ConfigMap was deleted."""
        self.refused = None
        if body is None:
            self.policy = policy.DEFAULT
            return
        config_map = msgspec.json.decode(body)
        reading = reading_of(config_map)
        if reading.policy is None:
            self.refused = Refused(lenient.text(config_map, "metadata", "uid"), refusal_text(reading))
        else:
            self.policy = reading.policy
