"""The two commands as processes of their own: killed, and stopped in order."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cluster import sole
from cluster.runtime import nudge
from cluster.store import Create, Store
from kube.errors import NotFound
from kube.resources import NODES, PODS
from node.agent.daemon import SHUTDOWN_S
from proof.escapes.attempts import kill_shim_of
from proof.harness.halting import halt
from proof.harness.waiting import HANG_S, until
from tests import builders
from tests.cluster.store.conftest import database_opened
from tests.node.driving import short_folder
from volcano_ui import env, supervisor

PROJECT = Path(__file__).resolve().parents[2]


class System:
    """A state directory with a database, and commands that run on it."""

    def __init__(self, data, redis_url, alias, out) -> None:
        self.data = data
        self.out = out  # what pods see of this machine, at the same place
        settings = {"DATA": str(data), "REDIS_URL": redis_url, "SECRET_KEY": "hush" * 20, "NODE_NAME": "here"}
        settings["HOST_PATHS"] = str(out)
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

    def agent(self):
        process = self.start("agent")
        until(lambda: self.store.count(NODES).get("Ready", 0))
        return process

    def shell(self, script, name="p", node="here", **spec):
        mounts = [{"name": "out", "mountPath": str(self.out)}]
        main = builders.container("main", command=["sh", "-c", script], volumeMounts=mounts)
        volumes = [{"name": "out", "hostPath": {"path": str(self.out)}}]
        spec = {"nodeName": node, "restartPolicy": "Never", "volumes": volumes, "status": {"phase": "Pending"}, **spec}
        return self.store.write(Create(PODS, builders.pod(name, main, namespace="d", **spec)))[0].uid

    def status(self, name="p"):
        try:
            return self.store.get(PODS, "d", name).object["status"]
        except NotFound:
            return {}

    def phase(self, name="p"):
        return self.status(name).get("phase")

    def close(self):
        for process in self.running:
            process.kill()
            process.wait()
        for claim in self.data.glob("node/pods/*/*/*/claim"):
            kill_shim_of(claim)


class TestProcesses:
    @pytest.fixture
    def system(self, redis_url, settings, monkeypatch, django_db_blocker, tmp_path):
        settings.REDIS_URL = redis_url
        nudge.client.cache_clear()
        monkeypatch.delenv("DATABASE_URL", raising=False)
        with (
            short_folder() as data,
            django_db_blocker.unblock(),
            database_opened(data.name, env.database(data / "db.sqlite3")),
            contextlib.closing(System(data, redis_url, data.name, tmp_path)) as one,
        ):
            yield one
        nudge.client.cache_clear()

    def test_pods_outlive_an_agent_that_is_killed_or_stopped(self, system, tmp_path):
        agent = system.agent()
        uid = system.shell(f"echo one; until [ -e {tmp_path}/go ]; do sleep 0.01; done; echo two; exit 5")
        until(lambda: system.phase() == "Running")
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(HANG_S) == 0
        assert (system.phase(), system.store.count(NODES)) == ("Running", {"NotReady": 1})
        agent = system.agent()
        agent.kill()
        agent.wait()
        system.agent()
        (tmp_path / "go").touch()
        until(lambda: system.phase() == "Failed")
        ended = system.status()["containerStatuses"][0]
        assert (ended["restartCount"], ended["state"]["terminated"]["exitCode"]) == (0, 5)
        log = (system.data / "node" / "pods" / uid / "main" / "0" / "log.000000000000000").read_text()
        assert [line.split()[-1] for line in log.splitlines()] == ["one", "two"]

    def test_second_agent_waits_until_the_first_has_ended(self, system, tmp_path):
        """Also while the first does nothing: it may go on at any moment."""
        first = system.agent()
        lock = system.data / "run" / "agent.lock"
        assert sole.holder(lock) == str(first.pid)
        halt(first.pid, system.data)
        second = system.start("agent")
        until(lambda: f"pid {first.pid}: waiting" in (system.data / "err").read_text())
        system.shell(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done")
        assert system.phase() == "Pending"
        first.send_signal(signal.SIGCONT)
        until(lambda: system.phase() == "Running")
        assert (sole.holder(lock), second.poll()) == (str(first.pid), None)
        first.kill()
        until(lambda: sole.holder(lock) == str(second.pid))
        (tmp_path / "go").touch()
        until(lambda: system.phase() == "Succeeded")

    def test_agent_that_is_to_end_pods_leaves_no_process_and_says_what_became_of_them(self, system):
        system.env["VOLCANO_UI_RUNNING"] = "end"
        agent = system.agent()
        system.shell("trap '' TERM; while :; do sleep 0.05; done", "stubborn")
        system.shell("sleep 600", "plain", restartPolicy="OnFailure")
        until(lambda: system.phase("stubborn") == system.phase("plain") == "Running")
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(HANG_S) == 0
        assert system.phase("plain") == "Running"
        assert system.store.count(NODES) == {"NotReady": 1}
        for claim in system.data.glob("node/pods/*/*/*/claim"):
            asked = json.loads((claim.parent / "stop.json").read_text())
            assert asked["grace"] < SHUTDOWN_S < 5, "`up` waits five seconds"
            # A busy machine may kill it later than the agent can wait: then its shim does, and the next agent tells it.
            until(lambda claim=claim: not Path(f"/proc/{claim.read_text().split()[0]}").exists())
        system.agent()
        until(lambda: system.status("stubborn").get("reason") == "NodeShutdown")

    def test_simulator_is_a_command_too(self, system):
        simulator = system.start("simulator", "--nodes=3", "--cpu=8")
        until(lambda: system.store.count(NODES) == {"Ready": 3})
        assert system.store.get(NODES, "", "sim-0003").object["status"]["capacity"]["cpu"] == "8"
        system.shell("ignored", node="sim-0002")
        until(lambda: system.phase() == "Running")
        simulator.send_signal(signal.SIGTERM)
        assert simulator.wait(HANG_S) == 0
        assert system.store.count(NODES) == {"NotReady": 3}
        (system.data / "1.yaml").write_text("name: x\nnext: {}\n")
        assert system.start("simulator", "--nodes=1", f"--stages={system.data}").wait(HANG_S) == 1
        assert "1.yaml cannot be used" in (system.data / "err").read_text()
