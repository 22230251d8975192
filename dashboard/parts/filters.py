"""Filters of a list as data: their valid values and their labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

LONGEST_VALUE = 253  # no name of Kubernetes is longer


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter besides the text; without `choices` every name is valid, `hidden` means that chips offer it.

    `words` has the labels of choices that differ from their values. A filter of another kind than "choice" is a text
    field with a `hint`, or a moment in UTC; `problem` then returns what is wrong with a value, "" for a valid one.
    `more` puts it behind "More filters".
    """

    name: str
    title: str
    choices: tuple[str, ...] = ()
    everything: str = "All"
    hidden: bool = False
    words: Mapping[str, str] = field(default_factory=dict)
    kind: Literal["choice", "text", "moment"] = "choice"
    hint: str = ""
    problem: Callable[[str], str] | None = None
    longest: int = LONGEST_VALUE
    more: bool = False

    def label(self, value: str) -> str:
        """Return the label of a value."""
        return self.words.get(value, value)

    def read(self, value: str, notes: list[str]) -> str:
        """Return a valid value; for another one return "", and add a note that says why it was left out."""
        value = plain_text(self.title.lower(), value, notes, longest=self.longest)
        if value and self.choices and value not in self.choices:
            notes.append(f"There is no {self.title.lower()} “{value[:40]}”; the filter was left out.")
            return ""
        if value and self.problem is not None and (wrong := self.problem(value)):
            notes.append(f"The filter {self.title.lower()} was left out: {wrong}")
            return ""
        return value

    def options(self, chosen: str, offered: Sequence[str]) -> list[Choice]:
        """Return the options; a chosen value that is not offered becomes one as well."""
        values = [*(self.choices or offered)]
        if chosen and chosen not in values:
            values.append(chosen)
        return [
            Choice("", self.everything, not chosen),
            *(Choice(value, self.label(value), value == chosen) for value in values),
        ]


@dataclass(frozen=True, slots=True)
class Choice:
    """One option of a filter's select box."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Field:
    """A filter as the form shows it: its value and, for a choice, its options."""

    filter: Filter
    value: str
    options: Sequence[Choice] = ()


def plain_text(title: str, value: str, notes: list[str], *, longest: int = LONGEST_VALUE) -> str:
    """Return a value without the blanks around it; for one that is too long or unprintable return "", with a note."""
    value = value.strip()
    if len(value) > longest or not value.isprintable():
        notes.append(f"The filter {title} was left out: it is too long or has unprintable characters.")
        return ""
    return value
