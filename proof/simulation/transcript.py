"""A story as people read it: what was done, and what the log says came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster import clock
from cluster.store import Change, store
from kube.meta import Object
from proof.simulation import story
from proof.simulation.parts import troubles
from proof.simulation.story import Move
from proof.simulation.world import World

QUIET = frozenset({"leases.coordination.k8s.io"})
WIDE = 150


class Transcript:
    """Notes each move with the changes that it led to; hand `note` to `play.again`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.revision = 0
        self.answered = 0
        self.states: dict[str, dict[str, str]] = {}

    def note(self, world: World, move: Move) -> None:
        """Write down what a move did."""
        self.lines.append(f"{_time(world)}  {_move(move)}")
        for request, answer in world.answers[self.answered :]:
            self.lines.append(f"            ↳ {request.method} {request.path} → {answer.status or 'no answer'}")
        self.answered = len(world.answers)
        for change in store.changes(max(self.revision, store.compacted()), limit=100_000):
            self.revision = change.revision
            if change.resource not in QUIET and (text := self._change(change)):
                self.lines.append(text)

    def _change(self, change: Change) -> str:
        key = f"{change.resource.partition('.')[0]}/{change.key.lstrip('/')}"
        now = {} if change.verb == "DELETED" else _facts(change.object)
        before = self.states.get(key, {})
        self.states[key] = now
        if change.verb == "MODIFIED":
            words = [f"{name}: {before.get(name, '–')} → {now.get(name, '–')}"
                     for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]  # fmt: skip
            what = ", ".join(words) or "(changed)"
        else:
            what = change.verb.lower() + (f" {_plain(now)}" if now else "")
        return f"      {change.revision:>6}  {key}  {what}"[:WIDE]


def _facts(obj: Object) -> dict[str, str]:
    """Return what matters most of an object."""
    spec, status, meta = obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"]
    state = status.get("state")
    found = {
        "phase": (state or {}).get("phase") if isinstance(state, dict) else state or status.get("phase"),
        "node": spec.get("nodeName"),
        "deleting": "yes" if meta.get("deletionTimestamp") else None,
        "finalizers": " ".join(meta.get("finalizers") or ()) or None,
        "unschedulable": spec.get("unschedulable"),
        "minMember": spec.get("minMember"),
        "replicas": " ".join(f"{t.get('name')}×{t.get('replicas')}" for t in spec.get("tasks") or ()) or None,
        "message": obj.get("message") or status.get("message"),
        "ready": _ready(status.get("conditions")),
    }
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


def _ready(conditions: Any) -> str | None:
    """Return whether the condition Ready holds; a flow has a mapping where others have a list of conditions."""
    listed = conditions if isinstance(conditions, list) else ()
    return next((each["status"] for each in listed if each.get("type") == "Ready"), None)


def _plain(facts: dict[str, str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in facts.items())


def _time(world: World) -> str:
    seconds = world.clock.monotonic()
    wall = clock.milliseconds() // 1000 % 86400
    return f"{seconds:>10.3f} s ({wall // 3600:02}:{wall // 60 % 60:02}:{wall % 60:02})"


def _move(move: Move) -> str:
    return WORDS[type(move)](move)


def _run(move: story.Run) -> str:
    inside = [f"\n              before its statement {move.at}: {_move(m)}" for m in move.between]
    return f"{move.process} takes a step{_fault(move)}" + "".join(inside)


def _ask(move: story.Ask) -> str:
    request = move.request
    return (request.wish or f"{request.actor}: {request.method} {request.path}") + _fault(move)


def _fault(move: story.Run | story.Ask) -> str:
    if move.dies:
        return f", and is killed ({move.dies}, {move.at})"
    return f", and the database is {move.fails} (statement {move.at})" if move.fails else ""


LIE_TEXTS = {
    "stale": "a node tells how a pod was before",
    "gone": "a node tells how a pod is that is gone",
    "twice": "a node tells of a pod what it has told",
    "elsewhere": "a node says that a pod of another node has ended",
    "again": "the process node says that a pod runs again which has succeeded",
    "resized": "a node says that it has other processors",
    "ready": "a node is called Ready that is not heard of",
}


def _trouble(move: story.Trouble) -> str:
    match move.what:
        case troubles.CUT:
            return "the API server's watches are cut"
        case troubles.FORGETS:
            return "the API server forgets its history"
        case troubles.SLOW:
            return f"the next {move.requests} requests take {move.us / 1e6:g} s each"
        case troubles.FORGOTTEN:
            return f"the next {move.requests} watches go on from what the API server has forgotten"
    return f"of the next {move.requests} requests: {move.what}"


WORDS: dict[type, Callable[[Any], str]] = {
    story.Ask: _ask,
    story.Run: _run,
    story.Pass: lambda move: f"{move.us / 1e6:g} s pass",
    story.Rest: lambda move: f"everybody works for {move.us / 1e6:g} s",
    story.Kill: lambda move: f"{move.process} is killed",
    story.Start: lambda move: f"{move.process} starts",
    story.Messages: lambda move: f"messages: {move.what}",
    story.Clean: lambda move: "retention runs",
    story.SetClock: lambda move: f"the wall clock is set by {move.by_us / 1e6:+g} s",
    story.Harm: lambda move: f"on the process node: {move.what}",
    story.Lie: lambda move: LIE_TEXTS[move.what],
    story.Grant: lambda move: f"{move.user} {'loses' if move.lost else 'becomes'} {move.role} in {move.namespace}",
    story.Trouble: _trouble,
    story.Settle: lambda move: "all faults end, and everything comes to rest",
}
