"""What is wrong with a YAML text, in words, at a line and a column."""

from __future__ import annotations

from dataclasses import dataclass

import yaml


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with the text; line and column count from 1, and 0 means the text as a whole."""

    message: str
    line: int = 0
    column: int = 0
    field: str = ""


class YamlError(ValueError):
    """The text is not what it should be, for `problems`, in the order of the lines."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(" ".join(problem.message for problem in problems))
        self.problems = problems


_WORDS = {
    "mapping values are not allowed in this context": (
        "A second colon stands in this value, or the line is indented too far; put the value in quotes or mend the indentation."
    ),
    "did not find expected key": (
        "A key is expected here; the indentation differs from the lines above, or a quote is missing before."
    ),
    "could not find expected ':'": "This line has no colon; write it as key: value.",
    "did not find expected '-' indicator": (
        "A list item (- …) is expected here; the indentation differs from the items above."
    ),
    "block sequence entries are not allowed in this context": "A list cannot begin here; put it on a line of its own.",
    "found unexpected end of stream": "The quote that opens here is never closed.",
    "did not find expected ',' or ']'": "The list opened with [ needs a comma or a closing ] here.",
    "did not find expected ',' or '}'": "The mapping opened with { needs a comma or a closing } here.",
    "did not find expected node content": "A value is missing here.",
    "found a tab character that violates indentation": "The line is indented with a tab; YAML allows only spaces there.",
    "found unknown escape character": "This \\ escape does not exist; double it, or use single quotes.",
    "found undefined tag handle": "The tag after ! is not known; put the value in quotes.",
    "did not find expected alphabetic or numeric character": "The name after & or * is missing.",
    "did not find expected <document start>": "The text goes on after the document has ended; mend the indentation.",
}


def from_parser(error: yaml.YAMLError, text: str) -> Problem:
    """Return the problem that the YAML parser stumbled over."""
    if not isinstance(error, yaml.MarkedYAMLError):
        position = getattr(error, "position", 0)
        line = text.count("\n", 0, position) + 1
        return Problem("The text holds a control character, which YAML does not allow.", line, 1)
    mark = error.problem_mark or error.context_mark
    at_start = {"found unexpected end of stream", "could not find expected ':'"}
    if error.problem in at_start and error.context_mark is not None:
        mark = error.context_mark
    if mark is None:
        return Problem(_sentence(error.problem))
    message = _character(text, mark) if "cannot start any token" in (error.problem or "") else ""
    return Problem(message or _sentence(error.problem), mark.line + 1, mark.column + 1)


def _sentence(problem: str | None) -> str:
    wording = _WORDS.get(problem or "")
    return wording or f"This is not valid YAML: {problem or 'it cannot be read'}."


def _character(text: str, mark: yaml.Mark) -> str:
    lines = text.split("\n")
    line = lines[mark.line] if mark.line < len(lines) else ""
    found = line[mark.column : mark.column + 1]
    if found == "\t" or "\t" in line[: len(line) - len(line.lstrip())]:
        return _WORDS["found a tab character that violates indentation"]
    if line[mark.column :].startswith("```"):
        return "``` fences a text in Markdown and is no YAML; remove the lines that begin with it."
    return f"A value cannot begin with {found}; put it in quotes." if found else ""
