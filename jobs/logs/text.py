"""What containers printed, as a terminal shows it: one line, its colours, and its links.

A line is drawn as on a terminal of no width: a carriage return goes back to its beginning, and what comes then takes
the place of what stood there. Other lines cannot be reached from it, and each begins without colours, so that a
line looks the same wherever reading begins. Nothing that is printed does anything else: sequences that are not
about the line are left out, and control characters that terminals show in no way become pictures.

Ready libraries were weighed. Those for colours know no carriage returns and write styles into the page, which its
security policy forbids; emulators of terminals have a width, take a character at a time, and keep no place for a search.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from jobs.logs import pens
from jobs.logs.pens import Pen

MOST_CELLS = 1_000_000  # of a line; what is printed behind them is in the download
MOST_MOVED = 1000  # columns that a sequence moves or clears: no terminal is wider
MOST_RUNS = 2000  # that a line has; what follows is plain
RUN_LENGTH = 2000  # of one run, so that of a line that grows little is sent again
MOST_ADDRESS = 2000  # characters
MOST_STRING = MOST_ADDRESS + 500  # of a sequence that holds an address
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
    rf"\bhttps?://[^\s<>\"'`{{}}|\\^\u2026\u200b-\u200f\u202a-\u202e\u2066-\u2069\u2400-\u2426]{{1,{MOST_ADDRESS}}}"
)
_ANEW = re.compile(rb"[\r\n]|\x1b\[2K|\x1b\[1?G")
# Shown as a picture; what terminals leave out is left out, and what is none of these is not text at all.
_PICTURES = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\x7f": "\u2421"}
_SILENT = dict.fromkeys("\x07\x0e\x0f", "")


class Run(NamedTuple):
    """A stretch of a line that looks alike: its text, its CSS classes, and the address that it links to, if any."""

    text: str
    classes: str = ""
    link: str = ""


def written(runs: Sequence[Run]) -> str | list[list[str]]:
    """Return runs as messages have them: one that is nothing but text as it is, others as lists without empty ends."""
    if not runs or (len(runs) == 1 and runs[0][1:] == ("", "")):
        return runs[0].text if runs else ""
    return [list(run) if run.link else list(run[: 1 + bool(run.classes)]) for run in runs]


class PrintedLine:
    """A line that is printed, in one piece or in many: the pieces it is made of do not change what is shown."""

    def __init__(self) -> None:
        self.states = 0  # how often what was shown was overwritten from the beginning of the line
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._has_begun = False
        self._only: str | None = None  # the text of a line that needs no drawing, as most
        self._rest = ""  # of a sequence that has begun
        self._string: str | None = None  # what has come of a string sequence
        self._cells: list[str] = []
        self._pens: list[Pen] = []
        self._pen = Pen()
        self._at = 0
        self._has_returned = False

    def feed(self, data: bytes, *, whole: bool = False) -> None:
        """Take a piece; with `whole` it is the last."""
        text = self._rest + self._decoder.decode(data, final=whole)
        if whole and not self._has_begun and len(text) <= RUN_LENGTH and _CLEAN.fullmatch(text) and "://" not in text:
            self._only = text  # one run of text, whatever it is drawn with
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
        """Return what is shown as runs."""
        if self._only is not None:
            return [Run(self._only)]
        text, drawn = self.text, self._pens
        edges = [at for at, (one, other) in enumerate(pairwise(drawn), 1) if one is not other and one != other]
        if len(edges) > MOST_RUNS:
            end = edges[MOST_RUNS]
            edges = edges[: MOST_RUNS + 1]
            drawn = [*drawn[:end], *[Pen()] * (len(drawn) - end)]
        addresses = list(_addresses(text))[:MOST_RUNS]
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
        """Take what stands at a place of the text, and return where it ends."""
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
        string = self._string = string + text[at : min(end, at + MOST_STRING - len(string))]
        if not found:
            return len(text)
        if found[0] == "\x1b" and found.end() == len(text):
            self._rest = "\x1b"  # which may be half of the end
            return len(text)
        self._string = None
        is_whole = found[0] in "\x07\x9c" or text.startswith("\x1b\\", found.start())
        if is_whole and string.startswith("]8;"):
            address = _HYPERLINK.fullmatch(string, 1)
            is_one = len(string) < MOST_STRING and address and _ADDRESS.fullmatch(address[1])
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
            case "K" | "J":  # of a screen the line is all that can be reached
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
        self._at = min(max(at, 0), max(len(self._cells), MOST_MOVED))

    def _erase(self, what: int) -> None:
        """Erase to the end of the line (0), from its beginning (1), or all of it (2)."""
        if what > 2:
            return
        self._has_returned |= what == 2
        self._note_state()
        if what == 1:
            begin, end = max(self._at + 1 - MOST_MOVED, 0), min(self._at + 1, len(self._cells))
            self._put(begin, " " * (end - begin), Pen())
            return
        begin = self._at if what == 0 else 0
        del self._cells[begin:]
        del self._pens[begin:]
        self._at = min(self._at, max(len(self._cells), MOST_MOVED))

    def _write(self, text: str) -> None:
        self._note_state()
        if self._at > len(self._cells):
            gap = " " * (self._at - len(self._cells))
            self._put(len(self._cells), gap, Pen())
        text = text[: MOST_CELLS - self._at]
        self._put(self._at, text, self._pen)
        self._at += len(text)

    def _put(self, at: int, text: str, pen: Pen) -> None:
        self._cells[at : at + len(text)] = text
        self._pens[at : at + len(text)] = [pen] * len(text)

    def _note_state(self) -> None:
        """Count what is about to be overwritten."""
        self.states += self._has_returned and bool(self._cells)
        self._has_returned = False


def plain(data: bytes) -> str:
    """Return what is shown of a whole line, as text alone."""
    line = PrintedLine()
    line.feed(data, whole=True)
    return line.text


def of_lines(text: str) -> str:
    """Return what is shown of a text of many lines, such as the last words of a container in its status."""
    return "\n".join(plain(line.encode(errors="replace")) for line in text.split("\n"))


def states(data: bytes) -> list[str]:
    """Return what a line has said one after the other: what was shown each time before it was written anew."""
    found = (plain(each).rstrip() for each in _ANEW.split(data))
    return [each for each in found if each]


def _addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yield where http and https addresses stand, without what ends a sentence or closes a bracket around them."""
    for found in _ADDRESS.finditer(text):
        address, end = found[0], len(found[0])
        unopened = {closed: address.count(closed) - address.count(opened) for opened, closed in ("()", "[]")}
        while address[end - 1] in ".,;:!?*" or unopened.get(address[end - 1], 0) > 0:
            end -= 1
            if address[end] in unopened:
                unopened[address[end]] -= 1
        if end > len("https://"):
            yield found.start(), found.start() + end
