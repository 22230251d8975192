"""What happens to a simulated pod, as data: select → delay → next (KWOK's idea).

A stage file holds YAML documents; files are read in the order of their names,
and the first stage that matches a pod is what happens to it next. `select`
compares the pod's phase, restart policy, whether the node has accepted it,
whether it is being deleted and whether it is to fail (annotation exit-code is
not 0). `delay` counts from when the pod came into its present state. `next`
says the new phase, whether the containers restart, their exit code, and
whether the object is removed, or why the pod as a whole has failed. A pod whose
activeDeadlineSeconds are over passes DEADLINE_STAGE, whatever the files say.
This module is pure but for reading the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from kube.kinds.core import PodPhase
from node.attempt import DEADLINE
from node.rules.lifecycle import MESSAGES

DEFAULT = Path(__file__).parent / "stages"
EXIT_CODE = "ui.volcano.sh/exit-code"
SECONDS_MOST = 10 * 365 * 86_400.0


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of a stage's parts: a misspelt field is an error that names it."""


class Select(_Part, frozen=True):
    """Which pods a stage is for; what is not given matches all."""

    phase: tuple[str, ...] | None = None
    restart_policy: tuple[str, ...] | None = None
    accepted: bool | None = None
    deleted: bool | None = None
    fails: bool | None = None


class Delay(_Part, frozen=True):
    """How long the pod stays as it is: so many seconds, or what the annotation says."""

    seconds: float = 0.0
    annotation: str = ""
    wait_for_job: str = ""  # an annotation: "true" starts the clock when all pods of the job run


class Number(_Part, frozen=True):
    """A number, or what the annotation says."""

    value: int = 0
    annotation: str = ""


class Next(_Part, frozen=True):
    """How the pod is after the stage."""

    phase: str = ""
    restart: bool = False
    exit_code: Number | None = None
    delete: bool = False
    reason: str = ""
    message: str = ""


class Stage(_Part, frozen=True):
    """One thing that can happen to a pod."""

    name: str
    select: Select
    next: Next
    delay: Delay = Delay()


DEADLINE_STAGE = Stage(
    "deadline", Select(), Next(PodPhase.FAILED, exit_code=Number(143), reason=DEADLINE, message=MESSAGES[DEADLINE])
)


class StagedPod(NamedTuple):
    """A pod as stages see it."""

    phase: str
    restart_policy: str
    accepted: bool
    deleted: bool
    annotations: Mapping[str, str]

    @property
    def fails(self) -> bool:
        """Whether the pod's containers are to end with another exit code than 0."""
        return whole(self.annotations.get(EXIT_CODE, ""), 0) != 0


class StageError(Exception):
    """A stage file cannot be used; the message names the file and what is wrong in it."""


def load(directory: Path = DEFAULT) -> list[Stage]:
    """Return the stages of a directory in their order."""
    stages = []
    for path in sorted(directory.glob("*.yaml")):
        try:
            documents = list(yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader))
            stages += [msgspec.convert(document, Stage) for document in documents if document is not None]
        except (OSError, yaml.YAMLError, msgspec.ValidationError) as error:
            raise StageError(f"The stage file {path} cannot be used: {error}") from None
    if not stages:
        raise StageError(f"The directory {directory} has no stage; add a file like {DEFAULT / '2-run.yaml'}.")
    return stages


def match(stages: Sequence[Stage], pod: StagedPod) -> Stage | None:
    """Return the first stage that matches a pod, None when none does."""
    for stage in stages:
        select = stage.select
        if (
            (select.phase is None or pod.phase in select.phase)
            and (select.deleted is None or select.deleted == pod.deleted)
            and (select.accepted is None or select.accepted == pod.accepted)
            and (select.restart_policy is None or pod.restart_policy in select.restart_policy)
            and (select.fails is None or select.fails == pod.fails)
        ):
            return stage
    return None


def delay_us(delay: Delay, annotations: Mapping[str, str]) -> int:
    """Return a delay in microseconds; an annotation that is no number is as if it were not there."""
    text = annotations.get(delay.annotation, "") if delay.annotation else ""
    try:
        seconds = float(text) if text else delay.seconds
    except ValueError:
        seconds = delay.seconds
    if not 0 <= seconds <= SECONDS_MOST:  # also what is not a number at all
        seconds = delay.seconds
    return int(seconds * 1_000_000)


def waits_for_job(delay: Delay, annotations: Mapping[str, str]) -> bool:
    """Whether the delay begins only when all pods of the job run."""
    return bool(delay.wait_for_job) and annotations.get(delay.wait_for_job) == "true"


def exit_code(number: Number | None, annotations: Mapping[str, str]) -> int:
    """Return the exit code of a stage, between 0 and 255."""
    if number is None:
        return 0
    return whole(annotations.get(number.annotation, ""), number.value) if number.annotation else number.value


def whole(text: str, default: int) -> int:
    """Return text as an exit code, default when it is none."""
    return int(text) if text.isascii() and text.isdecimal() and int(text) <= 255 else default
