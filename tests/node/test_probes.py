"""Probes and hooks: the rule by tables and by an oracle, and real programs that are asked."""

from __future__ import annotations

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.store import store
from kube.kinds.pod import Container, ContainerStatus
from kube.resources import EVENTS
from node import probes
from node.agent.checks import Check, Checks
from node.attempt import Attempt, AttemptState
from node.probes import Kind
from node.shim import tree
from node.shim.order import Action
from proof.escapes.attempts import deaf
from proof.harness.waiting import until
from tests.node.driving import told as events
from tests.tables import cases

S = 1_000_000


T0 = 1_800_000_000 * S


RUNS = Attempt(0, AttemptState.RUNNING, started_us=T0)


STARTUP, LIVENESS, READINESS = Kind.STARTUP, Kind.LIVENESS, Kind.READINESS


def of(**given):
    action = {"exec": {"command": ["true"]}}
    body = {"name": "main", **{f"{kind}Probe": {**action, **fields} for kind, fields in given.items()}}
    return probes.of(msgspec.convert(body, Container))


def told(given, results, health=None):
    """Return what is known after results, a list of (probe, passed)."""
    health = health or probes.begin(given, RUNS)
    for kind, passed in results:
        health = probes.hear(probes.ask(health, kind, given[kind], T0), kind, given[kind], passed=passed)
    return health


class Server:
    """A program that answers requests, with what the test says, and remembers them."""

    def __init__(self) -> None:
        outer = self
        self.asked, self.status, self.wait_s = [], 200, 0.0

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append((self.path, dict(self.headers)))
                time.sleep(outer.wait_s)
                self.send_response(outer.status)
                self.end_headers()
                self.wfile.write(b"words")

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server():
    one = Server()
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture
def asked(attempts):
    """Ask a probe of a container that runs: what is connected to, its shim connects to."""
    directory = attempts.start("sleep", "600", key="key")

    def ask(action, seconds=5.0):
        checks = Checks("key")
        try:
            checks.ask(Check("u", "main", 0, LIVENESS, action, seconds), directory)
            (answer,) = until(checks.take)
            return answer
        finally:
            checks.close()

    return ask


def rude(connection):
    connection.sendall(b"hello\r\n\r\n")
    connection.close()


def command(script, **fields):
    return {"exec": {"command": ["sh", "-c", script]}, "periodSeconds": 1, **fields}


def conditions(status):
    return {one["type"]: one["status"] for one in status.get("conditions", ())}


# Hooks.


def hooked(*, start=None, stop=None, **fields):
    hooks = {name: hook for name, hook in (("postStart", start), ("preStop", stop)) if hook}
    return {"lifecycle": hooks, **fields}


def shell(script):
    return {"exec": {"command": ["sh", "-c", script]}}


def outcome(node, uid):
    return json.loads((node.directory(uid) / "status.json").read_text())


def deleted(node):
    node.delete()
    node.until(lambda: node.pod() is None)


class TestProbes:
    @cases("given, results, started, ready, failed", {
        "no probes": ({}, [], True, True, None),
        "not asked yet": ({"readiness": {}}, [], True, False, None),
        "ready": ({"readiness": {}}, [(READINESS, True)], True, True, None),
        "once is not twice": ({"readiness": {"successThreshold": 2}}, [(READINESS, True)], True, False, None),
        "two failures": ({"readiness": {}}, [(READINESS, True), *[(READINESS, False)] * 2], True, True, None),
        "three failures": ({"readiness": {}}, [(READINESS, True), *[(READINESS, False)] * 3], True, False, None),
        "nothing found out counts for nothing": (
            {"readiness": {}}, [(READINESS, True), (READINESS, False), (READINESS, None), (READINESS, False)],
            True, True,
            None,
        ),
        "starts still": ({"startup": {}}, [(STARTUP, False)] * 2, False, True, None),
        "has started": ({"startup": {}}, [(STARTUP, False), (STARTUP, True)], True, True, None),
        "never started": ({"startup": {"failureThreshold": 2}}, [(STARTUP, False)] * 2, False, True, STARTUP),
        "never three in a row": ({"liveness": {}}, [(LIVENESS, False), (LIVENESS, True)] * 5, True, True, None),
        "dead": ({"liveness": {}}, [(LIVENESS, False)] * 3, True, True, LIVENESS),
        "too late": ({"liveness": {}}, [*[(LIVENESS, False)] * 3, (LIVENESS, True)], True, True, LIVENESS),
    })  # fmt: skip
    def test_what_probes_have_found(self, given, results, started, ready, failed):
        health = told(of(**given), results)
        assert (health.started, health.ready, health.failed) == (started, ready, failed)

    @cases("given, results, deleted, now_s, expected, wake_s", {
        "waits at first": ({"liveness": {"initialDelaySeconds": 5}}, [], False, 4, [], 5),
        "after the wait": ({"liveness": {"initialDelaySeconds": 5}}, [], False, 5, [LIVENESS], None),
        "both": ({"liveness": {}, "readiness": {}}, [], False, 0, [LIVENESS, READINESS], None),
        "startup first": ({"startup": {}, "liveness": {}, "readiness": {}}, [], False, 0, [STARTUP], None),
        "then the others at once": (
            {"startup": {}, "liveness": {}, "readiness": {}}, [(STARTUP, True)], False, 1, [LIVENESS, READINESS], None,
        ),
        "ten seconds later": ({"liveness": {}}, [(LIVENESS, True)], False, 9, [], 10),
        "its own period": ({"liveness": {"periodSeconds": 3}}, [(LIVENESS, True)], False, 3, [LIVENESS], None),
        "being deleted": ({"liveness": {}, "readiness": {}}, [], True, 0, [READINESS], None),
        "deleted before it started": ({"startup": {}, "readiness": {}}, [], True, 0, [], None),
        "about to be ended": ({"liveness": {}, "readiness": {}}, [(LIVENESS, False)] * 3, False, 99, [], None),
        "the clock was set back": ({"liveness": {}}, [(LIVENESS, True)], False, -3600, [LIVENESS], None),
    })  # fmt: skip
    def test_who_is_asked_and_when(self, given, results, deleted, now_s, expected, wake_s):
        given = of(**given)
        now, wake_us = probes.due(told(given, results), given, T0 + now_s * S, deleted=deleted)
        assert (now, wake_us) == (expected, None if wake_s is None else T0 + wake_s * S)

    @given(st.integers(1, 4), st.integers(1, 4), st.lists(st.sampled_from([True, False, None]), max_size=30))
    def test_readiness_is_the_last_long_enough_row(self, successes, failures, results):
        """The oracle looks at the whole history instead of counting."""
        given = of(readiness={"successThreshold": successes, "failureThreshold": failures})
        health = told(given, [(READINESS, passed) for passed in results])
        text = "".join("+" if passed else "-" for passed in results if passed is not None)
        up, down = text.rfind("+" * successes), text.rfind("-" * failures)
        last_up, last_down = up + successes if up >= 0 else -1, down + failures if down >= 0 else -1
        assert health.ready == (last_up > last_down)

    @pytest.mark.parametrize("known", [True, False])
    def test_agent_that_begins_anew_takes_from_the_status_what_was_known(self, known):
        health = probes.begin(of(startup={}, readiness={}), RUNS, ContainerStatus(started=known, ready=known))
        assert (health.started, health.ready) == (known, known)

    def test_what_follows_from_an_answer(self):
        given = of(
            liveness={"terminationGracePeriodSeconds": 3, "failureThreshold": 1}, startup={"failureThreshold": 1}
        )
        assert probes.grace_s(told(given, [(LIVENESS, False)]), given, 30.0) == 3.0, "the probe's goes before the pod's"
        assert probes.grace_s(told(given, [(STARTUP, False)]), given, 30.0) == 30.0
        asked = probes.ask(probes.begin(given, RUNS), STARTUP, given[STARTUP], T0)
        assert probes.due(asked, given, T0 + 60 * S) == ([], None), "not asked twice at once"
        given = of(readiness={})
        health, worth = probes.begin(given, RUNS), []
        for _ in range(20):
            health = told(given, [(READINESS, False)], health)
            worth.append(probes.is_worth_telling(health, READINESS, given[READINESS]))
        assert [number for number, one in enumerate(worth, 1) if one] == [1, 3], "one that fails for ever is told twice"

    @pytest.mark.parametrize(
        ("status", "passed"),
        [(200, True), (204, True), (302, True), (399, True), (400, False), (404, False), (503, False)],
    )
    def test_request_passes_by_its_status(self, asked, server, status, passed):
        server.status = status
        headers = (("X-Who", "me\r\nX-More: no"),)
        answer = asked(Action(host="127.0.0.1", port=server.port, path="/healthz?full=1", headers=headers))
        assert answer.passed == passed
        assert answer.message == ("" if passed else f"HTTP probe failed with statuscode: {status}")
        ((path, sent),) = server.asked
        assert (path, sent["Host"], sent["X-Who"]) == ("/healthz?full=1", f"127.0.0.1:{server.port}", "meX-More: no")

    def test_connection_is_enough_or_refused_and_what_is_no_answer_fails(self, asked, server):
        assert asked(Action(host="127.0.0.1", port=server.port)).passed
        server.wait_s = 1.0
        slow = asked(Action(host="127.0.0.1", port=server.port, path="/"), seconds=0.1)
        assert (slow.passed, slow.message.endswith("no answer within 0.1s")) == (False, True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            answer = asked(Action(host="127.0.0.1", port=port))
            assert (answer.passed, answer.message) == (False, f"dial tcp 127.0.0.1:{port}: connect: connection refused")
        with socket.create_server(("127.0.0.1", 0)) as listening:
            threading.Thread(target=lambda: rude(listening.accept()[0]), daemon=True).start()
            answer = asked(Action(host="127.0.0.1", port=listening.getsockname()[1], path="/"))
        assert (answer.passed, answer.message.endswith("the answer is not http")) == (False, True)

    @pytest.mark.parametrize("path", ["", "/"])
    @pytest.mark.parametrize(("host", "port"), [("a..b", 80), ("127.0.0.1", 70_000)])
    def test_what_cannot_be_asked_fails(self, asked, host, port, path):
        found = asked(Action(host=host, port=port, path=path))
        assert found.passed is False
        assert found.message

    def test_probe_for_which_there_is_no_thread_is_asked_again(self, asked):
        before = threading.stack_size(1 << 46)  # more than any machine has
        try:
            found = asked(Action(host="127.0.0.1", port=1))
        finally:
            threading.stack_size(before)
        assert found.passed is None

    def test_connection_is_made_by_the_shim(self, attempts, asked):
        (directory,) = (attempts.root / "attempts").iterdir()
        main = attempts.started(directory)["pid"]
        with deaf() as port, ThreadPoolExecutor(1) as threads:
            answer = threads.submit(asked, Action(host="127.0.0.1", port=port), 1.0)
            until(lambda: set(tree.children(attempts.shim(directory))) - {main})
            found = answer.result()
        assert (found.passed, found.message) == (False, f"dial tcp 127.0.0.1:{port}: no answer within 1s")

    def test_what_was_not_tried_is_no_failure(self, attempts):
        """A shim of an older version, which does not know what is wanted, must not have its container ended."""
        checks = Checks("another key")
        directory = attempts.start("sleep", "600", key="key")
        checks.ask(Check("u", "main", 0, LIVENESS, Action(host="127.0.0.1", port=1), 5.0), directory)
        (answer,) = until(checks.take)
        checks.close()
        assert answer.passed is None

    def test_pod_is_ready_when_its_probe_says_so(self, node):
        check = command(f"test -e {node.out}/ready || {{ echo not yet; exit 3; }}", failureThreshold=1)
        uid = node.shell("sleep 600", main={"readinessProbe": check})
        node.until(lambda: ("Unhealthy", "Readiness probe failed: not yet") in events(uid))
        status = node.status()
        (main,) = status["containerStatuses"]
        assert (status["phase"], main["started"], main["ready"]) == ("Running", True, False)
        assert (conditions(status)["Ready"], conditions(status)["ContainersReady"]) == ("False", "False")
        (node.out / "ready").touch()
        node.until(lambda: conditions(node.status())["Ready"] == "True")
        (node.out / "ready").unlink()
        node.until(lambda: conditions(node.status())["Ready"] == "False")

    def test_readiness_is_what_it_was_for_the_next_agent(self, node):
        check = command("true", periodSeconds=600)
        node.shell("sleep 600", main={"readinessProbe": check, "startupProbe": check})
        node.until(lambda: conditions(node.status()).get("Ready") == "True")
        node.crash()
        node.again()
        node.annotate()
        for _ in range(20):
            node._turn()
        assert conditions(node.status())["Ready"] == "True"

    def test_container_that_is_not_alive_is_started_again(self, node):
        check = command(f"test -e {node.out}/alive", failureThreshold=1, terminationGracePeriodSeconds=1)
        (node.out / "alive").touch()
        script = f"trap 'touch {node.out}/asked; exit 0' TERM; touch {node.out}/up; while :; do sleep 0.01; done"
        uid = node.shell(script, main={"livenessProbe": check}, restartPolicy="OnFailure")
        node.until((node.out / "up").exists)
        (node.out / "alive").unlink()
        node.until(lambda: [each["restartCount"] for each in node.status().get("containerStatuses", ())] == [1])
        assert (node.out / "asked").exists(), "it was asked to end before it was made to"
        assert ("Unhealthy", "Liveness probe failed: ") in events(uid)
        (killing,) = (each.object for each in store.find(EVENTS, owner=uid) if each.object["reason"] == "Killing")
        assert killing["message"] == "Container main failed liveness probe, will be restarted"
        assert killing["involvedObject"]["fieldPath"] == "spec.containers{main}"

    def test_container_that_does_not_start_is_ended_and_others_wait_for_it(self, node):
        sidecar = {
            "name": "side", "restartPolicy": "Always", "command": ["sleep", "600"],
            "startupProbe": command(f"test -e {node.out}/up", failureThreshold=600),
        }  # fmt: skip
        never = command("false", failureThreshold=1, terminationGracePeriodSeconds=1)
        node.shell("sleep 600", main={"startupProbe": never}, initContainers=[sidecar])
        node.until(lambda: "running" in str(node.status().get("initContainerStatuses")))
        assert "waiting" in node.state()
        (node.out / "up").touch()
        assert node.until_end()["exitCode"] == 143

    def test_probe_that_hangs_is_ended_and_the_agent_goes_on(self, node):
        check = command("echo begun; sleep 600", failureThreshold=1, timeoutSeconds=1)
        uid = node.shell("sleep 600", main={"readinessProbe": check})
        words = 'Readiness probe failed: command "sh -c echo begun; sleep 600" timed out after 1s'
        node.until(lambda: ("Unhealthy", words) in events(uid))
        node.shell("true", "other")
        node.until_phase("Succeeded", "other")

    def test_container_runs_when_the_hook_after_its_start_has_succeeded(self, node):
        hook = shell(f"touch {node.out}/begun; until [ -e {node.out}/go ]; do sleep 0.01; done")
        node.shell(f"touch {node.out}/main; sleep 600", main=hooked(start=hook))
        node.until(lambda: (node.out / "begun").exists() and (node.out / "main").exists())
        for _ in range(10):
            node._turn()
        assert node.status()["phase"] == "Pending"
        assert node.state()["waiting"]["reason"] == "ContainerCreating"
        node.let_go()
        node.until_phase("Running")

    def test_container_whose_hook_after_the_start_fails_is_ended_by_its_policy(self, node):
        script = f"trap 'echo x >> {node.out}/ended; exit 0' TERM; touch {node.out}/up; while :; do sleep 0.01; done"
        hook = shell(f"until [ -e {node.out}/up ]; do sleep 0.01; done; test -e {node.out}/ended")
        uid = node.shell(script, main=hooked(start=hook), restartPolicy="OnFailure")
        (main,) = node.until_phase("Running")["containerStatuses"]
        assert main["restartCount"] == 1, "it starts again although it ended with 0, and then the hook succeeds"
        assert (node.out / "ended").read_text() == "x\n"
        ((_, message),) = events(uid, "FailedPostStartHook")
        assert message.endswith("exited with 1")

    def test_hook_before_the_end_runs_once_and_before_the_signal(self, node):
        out = node.out / "order"
        script = f"trap 'echo signal >> {out}; exit 0' TERM; echo up >> {out}; while :; do sleep 0.01; done"
        uid = node.shell(script, main=hooked(stop=shell(f"echo hook >> {out}; sleep 0.3")))
        node.until_phase("Running")
        until(out.exists)
        node.delete()
        node.until(lambda: out.read_text().endswith("hook\n"))
        node.crash()
        node.again()
        node.until(lambda: node.pod() is None)
        assert out.read_text().split() == ["up", "hook", "signal"]
        assert (outcome(node, uid)["exitCode"], outcome(node, uid)["stopped"]) == (0, "Deleted")

    def test_hook_before_the_end_that_takes_too_long_is_ended(self, node):
        script = f"trap 'touch {node.out}/signal; exit 0' TERM; touch {node.out}/up; while :; do sleep 0.01; done"
        hook = shell(f"sleep 600; touch {node.out}/late")
        uid = node.shell(script, main=hooked(stop=hook), terminationGracePeriodSeconds=1)
        node.until_phase("Running")
        until((node.out / "up").exists)
        deleted(node)
        assert (node.out / "signal").exists(), "the command is asked to end all the same"
        assert (outcome(node, uid)["exitCode"], outcome(node, uid)["hook"]) == (
            0,
            "it did not end within the grace period",
        )

    def test_container_without_a_grace_is_killed_at_once_when_its_hook_fails(self, node):
        script = "trap '' TERM; while :; do sleep 0.01; done"
        uid = node.shell(script, main=hooked(start=shell("exit 1")), terminationGracePeriodSeconds=0)
        node.until_phase("Failed")
        assert outcome(node, uid)["finishedAt"] - outcome(node, uid)["startedAt"] < 25_000_000

    @cases("spec, main", {
        "liveness": ({}, {"livenessProbe": command("false", failureThreshold=1)}),
        "deadline": ({"activeDeadlineSeconds": 1}, {}),
    })  # fmt: skip
    def test_hook_before_the_end_runs_whoever_ends_the_container_and_its_failure_is_told(self, node, spec, main):
        uid = node.shell("sleep 600", main=hooked(stop=shell(f"touch {node.out}/hook; exit 7"), **main), **spec)
        node.until_phase("Failed")
        assert (node.out / "hook").exists()
        ((_, message),) = events(uid, "FailedPreStopHook")
        assert message.endswith("exited with 7")

    def test_pause_before_the_end_lasts_as_long_as_it_says(self, node):
        uid = node.shell("sleep 600", main=hooked(stop={"sleep": {"seconds": 1}}))
        node.until_phase("Running")
        begun = time.time()
        deleted(node)
        assert outcome(node, uid)["finishedAt"] / 1e6 - begun >= 1

    def test_hook_by_connection_asks_for_no_answer(self, node):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            hook = {"tcpSocket": {"host": "127.0.0.1", "port": silent.getsockname()[1]}}
            node.shell("sleep 600", main=hooked(start=hook), terminationGracePeriodSeconds=1)
            node.until(lambda: node.status()["phase"] != "Pending")
            assert node.status()["phase"] == "Running"

    def test_probes_and_hooks_by_request_ask_at_the_pods_own_address(self, node):
        program = (
            "import http.server, os\n"
            "class H(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        open(os.environ['OUT'], 'a').write(self.path + ' ')\n"
            "        self.send_response(500 if 'bye' in self.path else 200); self.end_headers()\n"
            "http.server.HTTPServer((os.environ['IP'], 8766), H).serve_forever()\n"
        )
        address = {"fieldRef": {"fieldPath": "status.podIP"}}
        env = [{"name": "IP", "valueFrom": address}, {"name": "OUT", "value": str(node.out / "asked")}]
        probe = {"httpGet": {"path": "/up", "port": "web"}, "periodSeconds": 1, "failureThreshold": 60}
        main = hooked(stop={"httpGet": {"path": "/bye", "port": 8766}}, env=env, startupProbe=probe)
        ports = [{"name": "web", "containerPort": 8766}]
        uid = node.submit(containers=[{"name": "main", "command": ["python3", "-c", program], "ports": ports, **main}])
        node.until(lambda: conditions(node.status()).get("Ready") == "True")
        deleted(node)
        assert (node.out / "asked").read_text().split() == ["/up", "/bye"]
        assert outcome(node, uid)["hook"] == "", "whatever is answered is an answer"

    def test_pod_can_be_deleted_while_a_hook_after_the_start_hangs(self, node):
        hook = shell(f"touch {node.out}/begun; sleep 600")
        uid = node.shell("sleep 600", main=hooked(start=hook), terminationGracePeriodSeconds=5)
        node.until((node.out / "begun").exists)
        deleted(node)
        assert outcome(node, uid)["signal"] == 15

    def test_forced_end_waits_for_no_hook(self, attempts):
        attempt = attempts.shell("echo up; sleep 600", pre_stop=Action(argv=("sh", "-c", "sleep 600")))
        until(lambda: b"up" in attempts.output(attempt))
        attempts.stop(attempt, grace=0)
        ended = attempts.end(attempt)
        assert (ended["signal"] in (9, 15), ended["hook"]) == (True, "")
