"""Programs that stand still are replaced, and those that slept with the machine are not."""

from __future__ import annotations

import os
import signal

from proof.harness.waiting import HANG_S
from tests.tables import cases
from volcano_ui.heartbeat import Pulse

LOOK_S, SILENT_S = 1.0, 20.0
BEATS = """
import os, sys, time
sys.path.insert(0, os.getcwd())
from volcano_ui import heartbeat
heartbeat.EVERY_S = 0.05
heartbeat.from_a_thread()
print('up', flush=True)
time.sleep(600)
"""


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


def test_a_program_that_stands_still_is_killed_and_started_again(run):
    process = run(
        """
        from volcano_ui import supervisor as module
        module.LOOK_S, module.SILENT_S, module.ASK_EVERY_S = 0.05, 3.0, 0.05
        for name in ("still", "well"):
            await supervisor.start(ours(name, may_fork=False, gives_signs=True))
            await until(lambda: "up" in says(name))
        print(supervisor._children["still"].pid, flush=True)
        await until(lambda: says("still").count("up\\n") == 2)
        await supervisor.stop()
        print(says("well").count("up"), flush=True)
        """,
        cwd="Path.cwd()",
        still=BEATS,
        well=BEATS,
    )
    pid = int(process.stdout.readline())
    os.kill(pid, signal.SIGSTOP)
    said = process.communicate(timeout=HANG_S)[0].splitlines()
    assert said == [
        "✗ still gave no sign of life for 3 s; killing it",
        "✗ still was killed by SIGKILL; starting it again in 0.2 s",
        "1",
    ]
