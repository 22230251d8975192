"""A reflector against a model server: whatever fails in between, the mirror becomes what the server has, and stays so."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from cluster import models
from cluster.remote import recorder
from cluster.remote.reflection import Phase, Standing
from cluster.remote.reflector import Reflector
from cluster.store import store
from kube.resources import PODS
from tests.campaign import scaled
from tests.cluster.remote.model_server import ModelServer

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


class MirrorMachine(RuleBasedStateMachine):
    """Model: the server. What people change here may be confirmed at once, late, or never."""

    @initialize()
    def start(self):
        for table in (models.Object, models.Change, models.Log, models.MirroredKind):
            table.objects.all().delete()
        self.server = ModelServer()
        self.backup = None
        self.answers = []
        self.begin()

    def begin(self):
        """Start as a new process does, from what is stored."""
        standing = recorder.standings([PODS]).get(PODS.id, Standing())
        self.news = []
        self.reflector = Reflector(self.server, PODS, standing, self.news.append, wait=lambda seconds: None)

    @rule(name=NAMES, value=st.integers(0, 9))
    def others_write(self, name, value):
        self.server.put(name, value)

    @rule(name=NAMES, value=st.integers(0, 9))
    def people_write_here(self, name, value):
        self.answers.append(self.server.put(name, value))

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def answer_is_confirmed(self, data):
        answer = self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))
        recorder.confirm(PODS, [answer])

    @precondition(lambda self: self.server.objects)
    @rule(data=st.data())
    def others_delete(self, data):
        self.server.delete(data.draw(st.sampled_from(sorted(self.server.objects))))

    @rule()
    def server_forgets(self):
        self.server.compact()

    @rule()
    def server_is_backed_up(self):
        self.backup = (dict(self.server.objects), self.server.version)

    @precondition(lambda self: self.backup)
    @rule()
    def server_is_restored(self):
        # What was answered before is of a time that never was.
        self.answers.clear()
        self.server.restore_ahead(self.backup[0])

    @precondition(lambda self: self.backup)
    @rule()
    def server_is_restored_in_place(self):
        """The server's restart cuts every watch; who was there and comes back before it caught up sees that it is behind."""
        self.all_is_well_for_a_while()
        self.answers.clear()
        self.server.restore(self.backup[0], min(self.backup[1], self.server.version))
        self.reflector.turn()
        recorder.record(self.news)
        self.news.clear()

    @rule(lines=st.integers(0, 3))
    def next_answer_is_cut(self, lines):
        self.server.cut_after = lines

    @rule(reachable=st.booleans())
    def network_goes_or_comes(self, reachable):
        self.server.reachable = reachable

    @rule()
    def mirror_listens_once(self):
        self.reflector.turn()

    @rule(part=st.integers(0, 10))
    def news_are_written_down(self, part):
        if part:
            written, self.news[:part] = self.news[:part], []
            recorder.record(written)

    @rule()
    def mirror_is_killed(self):
        self.begin()

    @rule()
    def all_is_well_for_a_while(self):
        """Then the mirror is the server, whatever was before."""
        self.server.reachable, self.server.cut_after = True, None
        for _ in range(3):
            self.reflector.turn()
        recorder.record(self.news)
        self.news.clear()
        stored = {one.name: one.object for one in store.find(PODS)}
        assert stored == self.server.objects
        standing = recorder.standings([PODS])[PODS.id]
        assert (standing.phase, standing.version) == (Phase.LIVE, str(self.server.version))
        for answer in self.answers:
            recorder.confirm(PODS, [answer])
        assert {one.name: one.object for one in store.find(PODS)} == self.server.objects, "nothing comes back"

    teardown = all_is_well_for_a_while


@pytest.mark.campaign
@pytest.mark.django_db
def test_mirror_becomes_what_the_server_has():
    run_state_machine_as_test(
        MirrorMachine,
        settings=settings(
            max_examples=scaled(80, 3000),
            stateful_step_count=30,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        ),
    )
