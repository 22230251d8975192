"""A controller on a model server: whatever becomes of requests, processes and leaders, each plan comes true once, and gangs whole."""

import hypothesis.strategies as st
import pytest
from django.db import transaction
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from cluster import clock
from cluster.consumers import consumer as consuming
from cluster.consumers.consumer import Consumer, Plan, Runner
from cluster.remote import outbox, recorder
from cluster.remote.in_place import InPlace
from cluster.remote.leader_election.election import Leadership, note
from cluster.runtime.registry import Registration
from cluster.store import Create, Delete, Group, Patch, Update, store
from cluster.writes import Minimum
from kube.resources import COMMANDS, PODS, QUEUES
from proof.harness.answers import REFUSALS, Answer, Killed
from proof.harness.clocks import ManualClock
from proof.harness.inline import Inline
from tests import campaign
from tests.builders import of
from tests.cluster.remote.model_server import MIRRORED, OWN, Mirror, ModelServer, forget, held
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)
KINDS = (COMMANDS, QUEUES, PODS)
REGISTRATION = Registration("counter", "tests.cluster.remote.test_in_place_machine.Counter", KINDS)
# What the mirror hears of: nothing, one kind, or most often all.
KIND_CHOICES = [[], ["commands"], ["commands"], ["pods"], ["queues"], *[[kind.plural for kind in KINDS]] * 4]
GANGS = {gang: [f"{gang}-{number}" for number in range(3)] for gang in ("one", "two")}


class Counter(Consumer[dict]):
    """Counts Commands in a queue's status, keeps the pods of each gang, and binds them together.

    Its state is what the mirror shows: by kind, name → object.
    """

    name = "counter"

    def load(self, shard, revision):
        return {kind.id: {one.name: one.object for one in store.find(kind)} for kind in KINDS}

    def apply(self, state, change):
        if change.verb == "DELETED":
            state[change.resource].pop(change.name, None)
        else:
            state[change.resource][change.name] = change.object

    def plan(self, state, changes, timers, now):
        gangs = [group for gang in GANGS for group in self.of_gang(state[PODS.id], gang)]
        return Plan([*self.counted(state), *gangs])

    def counted(self, state):
        for name, command in sorted(state[COMMANDS.id].items())[:1]:
            (queue,) = state[QUEUES.id].values()
            count = queue.get("status", {}).get("count", 0) + 1
            metadata = {"name": "q", "uid": queue["metadata"]["uid"]}
            status = Update(QUEUES, {"metadata": metadata, "status": {"count": count}}, "status")
            yield Group([Delete(COMMANDS, "d", name, uid=command["metadata"]["uid"]), status], name)

    def of_gang(self, pods, gang):
        """Make the pods that are missing; bind those that have no node once all are there and none is ending."""
        missing = [name for name in GANGS[gang] if name not in pods]
        if missing:
            yield Group([Create(PODS, of(PODS, name, {"spec": {}}, namespace="d")) for name in missing], gang)
            return
        one = [pods[name] for name in GANGS[gang]]
        free = [each["metadata"] for each in one if not each["spec"].get("nodeName")]
        if free and not any("deletionTimestamp" in each["metadata"] for each in one):
            binds = [
                Patch(PODS, "d", each["name"], {"spec": {"nodeName": "n"}}, "binding", uid=each["uid"]) for each in free
            ]
            yield Group(binds, f"bind-{gang}", minima=[Minimum(len(free), list(range(len(free))))])


class InPlaceMachine(RuleBasedStateMachine):
    """Model: the server, and how often a person has asked to count."""

    @initialize(world=st.sampled_from(["faithful", "refusing", "contested"]))
    def start(self, world):
        self.world = world
        forget(*MIRRORED, *OWN)
        self.clock = ManualClock()
        self.before = clock.use(self.clock)
        self.server = ModelServer()
        self.server.put("queues", {"metadata": {"name": "q"}, "status": {}})
        self.commands = self.term = 0
        recorder.claim("https://model")
        self.mirror = Mirror(self.server, KINDS)
        self.lead()
        self.process_is_killed()
        self.mirror.hear()

    def lead(self):
        note(Leadership("me", f"me/{self.term}", clock.milliseconds() + 3_600_000))

    @rule()
    def process_is_killed(self):
        self.backend = InPlace(lambda: self.server, Inline)
        self.runner = Runner(REGISTRATION, 0, Counter(), holder="me")

    def step(self):
        """Let the controller look once; a process that is killed is followed by another."""
        consuming.backend, before = self.backend, consuming.backend
        try:
            self.runner.step()
        except Killed:
            self.process_is_killed()
        finally:
            consuming.backend = before

    @rule(commands=st.integers(0, 2), hears=st.sampled_from(KIND_CHOICES), data=st.data())
    def controller_works(self, commands, hears, data):
        """A person may ask, the mirror may hear of some of what happened, and what is sent may fail in any way."""
        for _ in range(commands):
            self.commands += 1
            self.server.put("commands", {"metadata": {"name": f"c{self.commands}", "namespace": "d"}})
        if hears:
            self.mirror.hear(*hears)
        possible = [each for each in Answer if each not in REFUSALS or self.world != "faithful"]
        self.server.next_answers = data.draw(st.lists(st.sampled_from(possible), max_size=6))
        self.controller_runs()

    def controller_runs(self):
        for _ in range(3):
            self.step()
            self.check_gangs()
        self.clock.move(0.5)

    def check_gangs(self):
        """What is settled holds no half gang; another leader may have stopped in the middle of one."""
        if self.world != "contested" and not outbox.cursors("default"):
            for names in GANGS.values():
                assert len(held(self.server.all("pods"), names)) in (0, len(names)), "a half gang holds nothing"

    @rule()
    def database_fails_when_it_is_settled(self):
        """The transaction that mirrors the answers is lost."""
        with transaction.atomic():
            self.step()
            transaction.set_rollback(True)
        self.process_is_killed()

    @precondition(lambda self: self.server.all("pods"))
    @rule(data=st.data())
    def others_delete_a_pod(self, data):
        name = data.draw(st.sampled_from(sorted(self.server.all("pods"))))
        if not self.server.objects["pods", name]["spec"].get("nodeName"):
            self.server.remove("pods", name)

    @rule(gang=st.sampled_from(list(GANGS)))
    def gang_is_over(self, gang):
        for name in sorted(self.server.all("pods").keys() & GANGS[gang]):
            self.server.remove("pods", name)

    @rule()
    def nodes_end_pods(self):
        self.server.end_pods()

    @precondition(lambda self: self.world == "contested")
    @rule()
    def another_installation_led_meanwhile(self):
        self.term += 1
        self.lead()

    @rule()
    def all_is_well_for_a_while(self):
        self.server.next_answers = []
        for _ in range(30 + 5 * self.commands):  # which are carried out one after the other, each over several turns
            quiet = self.server.version, store.revision(), len(outbox.cursors("default"))
            self.server.end_pods()
            self.controller_runs()
            self.mirror.hear()
            self.clock.move(20)
            self.lead()
            if quiet == (self.server.version, store.revision(), 0):
                break
        assert not outbox.cursors("default"), "nothing is forgotten"
        assert not self.server.all("commands")
        self.check_counts()
        pods = self.server.all("pods")
        assert held(pods, pods) == sorted(name for names in GANGS.values() for name in names), "gangs are bound whole"

    def check_counts(self):
        count = self.server.objects["queues", "q"]["status"].get("count", 0)
        if self.world == "faithful":
            assert count == self.commands
        # Who has deleted a Command carries it out, unless that is refused or somebody else leads meanwhile.
        lost = self.server.refused["queues"] + self.server.refused["commands"] + self.term
        assert self.commands - lost <= count <= self.commands, "each Command counts once"
        assert len(set(self.server.deleted)) == len(self.server.deleted)

    def teardown(self):
        try:
            self.all_is_well_for_a_while()
        finally:
            clock.use(self.before)


@pytest.mark.campaign
def test_each_plan_comes_true_once(settings):
    settings.WAY = "in-place"
    campaign.play(InPlaceMachine, 20, 3000, steps=25)


def test_gang_that_an_earlier_process_was_taking_back_is_taken_back_whole_by_the_next(settings):
    """Of two pods that were bound one was deleted and the other only marked when it died; both still had their node."""
    settings.WAY = "in-place"
    machine = InPlaceMachine()
    machine.start(world="refusing")
    machine.controller_runs()
    machine.mirror.hear()
    bound, marked, deleted = [Answer.DONE] * 2, [Answer.DONE] * 2, Answer.KILLED_AFTER
    machine.server.next_answers = [*bound, Answer.REFUSED, *[Answer.DONE] * len(GANGS["two"]), *marked, deleted]
    machine.controller_runs()
    going = [name for name, each in machine.server.all("pods").items() if "deletionTimestamp" in each["metadata"]]
    assert going == GANGS["one"]
    machine.teardown()


FAILED, REFUSED = Answer.FAILED, Answer.REFUSED


@cases("lost, is_killed, is_replaced, answers", {
    "the same process leads": ((), False, False, [FAILED]),
    "one that starts again leads": ((), True, False, [FAILED]),
    "another installation has carried it out": (OWN, True, False, [FAILED]),
    "another one has its name": ((), False, True, [FAILED]),
    "looking is refused first": ((), False, False, [REFUSED, FAILED]),
})  # fmt: skip
def test_command_that_an_earlier_term_has_carried_out_counts_once_for_a_mirror_that_is_behind(
    lost, is_killed, is_replaced, answers, settings
):
    settings.WAY = "in-place"
    machine = InPlaceMachine()
    machine.start(world="contested")
    command = {"metadata": {"name": "c", "namespace": "d"}}
    machine.server.put("commands", command)
    machine.mirror.hear("commands")
    machine.controller_runs()
    assert not machine.server.all("commands")
    machine.commands = 1
    if is_replaced:
        machine.server.put("commands", command)
        machine.commands = 2
    machine.mirror.hear("queues", "pods")
    machine.another_installation_led_meanwhile()
    forget(*lost)
    for _ in range(5):
        machine.server.next_answers, answers = answers, []
        machine.controller_runs()
        if is_killed:
            machine.process_is_killed()
        machine.clock.move(20)
        machine.lead()
    machine.teardown()
    assert machine.server.objects["queues", "q"]["status"]["count"] == machine.commands
