"""A real agent on a simulated machine: what becomes of pods, whoever dies when."""

import itertools
import random
import uuid
from contextlib import contextmanager

import pytest
from django.db import transaction

from cluster.store import Create, Delete, Patch, store
from kube.errors import AlreadyExists, NotFound
from kube.resources import CONFIGMAPS, LEASES, PODS
from node.attempt import parse_us
from proof.harness import clocks
from proof.harness.clocks import ManualClock
from proof.simulation.parts.machine import Deaf, Processes, SimulatedAgent
from tests.campaign import scaled

BEGIN_US = 1_800_000_000 * 1_000_000
ENDED = ("Succeeded", "Failed")
HISTORIES = scaled(50, 5000)


class Killed(BaseException):
    """The agent is dead: nothing that it would have done is done."""


class LocalSubscription(Deaf):
    """A subscription to the store of this process."""

    is_alive = True
    revision = 0

    @property
    def has_events(self):
        return newest() > self.revision

    def drain(self):
        self.revision = newest()


def newest():
    with store.reading() as revision:
        return revision


class World:
    """One machine with its agent, and people who want pods of it."""

    def __init__(self, time, directory, seed=0, **shares):
        self.time = time
        self.directory = directory
        self.random = random.Random(seed)
        self.processes = Processes(self.random, **shares)
        self.dies_at = None  # the commit of an agent's work with which it dies: its number, and whether it is done
        self.agent = None
        self.still = 0  # steps since time went on
        store.uids = lambda: str(uuid.UUID(int=self.random.getrandbits(128)))
        store.random = self.random

    def begin(self):
        self.subscription = LocalSubscription()
        self.agent = SimulatedAgent(self.processes, self.directory, subscription=self.subscription)
        self.agent.begin()
        return self

    def die(self):
        self.agent.abandon()
        self.agent = None

    def step(self, most=60.0):
        """Go on to the next thing that happens, and let it happen."""
        now, due = self.time.monotonic(), self.processes.due()
        waits = [most, *([] if due is None else [due - now])]
        has_changes = self.agent is not None and self.subscription.has_events
        if self.agent:
            waits.append(0.0 if has_changes or self.agent.has_events else self.agent.patience())
        self.time.move(-(-max(0.0, min(waits)) * 1e6 // 1) / 1e6)
        self.still = self.still + 1 if self.time.monotonic() == now else 0
        assert self.still < 100, "the agent works and works and has nothing to do"
        self.processes.advance()
        assert len(self.processes.running) == len(set(self.processes.running)), "a container runs twice"
        if self.agent and (has_changes or self.agent.has_events or self.agent.patience() <= 0):
            self.work(has_changes=has_changes)

    def work(self, *, has_changes=True):
        if has_changes:
            self.agent.listener.hear()
        self.agent.work()

    def until(self, condition, seconds=1000.0):
        end = self.time.monotonic() + seconds
        while not (found := condition()):
            assert self.time.monotonic() < end, f"in vain after {seconds} s"
            self.step()
        return found

    def rest(self, seconds):
        """Let time pass."""
        end = self.time.monotonic() + seconds
        while (left := end - self.time.monotonic()) > 1e-6:
            self.step(left)

    def submit(self, script="true", name="p", *, containers=None, **spec):
        containers = containers or [container("main", script)]
        body = {
            "metadata": {"name": name, "namespace": "d"},
            "spec": {"restartPolicy": "Never", "nodeName": "vm", "containers": containers, **spec},
            "status": {"phase": "Pending"},
        }
        return store.write(Create(PODS, body))[0].uid

    def pod(self, name="p"):
        try:
            return store.get(PODS, "d", name).object
        except NotFound:
            return None

    def status(self, name="p"):
        return (self.pod(name) or {}).get("status", {})

    def main(self, name="p"):
        return self.status(name)["containerStatuses"][0]

    def until_phase(self, *phases, name="p", seconds=1000.0):
        self.until(lambda: self.status(name).get("phase") in phases, seconds)
        return self.status(name)

    def until_gone(self, name="p"):
        self.until(lambda: self.pod(name) is None)

    def delete(self, name="p", **fields):
        store.write(Delete(PODS, "d", name, **fields))

    def phases(self, name="p"):
        observed = [change.object["status"]["phase"] for change in reversed(store.history(PODS, "d", name))]
        return [each for each, _ in itertools.groupby(observed)]


def container(name, script, **fields):
    return {"name": name, "image": "any", "command": ["sh", "-c", script], **fields}


@contextmanager
def once_more():
    """Let a block begin at the same time as any other, and undo in the database what it does; yield its clock."""
    with clocks.using(ManualClock(BEGIN_US)) as time, transaction.atomic():
        yield time
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def alone(db):
    """The store as it is for one process that nobody else works with."""
    before = store.uids, store.random
    yield
    store.uids, store.random = before


@pytest.fixture
def world(moved_clock, tmp_path):
    return World(moved_clock, tmp_path, refuse=0.0, ignore=0.0).begin()


class TestLife:
    def test_pod_runs_as_long_and_ends_as_its_command_says(self, world):
        world.submit("sleep 5; exit 3")
        status = world.until_phase("Failed")
        ended = status["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (3, "Error")
        assert 5.0 <= seconds(ended["finishedAt"]) - seconds(ended["startedAt"]) < 5.01
        assert world.phases() == ["Pending", "Running", "Failed"]

    def test_success_is_told(self, world):
        uid = world.submit("exit 0")
        assert world.until_phase("Succeeded")["containerStatuses"][0]["restartCount"] == 0
        assert world.processes.starts == [(uid, "main", 0)]

    def test_nothing_is_written_of_a_pod_that_has_ended(self, world):
        world.submit("sleep 1")
        world.until_phase("Succeeded")
        count = len(store.history(PODS, "d", "p"))
        world.rest(60)
        assert len(store.history(PODS, "d", "p")) == count == 3, "made, running, ended"

    def test_restarts_wait_longer_and_longer(self, world):
        world.submit("exit 1", restartPolicy="OnFailure")
        begun = []
        while len(begun) < 5:
            world.until(lambda: len(world.processes.starts) > len(begun))
            begun.append(world.time.monotonic())
        waits = [later - earlier for earlier, later in itertools.pairwise(begun)]
        assert waits == [pytest.approx(each, abs=0.12) for each in (0, 10, 20, 40)]
        assert world.main()["lastState"]["terminated"]["exitCode"] == 1

    def test_deleted_pod_ends_within_its_grace(self, world):
        world.submit("sleep inf", terminationGracePeriodSeconds=20)
        world.until_phase("Running")
        began = world.time.monotonic()
        world.delete()
        world.until_gone()
        assert world.time.monotonic() - began <= 20
        assert last_state(world)["terminated"]["exitCode"] == 143

    def test_pod_that_ignores_the_signal_is_killed_after_its_grace(self, world):
        world.processes.ignore = 1.0
        world.submit("sleep inf", terminationGracePeriodSeconds=20)
        world.until_phase("Running")
        began = world.time.monotonic()
        world.delete()
        world.until_gone()
        assert world.time.monotonic() - began == pytest.approx(20, abs=0.01)
        assert last_state(world)["terminated"]["exitCode"] == 137

    def test_agent_rests_while_a_pod_that_was_deleted_by_force_ends(self, world):
        world.processes.ignore = 1.0
        world.submit("sleep inf", activeDeadlineSeconds=1)
        world.until_phase("Running")
        world.delete(grace=0)
        world.work()
        world.rest(1.5)
        assert world.processes.running
        world.work()
        assert world.agent.patience() > 0.1

    def test_order_that_is_refused_is_given_again(self, world):
        world.processes.refuse = 1.0
        uid = world.submit("exit 0")
        world.until(lambda: "message" in str(world.status()))
        world.rest(5)
        assert world.processes.starts == []
        world.processes.refuse = 0.0
        world.until_phase("Succeeded")
        assert world.processes.starts == [(uid, "main", 0)]

    def test_pod_waits_for_its_config_map(self, world):
        world.submit(containers=[container("main", "true", envFrom=[{"configMapRef": {"name": "c"}}])])
        world.rest(10)
        assert world.main()["state"]["waiting"]["reason"] == "CreateContainerConfigError"
        store.write(Create(CONFIGMAPS, {"metadata": {"name": "c", "namespace": "d"}, "data": {}}))
        world.until_phase("Succeeded")

    def test_heartbeat_goes_on(self, world):
        world.rest(100)
        lease = store.history(LEASES, "kube-node-lease", "vm")
        assert len(lease) == 11


class TestFaults:
    def test_killed_process_has_failed(self, world):
        uid = world.submit("sleep inf")
        world.until_phase("Running")
        assert world.processes.kill(uid, "main")
        world.until_phase("Failed")
        ended = world.main()["state"]["terminated"]
        assert (ended["exitCode"], ended["signal"], ended["reason"]) == (137, 9, "Error")
        assert not world.processes.kill(uid, "main")

    def test_end_that_nobody_saw_is_unknown(self, world):
        uid = world.submit("sleep inf")
        world.until_phase("Running")
        assert world.processes.kill_shim(uid, "main")
        world.until_phase("Failed")
        assert world.main()["state"]["terminated"]["reason"] == "ContainerStatusUnknown"

    def test_after_a_reboot_pods_are_restarted_by_their_policy(self, world):
        for policy in ("Never", "Always"):
            world.submit("sleep inf", policy.lower(), restartPolicy=policy)
        for name in ("never", "always"):
            world.until_phase("Running", name=name)
        world.die()
        world.processes.reboot()
        assert world.processes.running == []
        world.begin()
        world.until_phase("Failed", name="never")
        world.until(lambda: world.main("always")["restartCount"] == 1 and "running" in world.main("always")["state"])

    def test_deadline_that_passed_is_told_although_nobody_saw_the_end(self, world):
        world.processes.ignore = 1.0
        uid = world.submit("sleep inf", activeDeadlineSeconds=5)
        world.until_phase("Running")
        world.rest(10)
        assert world.processes.kill_shim(uid, "main")
        assert world.until_phase("Failed")["reason"] == "DeadlineExceeded"

    def test_clock_that_is_set_back_holds_up_no_new_try(self, world):
        world.processes.refuse = 1.0
        world.submit("sleep 1")
        world.rest(5)
        world.processes.refuse = 0.0
        world.time.us -= 3600 * 1_000_000
        world.until_phase("Succeeded", seconds=10)


# What a pod does, and what the person who made it does after some seconds.
STORIES = {
    "success": ({"script": "sleep 2"}, None),
    "failure": ({"script": "sleep 2; exit 3"}, None),
    "restarts": ({"script": "exit 1", "restartPolicy": "OnFailure"}, 45),
    "deleted": ({"script": "sleep inf", "restartPolicy": "Always"}, 3),
    "deleted at once": ({"script": "sleep 100"}, 0),
    "deadline": ({"script": "sleep inf", "activeDeadlineSeconds": 4}, None),
    "all kinds of containers": (
        {
            "initContainers": [container("first", "sleep 1"), container("beside", "sleep inf", restartPolicy="Always")],
            "containers": [container("main", "sleep 2"), container("other", "sleep 1; exit 2")],
        },
        None,
    ),
}


class TestDeathOfTheAgent:
    """The agent dies at a step of a pod's life, and another takes over: nobody can tell from the pod."""

    @pytest.mark.parametrize("story", STORIES)
    @pytest.mark.parametrize("away_s", [0.0, 3.0])
    def test_after_any_step(self, tmp_path, story, away_s):
        expected, steps = lived(tmp_path / "whole", story)
        for step in range(steps):
            found, _ = lived(tmp_path / str(step), story, after_step(step, away_s))
            assert found == expected, f"died after step {step} of {steps}"

    @pytest.mark.parametrize("story", STORIES)
    @pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
    def test_before_and_after_any_commit(self, tmp_path, monkeypatch, story, is_done):
        expected, _ = lived(tmp_path / "whole", story)
        for number in itertools.count():
            death = Death(number, is_done=is_done)
            with monkeypatch.context() as mortal:
                mortal.setattr(store, "commit", death.commit)
                found, _ = lived(tmp_path / str(number), story, death.step)
            if not death.has_come:
                assert number > 0
                return
            assert found == expected, f"died with commit {number}"

    def test_order_that_its_successor_cannot_see_is_carried_out_once(self, moved_clock, tmp_path):
        world = World(moved_clock, tmp_path, refuse=0.0, claim_late=1.0).begin()
        uid = world.submit("sleep 5")
        world.work()
        world.die()
        world.begin().work()
        world.until_phase("Succeeded")
        assert world.processes.starts == [(uid, "main", 0)]

    def test_order_of_a_pod_that_is_deleted_meanwhile_is_not_carried_out(self, moved_clock, tmp_path):
        world = World(moved_clock, tmp_path, refuse=0.0, claim_late=1.0).begin()
        world.submit("sleep inf")
        world.work()
        world.die()
        world.delete(grace=0)
        world.begin()
        world.rest(60)
        assert world.processes.starts == []


class Death:
    """Lets an agent die with one of its commits, which then is done or is not."""

    def __init__(self, number, *, is_done):
        self.number = number
        self.is_done = is_done
        self.is_agents = self.has_come = False
        self.really = store.commit

    def commit(self, *arguments, **options):
        if not self.is_agents or self.has_come:
            return self.really(*arguments, **options)
        self.number -= 1
        if self.number >= 0:
            return self.really(*arguments, **options)
        self.has_come = True
        if self.is_done:
            self.really(*arguments, **options)
        raise Killed

    def step(self, world, count):
        self.is_agents = True
        try:
            world.step()
        except Killed:
            world.die()
            self.is_agents = False
            world.rest(1.0)
            world.begin()
        finally:
            self.is_agents = False


def after_step(mortal, away_s):
    def step(world, count):
        world.step()
        if count == mortal:
            world.die()
            world.rest(away_s)
            world.begin()

    return step


def lived(directory, story, step=lambda world, count: world.step()):
    """Play a story; return what is told of its pod in the end, without times, and how many steps it took."""
    directory.mkdir()
    given, delete_after = STORIES[story]
    with once_more() as time:
        world = World(time, directory, refuse=0.0, ignore=0.0).begin()
        world.submit(**given)
        began, count, is_deleted = time.monotonic(), 0, False
        while not is_over(world):
            assert count < 500
            if delete_after is not None and not is_deleted and time.monotonic() - began >= delete_after:
                world.delete()
                is_deleted = True
            step(world, count)
            count += 1
        world.rest(10)
        assert len(set(world.processes.starts)) == len(world.processes.starts)
        assert world.processes.running == []
        return status_without_times(store.history(PODS, "d", "p")[0].object["status"]), count


def is_over(world):
    return world.status().get("phase", "Failed") in ENDED and not world.processes.running


def status_without_times(status):
    """What a status says, without times."""
    lists = [status.get(kind, []) for kind in ("initContainerStatuses", "containerStatuses")]
    states = [
        (one["name"], next(iter(one["state"])), one["state"].get("terminated", {}).get("exitCode"))
        for one in itertools.chain(*lists)
    ]
    return status["phase"], status.get("reason"), status.get("message"), states


class TestHistories:
    """Random histories: pods of all kinds, and all that can happen to them, to the agent and to the machine."""

    @pytest.mark.campaign
    def test_whatever_happens_every_pod_comes_to_its_end(self, tmp_path):
        for seed in range(HISTORIES):
            with once_more() as time:
                History(time, tmp_path / str(seed), seed).live()

    def test_the_same_seed_gives_the_same_log(self, tmp_path):
        for seed in range(10):
            first, second = (log_of(tmp_path / f"{seed}-{again}", seed) for again in (1, 2))
            assert first == second, f"seed {seed}"
            assert len(first) > 5


def log_of(directory, seed):
    """Return the log of a random history from its beginning, always at the same time."""
    with once_more() as time:
        History(time, directory, seed).live()
        return [
            (each.revision, each.verb, each.resource, each.namespace, each.name, bytes(each.body))
            for each in store.changes(0, limit=100_000)
        ]


class History:
    """A random history on one machine."""

    def __init__(self, time, directory, seed):
        directory.mkdir()
        self.seed = seed
        self.choices = random.Random(seed)
        self.world = World(time, directory, seed, refuse=0.1, ignore=0.3, claim_late=0.2).begin()
        self.uids = {}
        self.moves = [
            self.submit, self.submit, self.submit, self.delete, self.delete, self.force, self.annotate,
            self.kill, self.kill_shim, self.reboot, self.agent_dies, self.agent_dies, self.set_clock, self.config,
        ]  # fmt: skip

    def live(self):
        try:
            for _ in range(self.choices.randint(5, 25)):
                self.choices.choice(self.moves)()
                for _ in range(self.choices.randint(0, 6)):
                    self.world.step(self.choices.uniform(0, 20))
            self.settle()
            self.judge()
        except Exception as error:
            raise AssertionError(f"history {self.seed}: {error}") from error

    def submit(self):
        name = f"p-{len(self.uids)}"
        scripts = ["true", "false", "sleep 3", "sleep 20; exit 4", "sleep 0.01", "sleep inf", "work hard"]
        containers = [
            container(f"c-{index}", self.choices.choice(scripts)) for index in range(self.choices.choice((1, 1, 2)))
        ]
        spec = {"restartPolicy": self.choices.choice(("Never", "OnFailure", "Always"))}
        if self.choices.random() < 0.3:
            spec["activeDeadlineSeconds"] = self.choices.randint(1, 30)
        if self.choices.random() < 0.2:
            spec["initContainers"] = [container("init", self.choices.choice(scripts[:5]))]
        if self.choices.random() < 0.2:
            containers[0]["envFrom"] = [{"configMapRef": {"name": "late"}}]
        spec["terminationGracePeriodSeconds"] = self.choices.choice((0, 2, 30))
        self.uids[name] = self.world.submit(name=name, containers=containers, **spec)

    def delete(self):
        if names := self.living():
            self.world.delete(self.choices.choice(names))

    def force(self):
        if names := self.living():
            self.world.delete(self.choices.choice(names), grace=0)

    def annotate(self):
        for name in self.living():
            store.write(Patch(PODS, "d", name, {"metadata": {"annotations": {"n": str(self.choices.random())}}}))

    def kill(self):
        self._harm(self.world.processes.kill)

    def kill_shim(self):
        self._harm(self.world.processes.kill_shim)

    def _harm(self, kill):
        if running := self.world.processes.running:
            uid, name = self.choices.choice(running)
            assert kill(uid, name)

    def reboot(self):
        if self.choices.random() < 0.3:
            self.world.processes.reboot()
            if self.world.agent:
                self.world.die()
            self.world.begin()

    def agent_dies(self):
        if self.world.agent:
            self.world.die()
        else:
            self.world.begin()

    def set_clock(self):
        self.world.time.us += self.choices.choice((-3600, -5, -1, 1, 5)) * 1_000_000

    def config(self):
        try:
            store.write(Create(CONFIGMAPS, {"metadata": {"name": "late", "namespace": "d"}, "data": {}}))
        except AlreadyExists:
            store.write(Delete(CONFIGMAPS, "d", "late"))

    def living(self):
        return [name for name in self.uids if self.world.pod(name)]

    def settle(self):
        """Let nothing more go wrong, and end what would run for ever."""
        self.world.processes.refuse = 0.0
        if not self.world.agent:
            self.world.begin()
        if not store.find(CONFIGMAPS):
            self.config()
        self.world.rest(60)
        for name in self.living():
            if self.world.status(name)["phase"] not in ENDED:
                self.world.delete(name)
        self.world.until(lambda: not self.world.processes.running and self.all_over(), 400)
        self.world.rest(5)

    def all_over(self):
        return all(self.world.status(name)["phase"] in ENDED for name in self.living())

    def judge(self):
        starts = self.world.processes.starts
        assert len(set(starts)) == len(starts), "an attempt began twice"
        assert not self.world.processes.running
        assert not self.world.agent.agent.pods, "the agent is done with all of them"
        for name, uid in self.uids.items():
            phases = self.world.phases(name)
            assert phases in (
                ["Pending"], ["Pending", "Running"], ["Pending", "Failed"], ["Pending", "Succeeded"],
                ["Pending", "Running", "Failed"], ["Pending", "Running", "Succeeded"],
            ), f"{name}: {phases}"  # fmt: skip
            self.judge_starts(name, [start for start in starts if start[0] == uid])
        for name in self.living():
            self.judge_status(name)

    def judge_starts(self, name, starts):
        """A container's attempts are numbered without gaps, and one that is never restarted begins once."""
        last = store.history(PODS, "d", name)[0].object
        numbers = {}
        for _, container_name, number in starts:
            numbers.setdefault(container_name, []).append(number)
        for container_name, found in numbers.items():
            assert found == sorted(found), f"{name}/{container_name}: {found}"
            if last["spec"]["restartPolicy"] == "Never":
                assert found == [0], f"{name}/{container_name}: {found}"

    def judge_status(self, name):
        """What is told of a container that has ended is what has become of its process."""
        disk = self.world.processes.attempts(self.uids[name])
        for one in self.world.status(name)["containerStatuses"]:
            if "terminated" in one["state"]:
                attempts = disk[one["name"]]
                assert one["restartCount"] == max(attempts)
                assert one["state"]["terminated"]["exitCode"] == attempts[max(attempts)].read().exit_code


def seconds(text):
    return parse_us(text, 0) / 1e6


def last_state(world):
    gone = next(one for one in store.history(PODS, "d", "p") if one.verb == "DELETED")
    return gone.object["status"]["containerStatuses"][0]["state"]
