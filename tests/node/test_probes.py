"""What probes say of a container: the rule by tables and by an oracle, and real programs that are asked."""

from __future__ import annotations

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


@cases("given, results, started, ready, failed", {
    "no probes": ({}, [], True, True, None),
    "not asked yet": ({"readiness": {}}, [], True, False, None),
    "ready": ({"readiness": {}}, [(READINESS, True)], True, True, None),
    "once is not twice": ({"readiness": {"successThreshold": 2}}, [(READINESS, True)], True, False, None),
    "two failures": ({"readiness": {}}, [(READINESS, True), *[(READINESS, False)] * 2], True, True, None),
    "three failures": ({"readiness": {}}, [(READINESS, True), *[(READINESS, False)] * 3], True, False, None),
    "nothing found out counts for nothing": (
        {"readiness": {}}, [(READINESS, True), (READINESS, False), (READINESS, None), (READINESS, False)], True, True,
        None,
    ),
    "starts still": ({"startup": {}}, [(STARTUP, False)] * 2, False, True, None),
    "has started": ({"startup": {}}, [(STARTUP, False), (STARTUP, True)], True, True, None),
    "never started": ({"startup": {"failureThreshold": 2}}, [(STARTUP, False)] * 2, False, True, STARTUP),
    "never three in a row": ({"liveness": {}}, [(LIVENESS, False), (LIVENESS, True)] * 5, True, True, None),
    "dead": ({"liveness": {}}, [(LIVENESS, False)] * 3, True, True, LIVENESS),
    "too late": ({"liveness": {}}, [*[(LIVENESS, False)] * 3, (LIVENESS, True)], True, True, LIVENESS),
})  # fmt: skip
def test_what_probes_have_found(given, results, started, ready, failed):
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
def test_who_is_asked_and_when(given, results, deleted, now_s, expected, wake_s):
    given = of(**given)
    now, wake_us = probes.due(told(given, results), given, T0 + now_s * S, deleted=deleted)
    assert (now, wake_us) == (expected, None if wake_s is None else T0 + wake_s * S)


def test_probe_is_not_asked_twice_at_once():
    given = of(liveness={"periodSeconds": 1})
    asked = probes.ask(probes.begin(given, RUNS), LIVENESS, given[LIVENESS], T0)
    assert probes.due(asked, given, T0 + 60 * S) == ([], None)


@given(st.integers(1, 4), st.integers(1, 4), st.lists(st.sampled_from([True, False, None]), max_size=30))
def test_readiness_is_the_last_long_enough_row(successes, failures, results):
    """The oracle looks at the whole history instead of counting."""
    given = of(readiness={"successThreshold": successes, "failureThreshold": failures})
    health = told(given, [(READINESS, passed) for passed in results])
    text = "".join("+" if passed else "-" for passed in results if passed is not None)
    up, down = text.rfind("+" * successes), text.rfind("-" * failures)
    last_up, last_down = up + successes if up >= 0 else -1, down + failures if down >= 0 else -1
    assert health.ready == (last_up > last_down)


@pytest.mark.parametrize("known", [True, False])
def test_agent_that_begins_anew_takes_from_the_status_what_was_known(known):
    given = of(startup={}, readiness={})
    status = ContainerStatus(started=known, ready=known)
    health = probes.begin(given, RUNS, status)
    assert (health.started, health.ready) == (known, known)


def test_grace_of_the_probe_goes_before_the_pods():
    given = of(liveness={"terminationGracePeriodSeconds": 3, "failureThreshold": 1}, startup={"failureThreshold": 1})
    assert probes.grace_s(told(given, [(LIVENESS, False)]), given, 30.0) == 3.0
    assert probes.grace_s(told(given, [(STARTUP, False)]), given, 30.0) == 30.0


def test_one_that_fails_for_ever_is_told_twice():
    given = of(readiness={})
    health, worth = probes.begin(given, RUNS), []
    for _ in range(20):
        health = told(given, [(READINESS, False)], health)
        worth.append(probes.is_worth_telling(health, READINESS, given[READINESS]))
    assert [number for number, one in enumerate(worth, 1) if one] == [1, 3]


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

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def server():
    one = Server()
    yield one
    one.close()


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


@pytest.mark.parametrize(
    ("status", "passed"), [(200, True), (204, True), (302, True), (399, True), (400, False), (404, False), (503, False)]
)
def test_request_passes_by_its_status(asked, server, status, passed):
    server.status = status
    headers = (("X-Who", "me\r\nX-More: no"),)
    answer = asked(Action(host="127.0.0.1", port=server.port, path="/healthz?full=1", headers=headers))
    assert answer.passed == passed
    assert answer.message == ("" if passed else f"HTTP probe failed with statuscode: {status}")
    ((path, sent),) = server.asked
    assert (path, sent["Host"], sent["X-Who"]) == ("/healthz?full=1", f"127.0.0.1:{server.port}", "meX-More: no")


def test_request_that_is_not_answered_in_time_fails(asked, server):
    server.wait_s = 1.0
    answer = asked(Action(host="127.0.0.1", port=server.port, path="/"), seconds=0.1)
    assert answer.passed is False
    assert answer.message.endswith("no answer within 0.1s")


def test_connection_is_enough_or_refused(asked, server):
    assert asked(Action(host="127.0.0.1", port=server.port)).passed
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        answer = asked(Action(host="127.0.0.1", port=port))
        assert (answer.passed, answer.message) == (False, f"dial tcp 127.0.0.1:{port}: connect: connection refused")


def test_what_is_no_answer_fails(asked):
    with socket.create_server(("127.0.0.1", 0)) as rude:

        def answer():
            one, _ = rude.accept()
            one.sendall(b"hello\r\n\r\n")
            one.close()

        threading.Thread(target=answer, daemon=True).start()
        found = asked(Action(host="127.0.0.1", port=rude.getsockname()[1], path="/"))
    assert (found.passed, found.message.endswith("the answer is not http")) == (False, True)


@pytest.mark.parametrize("path", ["", "/"])
@pytest.mark.parametrize(("host", "port"), [("a..b", 80), ("127.0.0.1", 70_000)])
def test_what_cannot_be_asked_fails(asked, host, port, path):
    found = asked(Action(host=host, port=port, path=path))
    assert found.passed is False
    assert found.message


def test_probe_for_which_there_is_no_thread_is_asked_again(asked):
    before = threading.stack_size(1 << 46)  # more than any machine has
    try:
        found = asked(Action(host="127.0.0.1", port=1))
    finally:
        threading.stack_size(before)
    assert found.passed is None


def test_connection_is_made_by_the_shim(attempts, asked):
    (directory,) = (attempts.root / "attempts").iterdir()
    main = attempts.started(directory)["pid"]
    with deaf() as port, ThreadPoolExecutor(1) as threads:
        answer = threads.submit(asked, Action(host="127.0.0.1", port=port), 1.0)
        until(lambda: set(tree.children(attempts.shim(directory))) - {main})
        found = answer.result()
    assert (found.passed, found.message) == (False, f"dial tcp 127.0.0.1:{port}: no answer within 1s")


def test_what_was_not_tried_is_no_failure(attempts):
    """A shim of an older version, which does not know what is wanted, must not have its container ended."""
    checks = Checks("another key")
    directory = attempts.start("sleep", "600", key="key")
    checks.ask(Check("u", "main", 0, LIVENESS, Action(host="127.0.0.1", port=1), 5.0), directory)
    (answer,) = until(checks.take)
    checks.close()
    assert answer.passed is None


def probed(script, **given):
    return {"name": "main", "command": ["sh", "-c", script], **given}


def command(script, **fields):
    return {"exec": {"command": ["sh", "-c", script]}, "periodSeconds": 1, **fields}


def conditions(status):
    return {one["type"]: one["status"] for one in status.get("conditions", ())}


def events(uid):
    return {(one.object["reason"], one.object["message"]): one.object for one in store.find(EVENTS, owner=uid)}


def test_pod_is_ready_when_its_probe_says_so(node):
    check = command(f"test -e {node.out}/ready || {{ echo not yet; exit 3; }}", failureThreshold=1)
    uid = node.submit(containers=[probed("sleep 600", readinessProbe=check)])
    node.until(lambda: ("Unhealthy", "Readiness probe failed: not yet") in events(uid))
    status = node.status()
    (main,) = status["containerStatuses"]
    assert (status["phase"], main["started"], main["ready"]) == ("Running", True, False)
    assert (conditions(status)["Ready"], conditions(status)["ContainersReady"]) == ("False", "False")
    (node.out / "ready").touch()
    node.until(lambda: conditions(node.status())["Ready"] == "True")
    (node.out / "ready").unlink()
    node.until(lambda: conditions(node.status())["Ready"] == "False")


def test_readiness_is_what_it_was_for_the_next_agent(node):
    check = command("true", periodSeconds=600)
    node.submit(containers=[probed("sleep 600", readinessProbe=check, startupProbe=check)])
    node.until(lambda: conditions(node.status()).get("Ready") == "True")
    node.crash()
    node.again()
    node.annotate()
    for _ in range(20):
        node._turn()
    assert conditions(node.status())["Ready"] == "True"


def test_container_that_is_not_alive_is_started_again(node):
    check = command(f"test -e {node.out}/alive", failureThreshold=1, terminationGracePeriodSeconds=1)
    (node.out / "alive").touch()
    script = f"trap 'touch {node.out}/asked; exit 0' TERM; touch {node.out}/up; while :; do sleep 0.01; done"
    uid = node.submit(containers=[probed(script, livenessProbe=check)], restartPolicy="OnFailure")
    node.until((node.out / "up").exists)
    (node.out / "alive").unlink()
    node.until(lambda: [each["restartCount"] for each in node.status().get("containerStatuses", ())] == [1])
    assert (node.out / "asked").exists(), "it was asked to end before it was made to"
    told = events(uid)
    assert ("Unhealthy", "Liveness probe failed: ") in told
    killing = told["Killing", "Container main failed liveness probe, will be restarted"]
    assert killing["involvedObject"]["fieldPath"] == "spec.containers{main}"


def test_container_that_does_not_start_is_ended_and_others_wait_for_it(node):
    sidecar = {
        "name": "side", "restartPolicy": "Always", "command": ["sleep", "600"],
        "startupProbe": command(f"test -e {node.out}/up", failureThreshold=600),
    }  # fmt: skip
    never = command("false", failureThreshold=1, terminationGracePeriodSeconds=1)
    node.submit(containers=[probed("sleep 600", startupProbe=never)], initContainers=[sidecar])
    node.until(lambda: "running" in str(node.status().get("initContainerStatuses")))
    assert "waiting" in node.state()
    (node.out / "up").touch()
    status = node.until_phase("Failed")
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


def test_probe_by_request_asks_at_the_pods_own_address(node):
    script = 'import http.server, os; http.server.test(http.server.SimpleHTTPRequestHandler, port=8765, bind=os.environ["IP"])'
    check = {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 1, "failureThreshold": 60}
    env = [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    node.submit(
        containers=[{
            "name": "main", "command": ["python3", "-c", script], "env": env,
            "ports": [{"name": "web", "containerPort": 8765}], "startupProbe": check,
        }]
    )  # fmt: skip
    node.until(lambda: conditions(node.status()).get("Ready") == "True")


def test_probe_that_hangs_is_ended_and_the_agent_goes_on(node):
    check = command("echo begun; sleep 600", failureThreshold=1, timeoutSeconds=1)
    uid = node.submit(containers=[probed("sleep 600", readinessProbe=check)])
    words = 'Readiness probe failed: command "sh -c echo begun; sleep 600" timed out after 1s'
    node.until(lambda: ("Unhealthy", words) in events(uid))
    node.shell("true", "other")
    node.until_phase("Succeeded", "other")


def test_probe_by_grpc_is_refused_with_a_remedy(node):
    node.submit(containers=[probed("sleep 600", livenessProbe={"grpc": {"port": 1}})])
    status = node.until_phase("Failed")
    assert (status["reason"], "exec" in status["message"]) == ("UnsupportedProbe", True)
