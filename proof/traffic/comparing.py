"""How an answer differs from the recorded one, by JSON path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from proof.traffic.symbols import Bindings

NOTHING = "(nothing)"


class Difference(NamedTuple):
    """One value that is another: where, what was recorded, and what was answered instead."""

    at: str
    recorded: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.at}: {_short(self.recorded)} → {_short(self.found)}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 300 else f"{text[:300]}…"


def differences(recorded: Any, found: Any, bindings: Bindings, at: str = "") -> Iterator[Difference]:
    """Yield where found is something else than recorded; learn what its symbols stand for."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        yield from _of_objects(recorded, found, bindings, at)
    elif isinstance(recorded, list) and isinstance(found, list):
        yield from _of_lists(recorded, found, bindings, at)
    elif isinstance(recorded, str) and isinstance(found, str):
        # A list is as new as the newest of anything, which others may have written.
        if not bindings.matches(recorded, found, is_bound=at not in {"metadata.resourceVersion"}):
            yield Difference(at, recorded, found)
    elif recorded != found or type(recorded) is not type(found):
        yield Difference(at, recorded, found)


def _of_objects(recorded: dict[str, Any], found: dict[str, Any], bindings: Bindings, at: str) -> Iterator[Difference]:
    for key in dict.fromkeys((*recorded, *found)):
        path = f"{at}.{key}" if at else key
        if key not in found:
            yield Difference(path, recorded[key], NOTHING)
        elif key not in recorded:
            yield Difference(path, NOTHING, found[key])
        else:
            yield from differences(recorded[key], found[key], bindings, path)


def _of_lists(recorded: list[Any], found: list[Any], bindings: Bindings, at: str) -> Iterator[Difference]:
    if at.endswith("verbs"):  # which are a set
        recorded, found = sorted(recorded), sorted(found)
    for name in NAMES:
        theirs, ours = _by_name(name, recorded, bindings), _by_name(name, found)
        if theirs is not None and ours is not None:
            yield from _of_named(theirs, ours, bindings, at)
            return
    if len(recorded) != len(found):
        yield Difference(at, recorded, found)
        return
    for number, (one, other) in enumerate(zip(recorded, found, strict=True)):
        yield from differences(one, other, bindings, f"{at}[{number}]")


def _of_named(recorded: dict[str, Any], found: dict[str, Any], bindings: Bindings, at: str) -> Iterator[Difference]:
    for name in dict.fromkeys((*recorded, *found)):
        one, other = recorded.get(name, NOTHING), found.get(name, NOTHING)
        yield from differences(one, other, bindings, f"{at}[{name}]")
    ours, theirs = ([each for each in names if each in found and each in recorded] for names in (found, recorded))
    if ours != theirs and not at.endswith("managedFields"):  # which are sorted by second
        yield Difference(f"{at}[order]", theirs, ours)


def _metadata(value: Any) -> str:
    return f"{value['metadata'].get('namespace', '')}/{value['metadata']['name']}"


# By what an item of a list is known: the first that all items have.
NAMES: tuple[Callable[[Any], str], ...] = (
    _metadata,
    lambda item: _metadata(item["object"]),
    lambda item: f"{item['manager']} {item['operation']} {item.get('subresource', '')}",
    lambda item: str(item["name"]),
    lambda item: f"{item['version']} {item['kind']}" if "kind" in item else str(item["version"]),
    lambda item: str(item["type"]),
    lambda item: str(item["resource"]),
    lambda item: str(item["subresource"]),
)


def _by_name(name: Callable[[Any], str], items: list[Any], bindings: Bindings | None = None) -> dict[str, Any] | None:
    """Return items by their names, or those that symbols stand for; None where one has none, or two have the same."""
    try:
        found = {bindings.fill_bound(name(item)) if bindings else name(item): item for item in items}
    except (KeyError, TypeError):
        return None
    return found if len(found) == len(items) else None
