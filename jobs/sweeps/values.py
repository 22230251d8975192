"""The values of a sweep: rows typed into a table, the product of a grid, or CSV.

The result is always one table: a name for each column, and for each job a
row with a text for each name. Problems are reported by row and column.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.sweeps.placeholders import is_placeholder_name

MAX_ROWS = 10_000
MAX_PROBLEMS = 20  # reported at once
LONGEST_VALUE = 4096  # characters
_ALLOWED = "\t\n"  # besides what can be printed
_CSV_ERRORS = {  # words of the csv module → what they mean
    "unexpected end of data": 'a quote is opened and never closed; write "" for a quote inside quotes',
    "expected after": 'something follows a closing quote; write "" for a quote inside quotes',
    "field larger": f"a value is too long, or a quote is never closed; {LONGEST_VALUE:,} characters are allowed",
}


@dataclass(frozen=True, slots=True)
class ValueProblem:
    """One problem of the values. row counts jobs from 1, line the lines of a CSV text; 0 means no certain one."""

    message: str
    row: int = 0
    column: str = ""
    line: int = 0


class ValuesError(ValueError):
    """The values are invalid; problems says why, at most MAX_PROBLEMS of them."""

    def __init__(self, *problems: ValueProblem) -> None:
        super().__init__(" ".join(problem.message for problem in problems[:MAX_PROBLEMS]))
        self.problems = problems[:MAX_PROBLEMS]


@dataclass(frozen=True, slots=True)
class Values:
    """A table of values: the names of its columns, and a row for each job."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def row(self, index: int) -> dict[str, str]:
        """Return the values of a row by name."""
        return dict(zip(self.names, self.rows[index], strict=True))

    def csv(self) -> str:
        """Return the table as CSV, which `from_csv` reads as the same table."""
        out = io.StringIO(newline="")
        # Quote all values, so that they keep leading spaces.
        writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(self.names)
        writer.writerows(self.rows)
        return out.getvalue()


def from_csv(text: str) -> Values:
    """Read CSV whose first line names the columns; raise ValuesError if it is invalid.

    The separator is the comma or, if the first line has none, the semicolon
    or the tab. Blank lines and a byte order mark are ignored.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = _lines(text)
    first = next(lines, None)
    if first is None:
        raise ValuesError(ValueProblem("There are no values; write the names of the placeholders in the first line."))
    names = tuple(cell.strip() for cell in first[1])
    problems = []
    for number, name in enumerate(names, 1):
        if not name:
            message = f"Column {number} has no name; write that of its placeholder in the first line."
            problems.append(ValueProblem(message))
        elif not is_placeholder_name(name):
            message = (
                f"The column name {name!r} cannot be that of a placeholder: it needs letters, digits, _ and -,"
                " begins with a letter and ends with no dash; 63 characters at most."
            )
            problems.append(ValueProblem(message, column=name))
        elif name in names[: number - 1]:
            message = f"The column {name} stands twice; remove one of the two."
            problems.append(ValueProblem(message, column=name))
    if problems:
        raise ValuesError(*problems)
    rows, line_numbers = [], []
    for line, cells in lines:
        rows.append(tuple(cells))
        line_numbers.append(line)
        if len(rows) > MAX_ROWS:
            raise ValuesError(_too_many(f"more than {MAX_ROWS:,}"))
    return _checked(names, rows, line_numbers)


def from_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Values:
    """Return the table of typed rows; empty rows are dropped before rows are counted."""
    filled = [tuple(cell.strip() for cell in row) for row in rows]
    return _checked(tuple(names), [row for row in filled if any(row)], [])


def from_grid(choices: Mapping[str, str]) -> Values:
    """Combine every value of each name with every value of the others; the last name changes fastest.

    Values are separated as in `from_csv`, or by newlines; one that contains either is in double quotes.
    """
    problems: list[ValueProblem] = []
    columns = [_choices(name, text, problems) for name, text in choices.items()]
    if problems:
        raise ValuesError(*problems)
    if (number := math.prod(map(len, columns))) > MAX_ROWS:
        product = " × ".join(str(len(column)) for column in columns)
        raise ValuesError(_too_many(f"{product} = {number:,}"))
    return _checked(tuple(choices), list(itertools.product(*columns)) if choices else [], [])


def choice(value: str) -> str:
    """Quote a value so that `from_grid` reads one value."""
    if value == value.strip() and not set(value) & set(',"\n;\t'):
        return value
    return '"' + value.replace('"', '""') + '"'


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line at which each row begins, and its cells; blank rows are left out."""
    header = text.lstrip("\n").partition("\n")[0]
    separator = next((each for each in ",;\t" if each in header), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True, skipinitialspace=True)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        why = next((meaning for words, meaning in _CSV_ERRORS.items() if words in str(error)), str(error))
        raise ValuesError(ValueProblem(f"Line {line} cannot be read: {why}.", line=line)) from None


def _choices(name: str, text: str, problems: list[ValueProblem]) -> list[str]:
    try:
        choices = [cell.strip() for _, cells in _lines(text.replace("\r\n", "\n")) for cell in cells]
    except ValuesError as error:
        problems += [ValueProblem(f"{name}: {each.message}", column=name) for each in error.problems]
        return []
    choices = [cell for cell in choices if cell]
    if not choices:
        problems.append(ValueProblem(f"{name} has no values; write some, separated by commas.", column=name))
    for value in sorted(cell for cell, times in Counter(choices).items() if times > 1):
        problems.append(ValueProblem(f"{name} has the value {value} twice; remove one.", column=name))
    return choices


def _checked(names: tuple[str, ...], rows: Sequence[tuple[str, ...]], lines: Sequence[int]) -> Values:
    """Return the table; raise ValuesError if rows are wrong."""
    if not rows:
        raise ValuesError(ValueProblem("There are no rows; each row of values makes one job."))
    if len(rows) > MAX_ROWS:
        raise ValuesError(_too_many(f"{len(rows):,}"))
    problems: list[ValueProblem] = []
    for number, row in enumerate(rows, 1):
        line = lines[number - 1] if lines else 0
        if len(row) != len(names):
            message = f"Row {number} has {len(row)} values for {len(names)} columns ({', '.join(names)})."
            message = f"{message} Put values that hold a separator into double quotes."
            problems.append(ValueProblem(message, number, line=line))
            continue
        for name, value in zip(names, row, strict=True):
            if problem := _problem_of(value):
                message = f"Row {number}: the value of {name} {problem}."
                problems.append(ValueProblem(message, number, name, line))
        if len(problems) >= MAX_PROBLEMS:
            break
    if problems:
        raise ValuesError(*problems)
    return Values(names, tuple(rows))


def _problem_of(value: str) -> str:
    if not value.strip():
        return "is missing; write one, or remove the row"
    if len(value) > LONGEST_VALUE:
        return f"has {len(value):,} characters; {LONGEST_VALUE:,} are allowed"
    if not value.isprintable() and any(not (c.isprintable() or c in _ALLOWED) for c in value):
        return "holds a character that cannot be printed; remove it"
    return ""


def _too_many(what: str) -> ValueProblem:
    message = f"These values make {what} jobs; a sweep has at most {MAX_ROWS:,}. Make several sweeps of them."
    return ValueProblem(message)
