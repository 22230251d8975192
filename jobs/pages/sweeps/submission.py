"""Previewing a sweep, and making it once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cluster import api
from cluster.access import Actor
from cluster.backend import OwnedRefused
from cluster.store import Stored, store
from jobs.pages.editor import editor, start_preview
from jobs.pages.editor.editor import SUBMISSION, Finding
from jobs.rules import yaml_write
from jobs.sweeps import placeholders, record
from jobs.sweeps.draft import Draft
from jobs.sweeps.plan import Plan, plan
from jobs.sweeps.values import ValuesError
from kube import lenient
from kube.errors import AlreadyExists, ApiError, Invalid
from kube.resources import CONFIGMAPS, JOBS
from kube.yaml.problem import YamlError

MAX_REVIEWED = 20  # jobs that are checked while somebody types; submitting checks all
MAX_PREVIEWS = 3  # jobs whose YAML is shown
MAX_REFUSALS = 20


@dataclass(frozen=True, slots=True)
class JobPreview:
    """One job of a sweep as it would be made."""

    name: str
    values: Mapping[str, str]
    yaml: str


@dataclass(frozen=True, slots=True)
class Preview:
    """The result of checking a draft: the verdict in words, errors, notes, and its first jobs.

    names are the placeholders, () if the YAML cannot be read. causes are errors
    of the YAML, at its lines; problems those of the values, each naming its row.
    """

    verdict: str
    accepted: bool = False
    names: tuple[str, ...] = ()
    causes: tuple[Finding, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[Finding, ...] = ()
    jobs: tuple[JobPreview, ...] = ()
    number: int = 0


def preview(actor: Actor, draft: Draft) -> Preview:
    """Say what submitting a draft would do, without doing it."""
    try:
        template = placeholders.read(draft.text)
    except YamlError as error:
        causes = tuple(Finding(each.message, each.line, each.column, each.field) for each in error.problems)
        return Preview("The YAML cannot be read yet.", causes=causes)
    try:
        planned = plan(template, draft.values(template.names))
    except ValuesError as error:
        problems = tuple(problem.message for problem in error.problems)
        return Preview("The values make no sweep yet.", names=template.names, problems=problems)
    return _reviewed(actor, planned, draft.text)


def submit(actor: Actor, draft: Draft) -> Stored:
    """Make the sweep of a draft and return the ConfigMap that records it; the same token twice makes one.

    Raise YamlError, ValuesError or ApiError (OwnedRefused for its jobs) if it cannot be made.
    """
    template = placeholders.read(draft.text)
    planned = plan(template, draft.values(template.names))
    first = planned.job(0)
    if unknown := editor.misspelled(first):
        raise Invalid.of(JOBS.group_kind, planned.jobs[0], unknown)
    holder = record.write(planned, draft.text)
    if draft.token:
        holder["metadata"]["annotations"] = {SUBMISSION: draft.token}
    try:
        return api.create_with_owned(actor, CONFIGMAPS, holder, JOBS, list(planned.objects()))
    except AlreadyExists:
        existing = _existing(planned)
        token = lenient.text(existing.object, "metadata", "annotations", SUBMISSION) if existing is not None else ""
        if existing is None or not draft.token or token != draft.token:
            raise
        return existing


def refused(preview: Preview, error: ApiError) -> Preview:
    """Return the preview of a draft that was refused when it was submitted."""
    refusals = [error.message]
    if isinstance(error, OwnedRefused):
        each = list(error.refusals.items())
        refusals = [
            f"Row {index + 1}: {'; '.join(map(str, one.causes)) or one.message}" for index, one in each[:MAX_REFUSALS]
        ]
        if (more := len(each) - MAX_REFUSALS) > 0:
            refusals.append(f"And {more:,} rows more.")
    return Preview(
        "The sweep was not made, and none of its jobs; what you wrote is still here.",
        names=preview.names,
        causes=preview.causes,
        problems=preview.problems if preview.causes or preview.problems else tuple(refusals),
        number=preview.number,
    )


def _reviewed(actor: Actor, planned: Plan, text: str) -> Preview:
    """Check the first jobs of a sweep as if they were submitted, and rehearse them up to about MAX_PODS pods."""
    causes, notes, hopeless = _Judged(), _Judged(), _Judged()
    pods = 0
    for index in range(min(len(planned.jobs), MAX_REVIEWED)):
        review = api.review(actor, JOBS, planned.job(index))
        wrong = [*review.causes, *editor.misspelled(planned.job(index))]
        causes.add(index, editor.findings(wrong, planned.template.document))
        notes.add(index, editor.noted(review.warnings, planned.template.document))
        if not wrong and pods < start_preview.MAX_PODS:
            hopeless.add(index, editor.noted(start_preview.warnings(review.object), planned.template.document))
            pods += sum(task["replicas"] for task in review.object["spec"]["tasks"])
    common, by_row = causes.split()
    problems = [*_holder_problems(actor, planned, text), *by_row]
    common_notes, row_notes = notes.split()
    unused = (f"The YAML has no placeholder {{{{{name}}}}} for the column {name}." for name in planned.unused)
    number = len(planned.jobs)
    accepted = not common and not problems
    never, some_never = hopeless.split() if accepted else ([], [])
    verdict = "Some of these jobs would be refused, so none would be made."
    if accepted:
        verdict = f"{number:,} {'job' if number == 1 else 'jobs'} would be made"
        if hopeless.rows:
            those = "" if hopeless.rows == number else f" at least {hopeless.rows} of them"
            verdict = f"{verdict}, and{those} could not start on the cluster as it is"
        verdict = f"{verdict}."
    understood = [Finding(note.message, note.line) for note in planned.template.document.notes]
    return Preview(
        verdict,
        accepted,
        planned.template.names,
        tuple(common),
        tuple(problems),
        (*never, *understood, *common_notes, *map(Finding, (*some_never, *row_notes, *unused))),
        tuple(
            JobPreview(planned.jobs[index], planned.values.row(index), yaml_write.dump(planned.job(index)))
            for index in range(min(number, MAX_PREVIEWS) if accepted else 0)
        ),
        number,
    )


def _holder_problems(actor: Actor, planned: Plan, text: str) -> Iterator[str]:
    """Yield what is wrong with the record of a sweep: its name is taken, or its values are too large for one object."""
    if _existing(planned) is not None:
        yield f"There is a sweep {planned.name} in {planned.namespace} already; change metadata.name, or delete the other."
        return
    for cause in api.review(actor, CONFIGMAPS, record.write(planned, text)).causes:
        if cause.reason == "RequestEntityTooLarge":
            yield "The values are too long to be kept in one object of 1 MiB; make several sweeps, or shorter values."
        elif cause.field != "metadata.namespace":  # reported for the jobs
            yield f"The record of the sweep: {cause}"


class _Judged:
    """The findings of several jobs: those that every job has are listed once, the others by row."""

    def __init__(self) -> None:
        self._rows: dict[Finding, list[int]] = {}
        self._judged = 0

    def add(self, index: int, findings: Sequence[Finding]) -> None:
        self._judged += 1
        for each in dict.fromkeys(findings):
            self._rows.setdefault(each, []).append(index)

    @property
    def rows(self) -> int:
        """How many jobs have a finding."""
        return len({row for rows in self._rows.values() for row in rows})

    def split(self) -> tuple[list[Finding], list[str]]:
        """Return the findings that every job has, and the others as sentences that name their row."""
        common = [finding for finding, rows in self._rows.items() if len(rows) == self._judged]
        by_row = [
            f"Row {row + 1}: {finding.field}{': ' if finding.field else ''}{finding.message}"
            for finding, rows in self._rows.items()
            if len(rows) < self._judged
            for row in rows
        ]
        return common, by_row[:MAX_REFUSALS]


def _existing(planned: Plan) -> Stored | None:
    name = record.holder_of(planned.name)
    holders = store.find(CONFIGMAPS, namespace=planned.namespace, name=name, limit=1)
    return holders[0] if holders else None
