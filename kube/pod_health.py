"""Whether a pod runs, by what its containers do now, and otherwise why not: one rule for index, controllers and pages; pure.

A pod runs when one of its containers does and none of them is kept from starting. Its phase says less: by that a pod
of a container that ends again and again, or that cannot start again, is Running.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

from kube.kinds.core import PodPhase
from kube.kinds.pod import ENDED


class Cause(StrEnum):
    """Why a pod that has its node does not run: a closed list, under which fall a kubelet's reasons and others'."""

    IMAGE = "ImageMissing"
    SECRET = "SecretMissing"  # noqa: S105 (a word, no secret)
    CONFIG_MAP = "ConfigMapMissing"
    VOLUME = "VolumeMissing"
    DEVICE = "DeviceMissing"
    CONFIGURATION = "ConfigurationWrong"
    COMMAND = "CommandNotStarted"
    CRASH_LOOP = "CrashLoop"
    STARTS_AGAIN = "ContainersEnded"
    OTHER = "ContainerWaits"


TEXTS: Final[dict[str, str]] = {
    Cause.IMAGE: "without an image",
    Cause.SECRET: "without a Secret",
    Cause.CONFIG_MAP: "without a ConfigMap",
    Cause.VOLUME: "without a volume",
    Cause.DEVICE: "without a device",
    Cause.CONFIGURATION: "wrongly configured",
    Cause.COMMAND: "not startable",
    Cause.CRASH_LOOP: "crash-looping",
    Cause.STARTS_AGAIN: "between two starts",
    Cause.OTHER: "not started",
}
"""What pods of each cause are, after their number: `3 crash-looping`."""

_ON_THE_WAY = ("", "ContainerCreating", "PodInitializing")  # what every start goes through
_BY_REASON: Final = {
    "CrashLoopBackOff": Cause.CRASH_LOOP,
    "RunContainerError": Cause.COMMAND,
    "CreateContainerError": Cause.COMMAND,
    "ContainerCannotRun": Cause.COMMAND,
    "StartError": Cause.COMMAND,
    "ErrImagePull": Cause.IMAGE,
    "ImagePullBackOff": Cause.IMAGE,
    "ErrImageNeverPull": Cause.IMAGE,
    "InvalidImageName": Cause.IMAGE,
    "ImageInspectError": Cause.IMAGE,
    "RegistryUnavailable": Cause.IMAGE,
}
_NOT_CONFIGURED = "CreateContainerConfigError"
# A kubelet's words for what is missing; it has one reason for all of them.
_BY_WORDS: Final = (
    (re.compile(r"\bsecret\b", re.IGNORECASE), Cause.SECRET),
    (re.compile(r"\bconfig ?map\b|config key", re.IGNORECASE), Cause.CONFIG_MAP),
    (re.compile(r"persistentvolumeclaim|volume|subpath", re.IGNORECASE), Cause.VOLUME),
    (re.compile(r"\bdevices?\b|free at the moment", re.IGNORECASE), Cause.DEVICE),
)


PODS_KEPT: Final = "PodsKept"
"""The reason of a job's state whose message says what keeps its pods from running."""


class State(NamedTuple):
    """What a container does now: whether it runs, otherwise the reason for which it waits, if it does."""

    is_running: bool = False
    reason: str = ""
    message: str = ""


class Trouble(NamedTuple):
    """Why a pod does not run, and the position of the container in question: the containers come first, then init containers."""

    cause: Cause
    position: int


def trouble(phase: str, *, is_ending: bool, containers: Sequence[State], inits: Sequence[State] = ()) -> Trouble | None:
    """Return why a pod does not run although it has its node; None where it runs, has ended or is ended, or is on its way.

    For a pod without container statuses the phase decides.
    """
    if is_ending or phase in ENDED:
        return None
    for index, each in enumerate((*containers, *inits)):
        if not each.is_running and each.reason not in _ON_THE_WAY:
            return Trouble(_cause(each), index)
    if phase == PodPhase.RUNNING and containers and not any(each.is_running for each in containers):
        return Trouble(Cause.STARTS_AGAIN, 0)
    return None


def _cause(waits: State) -> Cause:
    if waits.reason == _NOT_CONFIGURED:
        causes = (cause for words, cause in _BY_WORDS if words.search(waits.message))
        return next(causes, Cause.CONFIGURATION)
    return _BY_REASON.get(waits.reason, Cause.OTHER)


class _Waiting(Protocol):
    @property
    def reason(self) -> str: ...
    @property
    def message(self) -> str: ...


class _State(Protocol):
    @property
    def running(self) -> Any: ...
    @property
    def waiting(self) -> _Waiting | None: ...


class _Status(Protocol):
    @property
    def state(self) -> _State: ...


def states(statuses: Iterable[_Status]) -> list[State]:
    """Return what containers do now, of their statuses."""
    return [
        State(each.state.running is not None, *((waits.reason, waits.message) if (waits := each.state.waiting) else ()))
        for each in statuses
    ]


class Health(NamedTuple):
    """How many pods of a job run, and how many do not although they have their nodes, by cause."""

    running: int = 0
    troubled: Mapping[str, int] = {}

    @property
    def causes(self) -> list[str]:
        """The causes, that of most pods first."""
        return sorted(self.troubled, key=lambda cause: (-self.troubled[cause], cause))

    @property
    def words(self) -> list[str]:
        """`3 crash-looping`, `1 without an image`; of every cause."""
        return [f"{self.troubled[cause]} {TEXTS[cause]}" for cause in self.causes]

    @property
    def text(self) -> str:
        """`3 pods are crash-looping, 1 without an image.`; empty where nothing keeps a pod from running."""
        if not self.troubled:
            return ""
        first = self.causes[0]
        verb = "pod is" if self.troubled[first] == 1 else "pods are"
        return ", ".join([f"{self.troubled[first]} {verb} {TEXTS[first]}", *self.words[1:]]) + "."


def trouble_text(health: Health, reason: str, message: str) -> str:
    """Return the sentence about why pods of a job do not run, from the reason and message of its state, or from their numbers.

    The controller's message names the pods; where it has none yet, or the controller is not ours, there are the numbers.
    """
    return message if reason == PODS_KEPT and health.troubled else health.text


def health(running: int, numbers: Mapping[tuple[str, str], int]) -> Health:
    """Return the health of a job's pods: of those in phase Running less those in that phase with a cause.

    `numbers` are those of pods by phase and cause; unknown causes are left out.
    """
    troubled: dict[str, int] = {}
    idle = 0
    for (phase, cause), number in numbers.items():
        if cause in TEXTS:
            troubled[cause] = troubled.get(cause, 0) + number
            idle += number if phase == PodPhase.RUNNING else 0
    return Health(max(running - idle, 0), troubled)
