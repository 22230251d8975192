"""Objects as YAML that people like to read and that kubectl reads as it was meant."""

from __future__ import annotations

import re
from typing import Any

import yaml

from kube.meta import SERVER_METADATA
from kube.volcano.evictions import FIRST_EVICTED
from kube.yaml import scalar

_SYSTEM_METADATA = (*SERVER_METADATA, "ownerReferences", "finalizers", "managedFields")
_OURS = ("ui.volcano.sh/created-by", "ui.volcano.sh/submission", FIRST_EVICTED)
_NUMBERED = re.compile(r"(.*?)-(\d{1,6})\Z")


class _Dumper(yaml.SafeDumper):
    """Writes strings so that YAML 1.1 readers see strings, and texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


# Line ends that only some YAML readers know, and characters that none allows unescaped.
_ODD = re.compile(r"[^\n\t -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_NO_BLOCK = re.compile(r"\A[ \t\n]|[ \t]\n|[ \t]\Z")


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if _ODD.search(text) or not isinstance(scalar.resolve(text), str):
        style = '"'
    elif "\n" in text and not _NO_BLOCK.search(text):
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _string)


def dump(obj: dict[str, Any]) -> str:
    """Return an object as YAML; apiVersion, kind, metadata and spec come first."""
    head: dict[str, Any] = {key: obj[key] for key in ("apiVersion", "kind", "metadata", "spec") if key in obj}
    return yaml.dump(head | obj, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def copy_of(job: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a job as somebody would have written it: without its status and what the system added."""
    metadata: dict[str, Any] = {key: value for key, value in job["metadata"].items() if key not in _SYSTEM_METADATA}
    written: dict[str, str] = metadata.pop("annotations", None) or {}
    annotations = {key: value for key, value in written.items() if key not in _OURS}
    metadata.pop("generateName", None)
    metadata = {"name": name, **{key: value for key, value in metadata.items() if key != "name"}}
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": metadata, "spec": job.get("spec", {})}


def next_name(name: str, existing: frozenset[str]) -> str:
    """Return the first name of name-2, name-3 … that is not taken; 63 characters at most."""
    numbered = _NUMBERED.match(name)
    stem, number = (numbered[1], int(numbered[2])) if numbered else (name, 1)
    while True:
        number += 1
        candidate = f"{stem[: 62 - len(str(number))]}-{number}"
        if candidate not in existing:
            return candidate
