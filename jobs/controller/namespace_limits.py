"""Which of a job's missing pods its namespace's limit ranges and quotas allow (reference: kubernetes-api §6.3).

The pods that a job needs to start are made together or not at all: part of a gang would use up the quota and wait for
the rest. Beyond them, as many pods are made as fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from cluster.rules import ranges as ranging
from cluster.rules.quota_accounts import Account
from jobs.controller.facts import JobFact
from kube.meta import Object
from kube.resources import PODS

PodPosition = tuple[int, int]  # the number of a task, and the index of a pod in it


class Choice(NamedTuple):
    """The pods to make, and why the others are refused, "" if none are."""

    positions: list[PodPosition]
    refusal: str = ""


def choose(
    job: JobFact,
    missing: Sequence[PodPosition],
    alive: int,
    sample: Callable[[PodPosition], Object],
    ranges: Sequence[Object],
    account: Account | None,
) -> Choice:
    """Choose the missing pods to make for a job with `alive` pods, and charge them to the account.

    The account has counted the namespace's pods. `sample` makes the pod of a position; those of one task are alike.
    """
    needed = [position for position in missing if position[1] < job.tasks[position[0]].needed]
    others = [position for position in missing if position[1] >= job.tasks[position[0]].needed]
    least = min(max(job.min_available - alive, 0), len(missing))
    trial = None if account is None else account.copy()
    first, why = _fitting(needed, sample, ranges, trial)
    rest, why_rest = _fitting(others, sample, ranges, trial)
    why = why or why_rest
    if len(first) < min(least, len(needed)) or len(first) + len(rest) < least:
        together = [*needed, *others][:least]
        # Prefer the message of what the quotas lack for all of these pods together, if there is one.
        lacking = [(sample(of_task[0]), len(of_task)) for of_task in _by_task(together)]
        text = account.lack(PODS, lacking) if account is not None else ""
        return Choice([], _refusal_text(sample(together[0]), text) if text else why)
    if account is not None and trial is not None:
        account.become(trial)
    return Choice([*first, *rest], why)


def _refusal_text(pod: Object, text: str) -> str:
    return f'pods "{pod["metadata"]["name"]}" is forbidden: {text}'


def _fitting(
    positions: Sequence[PodPosition],
    sample: Callable[[PodPosition], Object],
    ranges: Sequence[Object],
    account: Account | None,
) -> tuple[list[PodPosition], str]:
    chosen: list[PodPosition] = []
    refusal = ""
    for of_task in _by_task(positions):
        pod = sample(of_task[0])
        text = ranging.refusal(pod, ranges)
        fitting = 0 if text else len(of_task)
        if account is not None and not text:
            fitting, text = account.fit(PODS, pod, len(of_task))
        chosen += of_task[:fitting]
        if text and not refusal:
            refusal = _refusal_text(sample(of_task[fitting]), text)
    return chosen, refusal


def _by_task(positions: Sequence[PodPosition]) -> Iterator[list[PodPosition]]:
    for _, of_task in groupby(positions, key=lambda position: position[0]):
        yield list(of_task)
