"""Hooks after the start of containers and before their end, carried out by real shims."""

from __future__ import annotations

import json
import socket
import time

import pytest

from cluster.store import store
from kube.resources import EVENTS
from node.shim.order import Action
from proof.harness.waiting import until


def container(script, *, start=None, stop=None, **fields):
    hooks = {name: hook for name, hook in (("postStart", start), ("preStop", stop)) if hook}
    return {"name": "main", "command": ["sh", "-c", script], "lifecycle": hooks, **fields}


def shell(script):
    return {"exec": {"command": ["sh", "-c", script]}}


def told(uid, reason):
    return [one.object["message"] for one in store.find(EVENTS, owner=uid) if one.object["reason"] == reason]


def outcome(node, uid):
    return json.loads((node.directory(uid) / "status.json").read_text())


def test_container_runs_when_the_hook_after_its_start_has_succeeded(node):
    hook = shell(f"touch {node.out}/begun; until [ -e {node.out}/go ]; do sleep 0.01; done")
    node.submit(containers=[container(f"touch {node.out}/main; sleep 600", start=hook)])
    node.until(lambda: (node.out / "begun").exists() and (node.out / "main").exists())
    for _ in range(10):
        node._turn()
    assert node.status()["phase"] == "Pending"
    assert node.state()["waiting"]["reason"] == "ContainerCreating"
    node.let_go()
    node.until_phase("Running")


def test_container_whose_hook_after_the_start_fails_is_ended_by_its_policy(node):
    script = f"trap 'echo x >> {node.out}/ended; exit 0' TERM; touch {node.out}/up; while :; do sleep 0.01; done"
    hook = shell(f"until [ -e {node.out}/up ]; do sleep 0.01; done; test -e {node.out}/ended")
    uid = node.submit(containers=[container(script, start=hook)], restartPolicy="OnFailure")
    node.until_phase("Running")
    (main,) = node.status()["containerStatuses"]
    assert main["restartCount"] == 1, "it starts again although it ended with 0, and then the hook succeeds"
    assert (node.out / "ended").read_text() == "x\n"
    (message,) = told(uid, "FailedPostStartHook")
    assert message.endswith("exited with 1")


def test_hook_before_the_end_runs_once_and_before_the_signal(node):
    out = node.out / "order"
    script = f"trap 'echo signal >> {out}; exit 0' TERM; echo up >> {out}; while :; do sleep 0.01; done"
    uid = node.submit(containers=[container(script, stop=shell(f"echo hook >> {out}; sleep 0.3"))])
    node.until_phase("Running")
    until(out.exists)
    node.delete()
    node.until(lambda: out.read_text().endswith("hook\n"))
    node.crash()
    node.again()
    node.until(lambda: node.pod() is None)
    assert out.read_text().split() == ["up", "hook", "signal"]
    assert (outcome(node, uid)["exitCode"], outcome(node, uid)["stopped"]) == (0, "Deleted")


def test_hook_before_the_end_that_takes_too_long_is_ended(node):
    script = f"trap 'touch {node.out}/signal; exit 0' TERM; touch {node.out}/up; while :; do sleep 0.01; done"
    hook = shell(f"sleep 600; touch {node.out}/late")
    uid = node.submit(containers=[container(script, stop=hook)], terminationGracePeriodSeconds=1)
    node.until_phase("Running")
    until((node.out / "up").exists)
    node.delete()
    node.until(lambda: node.pod() is None)
    assert (node.out / "signal").exists(), "the command is asked to end all the same"
    assert outcome(node, uid)["exitCode"] == 0
    assert outcome(node, uid)["hook"] == "it did not end within the grace period"


def test_container_without_a_grace_is_killed_at_once_when_its_hook_fails(node):
    script = "trap '' TERM; while :; do sleep 0.01; done"
    uid = node.submit(containers=[container(script, start=shell("exit 1"))], terminationGracePeriodSeconds=0)
    node.until_phase("Failed")
    assert outcome(node, uid)["finishedAt"] - outcome(node, uid)["startedAt"] < 25_000_000


@pytest.mark.parametrize("how", ["liveness", "deadline"])
def test_hook_before_the_end_runs_whoever_ends_the_container(node, how):
    main = container("sleep 600", stop=shell(f"touch {node.out}/hook"))
    spec = {}
    if how == "liveness":
        main["livenessProbe"] = {**shell("false"), "periodSeconds": 1, "failureThreshold": 1}
    else:
        spec["activeDeadlineSeconds"] = 1
    node.submit(containers=[main], **spec)
    node.until_phase("Failed")
    assert (node.out / "hook").exists()


def test_pause_before_the_end_lasts_as_long_as_it_says(node):
    uid = node.submit(containers=[container("sleep 600", stop={"sleep": {"seconds": 1}})])
    node.until_phase("Running")
    begun = time.time()
    node.delete()
    node.until(lambda: node.pod() is None)
    assert outcome(node, uid)["finishedAt"] / 1e6 - begun >= 1


def test_hook_that_fails_before_the_end_is_told_and_stops_nothing(node):
    uid = node.submit(containers=[container("sleep 600", stop=shell("exit 7"))], activeDeadlineSeconds=1)
    node.until_phase("Failed")
    (message,) = told(uid, "FailedPreStopHook")
    assert message.endswith("exited with 7")


def test_hook_by_connection_asks_for_no_answer(node):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hook = {"tcpSocket": {"host": "127.0.0.1", "port": silent.getsockname()[1]}}
        node.submit(containers=[container("sleep 600", start=hook)], terminationGracePeriodSeconds=1)
        node.until(lambda: node.status()["phase"] != "Pending")
        assert node.status()["phase"] == "Running"


def test_hook_by_request_asks_at_the_pods_own_address(node):
    program = (
        "import http.server, os\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        open(os.environ['OUT'], 'a').write(self.path)\n"
        "        self.send_response(500); self.end_headers()\n"
        "http.server.HTTPServer((os.environ['IP'], 8766), H).serve_forever()\n"
    )
    env = [
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "OUT", "value": str(node.out / "asked")},
    ]
    request = {"httpGet": {"path": "/bye", "port": 8766}}
    probe = {"tcpSocket": {"port": 8766}, "periodSeconds": 1, "failureThreshold": 60}
    uid = node.submit(
        containers=[{
            "name": "main", "command": ["python3", "-c", program], "env": env, "startupProbe": probe,
            "lifecycle": {"preStop": request},
        }]
    )  # fmt: skip
    node.until(lambda: node.status().get("containerStatuses", [{}])[0].get("started"))
    node.delete()
    node.until(lambda: node.pod() is None)
    assert (node.out / "asked").read_text() == "/bye"
    assert outcome(node, uid)["hook"] == "", "whatever is answered is an answer"


def test_pod_can_be_deleted_while_a_hook_after_the_start_hangs(node):
    uid = node.submit(
        containers=[container("sleep 600", start=shell(f"touch {node.out}/begun; sleep 600"))],
        terminationGracePeriodSeconds=5,
    )
    node.until((node.out / "begun").exists)
    node.delete()
    node.until(lambda: node.pod() is None)
    assert outcome(node, uid)["signal"] == 15


def test_forced_end_waits_for_no_hook(attempts):
    hook = Action(argv=("sh", "-c", "sleep 600"))
    attempt = attempts.shell("echo up; sleep 600", pre_stop=hook)
    until(lambda: b"up" in attempts.output(attempt))
    attempts.stop(attempt, grace=0)
    ended = attempts.end(attempt)
    assert (ended["signal"] in (9, 15), ended["hook"]) == (True, "")
