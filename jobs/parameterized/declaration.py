"""Saved templates: a JobTemplate whose annotation holds the YAML with placeholders and declares each of them.

The JobTemplate's spec is the job filled with the defaults, so flows use it like any other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.made import jobs
from jobs.parameterized.parameters import CHOICE, KINDS, TEXT, Parameter, fill
from jobs.rules.admission import JobRulesView
from jobs.sweeps import placeholders
from jobs.sweeps.placeholders import Template
from kube import lenient
from kube.errors import Cause, NotFound
from kube.meta import Object
from kube.yaml.problem import YamlError

ANNOTATION = "ui.volcano.sh/parameters"
FIELD = f"metadata.annotations[{ANNOTATION}]"
_KEYS = ("name", "meaning", "default", "kind", "choices")


class DeclarationError(ValueError):
    """A declaration is invalid; problems says why."""

    def __init__(self, *problems: str) -> None:
        super().__init__(" ".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Declaration:
    """A job's YAML with placeholders, and a parameter for each of them."""

    yaml: str
    parameters: tuple[Parameter, ...]
    template: Template

    @property
    def defaults(self) -> dict[str, str]:
        return {each.name: each.default for each in self.parameters}

    def job(self) -> dict[str, Any]:
        """Return the job filled with the defaults."""
        return fill(self.template, self.parameters, self.defaults)


def declare(yaml: str, parameters: Sequence[Parameter]) -> Declaration:
    """Return the declaration of a YAML's placeholders; raise DeclarationError if it is invalid."""
    try:
        template = placeholders.read(yaml)
    except YamlError as error:
        yaml_problems = (f"Line {each.line}. {each.message}" if each.line else each.message for each in error.problems)
        raise DeclarationError(*yaml_problems) from None
    declared = [each.name for each in parameters]
    problems = [
        f"The placeholder {name} is not declared; declare it." for name in template.names if name not in declared
    ]
    problems += [
        f"{name} is declared, and the YAML has no such placeholder; take it away."
        for name in dict.fromkeys(declared)
        if name not in template.names
    ]
    problems += [f"{name} is declared twice." for name in dict.fromkeys(declared) if declared.count(name) > 1]
    for each in parameters:
        if each.kind not in KINDS:
            problems.append(f"{each.name}: there is no kind {each.kind}; use one of {', '.join(KINDS)}.")
        elif each.kind == CHOICE and not each.choices:
            problems.append(f"{each.name}: a choice needs choices; write some.")
        elif problem := each.problem(each.default):
            problems.append(f"{each.name}, its default: {problem}")
        if not each.meaning.strip():
            problems.append(f"{each.name}: say what it means.")
    if not template.names:
        problems.append("The YAML has no placeholder; write {{name}} where a value is to be given.")
    if problems:
        raise DeclarationError(*problems)
    return Declaration(yaml, tuple(parameters), template)


def read(template: Mapping[str, Any]) -> Declaration | None:
    """Return a JobTemplate's declaration, None if it has none; raise DeclarationError if it is invalid."""
    text = lenient.text(template, "metadata", "annotations", ANNOTATION)
    if not text:
        return None
    try:
        declared = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DeclarationError(f"This is not JSON: {error}.") from None
    parameters = [
        Parameter(
            lenient.text(each, "name"),
            lenient.text(each, "meaning"),
            lenient.text(each, "default"),
            lenient.text(each, "kind") or TEXT,
            choices=tuple(lenient.texts(each, "choices")),
        )
        for each in lenient.sequence(declared, "parameters")
    ]
    return declare(lenient.text(declared, "yaml"), parameters)


def of_stored(template: Mapping[str, Any]) -> Declaration:
    """Return a stored JobTemplate's declaration; raise NotFound if it has none or an invalid one."""
    name = lenient.text(template, "metadata", "name")
    try:
        declared = read(template)
    except DeclarationError as error:
        raise NotFound(f"The parameters of the template {name} cannot be read: {error}") from None
    if declared is None:
        raise NotFound(f"The template {name} declares no parameters.")
    return declared


def write(declaration: Declaration, namespace: str, name: str) -> dict[str, Any]:
    """Return the JobTemplate of a declaration."""
    parameters = [{key: getattr(each, key) for key in _KEYS} for each in declaration.parameters]
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {ANNOTATION: json.dumps({"yaml": declaration.yaml, "parameters": parameters})},
        },
        "spec": declaration.job().get("spec"),
    }


def validate(template: Object, old: Object | None, view: JobRulesView) -> list[Cause]:
    """Return what is wrong with a JobTemplate's new declaration, each cause at the annotation."""
    text = lenient.text(template, "metadata", "annotations", ANNOTATION)
    if not text or (old is not None and text == lenient.text(old, "metadata", "annotations", ANNOTATION)):
        return []
    try:
        declared = read(template)
    except DeclarationError as error:
        return [Cause("FieldValueInvalid", problem, FIELD) for problem in error.problems]
    job = {} if declared is None else declared.job()
    name, namespace = (lenient.text(template, "metadata", key) for key in ("name", "namespace"))
    causes = jobs.check_spec(name, namespace, lenient.mapping(job, "spec"), view, "spec")
    return [cause._replace(message=f"{cause.field}: {cause.message}", field=FIELD) for cause in causes]
