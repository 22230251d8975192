"""Checking the text of a job as it is written, and creating the job from it once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cluster import api
from cluster.access import Actor
from cluster.api.cluster_view import ClusterView
from cluster.rules import simulation
from cluster.store import Stored, store
from jobs.pages.editor import effective_values, start_preview
from jobs.pages.job import past_runs
from jobs.rules import job_text, yaml_write
from jobs.rules.job_text import API_VERSION, KIND, Document
from jobs.sweeps import placeholders
from kube import amounts, definitions, lenient, schema
from kube.errors import AlreadyExists, ApiError, Cause, Invalid
from kube.resources import JOBS
from kube.yaml.problem import YamlError

SUBMISSION = "ui.volcano.sh/submission"
COULD_NOT_START = "This job would be accepted, and could not start on the cluster as it is."
_UNKNOWN = "unknown field "  # begins the warnings of fields that are refused here
_PATH = re.compile(r"[a-z]\w*(?:\.[\w-]+|\[[^\]\s]*\])*")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem or note, with its field and line if it has them; line 0 is the whole text."""

    message: str
    line: int = 0
    column: int = 0
    field: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What would happen to a text: accepted says whether it would become a job, verdict says it in words.

    held are the effective values of fields left out or written differently, by path.
    """

    accepted: bool
    verdict: str
    summary: str = ""
    causes: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    text: str = ""
    held: dict[str, str] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """Return the report as the editor in the browser reads it."""
        return asdict(self)


def submit(actor: Actor, text: str, token: str) -> Stored:
    """Create the job that a text describes; raise YamlError or ApiError if it cannot be."""
    job = job_text.read(text).object
    if unknown := misspelled(job):
        raise Invalid.of(JOBS.group_kind, lenient.text(job, "metadata", "name"), unknown)
    return create_once(actor, job, token)


def create_once(actor: Actor, job: dict[str, Any], token: str) -> Stored:
    """Create a job; a second call with the same token returns the first one's job."""
    metadata = job.get("metadata")
    if token and isinstance(metadata, dict):
        metadata["annotations"] = {**lenient.mapping(metadata, "annotations"), SUBMISSION: token}
        prefix = lenient.text(metadata, "generateName")
        if prefix and not metadata.get("name"):
            # The name comes from the token, so that a second click finds the first one's job.
            metadata["name"] = prefix[:58] + suffix(token)
    try:
        return api.create(actor, JOBS, job)
    except AlreadyExists:
        namespace, name = job["metadata"].get("namespace") or "default", job["metadata"].get("name", "")
        existing = store.find(JOBS, namespace=namespace, name=name, limit=1) if token else []
        if not existing or lenient.text(existing[0].object, "metadata", "annotations", SUBMISSION) != token:
            raise
        return existing[0]


def suffix(token: str) -> str:
    """Return five characters made from a token, in the alphabet of Kubernetes' suffixes."""
    digest = hashlib.sha256(token.encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:5])


def check(actor: Actor, text: str) -> Report:
    """Say what submitting text would do, without doing it."""
    try:
        document = job_text.read(text)
    except YamlError as error:
        causes = tuple(Finding(each.message, each.line, each.column, each.field) for each in error.problems)
        return Report(False, _count(len(causes)), causes=causes, notes=_placeholder(text))
    notes = (*(Finding(note.message, note.line) for note in document.notes), *_placeholder(text))
    mended = document.text if document.text != text.replace("\r\n", "\n") else ""
    review = api.review(actor, JOBS, document.object)
    causes = findings([*review.causes, *misspelled(document.object)], document)
    warnings = noted(review.warnings, document)
    holding = effective_values.of(document.object, review.object, ClusterView())
    if causes:
        return Report(
            False, _count(len(causes)), causes=causes, notes=notes, warnings=warnings, text=mended, held=holding
        )
    hopeless = noted(start_preview.warnings(review.object), document)
    warnings = (*hopeless, *warnings)
    verdict = "This job would be accepted."
    if hopeless:
        verdict = COULD_NOT_START
    elif warnings:
        many = "one thing" if len(warnings) == 1 else f"{len(warnings)} things"
        verdict = f"This job would be accepted, with {many} to know first."
    return Report(
        True, verdict, summary=summary(review.object), notes=notes, warnings=warnings, text=mended, held=holding
    )


def _placeholder(text: str) -> tuple[Finding, ...]:
    """Return a note if a text has placeholders: only a sweep gives them values, a job does not."""
    first = placeholders.first(text)
    if first is None:
        return ()
    written, line = first
    return (Finding(f"{written} gets values in a sweep alone; make a sweep of this job, or write a value here.", line),)


def misspelled(job: dict[str, Any]) -> list[Cause]:
    """Return causes that refuse unknown fields, as kubectl does: nobody writes them on purpose."""
    unknown = schema.misspelled(job, definitions.of(JOBS)).items()
    remedies = {path: f"{near} is the nearest that there is" if near else "remove it" for path, near in unknown}
    return [
        Cause("FieldValueForbidden", f"There is no field {path}; {remedy}.", path) for path, remedy in remedies.items()
    ]


def noted(warnings: Sequence[str], document: Document) -> tuple[Finding, ...]:
    """Return admission's warnings at fields and lines, without unknown fields, which are refused here."""
    notes = []
    for text in warnings:
        if text.startswith(_UNKNOWN):
            continue
        path, separator, sentence = text.partition(": ")
        if separator and _PATH.fullmatch(path):
            notes.append(Finding(_sentence(sentence), document.line_of(path), 0, path))
        else:
            notes.append(Finding(_sentence(text)))
    return tuple(notes)


def refused(report: Report, error: ApiError) -> Report:
    """Return the report of a correct text that was refused all the same, such as by a full database."""
    cause = Finding(_sentence(error.message))
    return replace(report, accepted=False, verdict="The job was not created; your text is still here.", causes=(cause,))


def findings(causes: Sequence[Cause], document: Document) -> tuple[Finding, ...]:
    """Return causes as findings at fields and lines."""
    problems = []
    for cause in causes:
        # How to write a string that YAML reads as another type, such as the name `n`.
        how = ""
        if cause.message.endswith("must be of type string, not boolean"):
            how = "; YAML reads words like yes, no, on, off, y and n as true or false: put it in quotes"
        elif cause.message.endswith(("must be of type string, not integer", "must be of type string, not number")):
            how = "; put it in quotes"
        problems.append(Finding(_sentence(cause.message + how), document.line_of(cause.field), 0, cause.field))
    return tuple(problems)


def summary(job: dict[str, Any]) -> str:
    """Return what a job requests: `5 pods of 2 tasks; 4 must start together. 1.2 CPU and 320 MiB memory in all.`"""
    tasks = job["spec"].get("tasks") or []
    pods = sum(task.get("replicas", 0) for task in tasks)
    requested: amounts.Amounts = {}
    for task in tasks:
        request = amounts.pod_request(task["template"]["spec"])
        requested = amounts.add(requested, {name: amount * task.get("replicas", 0) for name, amount in request.items()})
    requested.pop("pods", None)
    wanted = " and ".join(amounts.show(name, amount) for name, amount in sorted(requested.items()) if amount)
    minimum = job["spec"].get("minAvailable", 0)
    together = f"{minimum} must start together" if minimum > 1 else "they start one by one"
    if minimum == pods > 1:
        together = "all start together"
    many = f"{pods} {'pod' if pods == 1 else 'pods'} of {len(tasks)} {'task' if len(tasks) == 1 else 'tasks'}"
    text = f"{many}{f'; {together}' if pods > 1 else ''}. {f'{wanted} in all.' if wanted else 'No requests are set.'}"
    asking = [task["name"] for task in tasks if simulation.asks(task["template"]["spec"])]
    if asking:
        which = "The pods" if len(asking) == len(tasks) else f"Those of {', '.join(asking)}"
        text = f"{text} {which} run on simulated nodes, where nothing is executed."
    return text


def copy_text(namespace: str, name: str, uid: str = "") -> str | None:
    """Return the YAML of a copy of a job under a free name; None if the job is unknown.

    With a uid, it is of that job, even if deleted; without, of the one that has the name or had it last.
    """
    living = store.find(JOBS, namespace=namespace, name=name, limit=1)
    source = living[0] if living and uid in ("", living[0].uid) else None
    if source is None and (recorded := past_runs.of_deleted(namespace, name, uid)):
        source = past_runs.stored_of(recorded)
    if source is None:
        return None
    return yaml_write.dump(yaml_write.copy_of(source.object, yaml_write.next_name(name, _taken(namespace, name))))


def template_text(template: Stored) -> str:
    """Return the YAML of a template's job, under the template's name if that is free."""
    namespace, name = template.namespace, template.name
    existing = _taken(namespace, name)
    if name in existing:
        name = yaml_write.next_name(name, existing)
    metadata = {"name": name, "namespace": namespace}
    spec = lenient.mapping(template.object, "spec")
    return yaml_write.dump({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec})


def _taken(namespace: str, name: str) -> frozenset[str]:
    """Return job names that the name of a copy might clash with."""
    stem = name.rpartition("-")[0] or name
    return frozenset(stored.name for stored in store.find(JOBS, namespace=namespace, text=stem, limit=5000))


def _count(number: int) -> str:
    return (
        "One problem keeps this from being a job." if number == 1 else f"{number} problems keep this from being a job."
    )


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:] if text[:1].islower() and " " in text else text
    return text if text.endswith((".", "!", "?")) else f"{text}."
