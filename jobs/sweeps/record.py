"""The record of a sweep: a ConfigMap that owns its jobs and holds the YAML, the values and the names.

So a sweep can be found, read and deleted with its jobs by Kubernetes' own means, also with kubectl.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.sweeps import values
from jobs.sweeps.plan import SWEEP_LABEL, Plan
from jobs.sweeps.values import Values
from kube import lenient
from kube.indexes import HOLDS_LABEL, HOLDS_SWEEP
from kube.owners import controller_of

SUFFIX = ".sweep"  # of the ConfigMap's name; no job's plugin makes a ConfigMap of such a name
TEXT, VALUES, JOBS = "job.yaml", "values.csv", "jobs"


@dataclass(frozen=True)
class Record:
    """A sweep as it was made: the YAML with its placeholders, the values, and the name of the job of each row."""

    name: str
    text: str
    values: Values
    jobs: tuple[str, ...]


def write(plan: Plan, text: str) -> dict[str, Any]:
    """Return the ConfigMap of a sweep; its data never changes."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": holder_of(plan.name),
            "namespace": plan.namespace,
            "labels": {HOLDS_LABEL: HOLDS_SWEEP, SWEEP_LABEL: plan.name},
        },
        "immutable": True,
        "data": {TEXT: text, VALUES: plan.values.csv(), JOBS: "\n".join(plan.jobs)},
    }


def read(config_map: Mapping[str, Any]) -> Record | None:
    """Return the sweep that a ConfigMap records; None if it is no valid record, such as one written by hand."""
    data = lenient.mapping(config_map, "data")
    text, table, jobs = (lenient.text(data, key) for key in (TEXT, VALUES, JOBS))
    try:
        table_values = values.from_csv(table)
    except values.ValuesError:
        return None
    names = tuple(jobs.split("\n"))
    if len(names) != len(table_values.rows):
        return None
    return Record(name_of(lenient.text(config_map, "metadata", "name")), text, table_values, names)


def holder_of(name: str) -> str:
    """Return the name of the ConfigMap that records a sweep."""
    return f"{name}{SUFFIX}"


def sweep_of(job: Mapping[str, Any]) -> str:
    """Return the name of the sweep that a job belongs to, "" for none."""
    owner = controller_of(dict(job))
    is_holder = owner is not None and owner.kind == "ConfigMap" and owner.name.endswith(SUFFIX)
    return name_of(owner.name) if owner is not None and is_holder else ""


def name_of(config_map: str) -> str:
    """Return the sweep's name, given the name of its ConfigMap."""
    return config_map.removesuffix(SUFFIX)
