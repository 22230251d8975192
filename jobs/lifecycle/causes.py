"""The causes for which pods failed, in a few words: `exit 1 · worker-0, worker-3`, the same wherever a failure is shown.

Equal failures are summed up. Reasons are those that Kubernetes and our nodes write into a pod's or a container's
status; a reason without words here is shown as written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from jobs.lifecycle import image_waits
from jobs.logs.text import of_lines
from kube import pod_health
from kube.kinds.core import PodPhase
from kube.kinds.fields import View
from kube.pod_health import Cause as Kept

FIELD = "causes"  # of the status
MAX_NAMES = 3  # pods that a cause names; the others are counted
MAX_CAUSES = 3  # causes in one text
MAX_FAILURES = 500  # failures that are looked at, if more pods failed
LONGEST_MESSAGE = 200  # characters of a container's message that are shown
_CLAUSE_END = re.compile(r"[,;:.](?= )")
START_ERROR = "StartError"  # the reason of a container whose command could not be run
_COULD_NOT_START = "could not start"
_NO_IMAGE = "image cannot be pulled"
_CANNOT_START = "cannot start"
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
    Kept.IMAGE.value: _NO_IMAGE,
    Kept.SECRET.value: _CANNOT_START,
    Kept.CONFIG_MAP.value: _CANNOT_START,
    Kept.VOLUME.value: _CANNOT_START,
    Kept.DEVICE.value: _CANNOT_START,
    Kept.CONFIGURATION.value: _CANNOT_START,
    Kept.COMMAND.value: _CANNOT_START,
    Kept.STARTS_AGAIN.value: "between two starts",
}
_SAYS_NOTHING = ("", "Error", "Completed")  # an exit code says more than these reasons


class Failure(NamedTuple):
    """How a pod failed: its full name and task, the exit codes of its failed containers, the reason and the message.

    `reason` is the pod's, or else that of the first failed container; `message` is one line. For a pod that has not
    ended, they say what keeps it from running, and `obstacle` is the cause. If that is a crash loop, the rest is how the
    container last ended, with its exit code even if that is 0.
    """

    pod: str
    task: str = ""
    exit_codes: tuple[int, ...] = ()
    reason: str = ""
    message: str = ""
    obstacle: str = ""

    @property
    def short(self) -> str:
        """The pod's name without its job's: `worker-3`; the whole name if it is not made of the job's and the task's."""
        return _short(self.pod, self.task)

    @property
    def why(self) -> str:
        """Why the pod failed (`exit 1`, `exit 1 and 42`, `Poisoned (exit 3)`) or does not run (`crash-looping, exit 1`)."""
        return _words(self.reason, self.exit_codes, self.obstacle)


def _short(pod: str, task: str) -> str:
    own = f"{task}-{pod.rpartition('-')[2]}"
    return own if task and pod.endswith(f"-{own}") else pod


def _words(reason: str, exit_codes: Sequence[int], obstacle: str) -> str:
    if obstacle == Kept.CRASH_LOOP:
        ended = _words(reason, exit_codes, "") if exit_codes else ""
        return f"crash-looping, {ended}" if ended else "crash-looping"
    if reason in _WORDS:
        return _WORDS[reason]
    code = f"exit {listed(exit_codes)}" if exit_codes else ""
    if reason in _SAYS_NOTHING:
        return code or "failed"
    return f"{reason} ({code})" if code else reason


class Ended(Protocol):
    """How a container ended."""

    @property
    def exit_code(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...


def failure(
    pod: str, task: str, reason: str, message: str, containers: Iterable[Ended], init: Iterable[Ended]
) -> Failure:
    """Return how a pod failed, by its own reason and message and those of its ended containers and init containers.

    If the pod has no reason or message, that of its first failed container is used. Init containers come last: if one
    failed, no container has run, and a sidecar is ended because the containers are over.
    """
    bad = [each for each in (*containers, *init) if each.exit_code]
    its_reason, its_message = (bad[0].reason, bad[0].message) if bad else ("", "")
    codes = tuple(dict.fromkeys(each.exit_code for each in bad))
    return Failure(pod, task, codes, reason or its_reason, one_line(message or its_message))


def listed(exit_codes: Sequence[int]) -> str:
    """Return exit codes in words: `1`, `1 and 42`, `1, 2 and 42`."""
    *first, last = map(str, exit_codes)
    return f"{', '.join(first)} and {last}" if first else last


class Status(Protocol):
    """The part of a pod's status that pages and controllers have in their views."""

    @property
    def phase(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def container_statuses(self) -> Sequence[Any]: ...
    @property
    def init_container_statuses(self) -> Sequence[Any]: ...


def of_status(pod: str, task: str, status: Status) -> Failure:
    """Return how a pod failed, by its status; for one that failed before any container ran, what it waited for."""
    containers, inits = (
        [each.state.terminated for each in statuses if each.state.terminated]
        for statuses in (status.container_statuses, status.init_container_statuses)
    )
    ended = failure(pod, task, status.reason, status.message, containers, inits)
    if ended.reason or ended.exit_codes or status.phase != PodPhase.FAILED:
        return ended
    waited = _waits_for(pod, task, PodPhase.PENDING, status)
    return waited._replace(obstacle="") if waited is not None and not waited.exit_codes else ended


def start_obstacle(pod: str, task: str, status: Status, *, is_ending: bool) -> Failure | None:
    """Return what keeps a pod that is bound to a node from running; None if nothing does or it is being deleted."""
    return None if is_ending else _waits_for(pod, task, status.phase, status)


def _waits_for(pod: str, task: str, phase: str, status: Status) -> Failure | None:
    statuses, inits = status.container_statuses, status.init_container_statuses
    trouble = pod_health.trouble(
        phase, is_ending=False, containers=pod_health.states(statuses), inits=pod_health.states(inits)
    )
    if trouble is None:
        return None
    container, obstacle = [*statuses, *inits][trouble.position], trouble.cause.value
    waiting, ended = container.state.waiting, container.last_state.terminated
    if trouble.cause is Kept.CRASH_LOOP:
        looping = Failure(pod, task, obstacle=obstacle)
        if ended is None:
            return looping
        return looping._replace(exit_codes=(ended.exit_code,), reason=ended.reason, message=one_line(ended.message))
    if waiting is None:
        return Failure(pod, task, reason=obstacle, obstacle=obstacle)
    message = waiting.message
    if trouble.cause is Kept.IMAGE:
        message = f"{container.image}: {image_waits.registry_message(message)}"
    reason = waiting.reason if trouble.cause is Kept.OTHER else obstacle
    return Failure(pod, task, reason=reason, message=one_line(message), obstacle=obstacle)


def one_line(text: str) -> str:
    """Return a message as one line for part of a sentence; a long one is cut after its last whole clause and ends in "…"."""
    line = " ".join(of_lines(text).split()).rstrip(".")
    if len(line) <= LONGEST_MESSAGE:
        return line
    line = line[: LONGEST_MESSAGE - 2]
    # Cut after the last clause that ends outside brackets, or after the last word if that clause ends early.
    ends = [found.start() for found in _CLAUSE_END.finditer(line)]
    whole = [end for end in ends if line.count("(", 0, end) == line.count(")", 0, end)]
    if whole and whole[-1] >= LONGEST_MESSAGE // 4:
        return f"{line[: whole[-1]]} …"
    return f"{(line.rpartition(' ')[0] or line).rstrip(',;:.')} …"


class PodName(View):
    """A pod that failed, as a text names it; `times` is how many pods of this name failed, one after another."""

    name: str
    task: str = ""
    times: int = 1

    @property
    def short(self) -> str:
        """The name without the job's: `worker-3`; the whole name if it is not made of the job's and the task's."""
        return _short(self.name, self.task)

    def __str__(self) -> str:
        return self.short if self.times == 1 else f"{self.short} ({self.times} times)"


class Cause(View):
    """Failures summed up as one: why, as in a `Failure`, and the first MAX_NAMES pods, each name once.

    `message` is set if all failures have the same. `more` is how many other pods there are, counted by name.
    """

    reason: str = ""
    exit_codes: list[int] = []
    message: str = ""
    obstacle: str = ""
    pods: list[PodName] = []
    more: int = 0

    @property
    def why(self) -> str:
        """`exit 1`, `cannot start: configmap c not found`."""
        words = _words(self.reason, self.exit_codes, self.obstacle)
        return f"{words}: {self.message}" if self.message else words

    @property
    def text(self) -> str:
        """`exit 1 · worker-0, worker-3 (2 times) and 5 more`."""
        names = ", ".join(map(str, self.pods))
        return f"{self.why} · {names}{f' and {self.more} more' if self.more else ''}"


class Causes(View):
    """Why pods of a job failed or do not run: the commonest causes first, and how many pods have other causes."""

    groups: list[Cause] = []
    others: int = 0

    @property
    def text(self) -> str:
        """`exit 1 · worker-0, worker-3; out of memory · ps-0; 3 more`; "" if there is no cause."""
        return "; ".join([*(each.text for each in self.groups), *([f"{self.others} more"] if self.others else [])])

    @property
    def sentence(self) -> str:
        """The text as a sentence; "" if there is no cause."""
        text = self.text
        return f"{text[:1].upper()}{text[1:]}." if text else ""


def written(causes: Causes) -> dict[str, Any] | None:
    """Return the value of the status field; None, which removes it, if there is no cause."""
    return msgspec.to_builtins(causes) if causes.groups else None


def in_status(status: Mapping[str, Any]) -> Causes:
    """Return the causes in a job's status; empty if there are none or they cannot be read."""
    try:
        return msgspec.convert(status.get(FIELD) or {}, Causes)
    except msgspec.ValidationError:
        return Causes()


def summed_up(failures: Iterable[Failure], more: int = 0) -> Causes:
    """Return why pods failed: at most MAX_CAUSES, the commonest first, each with its pods in the order of their names.

    `more` is how many pods failed besides these.
    """
    groups = sorted(_alike(failures), key=lambda group: (-len(group), _natural(group[0])))
    found = [_cause(group) for group in groups[:MAX_CAUSES]]
    if len(found) == 1:
        return Causes(groups=[replace(found[0], more=found[0].more + more)])
    return Causes(groups=found, others=more + sum(map(len, groups[MAX_CAUSES:]))) if found else Causes()


def _alike(failures: Iterable[Failure]) -> Iterator[list[Failure]]:
    """Group failures by their words, each group in the order of its pods."""
    by_words: dict[str, list[Failure]] = {}
    for failure in failures:
        by_words.setdefault(failure.why, []).append(failure)
    for alike in by_words.values():
        # Group by message if all pods of a task have the same message; otherwise drop the messages.
        is_of_tasks = len({(each.task, each.message) for each in alike}) == len({each.task for each in alike})
        by_message: dict[str, list[Failure]] = {}
        for each in alike:
            message = each.message if is_of_tasks else ""
            by_message.setdefault(message, []).append(each._replace(message=message))
        for group in by_message.values():
            yield sorted(group, key=_natural)


def _cause(group: Sequence[Failure]) -> Cause:
    first, times = group[0], Counter(each.pod for each in group)
    tasks = {each.pod: each.task for each in group}
    names = [PodName(name=name, task=tasks[name], times=number) for name, number in times.items()]
    return Cause(
        reason=first.reason,
        exit_codes=list(first.exit_codes),
        message=first.message,
        obstacle=first.obstacle,
        pods=names[:MAX_NAMES],
        more=max(len(names) - MAX_NAMES, 0),
    )


def _natural(failure: Failure) -> tuple[str, int, str]:
    """Return a sort key that puts worker-2 before worker-10."""
    stem, _, number = failure.pod.rpartition("-")
    return (stem, int(number), "") if number.isascii() and number.isdigit() else (failure.pod, -1, failure.why)
