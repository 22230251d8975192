"""Programs that stand still are replaced, and those that slept with the machine are not."""

from __future__ import annotations

import os
import signal

from proof.harness.waiting import HANG_S
from tests.tables import cases
from tests.volcano_ui.test_supervisor import run  # noqa: F401  a fixture
from volcano_ui.heartbeat import Pulse

LOOK_S, SILENT_S = 1.0, 20.0


@cases("looks, silent", {
    "not yet": ([(0, True), *((at, False) for at in range(1, 21))], False),
    "for too long": ([(0, True), *((at, False) for at in range(1, 22))], True),
    "now and then": ([(at, at % 20 == 0) for at in range(100)], False),
    "never heard: it is starting": ([(at, False) for at in range(100)], False),
    "the machine slept": ([(0, True), (1, False), (3600, False), (3601, True)], False),
    "it sleeps again and again": ([(0, True), *((60 * at, False) for at in range(1, 9))], False),
    "and did not wake": ([(0, True), (3600, False), *((3600 + at, False) for at in range(1, 21))], True),
})  # fmt: skip
def test_silence_counts_only_while_somebody_listens(looks, silent):
    pulse = Pulse(LOOK_S, SILENT_S)
    assert [pulse.look(now, heard=heard) for now, heard in looks][-1] is silent


BEATING = """
import sys
from volcano_ui import supervisor as module
module.LOOK_S, module.SILENT_S, module.ASK_EVERY_S = 0.05, 3.0, 0.05
def beating(name, **options):
    code = "import time; from volcano_ui import heartbeat; heartbeat.EVERY_S = 0.05; heartbeat.from_a_thread(); print('up', flush=True); time.sleep(600)"
    return Program(name, [sys.executable, "-c", code], gives_signs=True, **options)
async def lines(name, count):
    while not (folder / f"{name}.log").exists() or (folder / f"{name}.log").read_text().count("up\\n") < count:
        await asyncio.sleep(0.02)
"""


def test_a_program_that_stands_still_is_killed_and_started_again(run):  # noqa: F811
    process = run(
        BEATING
        + """
supervisor._environment["PYTHONPATH"] = os.getcwd()
await supervisor.start(beating("still"))
await supervisor.start(beating("well"))
await lines("still", 1)
await lines("well", 1)
print(supervisor._children["still"].pid, flush=True)
await lines("still", 2)
await supervisor.stop()
print((folder / "well.log").read_text().count("up"), flush=True)
"""
    )
    pid = int(process.stdout.readline())
    os.kill(pid, signal.SIGSTOP)
    said = process.communicate(timeout=HANG_S)[0].splitlines()
    assert said == [
        "✗ still gave no sign of life for 3 s; killing it",
        "✗ still was killed by SIGKILL; starting it again in 0.2 s",
        "1",
    ]
