"""Probes and hooks: the rule by tables and by an oracle, and real programs that are asked."""

import contextlib
import json
import socket
import threading
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.store import store
from kube.kinds.pod import Container, ContainerStatus
from kube.resources import EVENTS, PODS
from node.agent.checks import Check, Checks
from node.attempt import Attempt, AttemptState
from node.rules import probes
from node.rules.probes import Kind
from node.shim.order import Action
from proof.harness.waiting import until
from tests.node.driving import answering, change, conditions
from tests.tables import cases

S = 1_000_000
T0 = 1_800_000_000 * S
RUNS = Attempt(0, AttemptState.RUNNING, started_us=T0)
BY_LETTER = {kind[0]: kind for kind in Kind}


def of(text):
    """Return probes of a text: `startup, liveness periodSeconds=3`."""
    body = {"name": "main"}
    for each in filter(None, text.split(", ")):
        kind, *fields = each.split()
        numbers = {name: int(value) for name, value in (field.split("=") for field in fields)}
        body[f"{kind}Probe"] = {"exec": {"command": ["true"]}, **numbers}
    return probes.of(msgspec.convert(body, Container))


def probe_state(given, results, health=None):
    """Return what is known after answers, such as `S- S+ R?`: a probe that failed, passed or told nothing."""
    health = health or probes.begin(given, RUNS)
    for letter, sign in results.split():
        kind, passed = BY_LETTER[letter], {"+": True, "-": False, "?": None}[sign]
        health = probes.with_result(
            probes.with_pending(health, kind, given[kind], T0), kind, given[kind], passed=passed
        )
    return health


@pytest.fixture
def server():
    with answering() as one:
        yield one


@pytest.fixture
def probed(attempts):
    """Ask a probe of a container that runs: what is connected to, its shim connects to."""
    directory = attempts.start("sleep", "600", key="key")

    def ask(host="127.0.0.1", port=1, *, seconds=5.0, key="key", **fields):
        with contextlib.closing(Checks(key)) as checks:
            action = Action(host=host, port=port, **fields)
            checks.start(Check("u", "main", 0, Kind.LIVENESS, action, seconds), directory)
            (answer,) = until(checks.results)
            return answer.passed, answer.message

    return ask


def rude(connection):
    connection.sendall(b"hello\r\n\r\n")
    connection.close()


def shell(script):
    return {"exec": {"command": ["sh", "-c", script]}}


def command(script, **fields):
    return {**shell(script), "periodSeconds": 1, **fields}


def hooked(*, start=None, stop=None, **fields):
    hooks = {name: hook for name, hook in (("postStart", start), ("preStop", stop)) if hook}
    return {"lifecycle": hooks, **fields}


def outcome(node, uid):
    return json.loads((node.directory(uid) / "status.json").read_text())


def asks_to_end(file, then="exit 0"):
    return f"trap 'echo signal >> {file}; {then}' TERM; echo up >> {file}; while :; do sleep 0.01; done"


class TestRules:
    @cases("given, results, expected", {
        "no probes": ("", "", "started ready"),
        "not asked yet": ("readiness", "", "started"),
        "ready": ("readiness", "R+", "started ready"),
        "once is not twice": ("readiness successThreshold=2", "R+", "started"),
        "two failures": ("readiness", "R+ R- R-", "started ready"),
        "three failures": ("readiness", "R+ R- R- R-", "started"),
        "nothing found out counts for nothing": ("readiness", "R+ R- R? R-", "started ready"),
        "starts still": ("startup", "S- S-", "ready"),
        "has started": ("startup", "S- S+", "started ready"),
        "never started": ("startup failureThreshold=2", "S- S-", "ready failed:Startup"),
        "never three in a row": ("liveness", "L- L+ L- L- L+ L- L- L+", "started ready"),
        "dead": ("liveness", "L- L- L-", "started ready failed:Liveness"),
        "too late": ("liveness", "L- L- L- L+", "started ready failed:Liveness"),
    })  # fmt: skip
    def test_what_probes_have_found(self, given, results, expected):
        found = probe_state(of(given), results)
        words = {"started": found.started, "ready": found.ready, f"failed:{found.failed}": found.failed}
        assert " ".join(word for word, holds in words.items() if holds) == expected

    @cases("given, results, now_s, expected, wake_s", {
        "waits at first": ("liveness initialDelaySeconds=5", "", 4, "", 5),
        "after the wait": ("liveness initialDelaySeconds=5", "", 5, "Liveness", None),
        "both": ("liveness, readiness", "", 0, "Liveness Readiness", None),
        "startup first": ("startup, liveness, readiness", "", 0, "Startup", None),
        "then the others at once": ("startup, liveness, readiness", "S+", 1, "Liveness Readiness", None),
        "ten seconds later": ("liveness", "L+", 9, "", 10),
        "its own period": ("liveness periodSeconds=3", "L+", 3, "Liveness", None),
        "being deleted": ("liveness, readiness", "deleted", 0, "Readiness", None),
        "deleted before it started": ("startup, readiness", "deleted", 0, "", None),
        "about to be ended": ("liveness, readiness", "L- L- L-", 99, "", None),
        "the clock was set back": ("liveness", "L+", -3600, "Liveness", None),
    })  # fmt: skip
    def test_who_is_asked_and_when(self, given, results, now_s, expected, wake_s):
        given, deleted = of(given), results == "deleted"
        now, wake_us = probes.due(
            probe_state(given, "" if deleted else results), given, T0 + now_s * S, deleted=deleted
        )
        assert (" ".join(now), wake_us) == (expected, None if wake_s is None else T0 + wake_s * S)

    @given(st.integers(1, 4), st.integers(1, 4), st.lists(st.sampled_from("+-?"), max_size=30))
    def test_readiness_is_the_last_long_enough_row(self, successes, failures, signs):
        """The oracle looks at the whole history instead of counting."""
        given = of(f"readiness successThreshold={successes} failureThreshold={failures}")
        health = probe_state(given, " ".join(f"R{sign}" for sign in signs))
        text = "".join(signs).replace("?", "")
        up, down = text.rfind("+" * successes), text.rfind("-" * failures)
        last_up, last_down = up + successes if up >= 0 else -1, down + failures if down >= 0 else -1
        assert health.ready == (last_up > last_down)

    def test_what_follows_from_an_answer_or_was_known_to_the_agent_before(self):
        for observed in (True, False):
            health = probes.begin(of("startup, readiness"), RUNS, ContainerStatus(started=observed, ready=observed))
            assert (health.started, health.ready) == (observed, observed)
        given = of("liveness terminationGracePeriodSeconds=3 failureThreshold=1, startup failureThreshold=1")
        assert probes.grace_s(probe_state(given, "L-"), given, 30.0) == 3.0, "the probe's goes before the pod's"
        assert probes.grace_s(probe_state(given, "S-"), given, 30.0) == 30.0
        pending = probes.with_pending(probes.begin(given, RUNS), Kind.STARTUP, given[Kind.STARTUP], T0)
        assert probes.due(pending, given, T0 + 60 * S) == ([], None), "not asked twice at once"
        given = of("readiness")
        observed = [probe_state(given, "R- " * number) for number in range(1, 21)]
        worth = [probes.is_worth_event(each, Kind.READINESS, given[Kind.READINESS]) for each in observed]
        assert [number for number, one in enumerate(worth, 1) if one] == [1, 3], "one that fails for ever is told twice"


class TestAnswers:
    def test_request_passes_by_its_status(self, probed, server):
        headers = (("X-Who", "me\r\nX-More: no"),)
        for status, passes in ((200, True), (204, True), (302, True), (399, True), (400, False), (503, False)):
            server.code = status
            message = "" if passes else f"HTTP probe failed with statuscode: {status}"
            assert probed(port=server.port, path="/healthz?full=1", headers=headers) == (passes, message)
        expected = ("/healthz?full=1", f"127.0.0.1:{server.port}", "meX-More: no")
        assert {(path, sent["Host"], sent["X-Who"]) for path, sent in server.asked} == {expected}

    def test_connection_is_enough_or_refused_and_what_is_no_answer_fails(self, probed, server):
        assert probed(port=server.port) == (True, "")
        server.wait_s = 1.0
        passed, message = probed(port=server.port, path="/", seconds=0.1)
        assert (passed, message.endswith("no answer within 0.1s")) == (False, True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
            assert probed(port=port) == (False, f"dial tcp 127.0.0.1:{port}: connect: connection refused")
        with socket.create_server(("127.0.0.1", 0)) as listening:
            threading.Thread(target=lambda: rude(listening.accept()[0]), daemon=True).start()
            passed, message = probed(port=listening.getsockname()[1], path="/")
        assert (passed, message.endswith("the answer is not http")) == (False, True)
        passed, message = probed("a..b", 80, path="/")
        assert (passed, message != "") == (False, True)

    def test_what_was_not_tried_is_no_failure(self, probed):
        """A shim of an older version, which does not know what is wanted, must not have its container ended."""
        assert probed(key="another key")[0] is None
        before = threading.stack_size(1 << 46)  # more than any machine has
        try:
            assert probed()[0] is None, "there is no thread for it"
        finally:
            threading.stack_size(before)


class TestProbes:
    def test_pod_is_ready_when_its_probe_says_so_also_for_the_next_agent(self, node):
        check = command(f"test -e {node.out}/ready || {{ echo not yet; exit 3; }}", failureThreshold=1)
        uid = node.shell("sleep 600", main={"readinessProbe": check})
        node.until(lambda: ("Unhealthy", "Readiness probe failed: not yet") in node.events_of(uid))
        status = node.status()
        (main,) = status["containerStatuses"]
        assert (status["phase"], main["started"], main["ready"]) == ("Running", True, False)
        assert (conditions(status)["Ready"], conditions(status)["ContainersReady"]) == ("False", "False")
        once = command("true", periodSeconds=600)
        node.shell("sleep 600", "asked-once", main={"readinessProbe": once, "startupProbe": once})
        node.until(lambda: conditions(node.status("asked-once")).get("Ready") == "True")
        node.again()
        node.annotate("asked-once")
        (node.out / "ready").touch()
        node.until(lambda: conditions(node.status())["Ready"] == "True")
        (node.out / "ready").unlink()
        node.until(lambda: conditions(node.status())["Ready"] == "False")
        assert conditions(node.status("asked-once"))["Ready"] == "True"

    def test_container_that_is_not_alive_is_started_again(self, node):
        (node.out / "alive").touch()
        check = command(f"test -e {node.out}/alive", failureThreshold=1, terminationGracePeriodSeconds=1)
        log, main = node.out / "said", {"livenessProbe": check}
        uid = node.shell(asks_to_end(log), main=main, restartPolicy="OnFailure")
        node.until(log.exists)
        (node.out / "alive").unlink()
        node.until(lambda: [one["restartCount"] for one in node.status()["containerStatuses"]] == [1])
        assert "signal" in log.read_text(), "it was asked to end before it was made to"
        assert ("Unhealthy", "Liveness probe failed: ") in node.events_of(uid)
        (killing,) = (each.object for each in store.find(EVENTS, owner=uid) if each.object["reason"] == "Killing")
        assert killing["message"] == "Container main failed liveness probe, will be restarted"
        assert killing["involvedObject"]["fieldPath"] == "spec.containers{main}"

    def test_container_that_does_not_start_is_ended_and_others_wait_for_it(self, node):
        starts = command(f"test -e {node.out}/up", failureThreshold=600)
        sidecar = {"name": "side", "restartPolicy": "Always", "command": ["sleep", "600"], "startupProbe": starts}
        never = command("false", failureThreshold=1, terminationGracePeriodSeconds=1)
        node.shell("sleep 600", main={"startupProbe": never}, initContainers=[sidecar])
        node.until(lambda: "running" in str(node.status().get("initContainerStatuses")))
        assert "waiting" in node.state()
        (node.out / "up").touch()
        assert node.until_end()["exitCode"] == 143

    def test_probe_that_hangs_is_ended_and_one_that_cannot_be_asked_fails_and_the_agent_goes_on(self, node):
        check = command("echo begun; sleep 600", failureThreshold=1, timeoutSeconds=1)
        uid = node.shell("sleep 600", main={"readinessProbe": check})
        words = 'Readiness probe failed: command "sh -c echo begun; sleep 600" timed out after 1s'
        node.until(lambda: ("Unhealthy", words) in node.events_of(uid))
        uid = node.shell("sleep 600", "other", {"readinessProbe": {"tcpSocket": {"port": "web"}}}, until="Running")
        words = 'Readiness probe failed: container main has no port named "web"'
        node.until(lambda: ("Unhealthy", words) in node.events_of(uid))


class TestHooks:
    def test_container_runs_when_the_hook_after_its_start_has_succeeded(self, node):
        hook = shell(f"touch {node.out}/begun; until [ -e {node.out}/go ]; do sleep 0.01; done")
        node.shell(f"touch {node.out}/main; sleep 600", main=hooked(start=hook))
        node.until(lambda: (node.out / "begun").exists() and (node.out / "main").exists())
        for _ in range(10):
            node._turn()
        assert (node.status()["phase"], node.state()["waiting"]["reason"]) == ("Pending", "ContainerCreating")
        node.let_go()
        node.until_phase("Running")

    def test_container_whose_hook_after_the_start_fails_is_ended_by_its_policy(self, node):
        log = node.out / "said"
        hook = shell(f"until [ -e {log} ]; do sleep 0.01; done; grep -q signal {log}")
        uid = node.shell(asks_to_end(log), main=hooked(start=hook), restartPolicy="OnFailure")
        (main,) = node.until_phase("Running")["containerStatuses"]
        assert main["restartCount"] == 1, "it starts again although it ended with 0, and then the hook succeeds"
        assert log.read_text().count("signal") == 1
        ((_, message),) = node.events_of(uid, "FailedPostStartHook")
        assert message.endswith("exited with 1")
        ignores = "trap '' TERM; while :; do sleep 0.01; done"
        main = hooked(start=shell("exit 1"))
        uid = node.shell(ignores, "no-grace", main, terminationGracePeriodSeconds=0, until="Failed")
        assert outcome(node, uid)["finishedAt"] - outcome(node, uid)["startedAt"] < 25_000_000

    def test_hook_before_the_end_runs_once_and_before_the_signal(self, node):
        log = node.out / "said"
        uid = node.shell(asks_to_end(log), main=hooked(stop=shell(f"echo hook >> {log}; sleep 0.3")), until="Running")
        until(log.exists)
        node.delete()
        node.until(lambda: log.read_text().endswith("hook\n"))
        node.again()
        node.until(lambda: node.pod() is None)
        assert log.read_text().split() == ["up", "hook", "signal"]
        assert (outcome(node, uid)["exitCode"], outcome(node, uid)["stopped"]) == (0, "Deleted")

    def test_pods_whose_hooks_take_long_end_when_they_are_deleted(self, node):
        late, pause, hangs = files = [node.out / name for name in ("late", "pause", "hangs")]
        pods = {
            "late": (asks_to_end(late), hooked(stop=shell(f"sleep 600; echo late >> {late}")), 1),
            "pause": (asks_to_end(pause), hooked(stop={"sleep": {"seconds": 1}}), 30),
            "hangs": ("sleep 600", hooked(start=shell(f"touch {hangs}; sleep 600")), 5),
        }
        uids = {}
        for name, (script, main, grace) in pods.items():
            uids[name] = node.shell(script, name, main, terminationGracePeriodSeconds=grace)
        node.until(lambda: all(file.exists() for file in files))
        node.until_phase("Running", "pause")
        begun = time.time()
        for name in pods:
            node.delete(name)
        node.until(lambda: not any(map(node.pod, pods)))
        ends = {name: outcome(node, uid) for name, uid in uids.items()}
        assert (ends["late"]["exitCode"], ends["late"]["hook"]) == (0, "it did not end within the grace period")
        assert late.read_text() == "up\nsignal\n", "the command is asked to end all the same"
        assert ends["pause"]["finishedAt"] / 1e6 - begun >= 1
        assert ends["hangs"]["signal"] == 15

    @cases("main", {"liveness": {"livenessProbe": command("false", failureThreshold=1)}, "deadline": {}})
    def test_hook_before_the_end_runs_whoever_ends_the_container_and_its_failure_is_told(self, node, main):
        hook = shell(f"touch {node.out}/hook; exit 7")
        uid = node.shell("sleep 600", main=hooked(stop=hook, **main))
        if not main:
            node.until_phase("Running")
            change(PODS, "p", spec={"activeDeadlineSeconds": 1})
        node.until_phase("Failed")
        assert (node.out / "hook").exists()
        ((_, message),) = node.events_of(uid, "FailedPreStopHook")
        assert message.endswith("exited with 7")

    def test_hook_by_connection_asks_for_no_answer(self, node):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            hook = {"tcpSocket": {"host": "127.0.0.1", "port": silent.getsockname()[1]}}
            node.shell("sleep 600", main=hooked(start=hook), terminationGracePeriodSeconds=1)
            node.until(lambda: node.status()["phase"] != "Pending")
            assert node.status()["phase"] == "Running"

    def test_forced_end_waits_for_no_hook(self, attempts):
        attempt = attempts.shell("echo up; sleep 600", pre_stop=Action(argv=("sh", "-c", "sleep 600")))
        until(lambda: b"up" in attempts.output(attempt))
        attempts.stop(attempt, grace=0)
        ended = attempts.end(attempt)
        assert (ended["signal"] in (9, 15), ended["hook"]) == (True, "")
