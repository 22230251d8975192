"""What controllers make of what happens: the stories of tests/golden/cluster, controllers.txt and garbage.txt."""

import pytest

from cluster.bootstrap import bootstrap
from cluster.consumers.consumer import Runner
from cluster.controllers import garbage, namespaces
from cluster.controllers.budgets import BudgetController
from cluster.controllers.hyper_nodes import HyperNodeController
from cluster.controllers.namespaces import NamespaceController
from cluster.controllers.nodes import NodeLifecycle, step
from cluster.controllers.quotas import QuotaController
from cluster.runtime import registry
from cluster.store import Create, Delete, Patch, store
from kube.resources import CONFIGMAPS, CRON_JOBS, JOB_FLOWS, NODES
from node.agent.machine import renew
from tests import builders
from tests.blocks import blocks
from tests.cluster.objects import of_values
from tests.cluster.story import Story
from tests.tables import cases

pytestmark = pytest.mark.django_db(transaction=True)
AUTHORITY = "kube-root-ca.crt"
CONTROLLERS = {
    "nodes": NodeLifecycle, "hypernodes": HyperNodeController, "namespaces": NamespaceController,
    "quotas": QuotaController, "budgets": BudgetController,
}  # fmt: skip


class Cluster(Story):
    def renew(self, name, stamp):
        """A node's agent renews its lease, and says when that is by its own clock."""
        renew(store, name, int(stamp))


@pytest.fixture
def cluster(redis_url, settings, moved_clock, monkeypatch, tmp_path):
    """Controllers that write a few objects in a transaction, at a moment that is always the same."""
    settings.REDIS_URL, settings.DATA = redis_url, tmp_path
    settings.API_CERTIFICATE = settings.API_CERTIFICATE_CA = None
    moved_clock.us = 1_800_000_000_000_000
    monkeypatch.setattr(namespaces, "ROOM", 3)
    bootstrap()
    return Cluster(moved_clock, lambda: [Runner(registry.get(name), 0, made()) for name, made in CONTROLLERS.items()])


@blocks("controllers", folder="cluster")
def test_what_controllers_make_of_what_happens(block, golden, cluster):
    golden(block, cluster.tell)


@blocks("silence", folder="cluster")
def test_what_is_done_about_a_node_that_falls_silent(block, golden):
    def done(ready, tainted, silent_s, unreachable_s):
        return step(ready, tainted=tainted, silent_s=silent_s, unreachable_s=unreachable_s, lost_s=60).name

    golden(block, of_values(done))


def test_programs_in_a_namespace_find_the_authority_of_the_api(cluster, tmp_path):
    def authority():
        return store.get(CONFIGMAPS, "work", AUTHORITY).object["data"]

    cluster.tell("create namespace work")
    cluster.restart()
    assert store.find(CONFIGMAPS) == []
    (tmp_path / "pki").mkdir()
    for text in ("first", "second"):
        (tmp_path / "pki" / "ca.crt").write_text(text)
        cluster.restart()
        assert authority() == {"ca.crt": text}
    other = {"data": {"ca.crt": "another", "more": "x"}}
    for write in (Delete(CONFIGMAPS, "work", AUTHORITY), Patch(CONFIGMAPS, "work", AUTHORITY, other)):
        store.write(write)
        cluster.settle()
        assert authority() == {"ca.crt": "second"}, "at once"


@cases("maker, kind", {"cronjob": ("cronjob", CRON_JOBS), "flow": ("flow", JOB_FLOWS)})
def test_what_makes_jobs_goes_before_the_jobs(cluster, monkeypatch, maker, kind):
    monkeypatch.setattr(namespaces, "ROOM", 1)
    for deed in ("create namespace work", "store vcjob work/j", f"store {maker} work/m", "delete namespace work"):
        cluster.tell(deed)
    cluster.runners = [Runner(registry.get("namespaces"), 0, NamespaceController())]
    while store.find(kind):
        assert cluster.names("vcjob", "work") == "j"
        cluster.step()


# What belongs to something that is gone.


class Restarting(Story):
    """In which others always do what is left to do."""

    def settle(self):
        self.runners = self.controllers()
        super().settle()


def collecting(clock, collector=garbage.GarbageCollector, kind=Story):
    return kind(clock, lambda: [Runner(registry.get("garbage"), 0, collector())])


@pytest.mark.parametrize("kind", [Story, Restarting], ids=["by one process", "by the next"])
@blocks("garbage", folder="cluster")
def test_what_is_left_of_a_family(block, golden, moved_clock, monkeypatch, kind):
    monkeypatch.setattr(garbage, "ROOM", 4)
    golden(block, collecting(moved_clock, kind=kind).tell)


def test_collector_that_was_never_there_finds_what_vanished_and_nodes_are_no_business_of_it(moved_clock):
    story = Story()
    owned = ("store map a of=vcjob/owner*", "store map b of=vcjob/owner")
    for deed in ("store vcjob owner", *owned, "remove vcjob owner"):
        story.tell(deed)
    (collector,) = collecting(moved_clock).runners
    assert story.names("map") == "none"
    before = collector.generation
    store.write(Create(NODES, builders.node("n")))
    collector.step()
    assert collector.generation == before


class Overtaken(garbage.GarbageCollector):
    """Whose first plan is made before something else is written, and done after it."""

    meanwhile = None

    def plan(self, state, changes, timers, now):
        plan = super().plan(state, changes, timers, now)
        if plan.groups and (meanwhile := self.meanwhile):
            self.meanwhile = None
            meanwhile()
        return plan


TOUCH, FREE = "metadata.labels={touched: yes}", "metadata.ownerReferences=null"


@cases("propagation, dependents, meanwhile, left", {
    "its owner in the foreground": ("Foreground", {}, f"vcjob owner {TOUCH}", {}),
    "its owner that orphans": ("Orphan", {}, f"vcjob owner {TOUCH}", {}),
    "a dependent": ("Background", {"a": "[vcjob/owner, vcjob/other]"}, f"map a {TOUCH}", {"a": "[other]"}),
    "one that is freed": ("Background", {"a": "vcjob/owner*", "b": "vcjob/owner*"}, f"map a {FREE}", {"a": "[]"}),
    "one that is freed in the foreground": ("Foreground", {"a": "vcjob/owner*", "b": "vcjob/owner*"}, f"map a {FREE}", {"a": "[]"}),
})  # fmt: skip
def test_what_changed_between_a_plan_and_its_transaction_is_looked_at_again(
    moved_clock, propagation, dependents, meanwhile, left
):
    overtaken = Overtaken()
    story = collecting(moved_clock, lambda: overtaken)
    deeds = [f"store map {name} of={of}" for name, of in dependents.items()]
    for deed in ("store vcjob owner", "store vcjob other", *deeds, "settle"):
        story.tell(deed)
    overtaken.meanwhile = lambda: story.tell(f"change {meanwhile}")
    story.tell(f"remove vcjob owner propagation={propagation}")
    story.settle()
    assert overtaken.meanwhile is None
    found = {name: story.see("map", name, "owners") for name in dependents}
    assert found == {**dict.fromkeys(dependents, "gone"), **left}
    assert story.names("vcjob") == "other"
