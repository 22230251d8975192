"""A request that a client sent, and what a kube-apiserver answered; and the files that keep them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

RECORDINGS = Path(__file__).parent / "recordings"
JSON = "application/json"
STAGE = "stage"  # the client that plays what controllers and kubelets do; nobody's traffic


class Exchange(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One request and its answer.

    What a server makes up, such as uids, stands as a symbol: `<uid:1>` is the same in all that one file has. The path
    has the query; agent is what the client says it is, user and groups whom it acts as. A watch's answer is the list of its events; a body that is no JSON is text. `is_left_out` says of an
    answer that was too large to keep. `times` is how often it was the same.
    """

    client: str
    command: str
    method: str
    path: str
    accept: str = ""
    content_type: str = ""
    agent: str = ""
    user: str = ""
    groups: list[str] = []
    body: Any = None
    status: int = 0
    answer_type: str = ""
    warnings: list[str] = []
    answer: Any = None
    is_left_out: bool = False
    times: int = 1


def is_watch(path: str) -> bool:
    """Whether a path with its query asks for a watch."""
    return parse_qs(urlsplit(path).query).get("watch", ["false"])[0].lower() in {"1", "t", "true"}


def names() -> list[str]:
    """Return the names of the recordings that are kept."""
    return sorted(file.stem for file in RECORDINGS.glob("*.jsonl"))


def load(name: str) -> list[Exchange]:
    """Return what was recorded under a name."""
    lines = (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Exchange) for line in lines]


def keep(name: str, exchanges: list[Exchange]) -> None:
    """Write a recording, one exchange a line."""
    lines = [json.dumps(msgspec.to_builtins(each), ensure_ascii=False, separators=(",", ":")) for each in exchanges]
    (RECORDINGS / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
