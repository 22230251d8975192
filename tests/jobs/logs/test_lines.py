"""The lines of many logs in one sequence, and what containers printed, as a terminal shows it."""

import re
import time
import unicodedata
from ast import literal_eval
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.conf import settings
from django.test import override_settings
from hypothesis import example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from cluster.api import backend
from cluster.backend import Line
from jobs.logs import merge
from jobs.logs.merge import Entry, Log
from jobs.logs.pens import Pen, changed
from jobs.logs.text import MAX_MOVED, PrintedLine, plain
from jobs.pages.logs import window
from jobs.pages.logs.window import Limits, Mark
from tests.blocks import blocks
from tests.dashboard import style
from tests.jobs.logs.written import log_of
from tests.tables import cases

LARGE = 10**9
LOGS = ("pod-0", "pod-1", "pod-2")
ALL = Limits(1000, 10**6)
some_times = st.lists(st.integers(0, 50), max_size=15).map(sorted)
GOLDEN = Path(__file__).parents[2] / "golden" / "logs"
PARTS = st.sampled_from(
    ["a", "bc", "\N{VOLCANO}", "\t", "\r", "\b", "\x1b", "\x1b[", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[31m", "\x1b[38;5;20m", "1;", "m", "K",
     "\x1b]8;;https://e.x/", "\x1b]0;", "\x07", "\x1b\\", "\\", "\x9b", "\x00", " http://e.x", ")", "\x1b[9999C", "\x1b[3D", "\x1b(B", "\x1bP"]
) | st.text(max_size=3)  # fmt: skip
TEXTS = st.lists(PARTS, max_size=25).map("".join)


def runs(pieces):
    line = PrintedLine()
    for piece in pieces:
        line.feed(piece)
    line.feed(b"", whole=True)
    return line.runs()


def sequences(times):
    """Return logs with lines of these times, each line saying whose it is and which."""

    def entry(pod, index, time):
        return Entry(Log(f"pod-{pod}", "main", 0), Line(f"{time:03}", "stdout", b"%d.%d" % (pod, index), True, index))

    return [[entry(pod, *each) for each in enumerate(of_pod)] for pod, of_pod in enumerate(times)]


def by_log(entries):
    found = defaultdict(list)
    for entry in entries:
        found[entry.log].append(entry)
    return found


def backwards(logs):
    return [reversed(log) for log in logs]


times = st.lists(st.integers(0, 50), max_size=12)
sorted_logs = st.lists(times.map(sorted), max_size=6).map(sequences)
any_logs = st.lists(times, max_size=6).map(sequences)


@given(any_logs)
def test_nothing_is_lost_and_each_log_keeps_its_order_also_when_its_clock_went_back(logs):
    merged = by_log(merge.oldest_first(logs))
    assert merged == {log[0].log: log for log in logs if log}
    everything = merge.newest(backwards(logs), lines=LARGE, size=LARGE)
    assert by_log(everything.entries) == merged
    assert not everything.is_cut


@given(sorted_logs, st.integers(1, 20), st.integers(0, 51), st.integers(0, 40))
def test_logs_in_order_make_one_sequence_whose_end_is_had_by_lines_by_time_and_by_size(logs, number, since, size):
    merged = [*merge.oldest_first(logs)]
    assert [entry.line.time for entry in merged] == sorted(entry.line.time for log in logs for entry in log)
    found = merge.newest(backwards(logs), lines=number, size=LARGE)
    assert [entry.line.time for entry in found.entries] == [entry.line.time for entry in merged[-number:]]
    assert found.is_cut == (len(merged) > number)
    found = merge.newest(backwards(logs), lines=LARGE, size=LARGE, since=f"{since:03}")
    assert sorted(found.entries) == sorted(entry for entry in merged if int(entry.line.time) >= since)
    assert not found.is_cut
    fit = merge.newest(backwards(logs), lines=LARGE, size=size).entries
    assert sum(len(entry.line.data) for entry in fit) <= size or len(fit) == 1


def test_a_log_is_read_only_as_far_as_it_is_needed():
    read = []

    def noted(log):
        for entry in reversed(log):
            read.append(entry)
            yield entry

    logs = sequences([range(100), range(100, 200)])
    assert len(merge.newest([noted(log) for log in logs], lines=5, size=LARGE).entries) == 5
    assert len(read) <= 8


def test_the_pieces_of_a_line_count_as_one():
    """A bar that is drawn again and again, with a line before it and behind it."""
    pieces = [Line(f"{at:03}", "stderr", b"\r%d" % at, at in (0, 14, 15), at) for at in range(16)]
    log = [Entry(Log("pod", "main", 0), each) for each in pieces]
    assert merge.newest([reversed(log)], lines=2, size=LARGE) == (log[1:], True)
    assert merge.newest([reversed(log)], lines=3, size=LARGE) == (log, False)


@examples(max_examples=50)
@given(st.lists(some_times, min_size=3, max_size=3).filter(any), st.data())
def test_around_a_line_is_what_was_printed_before_and_behind_it(times, draw):
    printed = [(pod, index) for pod, of_pod in enumerate(times) for index in range(len(of_pod))]
    pod, place = draw.draw(st.sampled_from(printed))
    with TemporaryDirectory() as folder, override_settings(DATA=Path(folder)):
        for uid, of_pod in zip(LOGS, times, strict=True):
            log_of(uid, entries=[(time, f"{uid} {number}") for number, time in enumerate(of_pod)])
        extents = backend.nodes.log_extents(LOGS)
        line = backend.nodes.read_log(LOGS[pod], "main", 0).lines[place]
        mark = Mark(Log(LOGS[pod], "main", 0), line.offset)
        whole = window.around(backend.nodes, extents, mark, ALL)
        few = window.around(backend.nodes, extents, mark, Limits(6, 10**6))
    moments = [entry.line.time for entry in whole.entries]
    assert moments == sorted(moments)
    assert len(moments) == len(printed)
    assert not whole.has_more
    assert (whole.before, few.before > 0) == (0, whole.entries[0] != few.entries[0])
    first = whole.entries.index(few.entries[0])
    assert few.entries == whole.entries[first : first + len(few.entries)]
    assert (mark.log, line) in few.entries
    assert few.has_more == (first + len(few.entries) < len(printed))
    assert len(few.entries) <= 6


def test_the_first_lines_are_those_that_rotation_left(settings, tmp_path):
    settings.DATA = tmp_path
    _, log = log_of("pod-0", segment_bytes=2000, count=2)
    for number in range(300):
        log.feed("stdout", f"line {number}\n".encode())
    extents = backend.nodes.log_extents(["pod-0"])
    found = window.head(backend.nodes, extents, Limits(2, 10_000))
    assert found.lost == extents[0].first > 0
    assert found.entries[0].line.offset == extents[0].first
    assert found.has_more


@blocks("terminal", folder="pages")
def test_what_is_printed_is_shown_as_a_terminal_does(block, golden):
    def shown(line):
        made = PrintedLine()
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
    visible = plain(text.encode(errors="replace"))
    assert [each for each in visible if unicodedata.category(each) == "Cc" and each != "\t"] == []
    made = runs([text.encode(errors="replace")])
    assert "".join(run.text for run in made) == visible
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
    result = runs([data])
    assert time.process_time() - began < 5
    assert sum(len(run.text) for run in result) <= len(data) + MAX_MOVED


@pytest.mark.parametrize("tool", sorted(each.stem for each in GOLDEN.glob("*.raw")))
def test_what_real_tools_print_is_shown_as_on_a_terminal(tool):
    printed = (GOLDEN / f"{tool}.raw").read_bytes().split(b"\n")
    screen = "\n".join(plain(line).rstrip() for line in printed)
    assert screen == (GOLDEN / f"{tool}.txt").read_text()
