"""Lines that containers printed, as a terminal shows them, with colours and links.

A line is drawn as on a terminal of unlimited width: a carriage return goes back to its beginning, and what follows
overwrites what was there. A line cannot reach other lines, and each begins without colours, so that it looks the same
wherever reading begins. Output has no other effect: sequences that do not concern the line are dropped, and control
characters that terminals do not show become pictures.

Existing libraries do not fit: those for colours do not handle carriage returns and write styles into the page, which its
security policy forbids; terminal emulators have a width, take one character at a time, and cannot be searched.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from jobs.logs import pens
from jobs.logs.pens import Pen

MAX_CELLS = 1_000_000  # characters of a line; anything after them is only in the download
MAX_MOVED = 1000  # columns that a sequence moves or clears at most: no terminal is wider
MAX_RUNS = 2000  # runs of a line; the rest of it is plain
RUN_LENGTH = 2000  # characters of a run, so that little of a growing line is sent again
MAX_ADDRESS = 2000  # characters
MAX_STRING = MAX_ADDRESS + 500  # characters of a sequence that holds an address
_CLEAN = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f-\x9f]+")  # tabs are text
_SEQUENCE = re.compile(
    r"\x1b(?:\[(?P<numbers>[0-?]{0,128})[ -/]{0,8}(?P<final>[@-~])"  # CSI
    r"|(?P<string>[\]PX^_])"  # OSC, DCS, SOS, PM, APC: up to their end, see _END
    r"|[ -/]{0,8}[0-OQ-WYZ\\`-~])"
)
_BEGUN = re.compile(r"\x1b(?:\[[0-?]{0,128}[ -/]{0,8}|[ -/]{0,8})")
_END = re.compile(r"[\x07\x18\x1a\x1b\x9c]")
_HYPERLINK = re.compile(r"8;[^;]*;(https?://.*)", re.DOTALL)
_ADDRESS = re.compile(
    rf"\bhttps?://[^\s<>\"'`{{}}|\\^\u2026\u200b-\u200f\u202a-\u202e\u2066-\u2069\u2400-\u2426]{{1,{MAX_ADDRESS}}}"
)
_ANEW = re.compile(rb"[\r\n]|\x1b\[2K|\x1b\[1?G")
# Control characters that are shown as a picture, and those that terminals drop; any other is shown as U+FFFD.
_PICTURES = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\x7f": "\u2421"}
_SILENT = dict.fromkeys("\x07\x0e\x0f", "")


class Run(NamedTuple):
    """A part of a line with one look: its text, its CSS classes, and the address that it links to, "" for none."""

    text: str
    classes: str = ""
    link: str = ""


def written(runs: Sequence[Run]) -> str | list[list[str]]:
    """Return runs for a message: a single run of plain text as its text, others as lists without empty last items."""
    if not runs or (len(runs) == 1 and runs[0][1:] == ("", "")):
        return runs[0].text if runs else ""
    return [list(run) if run.link else list(run[: 1 + bool(run.classes)]) for run in runs]


class PrintedLine:
    """A printed line, fed in one piece or in many, with the same result."""

    def __init__(self) -> None:
        self.states = 0  # how often the line was overwritten from its beginning
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._has_begun = False
        self._only: str | None = None  # the text of a line that needs no drawing, as most lines
        self._rest = ""  # an escape sequence that is not complete yet
        self._string: str | None = None  # the part of a string sequence so far
        self._cells: list[str] = []
        self._pens: list[Pen] = []
        self._pen = Pen()
        self._at = 0
        self._has_returned = False

    def feed(self, data: bytes, *, whole: bool = False) -> None:
        """Add a piece; with `whole` it is the last one."""
        text = self._rest + self._decoder.decode(data, final=whole)
        if whole and not self._has_begun and len(text) <= RUN_LENGTH and _CLEAN.fullmatch(text) and "://" not in text:
            self._only = text  # one run of plain text
            return
        self._has_begun = True
        self._rest = ""
        at = 0
        while at < len(text):
            at = self._string_end(text, at) if self._string is not None else self._step(text, at, whole=whole)

    @property
    def text(self) -> str:
        return "".join(self._cells) if self._only is None else self._only

    def runs(self) -> list[Run]:
        """Return the line as runs."""
        if self._only is not None:
            return [Run(self._only)]
        text, drawn = self.text, self._pens
        edges = [at for at, (one, other) in enumerate(pairwise(drawn), 1) if one is not other and one != other]
        if len(edges) > MAX_RUNS:
            end = edges[MAX_RUNS]
            edges = edges[: MAX_RUNS + 1]
            drawn = [*drawn[:end], *[Pen()] * (len(drawn) - end)]
        addresses = list(_addresses(text))[:MAX_RUNS]
        cuts = {0, len(text), *edges, *range(0, len(text), RUN_LENGTH)}
        cuts.update(edge for span in addresses for edge in span)
        coming = iter([*addresses, (len(text), len(text))])
        begin, end = next(coming)
        found = []
        for start, stop in pairwise(sorted(cuts)):
            while start >= end and begin < len(text):
                begin, end = next(coming)
            link = text[begin:end] if begin <= start else drawn[start].link
            found.append(Run(text[start:stop], drawn[start].classes, link))
        return found

    def _step(self, text: str, at: int, *, whole: bool) -> int:
        """Handle the text or sequence at a position, and return the position after it."""
        if clean := _CLEAN.match(text, at):
            self._write(clean[0])
            return clean.end()
        if (sign := text[at]) != "\x1b":
            if sign == "\r":
                self._at, self._has_returned = 0, self._has_returned or self._at > 0
            elif sign == "\b":
                self._at = max(self._at - 1, 0)
            elif picture := _SILENT.get(sign, _PICTURES.get(sign, "\ufffd")):
                self._write(picture)
            return at + 1
        if sequence := _SEQUENCE.match(text, at):
            if sequence["string"]:
                self._string = sequence["string"]
            elif sequence["final"]:
                self._act(sequence["final"], sequence["numbers"])
            return sequence.end()
        begun = _BEGUN.match(text, at)
        end = begun.end() if begun else at + 1
        if end == len(text) and not whole:
            self._rest = text[at:]
        return end

    def _string_end(self, text: str, at: int) -> int:
        found = _END.search(text, at)
        string = self._string or ""
        end = found.start() if found else len(text)
        string = self._string = string + text[at : min(end, at + MAX_STRING - len(string))]
        if not found:
            return len(text)
        if found[0] == "\x1b" and found.end() == len(text):
            self._rest = "\x1b"  # may be the first half of the terminator
            return len(text)
        self._string = None
        is_whole = found[0] in "\x07\x9c" or text.startswith("\x1b\\", found.start())
        if is_whole and string.startswith("]8;"):
            address = _HYPERLINK.fullmatch(string, 1)
            is_one = len(string) < MAX_STRING and address and _ADDRESS.fullmatch(address[1])
            self._pen = self._pen._replace(link=address[1] if address and is_one else "")
        return found.start() if found[0] == "\x1b" else found.end()

    def _act(self, final: str, numbers: str) -> None:
        if final == "m":
            if not numbers or numbers[0] not in "<=>?":
                self._pen = pens.changed(self._pen, numbers)
            return
        first, _, second = numbers.partition(";")
        number = int(first) if first.isascii() and first.isdigit() else 0
        match final:
            case "K" | "J":  # J erases the screen, of which only this line can be reached
                self._erase(number)
            case "G" | "`":
                self._move(number - 1)
            case "H" | "f":
                self._move((int(second) if second.isascii() and second.isdigit() else 0) - 1)
            case "E" | "F":
                self._move(0)
            case "C":
                self._move(self._at + max(number, 1))
            case "D":
                self._move(self._at - max(number, 1))

    def _move(self, at: int) -> None:
        self._has_returned |= at <= 0 < self._at
        self._at = min(max(at, 0), max(len(self._cells), MAX_MOVED))

    def _erase(self, what: int) -> None:
        """Erase to the end of the line (0), from its beginning (1), or all of it (2)."""
        if what > 2:
            return
        self._has_returned |= what == 2
        self._note_state()
        if what == 1:
            begin, end = max(self._at + 1 - MAX_MOVED, 0), min(self._at + 1, len(self._cells))
            self._put(begin, " " * (end - begin), Pen())
            return
        begin = self._at if what == 0 else 0
        del self._cells[begin:]
        del self._pens[begin:]
        self._at = min(self._at, max(len(self._cells), MAX_MOVED))

    def _write(self, text: str) -> None:
        self._note_state()
        if self._at > len(self._cells):
            gap = " " * (self._at - len(self._cells))
            self._put(len(self._cells), gap, Pen())
        text = text[: MAX_CELLS - self._at]
        self._put(self._at, text, self._pen)
        self._at += len(text)

    def _put(self, at: int, text: str, pen: Pen) -> None:
        self._cells[at : at + len(text)] = text
        self._pens[at : at + len(text)] = [pen] * len(text)

    def _note_state(self) -> None:
        """Count the line's state that is about to be overwritten, if any."""
        self.states += self._has_returned and bool(self._cells)
        self._has_returned = False


def plain(data: bytes) -> str:
    """Return the shown text of a whole line, without colours and links."""
    line = PrintedLine()
    line.feed(data, whole=True)
    return line.text


def of_lines(text: str) -> str:
    """Return the shown text of several lines, such as a container's termination message."""
    return "\n".join(plain(line.encode(errors="replace")) for line in text.split("\n"))


def states(data: bytes) -> list[str]:
    """Return the successive states of a line: what was shown each time before it was rewritten, without empty ones."""
    found = (plain(each).rstrip() for each in _ANEW.split(data))
    return [each for each in found if each]


def _addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of http and https addresses, without punctuation or a closing bracket after them."""
    for found in _ADDRESS.finditer(text):
        address, end = found[0], len(found[0])
        unopened = {closed: address.count(closed) - address.count(opened) for opened, closed in ("()", "[]")}
        while address[end - 1] in ".,;:!?*" or unopened.get(address[end - 1], 0) > 0:
            end -= 1
            if address[end] in unopened:
                unopened[address[end]] -= 1
        if end > len("https://"):
            yield found.start(), found.start() + end
