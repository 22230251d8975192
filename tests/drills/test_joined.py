"""Two machines, one cluster: a second agent with a directory of its own joins over the API, and runs its share of a job."""

import itertools
import re

import pytest

from node import membership
from proof.harness.waiting import until
from proof.systems.joined import Machine, _is_ready
from proof.systems.system import System
from proof.systems.work import Person, Watcher, held, job, shell
from tests.tables import cases

pytestmark = pytest.mark.system
FIRST = "first"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The first machine, on which the system runs; tests may stop and start it."""
    data = tmp_path_factory.mktemp("first") / "data"
    system = System(data, VOLCANO_UI_NODE_NAME=FIRST, VOLCANO_UI_NODE_LOST_S="1").start()
    yield system
    system.stop()
    system.end_pods()
    system.assert_gone()


@pytest.fixture
def second(own, tmp_path):
    """A second machine, which has joined; another one for each test."""
    machine = Machine(own, tmp_path / "second", f"second-{next(_numbers)}")
    yield machine.join()
    machine.close()


@pytest.fixture
def watcher(own):
    with own.store() as store:
        yield Watcher(store)


@pytest.fixture
def person(own):
    with Person(own) as somebody:
        yield somebody


def on(name):
    return {"kubernetes.io/hostname": name}


def runs(watcher, name):
    watcher.reaches(name, "Running")
    return until(
        lambda: all(each["status"].get("phase") == "Running" for each in watcher.pods(name).values()),
        what=lambda: str(watcher.story(name)),
    )


def test_a_gang_on_two_machines_starts_together_and_ends(own, second, person, watcher, go):
    tasks = [
        held(go, name="near", nodeSelector=on(FIRST)),
        held(go, name="far", replicas=2, nodeSelector=on(second.name)),
    ]
    person.create(job("both", *tasks))
    runs(watcher, "both")
    placed = {name: pod["spec"]["nodeName"] for name, pod in watcher.pods("both").items()}
    assert placed == {"both-near-0": FIRST, "both-far-0": second.name, "both-far-1": second.name}
    assert len(second.shims()) == 2
    assert len(own.shims()) == 1
    go.touch()
    watcher.reaches("both", "Completed")


def test_a_killed_agent_and_a_server_that_was_away_cost_no_pod(own, second, person, watcher, go):
    person.create(job("long", held(go, nodeSelector=on(second.name))))
    runs(watcher, "long")
    (pod,), shims = watcher.pods("long").values(), second.shims()

    second.kill()
    assert second.shims() == shims
    second.start()
    second.ready()
    own.stop()
    assert second.shims() == shims
    own.start()
    go.touch()
    watcher.reaches("long", "Completed")
    (after,) = watcher.pods("long").values()
    assert after["metadata"]["uid"] == pod["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0


def test_what_ends_while_the_server_is_away_is_told_when_it_is_back(own, second, person, watcher, go):
    person.create(job("ends", held(go, nodeSelector=on(second.name))))
    runs(watcher, "ends")
    own.stop()
    go.touch()
    until(lambda: not second.shims())
    own.start()
    watcher.reaches("ends", "Completed")


def test_a_machine_that_falls_silent_loses_its_pods_and_ends_them_when_it_is_back(own, second, person, watcher, go):
    person.create(job("lost", held(go, nodeSelector=on(second.name)), minimum=1))
    runs(watcher, "lost")
    second.kill()
    until(lambda: not _is_ready(watcher.store, second.name))
    watcher.reaches("lost", "Failed")
    assert second.shims()
    second.start()
    second.ready()
    until(lambda: not second.shims(), what="the end of what ran there")


def test_a_revoked_machine_ends_what_it_runs_and_stops(own, second, person, watcher):
    person.create(job("ours", shell("sleep 600", nodeSelector=on(second.name))))
    runs(watcher, "ours")
    page = person.get("/nodes/-/new/").text
    row = re.search(rf"node {second.name}</td>.*?/connect/tokens/(\d+)/revoke/", page, re.DOTALL)
    person.post(f"/connect/tokens/{row[1]}/revoke/")
    assert second.ended() == 1
    until(lambda: not second.shims(), what="the end of what ran there")
    assert "is no node of the cluster any more" in second.output()


def test_a_name_that_is_taken_is_refused_with_words(own, second, tmp_path):
    for name in (FIRST, second.name):
        other = Machine(own, tmp_path / f"other-{name}", name).start(*second.invited())
        assert other.ended() == 1
        assert f"The name {name} is taken by a node that is alive" in other.output()


def test_a_token_can_be_given_by_file_and_for_a_name(own, second, tmp_path):
    words = second.invited("--node", "third")
    position = words.index("--token")
    (tmp_path / "token").write_text(words[position + 1] + "\n")
    words[position : position + 2] = ["--token-file", str(tmp_path / "token")]
    third = Machine(own, tmp_path / "third", "whatever-else")
    try:
        third.name = "third"
        third.start(*words).ready()
        assert membership.read(third.data).name == "third"
    finally:
        third.close()


@cases("words, message", {
    "in the clear": (("--server", "http://192.0.2.1:8443", "--token", "x"), "not encrypted"),
    "nobody there": (("--server", "https://127.0.0.1:9", "--token", "x"), "does not answer"),
    "no token": (("--server", "https://127.0.0.1:9"), "with a token"),
    "no file": (("--server", "https://127.0.0.1:9", "--token-file", "/absent"), "cannot be read"),
    "no authority": (("--server", "https://127.0.0.1:9", "--token", "x", "--ca", "/absent"), "cannot be read"),
    "no certificate": (("--server", "https://127.0.0.1:9", "--token", "x", "--ca", "/etc/passwd"), "no certificate"),
})  # fmt: skip
def test_what_cannot_be_is_said_at_once(tmp_path, words, message):
    machine = Machine(None, tmp_path / "none", "none").start("agent", *words)
    assert machine.ended() == 1
    assert message in machine.output()


def test_with_the_wrong_authority_nothing_is_told_to_the_server(own, second, tmp_path):
    words = second.invited()
    words[words.index("--ca") + 1] = "sha256:" + "0" * 64
    other = Machine(own, tmp_path / "other", "other").start(*words)
    assert other.ended() == 1
    assert "another authority" in other.output()
    words[words.index("--ca") :] = []
    assert other.start(*words).ended() == 1
    assert "its certificate is not trusted" in other.output()
