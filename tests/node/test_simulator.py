"""Simulated nodes: their pods, what they have missed, the fleet, and the stages that a pod passes."""

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

GOLDEN = Path(__file__).parent / "golden"
BEGIN_US = 1_800_000_000 * 1_000_000


@pytest.fixture
def simulator(transactional_db, redis_url, settings):
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    begun = []

    def begin(count=2):
        begun.append(Simulator(count))
        begun[-1].begin()
        return begun[-1]

    yield begin
    for one in begun:
        one.listener.close()
        one.selector.close()
    nudge.client.cache_clear()


SIMULATED = {"key": "ui.volcano.sh/simulated", "value": "true", "effect": "NoSchedule"}


def notes(values):
    return {f"ui.volcano.sh/{key.replace('_', '-')}": value for key, value in values.items()}


def add_pods(*names, node="sim-0001", owner="", wanted=None, **annotations):
    annotations = notes(annotations | ({"wait_for_job": "true"} if owner else {}))
    owned = {"ownerReferences": [builders.owner(builders.job("j", uid=owner))]} if owner else {}
    annotations |= {"volcano.sh/job-name": "j"} if owner else {}
    spec = {"nodeName": node, "restartPolicy": "Never", "status": {"phase": "Pending"}, **owned, **(wanted or {})}
    pods = [builders.pod(name, namespace="d", annotations=annotations, **spec) for name in names or ("p",)]
    store.write(*(Create(PODS, pod) for pod in pods))


def annotate(kind, name, **annotations):
    store.write(Patch(kind, "d" if kind is PODS else "", name, {"metadata": {"annotations": notes(annotations)}}))


def add_job():
    store.write(Create(JOBS, {"metadata": {"name": "j", "namespace": "d"}, "spec": {"tasks": [{"replicas": 2}]}}))


def let_go(name="let-go"):
    store.write(Create(CONFIGMAPS, {"metadata": {"name": name, "namespace": "d"}}))


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
    until(simulator, lambda: simulator.listener.position == store.revision())


class TestLongerAwayThanHistoryIsKept:
    @ASLEEP
    def test_pods_deleted_meanwhile_are_gone(self, simulator, forgotten):
        one = simulator()
        add_pods("kept", "gone", duration_seconds="600")
        until_phase(one, "Running", "kept", "gone")
        store.write(Delete(PODS, "d", "gone", grace=0))
        store.write(Patch(PODS, "d", "kept", {"metadata": {"labels": {"stays": "behind it"}}}))
        with forgotten():
            look(one)
        until(one, lambda: [simulated.pod.metadata.name for simulated in one.pods.values()] == ["kept"])

    def test_pods_made_meanwhile_run_and_held_ones_go_on_and_the_clock_of_a_job_begins_anew(self, simulator):
        one = simulator()
        add_job()
        add_pods("a", "b", owner="o", duration_seconds="600")
        add_pods("held", duration_seconds="0", hold="let-go")
        until_phase(one, "Running", "held", "a", "b")
        store.write(*(Delete(PODS, "d", name, grace=0) for name in ("a", "b")))
        add_pods("again", owner="o", duration_seconds="0")
        add_pods("new", duration_seconds="0")
        let_go()
        store.write(Patch(CONFIGMAPS, "d", "let-go", {"metadata": {"labels": {"a": "b"}}}))
        forget()
        until_phase(one, "Succeeded", "held", "new")
        settle(one)
        assert phase("again") == "Running"


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

    def test_nodes_keep_away_pods_that_do_not_ask_for_them_also_those_of_an_older_version(self, simulator):
        """Pods of that version that wait for them are let in, and what a node is said to offer is corrected."""
        simulator()
        assert taints() == [SIMULATED]
        own = {"key": "maintenance", "value": "", "effect": "NoExecute"}
        bare = Patch(NODES, "", "sim-0001", {"spec": {"taints": None}})
        store.write(bare, Patch(NODES, "", "sim-0002", {"spec": {"taints": [own]}}))
        store.write(Patch(NODES, "", "sim-0001", {"status": {"allocatable": {"cpu": "0"}}}, "status"))
        add_pods("asks", node="", wanted={"nodeSelector": {"ui.volcano.sh/simulated": "true"}})
        add_pods("real", node="")
        simulator()
        assert (taints(), taints("sim-0002")) == ([SIMULATED], [SIMULATED, own])
        assert node()["status"]["allocatable"] == node()["status"]["capacity"]
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

    @pytest.mark.parametrize("slept", [False, True], ids=["", "longer away than history is kept"])
    def test_node_told_to_fail_falls_silent_and_comes_back(self, simulator, slept):
        sleep = forget if slept else lambda: None
        one = simulator()
        add_pods(duration_seconds="600")
        until_phase(one, "Running")
        annotate(NODES, "sim-0001", fail_at_seconds="0")
        until(one, lambda: "sim-0001" in one.fleet.lost)
        sleep()
        look(one)
        assert node()["metadata"]["annotations"]["ui.volcano.sh/lease"] == "sim-0001"
        store.write(Delete(PODS, "d", "p"))
        if not slept:
            settle(one)
        assert phase() == "Running"
        annotate(NODES, "sim-0001", fail_at_seconds=None)
        sleep()
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
        delay = stages.Delay(seconds=2, annotation="a")
        for text in ("", "abc", "-1", "nan", "inf", "1e99"):  # which make no sense, and are as if absent
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
    simulated, now_us, all_stages = Simulated.of(pod, 1, BEGIN_US), BEGIN_US, stages.load()
    for _ in range(most):
        stage = stages.match(all_stages, simulated.staged)
        if stage is None or simulated.removed:
            return
        now_us = simulated.since_us + stages.delay_us(stage.delay, pod.metadata.annotations)
        simulated.pass_through(stage, now_us)
        status = simulated.status("10.64.0.1", now_us)
        simulated.pod = msgspec.structs.replace(simulated.pod, status=msgspec.convert(status, type(pod.status)))
        yield {"stage": stage.name, "removed": simulated.removed, "status": status}


class TestPods:
    def test_pod_runs_for_its_duration_and_ends_with_its_exit_code(self, simulator):
        one = simulator()
        add_pods(duration_seconds="0.2")
        add_pods("bad", duration_seconds="0", exit_code="3")
        add_pods("touched", duration_seconds="0")
        look(one)
        store.write(Patch(PODS, "d", "touched", {"metadata": {"labels": {"touched": "yes"}}}))
        until_phase(one, "Succeeded", "p", "touched")
        until_phase(one, "Failed", "bad")
        phases = [change.object["status"]["phase"] for change in reversed(store.history(PODS, "d", "p"))]
        assert [each for each, _ in itertools.groupby(phases)] == ["Pending", "Running", "Succeeded"]
        ended = container(name="bad")["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (3, "Error")
        assert ended["containerID"].startswith("simulated://")
        changed = store.get(PODS, "d", "touched").object["metadata"]["labels"]
        assert changed == {"touched": "yes"}, "a change by somebody else meanwhile loses nothing"

    def test_clocks_of_a_job_begin_when_all_its_pods_run(self, simulator):
        one = simulator()
        add_job()
        add_pods("a", owner="o", duration_seconds="0")
        until_phase(one, "Running", "a")
        settle(one)
        assert phase("a") == "Running"
        add_pods("b", owner="o", duration_seconds="0")
        until_phase(one, "Succeeded", "a", "b")

    def test_held_pods_go_on_when_their_config_map_exists_also_with_the_next_simulator(self, simulator):
        one = simulator()
        add_pods("a", "b", duration_seconds="0", hold="let-go")
        add_pods("c", duration_seconds="0", hold="later")
        until_phase(one, "Running", "a", "b", "c")
        settle(one)
        assert phase("a") == "Running"
        started = container(name="c")["state"]["running"]["startedAt"]
        let_go()
        until_phase(one, "Succeeded", "a", "b")
        add_pods("late", duration_seconds="0", hold="let-go")
        two = simulator()
        let_go("later")
        until_phase(two, "Succeeded", "late", "c")
        assert container(name="c")["state"]["terminated"]["startedAt"] == started

    def test_clock_that_is_set_back_makes_no_pod_wait(self, simulator, moved_clock):
        one = simulator()
        add_pods(duration_seconds="100")
        add_pods("going", duration_seconds="600")
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
        add_pods(duration_seconds="600")
        store.write(Patch(PODS, "d", "p", {"metadata": {"finalizers": ["example.com/keep"]}}))
        until_phase(one, "Running")
        store.write(Delete(PODS, "d", "p"))
        until_phase(one, "Failed")
        until(one, lambda: one.listener.position == store.revision() and not one.pods)
        for _ in range(5):
            one.listener.hurry()
            one.turn()
        assert one.listener.position == store.revision()

    def test_attempts_that_ended_stay_as_they_were_through_restarts_of_pod_and_simulator(self, simulator):
        inits = [builders.container("first")]
        one = simulator()
        add_pods(wanted={"restartPolicy": "OnFailure", "initContainers": inits}, duration_seconds="0.1", exit_code="3")
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

    def test_a_pod_fails_when_it_was_active_for_too_long(self, simulator):
        one = simulator()
        pods = {
            "runs": ("Never", {"duration_seconds": "600"}, {"terminated": 143}),
            "restarts": ("OnFailure", {"duration_seconds": "600"}, {"terminated": 143}),
            "held": ("Never", {"duration_seconds": "0", "hold": "let-go"}, {"terminated": 143}),
            "starts": ("Never", {"start_seconds": "600"}, {"waiting": None}),
        }
        for name, (policy, plan, _) in pods.items():
            add_pods(name, wanted={"activeDeadlineSeconds": 1, "restartPolicy": policy}, **plan)
        add_pods("quick", wanted={"activeDeadlineSeconds": 1}, duration_seconds="0")
        until_phase(one, "Failed", *pods)
        for name, (_, _, expected) in pods.items():
            assert status(name)["reason"] == "DeadlineExceeded"
            assert status(name)["message"] == "Pod was active on the node longer than the specified deadline"
            found = container(name=name)["state"]
            assert {kind: state.get("exitCode") for kind, state in found.items()} == expected, name
        assert phase("quick") == "Succeeded"

    def test_a_deadline_that_a_pod_gets_while_it_runs_holds_also_for_the_next_simulator(self, simulator):
        one = simulator()
        add_pods("a", "b", duration_seconds="600")
        until_phase(one, "Running", "a", "b")
        begun = parse_time(status("b")["startTime"])
        store.write(Patch(PODS, "d", "a", {"spec": {"activeDeadlineSeconds": 1}}))
        until_phase(one, "Failed", "a")
        store.write(Patch(PODS, "d", "b", {"spec": {"activeDeadlineSeconds": 2}}))
        until_phase(simulator(), "Failed", "b")
        assert parse_time(container(name="b")["state"]["terminated"]["finishedAt"]) - begun >= 2000
