"""Which defect is awake in this process, and which of them a test reaches. Every process of a planted tree imports this.

MUTANT=17 wakes that one. MUTANTS_REACHED=file wakes none, and appends a line `17 tests/test_x.py::test_y` when a test
reaches the place of one for the first time; of a process that a test starts, the test that ran when it was started.
"""

from __future__ import annotations

import os

AWAKE = int(os.environ.get("MUTANT", "0"))
REACHED = os.environ.get("MUTANTS_REACHED", "")
# pytest's own: "tests/test_x.py::test_y (call)". What is started in a set-up may serve the whole file.
_test, _, _phase = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")
running = _test.partition("::")[0] if _phase == "(setup)" else _test
_written: set[tuple[int, str]] = set()


def mutant(number: int) -> bool:
    """Whether a defect is awake."""
    if REACHED and (number, running) not in _written:
        _written.add((number, running))
        # A short line, in one write: processes do not get into each other's.
        file = os.open(REACHED, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.write(file, f"{number} {running}\n".encode())
        os.close(file)
    return number == AWAKE
