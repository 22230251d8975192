"""The causes for which pods failed, in a few words: `exit 1 · worker-0, worker-3`, the same wherever a failure is told.

What is equal is told once. Reasons are those that Kubernetes and our nodes write into a pod's or a container's
status; one that has no words here stands as it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_NAMES = 3  # pods that a cause names; the others are counted
MOST_CAUSES = 3  # that a text tells
MOST_FAILURES = 500  # that are looked at, where more pods failed
LONGEST_MESSAGE = 200  # characters of a container's message that are repeated
START_ERROR = "StartError"  # the reason of a container whose command could not be run
_COULD_NOT_START = "could not start"
_NO_IMAGE = "image cannot be pulled"
_WORDS = {
    "OOMKilled": "out of memory",
    "DeadlineExceeded": "deadline exceeded",
    "Evicted": "evicted",
    "Preempted": "evicted for a pod of higher priority",
    "Preempting": "evicted for a pod of higher priority",
    "NodeLost": "node lost",
    "NodeShutdown": "node stopped",
    "ProcessLimitExceeded": "too many processes",
    "NoCommand": "no command",
    START_ERROR: _COULD_NOT_START,
    "ContainerCannotRun": _COULD_NOT_START,
    "CreateContainerError": _COULD_NOT_START,
    "CreateContainerConfigError": _COULD_NOT_START,
    "ErrImagePull": _NO_IMAGE,
    "ImagePullBackOff": _NO_IMAGE,
    "ErrImageNeverPull": _NO_IMAGE,
    "InvalidImageName": _NO_IMAGE,
}
_SAYS_NOTHING = ("", "Error", "Completed")  # an exit code says more than these reasons


class Failure(NamedTuple):
    """How a pod failed: its full name and task, the exit code of the container that ended first badly, why, and what was said of it.

    `exit_code` is None where no container has ended; `reason` is the pod's, else the container's; `message` has one line.
    """

    pod: str
    task: str = ""
    exit_code: int | None = None
    reason: str = ""
    message: str = ""

    @property
    def short(self) -> str:
        """The pod's name without that of its job: `worker-3`; the whole name of a pod whose name is not made so."""
        own = f"{self.task}-{self.pod.rpartition('-')[2]}"
        return own if self.task and self.pod.endswith(f"-{own}") else self.pod

    @property
    def said(self) -> str:
        """Why the pod failed: `exit 1`, `out of memory`, `Poisoned (exit 3)`."""
        if self.reason in _WORDS:
            return _WORDS[self.reason]
        code = f"exit {self.exit_code}" if self.exit_code else ""
        if self.reason in _SAYS_NOTHING:
            return code or "failed"
        return f"{self.reason} ({code})" if code else self.reason


class Ended(Protocol):
    """How a container ended."""

    @property
    def exit_code(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...


def failure(pod: str, task: str, reason: str, message: str, ended: Iterable[Ended]) -> Failure:
    """Return how a pod failed, by its own reason and message and the containers of it that have ended, in their order.

    What the pod does not say is that of its first container that ended badly.
    """
    bad = next((each for each in ended if each.exit_code), None)
    code, its_reason, its_message = (bad.exit_code, bad.reason, bad.message) if bad else (None, "", "")
    return Failure(pod, task, code, reason or its_reason, one_line(message or its_message))


def one_line(text: str) -> str:
    """Return a message as part of a sentence; what a container wrote may be long, and of many lines."""
    return " ".join(text.split())[:LONGEST_MESSAGE].rstrip(".")


class Cause(NamedTuple):
    """Failures that are told as one: `said` is why, with the message where all have the same."""

    said: str
    failures: Sequence[Failure]

    @property
    def named(self) -> Sequence[Failure]:
        """The failures that are named."""
        return self.failures[:MOST_NAMES]

    @property
    def more(self) -> int:
        """How many others there are."""
        return max(len(self.failures) - MOST_NAMES, 0)

    @property
    def names(self) -> str:
        """`worker-0, worker-3 and 5 more`"""
        return (
            f"{', '.join(each.short for each in self.named)}{f' and {self.more} more' if self.more else ''}"
        )


def causes(failures: Iterable[Failure]) -> list[Cause]:
    """Return why pods failed, the cause of most of them first, and the pods of each in the order of their names."""
    found: dict[str, list[Failure]] = {}
    for failure in failures:
        found.setdefault(failure.said, []).append(failure)
    told = [
        Cause(f"{said}: {message}" if message else said, sorted(own, key=_natural))
        for said, alike in found.items()
        for message, own in _by_message(alike).items()
    ]
    return sorted(told, key=lambda each: (-len(each.failures), _natural(each.failures[0])))


def _natural(failure: Failure) -> tuple[str, int, str]:
    """Put worker-2 before worker-10."""
    stem, _, number = failure.pod.rpartition("-")
    return (
        (stem, int(number), "") if number.isascii() and number.isdigit() else (failure.pod, -1, failure.said)
    )


def _by_message(alike: Sequence[Failure]) -> dict[str, list[Failure]]:
    """Part failures by their messages, where the pods of each task have one; else all have none."""
    messages = {(each.task, each.message) for each in alike}
    is_of_tasks = len(messages) == len({each.task for each in alike})
    found: dict[str, list[Failure]] = {}
    for each in alike:
        found.setdefault(each.message if is_of_tasks else "", []).append(each)
    return found


def cause(failures: Iterable[Failure], more: int = 0) -> str:
    """Return why pods failed: `exit 1 · worker-0, worker-3; out of memory · ps-0`; empty when none is given.

    `more` is how many pods failed besides those that are given.
    """
    found = causes(failures)
    if not found:
        return ""
    if len(found) == 1:
        (only,) = found
        names, others = ", ".join(each.short for each in only.named), only.more + more
        return f"{only.said} · {names}{f' and {others} more' if others else ''}"
    told = [f"{each.said} · {each.names}" for each in found[:MOST_CAUSES]]
    others = more + sum(len(each.failures) for each in found[MOST_CAUSES:])
    return "; ".join([*told, *([f"{others} more"] if others else [])])


def sentence(failures: Iterable[Failure], more: int = 0) -> str:
    """Return `cause` as a sentence; empty when there is none."""
    told = cause(failures, more)
    return f"{told[:1].upper()}{told[1:]}." if told else ""


def without(message: str, told: str) -> str:
    """Return a job's message without the sentence about its failures, where that is told apart from it."""
    return message.removeprefix(told).removesuffix(told).strip() if told else message
