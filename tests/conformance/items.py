"""What the reference of Volcano's Job asks for, item by item, and what is done about each."""

from __future__ import annotations

from typing import NamedTuple


class Item(NamedTuple):
    """Something that the reference says, in our own words.

    Nothing more is said of what is done as Volcano does it. `differs` is the
    topic of the line in docs/differences.md that tells what is done instead;
    `missing` says why nothing is.
    """

    title: str
    differs: str = ""
    missing: str = ""


class Section(NamedTuple):
    """A section of the reference: its number, and its items by what stands behind the slash of their ids."""

    number: str
    title: str
    items: dict[str, Item]

    def ids(self):
        """The items by their ids: `3.1/PodFailed`."""
        return {f"{self.number}/{key}": item for key, item in self.items.items()}


def section(number, title, items):
    """Return a section; an item that is as in Volcano is written as its title alone."""
    made = {key: Item(each) if isinstance(each, str) else each for key, each in items.items()}
    return Section(number, title, made)


def differs(title, topic):
    """Return an item that is done otherwise than in Volcano, as docs/differences.md says under a topic."""
    return Item(title, differs=topic)


def not_done(title, why):
    """Return an item that is not done, and why."""
    return Item(title, missing=why)
