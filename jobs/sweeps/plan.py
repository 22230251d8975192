"""Which jobs a sweep makes: their names and labels, and what is wrong with the sweep before anything is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.sweeps.placeholders import Template
from jobs.sweeps.values import MAX_PROBLEMS, ValueProblem, Values, ValuesError
from kube import lenient, names

SWEEP_LABEL = "ui.volcano.sh/sweep"  # on each job: the sweep's name
VALUE_PREFIX = "value.ui.volcano.sh/"  # followed by a placeholder's name: the annotation with a job's value
LONGEST_NAME = 63  # of a job, whose name is a label of its pods


@dataclass(frozen=True, slots=True)
class Plan:
    """A sweep to be made: its name, its namespace, and the names of its jobs, one for each row of values."""

    template: Template
    values: Values
    namespace: str
    name: str
    jobs: tuple[str, ...]

    @property
    def unused(self) -> tuple[str, ...]:
        """The columns that no placeholder uses."""
        return tuple(name for name in self.values.names if name not in self.template.names)

    def job(self, index: int) -> dict[str, Any]:
        """Return the job of a row as an object."""
        values = self.values.row(index)
        job = self.template.render(values)
        metadata = {key: value for key, value in job["metadata"].items() if key != "generateName"}
        metadata |= {
            "name": self.jobs[index],
            "namespace": self.namespace,
            "labels": _with(metadata.get("labels"), {SWEEP_LABEL: self.name}),
            "annotations": _with(
                metadata.get("annotations"), {f"{VALUE_PREFIX}{name}": value for name, value in values.items()}
            ),
        }
        return job | {"metadata": metadata}

    def objects(self) -> Iterator[dict[str, Any]]:
        return (self.job(index) for index in range(len(self.jobs)))


def plan(template: Template, values: Values) -> Plan:
    """Return the plan of a sweep; raise ValuesError if template and values make none.

    A job's name is metadata.name with its values filled in or, if that has
    no placeholder, metadata.name and the number of its row.
    """
    stem = template.stem()
    problems = []
    if not template.names:
        problems.append(ValueProblem("The YAML has no placeholder; write {{name}} where jobs are to differ."))
    if not stem:
        message = "A sweep is named after its jobs; write a metadata.name that is more than placeholders."
        problems.append(ValueProblem(message))
    if template.holds_placeholder("metadata", "namespace"):
        message = "All jobs of a sweep lie in one namespace; write it out in metadata.namespace."
        problems.append(ValueProblem(message))
    for name in template.names:
        if name not in values.names:
            written = f"{{{{{name}}}}}"
            message = f"{written} stands in the YAML, and there are no values for {name}; give it some."
            message = f"{message} If it is no placeholder, give it the one value {written}."
            problems.append(ValueProblem(message, column=name))
    if problems:
        raise ValuesError(*problems)
    count = len(values.rows)
    if template.holds_placeholder("metadata", "name"):
        job_names = tuple(template.name(values.row(index)) for index in range(count))
    else:  # as many digits as the last one needs
        job_names = tuple(f"{stem}-{number:0{len(str(count))}d}" for number in range(1, count + 1))
    if problems := [*_name_problems(job_names)]:
        raise ValuesError(*problems)
    namespace = lenient.text(template.document.object, "metadata", "namespace") or "default"
    return Plan(template, values, namespace, stem, job_names)


def _name_problems(job_names: Sequence[str]) -> Iterator[ValueProblem]:
    first: dict[str, int] = {}
    count = 0
    for row, name in enumerate(job_names, 1):
        problem = ""
        if len(name) > LONGEST_NAME:
            problem = f"has {len(name)} characters; {LONGEST_NAME} are allowed: shorten metadata.name"
        elif names.dns_subdomain(name) is not None:
            problem = (
                "may hold only small letters, digits, dashes and dots, and has to begin and end with a letter or digit"
            )
        if name in first:
            problem = (
                f"is also that of row {first[name]}; put placeholders into metadata.name that tell them apart,"
                " or none, and the jobs are numbered"
            )
        first.setdefault(name, row)
        if problem:
            yield ValueProblem(f"Row {row}: the job's name {name} {problem}.", row)
            count += 1
            if count == MAX_PROBLEMS:
                return


def _with(mapping: Any, more: dict[str, str]) -> Any:
    """Return a mapping extended by more; what is no mapping is left for admission to refuse."""
    return (mapping or {}) | more if mapping is None or isinstance(mapping, dict) else mapping
