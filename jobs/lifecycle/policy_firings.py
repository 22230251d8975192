"""A policy that fired, as the sentence in which an event tells of it, and read from that sentence again.

`PodFailed: main-0 exited with code 3. The policy for it is RestartJob after 1m0s.`
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kube.kinds.batch import JobEvent

_OF_A_POD = (JobEvent.POD_FAILED, JobEvent.POD_EVICTED, JobEvent.POD_PENDING)
_SENTENCE = re.compile(
    r"(?P<event>\w+): (?P<what>.*)\. The policy for it is (?P<action>\w+)(?: after (?P<after>\S+))?\.", re.DOTALL
)
_EXIT_CODE = re.compile(r"\S+ exited with codes? (\d+)")


class PolicyFiring(NamedTuple):
    """The event that a policy answered, what happened, the action, and after how long; `after` is empty for at once."""

    event: str
    what: str
    action: str
    after: str = ""

    @property
    def pod(self) -> str:
        """The name of the pod that it happened to, the last one where it happened to many; empty where none is named."""
        words = self.what.split(" ")
        if self.event in _OF_A_POD:
            return words[0]
        return words[-1] if self.event == JobEvent.TASK_FAILED else ""

    @property
    def exit_code(self) -> int | None:
        """The exit code that is told of the pod that failed, the first of several; None where none is."""
        found = _EXIT_CODE.match(self.what) if self.event == JobEvent.POD_FAILED else None
        return int(found[1]) if found else None


def write(fired: PolicyFiring) -> str:
    """Return what an event says of a policy that fired."""
    after = f" after {fired.after}" if fired.after else ""
    return f"{fired.event}: {fired.what}. The policy for it is {fired.action}{after}."


def read(text: str) -> PolicyFiring | None:
    """Return the policy that an event tells of; None for another text."""
    found = _SENTENCE.fullmatch(text)
    return PolicyFiring(found["event"], found["what"], found["action"], found["after"] or "") if found else None
