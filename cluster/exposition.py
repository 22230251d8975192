"""Prometheus' text format, and who besides the API server has figures to show in it.

An application registers a source when it starts. It is asked at each scrape for what the actor may see, so nothing is counted
while nobody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from cluster.access import Actor

Labels = Mapping[str, str]


class Family(NamedTuple):
    """Series of one name, with their labels and values; kind is gauge or counter."""

    name: str
    kind: str
    text: str
    samples: Iterable[tuple[Labels, float]]


_sources: list[Callable[[Actor], Iterable[Family]]] = []


def register(source: Callable[[Actor], Iterable[Family]]) -> None:
    """Have a source asked at each scrape; it reads the store in the thread of the request."""
    _sources.append(source)


def lines(actor: Actor) -> list[str]:
    """Return what all sources have for an actor, as lines; a family without series is left out."""
    result: list[str] = []
    for source in _sources:
        for family in source(actor):
            series = [sample(family.name, labels, value) for labels, value in family.samples]
            if series:
                result += [*head(family.name, family.kind, family.text), *series]
    return result


def head(name: str, kind: str, text: str) -> Iterable[str]:
    """Return the lines before the series of a family."""
    return (f"# HELP {name} {text}", f"# TYPE {name} {kind}")


def sample(name: str, labels: Labels, value: float) -> str:
    """Return the line of one series."""
    listed = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{listed}}} {value}" if listed else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
