"""Topics: pieces of page that can be rendered again, and the changes that make them stale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.safestring import SafeString, mark_safe

from cluster.access import Actor


class Watch(NamedTuple):
    """The changes that make a topic stale: None matches everything.

    resource is a resource's id (`jobs.batch.volcano.sh`), owner the uid of the
    controller owner.
    """

    resource: str
    namespace: str | None = None
    name: str | None = None
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class TopicRequest:
    """The actor who subscribes to a topic, and the parameters."""

    actor: Actor
    params: QueryDict


@dataclass(frozen=True, slots=True)
class Parts:
    """A rendered topic.

    parts maps the id of an element to its whole HTML. order lists the ids of
    the container's children, from the first to the last; None means that the
    members never change. A part that is not in order is found by its id
    anywhere on the page. again is the moment (epoch ms) from which the parts
    would be others although nothing changed, or None.

    Parts are shared by every reader with the same rights, so they hold neither
    a reader's name nor a CSRF token, and the same state always gives the same text.
    """

    parts: Mapping[str, str]
    order: list[str] | None = None
    watches: list[Watch] = field(default_factory=list)
    again: int | None = None

    def html(self, ids: Iterable[str] | None = None) -> SafeString:
        """The parts named by ids, by default those in order, as one text for the page's first showing."""
        chosen = (self.order or []) if ids is None else ids
        return mark_safe("".join(self.parts[each] for each in chosen))  # noqa: S308  the parts are rendered templates


Render = Callable[[TopicRequest], Parts]
_topics: dict[str, Render] = {}


def topic(name: str) -> Callable[[Render], Render]:
    """Register a function that renders the topic.

    It runs in a thread, inside `store.reading()`, and raises
    kube.errors.Forbidden when the actor may not see it.
    """

    def register(render: Render) -> Render:
        if (first := _topics.get(name)) is not None:
            raise ValueError(f"{first.__module__} and {render.__module__} both render the topic {name}.")
        _topics[name] = render
        return render

    return register


def find(name: str) -> Render | None:
    """The function that renders the topic, or None when there is no such topic."""
    return _topics.get(name)


def address(name: str, params: Mapping[str, str]) -> str:
    """Write a topic in its one canonical spelling, so that equal views share a rendering."""
    pairs = sorted((key, value) for key, value in params.items() if value)
    return f"{name}?{urlencode(pairs)}" if pairs else name


def parse(text: str) -> tuple[str, QueryDict]:
    """Split `name?query`; the query is read as a page's query is."""
    name, _, query = text.partition("?")
    return name, QueryDict(query)
