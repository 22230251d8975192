"""The two commands as processes of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cluster import pid_lock
from cluster.runtime import nudge
from cluster.store import Create, Store
from kube.errors import NotFound
from kube.resources import NODES, PODS
from proof.escapes.attempts import kill_shim_of
from proof.harness.halting import halt
from proof.harness.waiting import HANG_S, until
from tests import builders
from tests.cluster.store.conftest import database_opened
from tests.node.driving import short_folder
from volcano_ui import env
from volcano_ui.supervision import supervisor

PROJECT = Path(__file__).resolve().parents[2]


class System:
    """A state directory with a database, and commands that run on it."""

    def __init__(self, data, redis_url, alias) -> None:
        self.data = data
        settings = {"DATA": str(data), "REDIS_URL": redis_url, "SECRET_KEY": "hush" * 20, "NODE_NAME": "here"}
        self.env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        self.env |= {f"VOLCANO_UI_{name}": value for name, value in settings.items()}
        self.env["DJANGO_SETTINGS_MODULE"] = "volcano_ui.settings"
        self.store = Store(alias)
        self.store.listeners.append(nudge.send)
        self.running = []

    def start(self, *command):
        dies = supervisor.die_with(os.getpid())
        with (self.data / "err").open("ab") as errors:
            argv = [sys.executable, "manage.py", *command]
            self.running.append(subprocess.Popen(argv, cwd=PROJECT, env=self.env, stderr=errors, preexec_fn=dies))
        return self.running[-1]

    def submit(self, name, node, *argv):
        main = builders.container("main", command=[*argv])
        spec = {"nodeName": node, "restartPolicy": "Never", "status": {"phase": "Pending"}}
        self.store.write(Create(PODS, builders.pod(name, main, namespace="d", **spec)))

    def phase(self, name):
        try:
            return self.store.get(PODS, "d", name).object["status"].get("phase")
        except NotFound:
            return None

    def close(self):
        for process in self.running:
            process.kill()
            process.wait()
        for claim in self.data.glob("node/pods/*/*/*/claim"):
            kill_shim_of(claim)


class TestProcesses:
    @pytest.fixture
    def system(self, redis_url, settings, monkeypatch, django_db_blocker):
        settings.REDIS_URL = redis_url
        nudge.client.cache_clear()
        monkeypatch.delenv("DATABASE_URL", raising=False)
        with (
            short_folder() as data,
            django_db_blocker.unblock(),
            database_opened(data.name, env.database(data / "db.sqlite3")),
            contextlib.closing(System(data, redis_url, data.name)) as one,
        ):
            yield one
        nudge.client.cache_clear()

    def test_second_agent_waits_until_the_first_has_ended(self, system):
        """Also while the first does nothing: it may go on at any moment."""
        first = system.start("agent")
        until(lambda: system.store.count(NODES).get("Ready", 0))
        lock = system.data / "run" / "agent.lock"
        assert pid_lock.holder(lock) == str(first.pid)
        halt(first.pid, system.data)
        second = system.start("agent")
        until(lambda: f"pid {first.pid}: waiting" in (system.data / "err").read_text())
        system.submit("p", "here", "sleep", "600")
        assert system.phase("p") == "Pending"
        first.send_signal(signal.SIGCONT)
        until(lambda: system.phase("p") == "Running")
        assert (pid_lock.holder(lock), second.poll()) == (str(first.pid), None)
        first.kill()
        until(lambda: pid_lock.holder(lock) == str(second.pid))
        system.submit("q", "here", "true")
        until(lambda: system.phase("q") == "Succeeded")
        assert system.phase("p") == "Running", "it goes on with what the first has begun"
        second.send_signal(signal.SIGTERM)
        assert second.wait(HANG_S) == 0
        assert (system.phase("p"), system.store.count(NODES)) == ("Running", {"NotReady": 1})

    def test_simulator_is_a_command_too(self, system):
        simulator = system.start("simulator", "--nodes=3", "--cpu=8")
        until(lambda: system.store.count(NODES) == {"Ready": 3})
        assert system.store.get(NODES, "", "sim-0003").object["status"]["capacity"]["cpu"] == "8"
        system.submit("ignored", "sim-0002", "true")
        until(lambda: system.phase("ignored") == "Running")
        simulator.send_signal(signal.SIGTERM)
        assert simulator.wait(HANG_S) == 0
        assert system.store.count(NODES) == {"NotReady": 3}
        (system.data / "1.yaml").write_text("name: x\nnext: {}\n")
        assert system.start("simulator", "--nodes=1", f"--stages={system.data}").wait(HANG_S) == 1
        assert "1.yaml cannot be used" in (system.data / "err").read_text()
