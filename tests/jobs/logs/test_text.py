"""What containers printed, as a terminal shows it."""

from __future__ import annotations

import re
import time
import unicodedata
from ast import literal_eval
from itertools import pairwise
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.logs.pens import Pen, changed
from jobs.logs.text import MOST_MOVED, ShownLine, plain, runs
from tests.blocks import blocks
from tests.dashboard import style
from tests.tables import cases

GOLDEN = Path(__file__).parents[2] / "golden" / "logs"
PARTS = st.sampled_from(
    ["a", "bc", "\N{VOLCANO}", "\t", "\r", "\b", "\x1b", "\x1b[", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[31m", "\x1b[38;5;20m", "1;", "m", "K",
     "\x1b]8;;https://e.x/", "\x1b]0;", "\x07", "\x1b\\", "\\", "\x9b", "\x00", " http://e.x", ")", "\x1b[9999C", "\x1b[3D", "\x1b(B", "\x1bP"]
) | st.text(max_size=3)  # fmt: skip
TEXTS = st.lists(PARTS, max_size=25).map("".join)


@blocks("terminal", folder="pages")
def test_what_is_printed_is_shown_as_a_terminal_does(block, golden):
    def shown(line):
        made = ShownLine()
        made.feed(literal_eval(line).encode(), whole=True)
        earlier = [f"{made.states} earlier states"] * bool(made.states)
        return [" ".join(filter(None, (ascii(run.text), run.classes, run.link))) for run in made.runs()] + earlier

    golden(block, shown, by_line=True)


def test_what_is_not_utf8_is_shown_as_such():
    assert [plain(each) for each in (b"a\xff\xfe", b"\xf0\x9f")] == ["a\ufffd\ufffd", "\ufffd"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_colour_is_a_class_that_keeps_contrast_in_both_themes(theme):
    sheets = settings.BASE_DIR / "frontend/styles"
    rules, tokens = (sheets / "components/log.css").read_text(), style.tokens(sheets / "tokens.css", theme)
    paper = re.search(r"--log-paper: light-dark\((#\w+), (#\w+)\)", rules)[1 + (theme == "dark")]
    codes = [*range(30, 38), *range(90, 98), *(f"38;5;{n}" for n in range(256))]
    codes += [f"38;2;{r};{g};{b}" for r in range(0, 256, 51) for g in range(0, 256, 51) for b in range(0, 256, 51)]
    inks = {changed(Pen(), str(code)).ink for code in codes} - {""}
    grounds = {changed(Pen(), str(code).replace("38;", "48;", 1)).ground for code in codes[16:]} - {""}
    for ink in inks:
        assert f".log-ink-{ink} {{\n  --log-ink: var(--{ink}-ink);" in rules
        assert style.contrast(tokens[f"--{ink}-ink"], paper) >= 4.5
    for ground in grounds:
        assert f".log-ground-{ground} {{\n  --log-ground: var(--{ground}-fill);" in rules
        for ink in [*(f"--{each}-ink" for each in inks), "--ink", "--ink-soft"]:
            assert style.contrast(tokens[ink], tokens[f"--{ground}-fill"]) >= 4.5


@given(TEXTS)
def test_no_control_character_is_shown_and_runs_are_the_text(text):
    shown = plain(text.encode(errors="replace"))
    assert [each for each in shown if unicodedata.category(each) == "Cc" and each != "\t"] == []
    made = runs([text.encode(errors="replace")])
    assert "".join(run.text for run in made) == shown
    assert all(run.link.startswith(("http://", "https://")) for run in made if run.link)
    assert all(run.text for run in made)


@given(TEXTS | st.binary(max_size=60), st.lists(st.integers(0, 80), max_size=8))
@example("\x1b]8;;https://e.x/" + "a" * 2400 + "\x07x", [3, 1990, 2001])
@example("\x1b[" + "1" * 300 + "mx", [2, 130, 131, 140])
def test_pieces_change_nothing(text, cuts):
    data = text if isinstance(text, bytes) else text.encode(errors="replace")
    edges = [0, *sorted(each for each in cuts if each < len(data)), len(data)]
    assert runs(data[one:other] for one, other in pairwise(edges)) == runs([data])


def on_a_terminal(moves):
    """Draw a line cell by cell: what is printed, and CR, BS and erasing as ECMA-48 says."""
    cells, at = {}, 0
    for each in moves:
        last = max(cells, default=-1)
        if each == "\r":
            at = 0
        elif each == "\b":
            at = max(at - 1, 0)
        elif each in ("\x1b[K", "\x1b[0K"):
            cells = {column: sign for column, sign in cells.items() if column < at}
        elif each == "\x1b[2K":
            cells = {}
        elif each == "\x1b[1K":
            cells |= dict.fromkeys(range(min(at, last) + 1), " ")
        else:
            cells[at] = each
            at += 1
    return "".join(cells.get(column, " ") for column in range(max(cells, default=-1) + 1))


@given(st.lists(st.sampled_from(["\r", "\b", "\x1b[K", "\x1b[0K", "\x1b[1K", "\x1b[2K", *"abcdefgh"]), max_size=40))
def test_a_line_is_what_a_terminal_shows(moves):
    assert plain("".join(moves).encode()) == on_a_terminal(moves)


@cases("data", {
    "a long line": b"x" * 300_000,
    "colours": b"\x1b[31mx\x1b[32my" * 10_000,
    "erased from the beginning": b"x" * 300_000 + b"\x1b[1K" * 10_000,
    "erased": b"x" * 300_000 + b"\x1b[2Kx" * 10_000,
    "characters deleted": b"x" * 300_000 + b"\x1b[1P" * 10_000,
    "sequences that begin": b"\x1b" * 300_000,
    "strings that begin": b"\x1b]" * 150_000,
    "numbers": b"\x1b[" + b"1" * 300_000,
    "addresses": b"http://" * 40_000,
    "brackets behind addresses": (b"http://x" + b")" * 1900 + b" ") * 150,
    "moved far": b"\x1b[999999999Cx" * 10_000,
    "hyperlinks": b"\x1b]8;;https://e.x/\x07x" * 10_000,
})  # fmt: skip
def test_a_long_line_takes_no_more_time_than_its_length(data):
    """Generous by an order of magnitude; what is not linear takes ten times as long as this."""
    began = time.process_time()
    shown = runs([data])
    assert time.process_time() - began < 5
    assert sum(len(run.text) for run in shown) <= len(data) + MOST_MOVED


@pytest.mark.parametrize("tool", sorted(each.stem for each in GOLDEN.glob("*.raw")))
def test_what_real_tools_print_is_shown_as_on_a_terminal(tool):
    printed = (GOLDEN / f"{tool}.raw").read_bytes().split(b"\n")
    shown = "\n".join(plain(line).rstrip() for line in printed)
    assert shown == (GOLDEN / f"{tool}.txt").read_text()
