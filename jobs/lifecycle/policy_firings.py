"""A policy that fired, as data: an annotation of the Event whose message says it in a sentence."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from kube import meta
from kube.kinds.batch import Action, JobEvent
from kube.kinds.core import Event

ANNOTATION = "ui.volcano.sh/policy-firing"


class PolicyFiring(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The event that a policy answered, what happened, the action, and its delay.

    `pod` is the name of the pod that it happened to, the last one of several, "" for none. `exit_code` is the one with
    which that pod failed, the first of several, None for none.
    """

    event: JobEvent
    what: str
    action: Action
    pod: str = ""
    exit_code: int | None = None
    delay_ms: int = 0  # 0: at once

    @property
    def delay(self) -> str:
        """The delay as a duration, `1m0s`; "" if there is none."""
        return meta.duration_text(self.delay_ms) if self.delay_ms else ""

    @property
    def sentence(self) -> str:
        """`PodFailed: main-0 exited with code 3. The policy for it is RestartJob after 1m0s.`"""
        after = f" after {self.delay}" if self.delay_ms else ""
        return f"{self.event}: {self.what}. The policy for it is {self.action}{after}."


_decoder = msgspec.json.Decoder(PolicyFiring)


def as_annotations(firing: PolicyFiring | None) -> dict[str, str]:
    """Return the annotations of an Event that reports a firing; {} for None."""
    return {} if firing is None else {ANNOTATION: msgspec.json.encode(firing).decode()}


def of_event(event: Event) -> PolicyFiring | None:
    """Return the firing that an Event reports; None if it reports none or its annotation cannot be read."""
    written = event.metadata.annotations.get(ANNOTATION)
    if not written:
        return None
    try:
        return _decoder.decode(written)
    except msgspec.DecodeError:
        return None
