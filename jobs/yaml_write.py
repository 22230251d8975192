"""Objects as YAML that people like to read and that kubectl reads as it was meant."""

from __future__ import annotations

import re
from typing import Any

import yaml

from jobs import yaml_scalar

_SYSTEM_METADATA = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
    "selfLink",
)
_OURS = ("ui.volcano.sh/created-by", "ui.volcano.sh/submission")
_NUMBERED = re.compile(r"(.*?)-(\d{1,6})\Z")


class _Dumper(yaml.SafeDumper):
    """Writes strings so that YAML 1.1 readers see strings, and texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text and not text.startswith((" ", "\n", "\t")) and not re.search(r"[ \t]\n|[^\n\t -~\u00a0-\ud7ff]", text):
        style = "|"
    elif not isinstance(yaml_scalar.resolve(text), str):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


def dump(obj: dict[str, Any]) -> str:
    """Return an object as YAML, its fields in the order that they have."""
    head = {key: obj[key] for key in ("apiVersion", "kind", "metadata", "spec") if key in obj}
    return yaml.dump({**head, **obj}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def copy_of(job: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a job as somebody would have written it: without its status and what the system added."""
    metadata = {key: value for key, value in job["metadata"].items() if key not in _SYSTEM_METADATA}
    annotations = {key: value for key, value in (metadata.pop("annotations", None) or {}).items() if key not in _OURS}
    metadata.pop("generateName", None)
    metadata = {"name": name, **{key: value for key, value in metadata.items() if key != "name"}}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "metadata": metadata,
        "spec": job.get("spec", {}),
    }


def next_name(name: str, taken: frozenset[str]) -> str:
    """Return the first name of name-2, name-3 … that is not taken; 63 characters at most."""
    numbered = _NUMBERED.match(name)
    stem, number = (numbered[1], int(numbered[2])) if numbered else (name, 1)
    while True:
        number += 1
        candidate = f"{stem[: 62 - len(str(number))]}-{number}"
        if candidate not in taken:
            return candidate
