"""Simulated nodes: their pods, what they have missed, the fleet, and the stages that a pod passes."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import msgspec
import pytest
import yaml

from cluster.runtime import nudge
from cluster.store import Create, Delete, Patch, store
from kube.errors import NotFound
from kube.kinds.core import Pod
from kube.meta import parse_time
from kube.resources import CONFIGMAPS, JOBS, LEASES, NODES, PODS
from node.simulator import stages
from node.simulator.simulated_pod import Simulated
from node.simulator.simulator import Simulator
from proof.harness import waiting
from tests import builders
from tests.cluster.store.forgetting import ASLEEP, forget
from tests.tables import cases

GOLDEN = Path(__file__).parent / "golden"


BEGIN_US = 1_800_000_000 * 1_000_000


@pytest.fixture
def simulator(transactional_db, redis_url, settings):
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    begun = []

    def begin(count=2, **options):
        begun.append(Simulator(count, **options))
        begun[-1].begin()
        return begun[-1]

    yield begin
    for one in begun:
        one.listener.close()
        one.selector.close()
    nudge.client.cache_clear()


SIMULATED = {"key": "ui.volcano.sh/simulated", "value": "true", "effect": "NoSchedule"}


def add_pod(name="p", node="sim-0001", owner="", wanted=None, **annotations):
    annotations = {f"ui.volcano.sh/{key.replace('_', '-')}": value for key, value in annotations.items()}
    owners = None
    if owner:
        annotations["volcano.sh/job-name"] = "j"
        owners = [builders.owner(builders.job("j", uid=owner))]
    spec = {"nodeName": node, "restartPolicy": "Never", "status": {"phase": "Pending"}, **(wanted or {})}
    pod = builders.pod(name, namespace="d", annotations=annotations, ownerReferences=owners, **spec)
    store.write(Create(PODS, pod))


def annotate(kind, name, **annotations):
    values = {f"ui.volcano.sh/{key.replace('_', '-')}": value for key, value in annotations.items()}
    store.write(Patch(kind, "d" if kind is PODS else "", name, {"metadata": {"annotations": values}}))


def add_job():
    store.write(Create(JOBS, {"metadata": {"name": "j", "namespace": "d"}, "spec": {"tasks": [{"replicas": 2}]}}))


def let_go():
    store.write(Create(CONFIGMAPS, {"metadata": {"name": "let-go", "namespace": "d"}}))


def node(name="sim-0001"):
    return store.get(NODES, "", name).object


def taints(name="sim-0001"):
    return node(name)["spec"].get("taints")


def status(name="p"):
    try:
        return store.get(PODS, "d", name).object["status"]
    except NotFound:
        return {}


def phase(name="p"):
    return status(name).get("phase")


def container(kind="containerStatuses", name="p"):
    return status(name)[kind][0]


def look(simulator):
    simulator.listener.hurry()
    simulator._read_changes()


def until(simulator, condition):
    """Let a simulator do its part until a condition holds; return what it gave."""

    def turn():
        simulator.listener.hurry()
        simulator._wait(min(0.01, simulator.patience()))
        simulator._read_changes()
        while simulator._play():
            pass
        simulator.fleet.lose()
        simulator.fleet.beat()

    return waiting.until(lambda: condition() or turn(), every_s=0)


def until_phase(simulator, expected, *names):
    until(simulator, lambda: {phase(name) for name in names or ("p",)} == {expected})


def settle(simulator):
    """Wait until a simulator has read all that was written."""
    until(simulator, lambda: simulator.listener.position == store.revision())


class TestLongerAwayThanHistoryIsKept:
    @ASLEEP
    def test_pods_deleted_meanwhile_are_gone(self, simulator, forgotten):
        one = simulator()
        for name in ("kept", "gone"):
            add_pod(name, duration_seconds="600")
        until_phase(one, "Running", "kept", "gone")
        store.write(Delete(PODS, "d", "gone", grace=0))
        store.write(Patch(PODS, "d", "kept", {"metadata": {"labels": {"stays": "behind it"}}}))
        with forgotten():
            look(one)
        until(one, lambda: [known.pod.metadata.name for known in one.pods.values()] == ["kept"])

    def test_pods_made_meanwhile_run_and_held_ones_go_on(self, simulator):
        one = simulator()
        add_pod("held", duration_seconds="0", hold="let-go")
        until_phase(one, "Running", "held")
        add_pod("new", duration_seconds="0")
        let_go()
        store.write(Patch(CONFIGMAPS, "d", "let-go", {"metadata": {"labels": {"a": "b"}}}))
        forget()
        until_phase(one, "Succeeded", "held", "new")

    def test_clock_of_a_job_whose_pods_went_meanwhile_is_set_back(self, simulator):
        one = simulator()
        add_job()
        for name in ("a", "b"):
            add_pod(name, owner="o", duration_seconds="600", wait_for_job="true")
        until_phase(one, "Running", "a", "b")
        store.write(*(Delete(PODS, "d", name, grace=0) for name in ("a", "b")))
        add_pod("again", owner="o", duration_seconds="0", wait_for_job="true")
        forget()
        until_phase(one, "Running", "again")
        settle(one)
        assert phase("again") == "Running"

    def test_node_that_was_told_to_fail_stays_lost_until_it_was_told_to_come_back(self, simulator):
        one = simulator()
        add_pod(duration_seconds="600")
        until_phase(one, "Running")
        annotate(NODES, "sim-0001", fail_at_seconds="0")
        until(one, lambda: "sim-0001" in one.fleet.lost)
        forget()
        look(one)
        assert node()["metadata"]["annotations"]["ui.volcano.sh/lease"] == "sim-0001"
        store.write(Delete(PODS, "d", "p"))
        annotate(NODES, "sim-0001", fail_at_seconds=None)
        forget()
        until(one, lambda: phase() is None)


class TestFleet:
    def test_thousand_nodes_are_made_at_once_and_removed_when_the_number_shrinks(self, simulator):
        begun = time.process_time()
        simulator(1000)
        assert time.process_time() - begun < 3
        assert store.count(NODES) == {"Ready": 1000}
        found = node("sim-1000")
        assert found["metadata"]["labels"]["ui.volcano.sh/simulated"] == "true"
        assert found["status"]["allocatable"] == {"cpu": "32", "memory": "256Gi", "pods": "256"}
        assert len(store.find(LEASES)) == 1
        simulator(10)
        assert store.count(NODES) == {"Ready": 10}
        revision = store.revision()
        simulator(10)
        assert store.revision() == revision + 1, "nothing but the lease"

    def test_nodes_keep_away_pods_that_do_not_ask_for_them_also_nodes_of_an_older_version(self, simulator):
        simulator()
        assert taints() == [SIMULATED]
        own = {"key": "maintenance", "value": "", "effect": "NoExecute"}
        bare = Patch(NODES, "", "sim-0001", {"spec": {"taints": None}})
        store.write(bare, Patch(NODES, "", "sim-0002", {"spec": {"taints": [own]}}))
        simulator()
        assert (taints(), taints("sim-0002")) == ([SIMULATED], [SIMULATED, own])

    def test_pods_of_an_older_version_that_wait_for_simulated_nodes_are_let_in(self, simulator):
        add_pod("asks", node="", wanted={"nodeSelector": {"ui.volcano.sh/simulated": "true"}})
        add_pod("real", node="")
        simulator()
        (toleration,) = store.get(PODS, "d", "asks").object["spec"]["tolerations"]
        assert (toleration["key"], toleration["effect"]) == (SIMULATED["key"], SIMULATED["effect"])
        assert "tolerations" not in store.get(PODS, "d", "real").object["spec"]

    def test_taint_that_somebody_adds_at_the_same_moment_is_not_lost(self, simulator, monkeypatch):
        simulator()
        store.write(Patch(NODES, "", "sim-0001", {"spec": {"taints": None}}))
        own = {"key": "maintenance", "effect": "NoSchedule"}
        commit, late = store.commit, [Patch(NODES, "", "sim-0001", {"spec": {"taints": [own]}})]

        def after_somebody_else(groups, now=None):
            if late and any(write.resource is NODES for group in groups for write in group.writes):
                store.write(late.pop())
            return commit(groups, now)

        monkeypatch.setattr(store, "commit", after_somebody_else)
        simulator()
        assert taints() == [SIMULATED, own]

    def test_node_that_is_said_to_offer_something_else_is_corrected_at_the_next_start(self, simulator):
        simulator()
        store.write(Patch(NODES, "", "sim-0001", {"status": {"allocatable": {"cpu": "0"}}}, "status"))
        simulator()
        assert node()["status"]["allocatable"] == node()["status"]["capacity"]

    def test_node_told_to_fail_falls_silent_and_comes_back(self, simulator):
        one = simulator()
        add_pod(duration_seconds="600")
        until_phase(one, "Running")
        annotate(NODES, "sim-0001", fail_at_seconds="0")
        until(one, lambda: "sim-0001" in one.fleet.lost)
        assert node()["metadata"]["annotations"]["ui.volcano.sh/lease"] == "sim-0001"
        store.write(Delete(PODS, "d", "p"))
        settle(one)
        assert phase() == "Running"
        annotate(NODES, "sim-0001", fail_at_seconds=None)
        until(one, lambda: phase() is None)

    def test_node_called_unready_while_it_lives_is_corrected(self, simulator):
        one = simulator()
        unknown = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        store.write(Patch(NODES, "", "sim-0002", unknown, "status"))
        one.fleet.due = 0
        one.fleet.beat()
        assert store.count(NODES) == {"Ready": 2}


class TestStages:
    def test_stages_that_cannot_be_used_are_named(self, tmp_path):
        with pytest.raises(stages.StageError, match="has no stage"):
            stages.load(tmp_path)
        (tmp_path / "1.yaml").write_text("name: x\nselect: {fase: [Running]}\nnext: {phase: Failed}\n")
        with pytest.raises(stages.StageError, match=r"1\.yaml cannot be used: .*fase"):
            stages.load(tmp_path)

    @pytest.mark.parametrize("text", ["", "abc", "-1", "nan", "inf", "1e99"])
    def test_duration_that_makes_no_sense_is_as_if_absent(self, text):
        delay = stages.Delay(seconds=2, annotation="a")
        assert [stages.delay_us(delay, {"a": each}) for each in (text, "86400")] == [2_000_000, 86_400_000_000]

    @pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.input.yaml")), ids=lambda path: path.name.split(".")[0])
    def test_golden(self, path, request):
        played = list(play(msgspec.convert(yaml.safe_load(path.read_text()), Pod)))
        expected = path.with_name(path.name.replace(".input.", ".output."))
        if request.config.getoption("--update-golden"):
            expected.write_text(yaml.safe_dump_all(played, sort_keys=False))
        assert played == list(yaml.safe_load_all(expected.read_text()))


def play(pod, most=4):
    """Yield what a pod's stages write, each after its delay, on a clock that only stages move."""
    known, now_us, all_stages = Simulated.of(pod, 1, BEGIN_US), BEGIN_US, stages.load()
    for _ in range(most):
        stage = stages.match(all_stages, known.look)
        if stage is None or known.removed:
            return
        now_us = known.since_us + stages.delay_us(stage.delay, pod.metadata.annotations)
        known.pass_through(stage, now_us)
        status = known.status("10.64.0.1", now_us)
        known.pod = msgspec.structs.replace(known.pod, status=msgspec.convert(status, type(pod.status)))
        yield {"stage": stage.name, "removed": known.removed, "status": status}


class TestPods:
    def test_pod_runs_for_its_duration_and_ends_with_its_exit_code(self, simulator):
        one = simulator()
        add_pod(duration_seconds="0.2")
        add_pod("bad", duration_seconds="0", exit_code="3")
        until_phase(one, "Succeeded")
        until_phase(one, "Failed", "bad")
        phases = [change.object["status"]["phase"] for change in reversed(store.history(PODS, "d", "p"))]
        assert [each for each, _ in itertools.groupby(phases)] == ["Pending", "Running", "Succeeded"]
        ended = container(name="bad")["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (3, "Error")
        assert ended["containerID"].startswith("simulated://")

    def test_clocks_of_a_job_begin_when_all_its_pods_run(self, simulator):
        one = simulator()
        add_job()
        add_pod("a", owner="o", duration_seconds="0", wait_for_job="true")
        until_phase(one, "Running", "a")
        settle(one)
        assert phase("a") == "Running"
        add_pod("b", owner="o", duration_seconds="0", wait_for_job="true")
        until_phase(one, "Succeeded", "a", "b")

    def test_held_pods_go_on_when_their_config_map_exists(self, simulator):
        one = simulator()
        for name in ("a", "b"):
            add_pod(name, duration_seconds="0", hold="let-go")
        until_phase(one, "Running", "a", "b")
        settle(one)
        assert phase("a") == "Running"
        let_go()
        until_phase(one, "Succeeded", "a", "b")
        add_pod("late", duration_seconds="0", hold="let-go")
        until_phase(simulator(), "Succeeded", "late")

    def test_clock_that_is_set_back_makes_no_pod_wait(self, simulator, moved_clock):
        one = simulator()
        add_pod(duration_seconds="100")
        add_pod("going", duration_seconds="600")
        until_phase(one, "Running", "p", "going")
        moved_clock.us -= 600 * 1_000_000
        one.work()
        store.write(Delete(PODS, "d", "going"))
        until(one, lambda: phase("going") is None)
        moved_clock.move(99)
        one.work()
        assert phase() == "Running"
        moved_clock.move(2)
        until_phase(one, "Succeeded")

    def test_deleted_pod_with_a_finalizer_is_written_once_and_goes_without_it(self, simulator):
        one = simulator()
        add_pod(duration_seconds="600")
        store.write(Patch(PODS, "d", "p", {"metadata": {"finalizers": ["example.com/keep"]}}))
        until_phase(one, "Running")
        store.write(Delete(PODS, "d", "p"))
        until_phase(one, "Failed")
        until(one, lambda: one.listener.position == store.revision() and not one.pods)
        for _ in range(5):
            one.listener.hurry()
            one.turn()
        assert one.listener.position == store.revision()

    def test_simulator_that_was_killed_goes_on_where_it_was(self, simulator):
        add_pod(duration_seconds="0", hold="let-go")
        until_phase(simulator(), "Running")
        started = container()["state"]["running"]["startedAt"]
        second = simulator()
        let_go()
        until_phase(second, "Succeeded")
        assert container()["state"]["terminated"]["startedAt"] == started

    def test_attempts_that_ended_stay_as_they_were_through_restarts_of_pod_and_simulator(self, simulator):
        inits = [builders.container("first")]
        one = simulator()
        add_pod(wanted={"restartPolicy": "OnFailure", "initContainers": inits}, duration_seconds="0.1", exit_code="3")
        until_phase(one, "Running")
        first = container("initContainerStatuses")
        until(one, lambda: container()["restartCount"] == 2)
        assert container("initContainerStatuses") == first
        annotate(PODS, "p", duration_seconds="600")
        look(one)
        before = container()["lastState"]
        assert before["terminated"]["exitCode"] == 3
        annotate(PODS, "p", duration_seconds="0", exit_code="0")
        until_phase(simulator(), "Succeeded")
        assert (container("initContainerStatuses"), container()["lastState"]) == (first, before)

    @cases("policy, annotations, state", {
        "while it runs": ("Never", {"duration_seconds": "600"}, "terminated"),
        "without a restart": ("OnFailure", {"duration_seconds": "600"}, "terminated"),
        "while it is held": ("Never", {"duration_seconds": "0", "hold": "let-go"}, "terminated"),
        "before it starts": ("Never", {"start_seconds": "600"}, "waiting"),
    })  # fmt: skip
    def test_a_pod_fails_when_it_was_active_for_too_long(self, simulator, policy, annotations, state):
        one = simulator()
        add_pod(wanted={"activeDeadlineSeconds": 1, "restartPolicy": policy}, **annotations)
        add_pod("quick", wanted={"activeDeadlineSeconds": 1}, duration_seconds="0")
        until_phase(one, "Failed")
        assert status()["reason"] == "DeadlineExceeded"
        assert status()["message"] == "Pod was active on the node longer than the specified deadline"
        ((kind, found),) = container()["state"].items()
        assert (kind, found.get("exitCode")) == (state, 143 if state == "terminated" else None)
        assert phase("quick") == "Succeeded"

    def test_a_deadline_that_a_pod_gets_while_it_runs_holds_also_for_the_next_simulator(self, simulator):
        one = simulator()
        for name in ("a", "b"):
            add_pod(name, duration_seconds="600")
        until_phase(one, "Running", "a", "b")
        begun = parse_time(status("b")["startTime"])
        store.write(Patch(PODS, "d", "a", {"spec": {"activeDeadlineSeconds": 1}}))
        until_phase(one, "Failed", "a")
        store.write(Patch(PODS, "d", "b", {"spec": {"activeDeadlineSeconds": 2}}))
        until_phase(simulator(), "Failed", "b")
        assert parse_time(container(name="b")["state"]["terminated"]["finishedAt"]) - begun >= 2000

    def test_change_by_somebody_else_meanwhile_loses_nothing(self, simulator):
        one = simulator()
        add_pod(duration_seconds="0")
        look(one)
        store.write(Patch(PODS, "d", "p", {"metadata": {"labels": {"touched": "yes"}}}))
        until_phase(one, "Succeeded")
        assert store.get(PODS, "d", "p").object["metadata"]["labels"] == {"touched": "yes"}
