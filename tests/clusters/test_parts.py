"""One installation in several systems on PostgreSQL: two that serve pages, and two of which one works on another cluster."""

import html
import json
import re
import signal

import pytest
from websockets.sync.client import connect

from kube.resources import JOBS
from proof.harness.waiting import HANG_S, until
from proof.systems.parts import WORKS, freeze, health, installation, kill, thaw
from proof.systems.system import running
from proof.systems.work import COMPLETED, Person, Watcher, held, job, shell
from tests.clusters.test_in_place import in_place, judged
from tests.system.pair import kubeconfig, there

__all__ = ["kubeconfig", "there"]  # fixtures
pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The cluster: an API server, an agent, and the controllers that Kubernetes has itself."""
    with running(tmp_path_factory.mktemp("first") / "data", DJANGO_SETTINGS_MODULE="proof.systems.bare") as started:
        yield started


@pytest.fixture(scope="module")
def whole(postgres_url, kubeconfig, tmp_path_factory):
    """The installation."""
    folder = tmp_path_factory.mktemp("parts")
    with installation(folder, postgres_url, **in_place(kubeconfig)) as made:
        yield made


@pytest.fixture(scope="module")
def webs(whole):
    return [whole.add("web").start() for _ in range(2)]


@pytest.fixture(scope="module")
def works(whole):
    return [whole.add("works").start() for _ in range(2)]


@pytest.fixture
def here(webs):
    """The mirror, on PostgreSQL."""
    with webs[0].store() as store:
        yield Watcher(store)


@pytest.fixture
def people(webs):
    with Person(webs[0]) as one, Person(webs[1]) as other:
        yield one, other


def test_each_runs_its_part_and_one_of_two_works(whole, webs, works):
    leader = whole.leader()
    (other,) = set(works) - {leader}
    assert [set(system.children()) for system in webs] == [{"web"}] * 2
    assert set(leader.children()) == WORKS
    assert set(other.children()) == set()
    assert [line for line in other.output if line.startswith("Stands by")]
    servers = {"database": "ok", "disk": "ok", "redis": "ok"}
    working = servers | {"workers": "ok", "mirror": "ok"}
    # Who has just begun, or works hard, answers later.
    for system, parts in ((other, servers), (leader, working)):
        until(
            lambda system=system, parts=parts: health(system) == (200, parts), what=lambda system=system: health(system)
        )


def test_job_from_one_web_server_runs_and_is_followed_live_on_the_other(people, webs, works, here, there, go):
    one, other = people
    one.create(job("shown", held(go, replicas=2)))
    there.reaches("shown", "Running")
    page = other.get("/jobs/default/shown/").text
    topic, revision = re.search(r'data-live="(job[^"]+)" data-revision="(\d+)"', page).groups()
    with live(webs[1], other) as socket:
        topic = html.unescape(topic)
        subscribe = {"op": "subscribe", "id": topic, "topic": topic, "revision": int(revision)}
        socket.send(json.dumps(subscribe))
        go.touch()
        until(lambda: COMPLETED in next_parts(socket, topic), what="the end of the job, told live")
    there.reaches("shown", "Completed")
    here.reaches("shown", "Completed")
    assert COMPLETED in other.get("/jobs/default/shown/").text


def next_parts(socket, topic):
    """Return what the next message shows anew of a topic."""
    message = json.loads(socket.recv(timeout=HANG_S))
    return "".join(message.get("set", {}).values()) if message.get("id") == topic else ""


def live(system, person):
    cookies = "; ".join(f"{each.name}={each.value}" for each in person.client.cookies.jar)
    url = f"ws://127.0.0.1:{system.port}/live/"
    return connect(url, origin=system.base, additional_headers={"Cookie": cookies}, max_size=None)


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_other_one_works_on_when_the_leader_is(end, whole, people, works, there, go):
    one, _ = people
    leader = whole.leader()
    name = f"handed-{end}"
    one.create(job(name, held(go, replicas=2, terminationGracePeriodSeconds=0)))
    there.reaches(name, "Running")
    if end == "killed":
        kill(leader)
    else:
        leader.stop(signal.SIGTERM)
    go.touch()
    there.reaches(name, "Completed", "Failed")
    assert there.job(name)["status"].get("succeeded") == 2
    assert whole.leader() is not leader
    leader.start()
    assert set(leader.children()) == set(), "who comes back stands by"
    judged(there)


def test_leader_that_slept_finds_another_one_and_steps_back(whole, people, works, here, there, go):
    one, _ = people
    leader = whole.leader()
    one.create(job("slept", held(go, replicas=2, terminationGracePeriodSeconds=0)))
    there.reaches("slept", "Running")
    freeze(leader)
    try:
        until(lambda: leader not in (found := whole.working()) or len(found) == 2, what="another one")
        go.touch()
        there.reaches("slept", "Completed", "Failed")
    finally:
        thaw(leader)
    until(lambda: not leader.children(), what="that the first one steps back")
    one.create(job("afterwards", shell("true")))
    there.reaches("afterwards", "Completed")
    assert {each.name for each in here.store.find(JOBS)} == {each.name for each in there.store.find(JOBS)}
    judged(there)


def test_pages_go_on_when_one_web_server_is_killed(people, webs, works, there):
    one, other = people
    kill(webs[0])
    try:
        other.create(job("without-one", shell("true")))
        there.reaches("without-one", "Completed")
        assert other.get("/jobs/default/without-one/").status_code == 200
    finally:
        webs[0].start()
    assert one.get("/").status_code == 200, "who was logged in still is"
