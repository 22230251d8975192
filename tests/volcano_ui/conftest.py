from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from django.conf import settings

HARNESS = """
import asyncio, os, signal, sys
from pathlib import Path
from volcano_ui.supervisor import Program, Supervisor

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
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "volcano_ui.settings"}
        processes.append(
            subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, stdout=subprocess.PIPE, text=True)
        )
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.communicate()
