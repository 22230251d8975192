"""The parameters that a template declares: names, meanings, kinds and defaults, and the job that their values give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.sweeps.placeholders import Template, typed
from jobs.sweeps.values import LONGEST_VALUE, ValueProblem, ValuesError

WHOLE, TEXT, CHOICE = "whole", "text", "choice"
KINDS = (WHOLE, TEXT, CHOICE)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One value that the user of a template gives: name is its placeholder's, meaning says what it is for.

    kind is `whole` (a whole number, at least `least`), `choice` (one of choices) or `text`.
    """

    name: str
    meaning: str
    default: str = ""
    kind: str = TEXT
    least: int = 1
    choices: tuple[str, ...] = ()

    def problem(self, value: str) -> str:
        """Return what is wrong with a value and what to do, "" if it is valid."""
        if not value.strip():
            return "This value is missing; write one."
        if len(value) > LONGEST_VALUE:
            return f"This value has {len(value):,} characters; {LONGEST_VALUE:,} are allowed."
        if self.kind == WHOLE:
            number = typed(value.strip())
            if not isinstance(number, int) or isinstance(number, bool) or number < self.least:
                return f"This has to be a whole number, at least {self.least}."
        if self.kind == CHOICE and value not in self.choices:
            return f"This has to be one of {', '.join(self.choices)}."
        return ""


def fill(template: Template, parameters: Sequence[Parameter], values: Mapping[str, str]) -> dict[str, Any]:
    """Return a template's job with the values filled in; raise ValuesError with a problem for each wrong parameter."""
    problems = [
        ValueProblem(problem, column=each.name)
        for each in parameters
        if (problem := each.problem(values.get(each.name, "")))
    ]
    if problems:
        raise ValuesError(*problems)
    return template.render({each.name: values[each.name].strip() for each in parameters})
