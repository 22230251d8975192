"""What containers printed, as a terminal shows it."""

from __future__ import annotations

import re
import time
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.logs.pens import Pen, changed
from jobs.logs.text import MOST_MOVED, Run, ShownLine, plain, runs
from tests.dashboard import style
from tests.tables import cases

GOLDEN = Path(__file__).parents[2] / "golden" / "logs"


@cases("written, shown", {
    "text": ("plain \N{VOLCANO}", "plain \N{VOLCANO}"),
    "tab": ("tab\there", "tab\there"),
    "markup stays text": ("<script>", "<script>"),
    "colours": ("\x1b[31mred\x1b[0m", "red"),
    "control characters": ("a\x00\x0b\x7f", "a\u2400\u240b\u2421"),
    "bell and character sets": ("a\x07\x0e\x0f", "a"),
    "control characters beyond ASCII": ("a\x85\x9b31mb", "a\ufffd\ufffd31mb"),
    "a line's end of Windows": ("abc\r", "abc"),
    "carriage return": ("epoch 1\repoch 2", "epoch 2"),
    "erased to its end": ("10%\r\x1b[Kdone", "done"),
    "what is not overwritten stays": ("long line\rab", "abng line"),
    "erased, and the first column": ("\x1b[2K\x1b[1G| npm", "| npm"),
    "backspaces": ("12%\b\b\b34%", "34%"),
    "erased from its beginning": ("abc\x1b[1Kd", "   d"),
    "back": ("abc\x1b[2D-", "a-c"),
    "forward": ("a\x1b[3Cb", "a   b"),
    "titles": ("\x1b]0;title\x07a\x1b]2;title\x1b\\b", "ab"),
    "hyperlink": ("\x1b]8;;https://e.x\x1b\\text\x1b]8;;\x1b\\", "text"),
    "cursor, modes, character sets": ("\x1b[?25l\x1b[2A\x1b[1Bx\x1b[?25h\x1b7\x1b8\x1b(B\x1b=\x1b[!p\x1b[2 q", "x"),
    "pictures of terminals": ("\x1bPq#0;2\x1b\\a\x1b_Gi=1;AAAA\x1b\\b", "ab"),
    "a title without an end": ("\x1b]0;title", ""),
    "a sequence without an end": ("a\x1b[31", "a"),
    "a sequence that is broken off": ("a\x1b[31\x01b", "a\u2401b"),
    "a title that is broken off": ("\x1b]0;t\x18b", "b"),
    "a screen that is cleared": ("\x1b[2Jabc\x1b[3J", "abc"),
})  # fmt: skip
def test_what_is_printed_is_shown_as_a_terminal_does(written, shown):
    assert plain(written.encode()) == shown


def test_what_is_not_utf8_is_shown_as_such():
    assert plain(b"a\xff\xfe") == "a\ufffd\ufffd"
    assert plain(b"\xf0\x9f") == "\ufffd"


@cases("written, states", {
    "none": ("abc", 0),
    "nothing came after it": ("abc\r", 0),
    "carriage returns": ("\r1\r2\r3", 2),
    "erased after it": ("1\r\x1b[K2\r\x1b[K3", 2),
    "erased before it": ("1\x1b[2K\x1b[1G2\x1b[2K\x1b[1G3", 2),
})  # fmt: skip
def test_states_that_were_overwritten_are_counted(written, states):
    line = ShownLine()
    line.feed(written.encode(), whole=True)
    assert line.states == states


@cases("parameters, classes", {
    "of 8": ("31", "log-ink-red"),
    "bright, on another": ("91;44", "log-ink-red log-ground-blue"),
    "white is the text's own": ("37", ""),
    "black on white": ("30;47", "log-ground-grey"),
    "of 256": ("38;5;208", "log-ink-orange"),
    "a grey of 256": ("38;5;244;1", "log-ink-grey log-bold"),
    "24 bits": ("38;2;255;105;180", "log-ink-pink"),
    "24 bits between colons": ("48:2::0:0:255", "log-ground-blue"),
    "of 256 between colons": ("38:5:46;3", "log-ink-green log-italic"),
    "styles": ("1;2;3;4;7;9", "log-bold log-faint log-inverse log-italic log-struck log-underline"),
    "a wave": ("4:3", "log-underline"),
    "no line": ("4;4:0", ""),
    "all off": ("1;31;0", ""),
    "nothing is all off": ("1;31;", ""),
    "each off": ("1;2;3;4;7;9;22;23;24;27;29", ""),
    "colours off": ("31;41;39;49", ""),
    "a colour that is missing": ("38;5", ""),
    "a colour of no kind": ("38;9;1", "log-bold"),
    "nonsense": ("99999999999;;x;-1", ""),
})  # fmt: skip
def test_colours_and_styles_are_classes(parameters, classes):
    assert changed(Pen(), parameters).classes == classes


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


@cases("written, links", {
    "at the end of a sentence": ("see https://e.x/a?b=c#d.", ["https://e.x/a?b=c#d"]),
    "in brackets": ("(http://e.x/a_(b)), [http://e.x]", ["http://e.x/a_(b)", "http://e.x"]),
    "in markup": ('<a href="https://e.x">', ["https://e.x"]),
    "anything else": ("javascript:alert(1) ftp://e.x file:///x data:text/html,x HTTP:x xhttp://e.x", []),
    "hyperlink": ("\x1b]8;;https://e.x/1\x07text\x1b]8;;\x07 more", ["https://e.x/1"]),
    "hyperlink of two looks": ("\x1b]8;id=1;https://e.x/1\x07te\x1b[1mxt\x1b]8;;\x07", ["https://e.x/1"]),
    "hyperlink to anything else": ("\x1b]8;;javascript:alert(1)\x07text\x1b]8;;\x07", []),
    "an address leads where it says": ("\x1b]8;;https://evil.x\x07https://e.x\x1b]8;;\x07", ["https://e.x"]),
    "an address of two looks": ("https://\x1b[1me.x\x1b[0m/a", ["https://e.x/a"]),
    "no address": ("https:// http://", []),
})  # fmt: skip
def test_addresses_and_nothing_else_are_links(written, links):
    assert list(dict.fromkeys(run.link for run in runs([written.encode()]) if run.link)) == links


def test_a_run_says_how_a_stretch_looks():
    assert runs([b"a \x1b[1;32mok\x1b[0m b"]) == [Run("a "), Run("ok", "log-ink-green log-bold"), Run(" b")]


PARTS = st.sampled_from(
    ["a", "bc", "\N{VOLCANO}", "\t", "\r", "\b", "\x1b", "\x1b[", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[31m", "\x1b[38;5;20m", "1;", "m", "K",
     "\x1b]8;;https://e.x/", "\x1b]0;", "\x07", "\x1b\\", "\\", "\x9b", "\x00", " http://e.x", ")", "\x1b[9999C", "\x1b[3D", "\x1b(B", "\x1bP"]
) | st.text(max_size=3)  # fmt: skip
TEXTS = st.lists(PARTS, max_size=25).map("".join)


@given(TEXTS)
def test_no_control_character_is_shown_and_runs_are_the_text(text):
    shown = plain(text.encode(errors="replace"))
    assert [each for each in shown if unicodedata.category(each) == "Cc" and each != "\t"] == []
    line = ShownLine()
    line.feed(text.encode(errors="replace"), whole=True)
    made = line.runs()
    assert made == (runs([text.encode(errors="replace")]))
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
