import os
import subprocess
import sys
import textwrap

import pytest
from django.conf import settings

from proof.harness.waiting import HANG_S, until
from tests.volcano_ui.system import System

HARNESS = """
import asyncio, os, signal, sys
from pathlib import Path
from volcano_ui.supervision.supervisor import Program, Supervisor

def sh(name, script, **options):
    return Program(name, ["sh", "-c", script], **options)

async def main(folder):
    def ours(name, *words, may_fork=True, **options):
        return Program(name, [sys.executable, str(folder / f"{{name}}.py"), *words], may_fork=may_fork, **options)

    async def until(condition):
        while not condition():
            await asyncio.sleep(0.01)

    def text(name):
        return (folder / name).read_text() if (folder / name).exists() else ""

    def says(name):
        return text(f"{{name}}.log")

    supervisor = Supervisor(logs={logs}, cwd={cwd}, environment=dict(os.environ), say=lambda line: print(line, flush=True))
{body}

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.fixture
def run(tmp_path):
    """Run the body of a harness in which there is a supervisor; return the process."""
    processes = []

    def begin(body, *, logs="folder", cwd="folder", **programs):
        for name, text in programs.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        code = HARNESS.format(logs=logs, cwd=cwd, body=textwrap.indent(textwrap.dedent(body), "    "))
        command = [sys.executable, "-c", code, str(tmp_path)]
        # Who supervises small programs needs no application of ours, which each fork server would load.
        environment = {**os.environ, "SHARED": "shared", "DJANGO_SETTINGS_MODULE": "django.conf.global_settings"}
        options = {"cwd": settings.BASE_DIR, "env": environment, "stdout": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, **options))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def printed(run):
    """Run such a body, and stop the supervisor at its end; return the lines that it printed."""

    def to_the_end(body, **options):
        process = run(f"{textwrap.dedent(body)}\nawait supervisor.stop()\n", **options)
        lines = process.communicate(timeout=HANG_S)[0].splitlines()
        assert process.returncode == 0, lines
        return lines

    return to_the_end


@pytest.fixture
def start(tmp_path):
    """Start systems by their state directories; at the end they are stopped, and seen to leave nothing."""
    started = []

    def begin(data="data", **options):
        started.append(System(tmp_path / data, **options))
        return started[-1]

    yield begin
    for system in started:
        system.stop()
    for system in started:
        until(lambda system=system: not system.pids(), what="an end without processes")
