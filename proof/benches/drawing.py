"""What it costs to draw lines of logs as terminals show them: `python -m proof.benches.drawing`, without a system.

Processor time, as a reader's lines are drawn in the web process: the least, the median and the most of several rounds.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from collections.abc import Collection, Iterable
from pathlib import Path

from jobs.logs.text import PrintedLine, written

ROUNDS = 15
ROUND_S = 0.2  # at least; the clock of processor time is far finer
GOLDEN = Path(__file__).parents[2] / "tests" / "golden" / "logs"
PLAIN = b"2026-11-27 10:00:00 INFO epoch 3 step 1200 loss 0.1234 accuracy 0.9871 lr 0.001 images/s 4127"


def kinds() -> dict[str, list[list[bytes]]]:
    """Return lines, each in the pieces in which it comes to a reader, by what they are."""
    bar = max((GOLDEN / "tqdm.raw").read_bytes().split(b"\n"), key=len)
    coloured = [line for line in (GOLDEN / "pytest.raw").read_bytes().split(b"\n") if b"\x1b[" in line]
    return {
        "text": [[PLAIN]],
        "text with an address": [[PLAIN + b" https://example.com/runs/17"]],
        "colours, pytest's": [[line] for line in coloured],
        "a bar at once, tqdm's": [[bar]],
        "a bar as it moves, tqdm's": [[part for part in re.split(rb"(?=\r)", bar) if part]],
        "10,000 letters": [[b"x" * 10_000]],
    }


def draw(lines: Iterable[list[bytes]]) -> None:
    """Draw lines; of one that goes on what is shown is asked for after each piece, as at each look."""
    for pieces in lines:
        line = PrintedLine()
        for piece in pieces[:-1]:
            line.feed(piece)
            written(line.runs())
        line.feed(pieces[-1], whole=True)
        written(line.runs())


def measured(lines: Collection[list[bytes]]) -> list[float]:
    """Return the µs that a piece takes in each round."""
    repeats = 1
    while (took := _spent(lines, repeats)) < ROUND_S:
        repeats = max(round(repeats * 1.2 * ROUND_S / max(took, 1e-4)), repeats + 1)
    pieces = repeats * sum(map(len, lines))
    return [_spent(lines, repeats) / pieces * 1e6 for _ in range(ROUNDS)]


def _spent(lines: Iterable[list[bytes]], repeats: int) -> float:
    begun = time.process_time()
    for _ in range(repeats):
        draw(lines)
    return time.process_time() - begun


def run() -> dict[str, dict[str, float]]:
    """Return what a piece takes in µs, and how long it is, by what it is."""
    found = {}
    for name, lines in kinds().items():
        took = measured(lines)
        sizes = [len(piece) for line in lines for piece in line]
        found[name] = {
            "bytes": round(statistics.mean(sizes)),
            "least_us": round(min(took), 1),
            "median_us": round(statistics.median(took), 1),
            "most_us": round(max(took), 1),
        }
    return found


if __name__ == "__main__":
    json.dump(run(), sys.stdout, indent=1)
