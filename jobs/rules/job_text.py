"""The YAML of the job editor: a text becomes one Volcano Job, or problems with their lines.

The Job seed's examples are accepted as printed. Their `event: *` and indented `...` are not YAML, so
they are mended where the parser itself fails; a star or dots inside a string or a comment never make
it fail, and so never change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from kube import lenient
from kube.yaml import scalar
from kube.yaml.problem import Problem, YamlError, from_parser
from kube.yaml.tree import Plain, Tree, trees

MAX_BYTES = 1 << 20
MAX_MENDS = 200
MAX_MENDING_BYTES = 1 << 21  # each slip costs one more pass over the text
API_VERSION, KIND = "batch.volcano.sh/v1alpha1", "Job"
# Kubernetes writes requests[cpu] where the YAML has the key cpu of requests.
_KEY_IN_BRACKETS = re.compile(r"\[([A-Za-z_][\w-]*)\]")
_BARE_STAR = re.compile(r"\*(?=[\s,\]}]|\Z)")


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was accepted although it was not written correctly."""

    message: str
    line: int


@dataclass(frozen=True, slots=True)
class Document:
    """One Job read from YAML. text is that YAML after mending: equal to the input unless notes say otherwise."""

    object: dict[str, Any]
    text: str
    notes: tuple[Note, ...] = ()
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)

    def line_of(self, path: str) -> int:
        """Return the line of a field, or of the nearest field around it that is written; 0 if none is."""
        path = _KEY_IN_BRACKETS.sub(r".\1", path)
        while path:
            for spelling in (path, path.replace("spec.tasks", "spec.taskSpecs", 1)):
                if spelling in self.positions:
                    return self.positions[spelling][0]
            path = path[: path.rfind("[")] if path.endswith("]") and "[" in path else path.rpartition(".")[0]
        return 0


def read(text: str, plain: Plain = scalar.resolve) -> Document:
    """Return the one Job in text; raise YamlError with every problem and its line.

    `plain` resolves an unquoted value.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise YamlError(Problem("The text holds half a character (a lone surrogate).", line, 1)) from None
    if size > MAX_BYTES:
        raise YamlError(Problem(f"The text has {size:,} bytes; a job may have at most {MAX_BYTES:,}."))
    if not text.strip():
        raise YamlError(Problem("The text is empty; write a job, or begin from a sample.", 1, 1))
    notes: list[Note] = []
    documents: list[Tree] | None = None
    while documents is None:
        try:
            documents = list(trees(text, plain))
        except yaml.YAMLError as error:
            affordable = len(notes) < MAX_MENDS and (len(notes) + 1) * len(text) <= MAX_MENDING_BYTES
            mended = _mend(text, error) if affordable else None
            if mended is None:
                raise YamlError(from_parser(error, text)) from None
            text, note = mended
            notes.append(note)
    tree = _only_job(documents)
    job, more = _renamed(tree)
    return Document(job, text, tuple(sorted([*notes, *more], key=lambda note: note.line)), tree.positions)


def _mend(text: str, error: yaml.YAMLError) -> tuple[str, Note] | None:
    """Return the text with the slip at which the parser stopped mended, and a note; None if it is not the seeds'."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.context_mark is None:
        return None
    mark = error.context_mark
    lines = text.split("\n")
    if mark.line >= len(lines):
        return None
    line, column = lines[mark.line], mark.column
    if error.context == "while scanning an alias" and _BARE_STAR.match(line, column):
        lines[mark.line] = f'{line[:column]}"*"{line[column + 1 :]}'
        note = Note('* without quotes is not YAML; it was read as "*", which means every event.', mark.line + 1)
    elif line.strip() == "..." and line[column:].startswith("..."):
        lines[mark.line] = f"{line[:column]}# ..."
        note = Note("The indented ... was left out; it stands for lines that are not shown.", mark.line + 1)
    else:
        return None
    return "\n".join(lines), note


def _only_job(documents: list[Tree]) -> Tree:
    documents = [part for document in documents for part in _items(document)]
    if not documents:
        raise YamlError(Problem("The text holds only comments; write a job below them.", 1, 1))
    if len(documents) > 1:
        named = ", ".join(f"{_name(document.value)} (line {document.line})" for document in documents[:5])
        more = f" and {len(documents) - 5} more" if len(documents) > 5 else ""
        message = f"The text holds {len(documents)} objects: {named}{more}. The editor takes one; remove the others."
        raise YamlError(Problem(message, documents[1].line, 1))
    only = documents[0]
    if not isinstance(only.value, dict):
        what = "a list" if isinstance(only.value, list) else "a single value"
        message = f"The text is {what}; a job is a mapping that begins with apiVersion."
        raise YamlError(Problem(message, only.line, 1))
    problems = [*only.problems, *only.duplicates, *only.odd_keys, *_kind_problems(only)]
    if problems:
        raise YamlError(*sorted(problems, key=lambda problem: problem.line))
    return only


def _items(document: Tree) -> list[Tree]:
    """Return the items of a List, each as if it stood alone."""
    value = document.value
    if not isinstance(value, dict) or value.get("kind") != "List" or not isinstance(value.get("items"), list):
        return [document]
    items = []
    for index, item in enumerate(value["items"]):
        prefix = f"items[{index}]"
        positions = {
            path.removeprefix(prefix + "."): position
            for path, position in document.positions.items()
            if path.startswith(prefix + ".")
        }
        line = document.positions.get(prefix, (document.line, 1))[0]
        items.append(replace(document, value=item, line=line, positions=positions))
    return items


def _name(value: Any) -> str:
    if not isinstance(value, dict):
        return "something that is not an object"
    return f"{value.get('kind') or 'object'} {lenient.text(value, 'metadata', 'name') or 'without a name'}"


def _kind_problems(tree: Tree) -> list[Problem]:
    version, kind = tree.value.get("apiVersion"), tree.value.get("kind")
    if (version, kind) == (API_VERSION, KIND):
        return []
    missing = [
        Problem(f"{key} is missing; write {key}: {wanted}.", tree.line, 1, key)
        for key, written, wanted in (("apiVersion", version, API_VERSION), ("kind", kind, KIND))
        if not written
    ]
    if missing:
        return missing
    path = "apiVersion" if version != API_VERSION else "kind"
    identified = f"This is {kind} of {version}"
    if kind == KIND and str(version).startswith("batch/"):
        identified += ", the Job of Kubernetes itself"
    line = tree.positions.get(path, (tree.line, 1))[0]
    message = f"{identified}; this editor takes a Job of {API_VERSION}."
    if str(version).startswith("scheduling.volcano.sh/") and kind == "Queue":
        message += " A queue is made on the page Queues, under New queue, or with kubectl."
    return [Problem(message, line, 1, path)]


def _renamed(tree: Tree) -> tuple[dict[str, Any], list[Note]]:
    """Return the job with the seed's older spellings replaced, and a note for each."""
    job: dict[str, Any] = tree.value
    notes: list[Note] = []
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return job, notes
    if "taskSpecs" in spec and "tasks" not in spec:
        job["spec"] = spec = {("tasks" if key == "taskSpecs" else key): spec[key] for key in spec}
        notes.append(Note("taskSpecs is the older name of tasks; it was read as tasks.", _at(tree, "spec.taskSpecs")))
        tree.positions |= {
            path.replace("spec.taskSpecs", "spec.tasks", 1): position
            for path, position in tree.positions.items()
            if path.startswith("spec.taskSpecs")
        }
    tasks = spec.get("tasks")
    for index, task in enumerate(tasks if isinstance(tasks, list) else []):
        notes += _pod_spellings(tree, task, f"spec.tasks[{index}].template.spec")
    volumes = spec.get("volumes")
    for index, volume in enumerate(volumes if isinstance(volumes, list) else []):
        if isinstance(volume, dict) and "claim" in volume and "volumeClaim" not in volume:
            claim = volume.pop("claim")
            volume["volumeClaim"] = claim.get("spec", claim) if isinstance(claim, dict) else claim
            line = _at(tree, f"spec.volumes[{index}].claim")
            notes.append(Note("claim is the older name of volumeClaim; it was read as volumeClaim.", line))
    return job, notes


def _pod_spellings(tree: Tree, task: Any, path: str) -> list[Note]:
    template = task.get("template") if isinstance(task, dict) else None
    pod = template.get("spec") if isinstance(template, dict) else None
    if not isinstance(pod, dict):
        return []
    notes = []
    if "priorityClass" in pod and "priorityClassName" not in pod:
        pod["priorityClassName"] = pod.pop("priorityClass")
        line = _at(tree, f"{path}.priorityClass")
        notes.append(Note("priorityClass was read as priorityClassName, its name in Kubernetes.", line))
    if isinstance(pod.get("containers"), dict):
        pod["containers"] = [pod["containers"]]
        line = _at(tree, f"{path}.containers")
        notes.append(Note("containers holds one container without its dash; it was read as a list of one.", line))
    return notes


def _at(tree: Tree, path: str) -> int:
    return tree.positions.get(path, (0, 0))[0]
