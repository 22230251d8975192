"""A reflector against a model server: whatever fails in between, the mirror becomes what the server has, and stays so."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from cluster.remote import recorder
from cluster.remote.reflection import Phase
from cluster.store import store
from kube.resources import PODS
from tests import campaign
from tests.builders import of
from tests.cluster.remote.model_server import MIRRORED, Mirror, ModelServer, forget

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
VALUES = st.integers(0, 9)


def mirrored():
    return {one.name: one.object for one in store.find(PODS)}


class MirrorMachine(RuleBasedStateMachine):
    """Model: the server. What people change here may be confirmed at once, late, or never."""

    @initialize()
    def start(self):
        forget(*MIRRORED)
        self.server = ModelServer()
        self.server.page = 2
        self.backup = None
        self.answers = []
        self.mirror_is_killed()

    @rule()
    def mirror_is_killed(self):
        self.mirror = Mirror(self.server, [PODS])

    @rule(name=NAMES, value=VALUES)
    def others_write(self, name, value):
        self.server.put("pods", of(PODS, name, namespace="d", value=value))

    @rule(name=NAMES, value=VALUES)
    def people_write_here(self, name, value):
        self.others_write(name, value)
        self.answers.append(self.server.objects["pods", name])

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def answer_is_confirmed(self, data):
        answer = self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))
        recorder.confirm(PODS, [answer])

    @precondition(lambda self: self.server.objects)
    @rule(data=st.data())
    def others_delete(self, data):
        self.server.remove(*data.draw(st.sampled_from(sorted(self.server.objects))))

    @rule()
    def server_forgets(self):
        self.server.forgotten = self.server.version

    @rule()
    def server_is_backed_up(self):
        self.backup = (dict(self.server.objects), self.server.version)

    @precondition(lambda self: self.backup)
    @rule()
    def server_is_restored(self):
        """It goes on with versions that nobody has seen, as etcd's manual advises."""
        # What was answered before is of a time that never was.
        self.answers.clear()
        self.server.restore(self.backup[0], self.server.version + 1000)

    @precondition(lambda self: self.backup)
    @rule()
    def server_is_restored_in_place(self):
        """The server's restart cuts every watch; who was there and comes back before it caught up sees that it is behind."""
        self.all_is_well_for_a_while()
        self.answers.clear()
        self.server.restore(self.backup[0], min(self.backup[1], self.server.version))
        self.mirror.hear()

    @rule(lines=st.integers(0, 3))
    def next_answer_is_cut(self, lines):
        self.server.cut_after = lines

    @rule(reachable=st.booleans())
    def network_goes_or_comes(self, reachable):
        self.server.reachable = reachable

    @rule()
    def mirror_listens_once(self):
        self.mirror.listen()

    @rule(part=st.integers(0, 10))
    def news_are_written_down(self, part):
        self.mirror.record(part)

    @rule()
    def all_is_well_for_a_while(self):
        """Then the mirror is the server, whatever was before."""
        self.server.reachable, self.server.cut_after = True, None
        for _ in range(3):
            self.mirror.listen()
        self.mirror.record()
        assert mirrored() == self.server.all("pods")
        standing = recorder.standings([PODS])[PODS.id]
        assert (standing.phase, standing.version) == (Phase.LIVE, str(self.server.version))
        for answer in self.answers:
            recorder.confirm(PODS, [answer])
        assert mirrored() == self.server.all("pods"), "nothing comes back"

    teardown = all_is_well_for_a_while


@pytest.mark.campaign
@pytest.mark.django_db
def test_mirror_becomes_what_the_server_has():
    campaign.play(MirrorMachine, 80, 3000, steps=30)
