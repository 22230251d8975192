"""The mirror of a real cluster: equal to what it has, whatever happens to either of them."""

import json
import os
import signal

import pytest

from cluster.models import MirroredKind
from cluster.remote.mirroring.kinds import KINDS
from cluster.remote.mirroring.reflection import PAGE
from kube.resources import COMMANDS, JOBS, LIMIT_RANGES, POD_GROUPS, PODS
from proof.harness.proxy import CuttingProxy
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.kubernetes.cluster import DEPLOY
from proof.systems.work import Watcher
from tests.kubernetes.objects import sample

pytestmark = pytest.mark.system
READS = "volcano-ui-read-only"
MANY = 2 * PAGE + 100


@pytest.fixture(scope="module")
def config(kubernetes):
    """The pages' kubeconfig, with the rights that the manual names for showing a cluster."""
    kubernetes.kubectl("apply", "-f", DEPLOY / "base" / "roles.yaml")
    return world.account(kubernetes, READS)


@pytest.fixture(scope="module")
def system(kubernetes, config, tmp_path_factory):
    """A system whose pages show the cluster."""
    with world.showing(tmp_path_factory.mktemp("system"), config, VOLCANO_UI_WAY="read-only") as running:
        world.live(running)
        yield running


@pytest.fixture
def here(system):
    """Its store."""
    with system.store() as store:
        yield store


def present(store, kind, name):
    return any(stored.name == name for stored in store.find(kind, text=name))


def lists_of(kubernetes, kind):
    """Return the pages' requests for lists of a kind, as the cluster's audit has them."""
    requests = [each for each in kubernetes.requests_by(world.USER) if each["verb"] == "list"]
    return [each for each in requests if each["objectRef"]["resource"] == kind.plural]


def story(store, kind, name):
    """What happened to an object, as the log has it: what, and its phase then."""
    return [
        (change.verb, ((change.object.get("status") or {}).get("state") or {}).get("phase"))
        for change in Watcher(store).everything()
        if change.resource == kind.id and change.name == name
    ]


def test_many_objects_are_read_page_by_page(kubernetes, config, tmp_path):
    kubernetes.make(POD_GROUPS, [sample(POD_GROUPS, f"many-{number}") for number in range(MANY)])
    try:
        with world.showing(tmp_path, config, VOLCANO_UI_WAY="read-only") as system, system.store() as here:
            world.live(system)
            assert len(here.find(POD_GROUPS)) >= MANY
            world.equal(kubernetes, here)
        assert len([each for each in lists_of(kubernetes, POD_GROUPS) if "continue=" in each["requestURI"]]) >= 2
    finally:
        kubernetes.clear(POD_GROUPS)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_object_of_each_kind_is_made_changed_and_deleted(kubernetes, here, kind):
    name = f"one-{kind.kind.lower()}"
    kubernetes.apply(sample(kind, name))
    until(lambda: present(here, kind, name), what="its coming")
    kubernetes.kubectl("annotate", kind.id, name, "note=changed")
    world.equal(kubernetes, here)
    kubernetes.kubectl("delete", kind.id, name)
    until(lambda: not present(here, kind, name), what="its end")
    world.equal(kubernetes, here)


def test_nothing_is_lost_when_every_connection_is_cut_and_the_mirror_is_killed(kubernetes, config, tmp_path):
    with CuttingProxy(kubernetes.port) as proxy:
        through = tmp_path / "config"
        through.write_text(config.read_text().replace(f":{kubernetes.port}", f":{proxy.port}"))
        with world.showing(tmp_path, through, VOLCANO_UI_WAY="read-only") as system, system.store() as here:
            world.live(system)
            proxy.cutting = True
            for number in range(20):
                kubernetes.apply(sample(JOBS, f"cut-{number}"))
                kubernetes.set_status(JOBS.id, f"cut-{number}", {"state": {"phase": "Running"}})
                if number == 10:
                    os.kill(system.children()["mirror"], signal.SIGKILL)
                if number % 2:
                    kubernetes.kubectl("delete", JOBS.id, f"cut-{number}")
            world.equal(kubernetes, here)
            assert proxy.cuts > 5
            for number in range(20):
                verbs = [verb for verb, _ in story(here, JOBS, f"cut-{number}")]
                assert verbs == ["ADDED", "MODIFIED", *(["DELETED"] if number % 2 else [])]
    kubernetes.clear(JOBS)


def test_what_etcd_has_forgotten_meanwhile_is_read_again(kubernetes, config, tmp_path):
    for name in ("stays", "changes", "goes"):
        kubernetes.apply(sample(JOBS, name))
    with world.showing(tmp_path, config, VOLCANO_UI_WAY="read-only") as system, system.store() as here:
        world.live(system)
        assert present(here, JOBS, "goes")
    lists = len(lists_of(kubernetes, JOBS))
    kubernetes.kubectl("delete", JOBS.id, "goes")
    kubernetes.apply(sample(JOBS, "comes"))
    kubernetes.set_status(JOBS.id, "changes", {"state": {"phase": "Running"}})
    kubernetes.restart_apiserver(meanwhile=kubernetes.compact)
    with world.showing(tmp_path, config, VOLCANO_UI_WAY="read-only") as system, system.store() as here:
        world.equal(kubernetes, here)
        assert len(lists_of(kubernetes, JOBS)) > lists, "a watch cannot have told it"
        assert story(here, JOBS, "stays") == [("ADDED", None)]
        assert story(here, JOBS, "comes") == [("ADDED", None)]
        assert story(here, JOBS, "changes") == [("ADDED", None), ("MODIFIED", "Running")]
        assert story(here, JOBS, "goes") == [("ADDED", None), ("DELETED", None)]
    kubernetes.clear(JOBS)


def test_right_that_is_taken_away_is_said_and_given_back_is_used(kubernetes, system, here):
    rules = kubernetes.get("clusterrole", READS)["rules"]
    without = [{**rule, "resources": [each for each in rule["resources"] if each != "pods"]} for rule in rules]

    def allow(rules):
        kubernetes.kubectl("patch", "clusterrole", READS, "--type=merge", "-p", json.dumps({"rules": rules}))

    allow(without)
    try:
        kubernetes.restart_apiserver()  # a watch that is under way is asked about no right any more
        # Other kinds are away for a moment, each for its own, and then it is their reason that is told.
        words = ("partly live", "pods: ", "is forbidden")
        until(
            lambda: (message := world.strip_text(system)) and all(each in message for each in words),
            what=lambda: f"the word that something is missing: {world.strip_text(system)}",
        )
        kubernetes.apply(sample(PODS, "unseen"), sample(COMMANDS, "seen"))
        until(lambda: present(here, COMMANDS, "seen"), what="what may be seen")
        assert not present(here, PODS, "unseen")
    finally:
        allow(rules)
    world.live(system)  # the watch is agreed to; what it missed it tells next
    until(lambda: present(here, PODS, "unseen"), what="what could not be seen")
    kubernetes.kubectl("delete", "pod", "unseen")
    kubernetes.kubectl("delete", COMMANDS.id, "seen")


def test_token_that_counts_no_more_is_said_and_a_new_one_in_the_file_is_used(kubernetes, config, system, here):
    kubernetes.kubectl("delete", "serviceaccount", world.ACCOUNT, "-n", world.NAMESPACE)
    try:
        kubernetes.restart_apiserver()
        until(lambda: "Unauthorized" in world.strip_text(system), what="the word that nobody is let in")
    finally:
        assert world.account(kubernetes, READS) == config, "the file is written anew"
    world.live(system)
    world.equal(kubernetes, here)


def test_kind_without_changes_keeps_up_by_bookmarks(kubernetes, here):
    def reached():
        """The version that the mirror knows of the kind; 0 while it is being listed anew."""
        return int(MirroredKind.objects.using(here.using).get(resource=LIMIT_RANGES.id).version or 0)

    before = until(reached, what="a list")
    kubernetes.apply(sample(COMMANDS, "elsewhere"))
    version = int(kubernetes.get(COMMANDS.id, "elsewhere")["metadata"]["resourceVersion"])
    kubernetes.kubectl("delete", COMMANDS.id, "elsewhere")
    assert before < version
    until(lambda: reached() >= version, what="a bookmark, which comes each minute")
