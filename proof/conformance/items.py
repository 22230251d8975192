"""What the reference asks for, item by item, and what is done about each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Item(NamedTuple):
    """Something that the reference says, in our own words.

    Nothing more is said of what is done as it is said there. `differs` is the
    topic of the line in docs/differences.md that tells what is done instead;
    `decided` is that of the line that tells why nothing is, on purpose; `missing`
    says why nothing is yet.
    """

    title: str
    differs: str = ""
    missing: str = ""
    decided: str = ""


class Wording(NamedTuple):
    """How a table speaks of its source: over the column with its rules, and of one that is kept."""

    column: str
    default: str


VOLCANO = Wording("What Volcano does", "as Volcano")
SEED = Wording("What the document asks for", "as asked")


class Section(NamedTuple):
    """A section of the reference: its number, and its items by what stands behind the slash of their ids."""

    number: str
    title: str
    items: dict[str, Item]
    wording: Wording = VOLCANO

    def ids(self) -> dict[str, Item]:
        """The items by their ids: `3.1/PodFailed`."""
        return {f"{self.number}/{key}": item for key, item in self.items.items()}


class Page(NamedTuple):
    """A page of docs/: its file, what it begins with, and its sections. No two pages have a section of one number."""

    file: str
    head: str
    sections: tuple[Section, ...]

    def ids(self) -> dict[str, Item]:
        """The items of all sections by their ids."""
        return {name: item for section in self.sections for name, item in section.ids().items()}


def section(number: str, title: str, items: Mapping[str, str | Item], wording: Wording = VOLCANO) -> Section:
    """Return a section; an item that is done as it is said is written as its title alone."""
    made = {key: Item(each) if isinstance(each, str) else each for key, each in items.items()}
    return Section(number, title, made, wording)


def differs(title: str, topic: str) -> Item:
    """Return an item that is done otherwise, as docs/differences.md says under a topic."""
    return Item(title, differs=topic)


def not_done(title: str, why: str) -> Item:
    """Return an item that is not done, and why."""
    return Item(title, missing=why)


def decided(title: str, topic: str) -> Item:
    """Return an item that is left out on purpose, for the reason that docs/differences.md says under a topic."""
    return Item(title, decided=topic)
