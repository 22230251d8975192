"""A whole system for tests: `manage.py up` as a process of its own, on its own state directory and port."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

from django.conf import settings

from proof.harness.ports import free_port
from proof.harness.waiting import HANG_S, until
from volcano_ui.supervision import supervisor


class System:
    """One `manage.py up`; `lines` is what it printed so far."""

    def __init__(self, data, *, port=None, **environment):
        self.data, self.port = Path(data), port or free_port()
        self.environment = ours = {
            "VOLCANO_UI_DATA": str(data),
            "VOLCANO_UI_PORT": str(self.port),
            # The one that follows from the other may be somebody else's.
            "VOLCANO_UI_API_PORT": str(free_port()),
        }
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up"],
            cwd=settings.BASE_DIR,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "volcano_ui.settings", **ours, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A test run that is killed leaves nothing behind.
            preexec_fn=supervisor.die_with(os.getpid(), signal.SIGTERM),
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with self.process.stdout as stream:
            self.lines.extend(line.rstrip("\n") for line in stream)

    def wait_for_line(self, pattern):
        """Wait for a line that matches; return the match."""

        def look():
            ended = self.process.poll() is not None and self.ended() is not None
            match = next((match for line in self.lines if (match := re.search(pattern, line))), None)
            assert match or not ended, "up ended:\n" + "\n".join(self.lines)
            return match

        return until(look, what=pattern)

    def healthy(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=HANG_S) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def pids(self):
        """Return every process of this state directory, by what it runs; `up` itself left out."""
        mark = f"VOLCANO_UI_DATA={self.data}".encode()
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found[int(process.name)] = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        found.pop(self.process.pid, None)
        return found

    def pid(self, part):
        """Return the process whose command line contains part."""
        return until(lambda: next((pid for pid, line in self.pids().items() if part in line), None), what=part)

    def kill(self, part):
        pid = self.pid(part)
        os.kill(pid, signal.SIGKILL)
        until(lambda: pid not in self.pids(), what=f"end of {part}")

    def ended(self):
        """Return the exit status once it ended by itself, and all that it printed was read."""
        self._reader.join(HANG_S)
        return self.process.wait(HANG_S)

    def stop(self, number=signal.SIGTERM):
        """End it; return the exit status. Whatever it was told, it ended by a sentence."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            status = self.process.wait(HANG_S)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join(HANG_S)
        assert not [line for line in self.lines if line.startswith("Traceback")], "\n".join(self.lines)
        return status
