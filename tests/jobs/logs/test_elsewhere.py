"""The logs of a cluster with an API of its own, of which only times and last lines are told, and of another machine."""

import pytest

from cluster import access
from cluster.api import backend
from cluster.remote.logs import log_ends, log_memory
from cluster.remote.logs.nodes import RemoteNodes
from cluster.store import Patch, store
from jobs.pages.logs import download, window
from jobs.pages.logs.pods import LogQuery
from jobs.pages.logs.window import Limits, Mark
from kube.resources import PODS
from node.link import linked_node
from tests.cluster.remote.servers import LogServer, connected
from tests.jobs.logs.written import Gang, body, read, running, texts, unpacked
from tests.jobs.pages import world
from tests.node.link_pair import linked
from tests.tables import cases

ALL = Limits(100_000, 10**8)
NODE = "node-0"


@pytest.fixture
def api(tmp_path, settings, monkeypatch):
    monkeypatch.setattr(backend, "nodes", RemoteNodes())
    with connected(LogServer(), tmp_path, settings) as server:
        yield server


@pytest.fixture
def gang(alice, api):
    return Gang(alice, world.make("train", "Running", pods=[running(index=index) for index in range(3)]))


@pytest.fixture
def alone(gang):
    return lambda **params: gang.read("train-worker-0", uid=gang.uid["worker-0"], **params)


def is_over(index, **status):
    state = {"name": "main", "restartCount": 0, "state": {"terminated": {"exitCode": 0}}, **status}
    patch = {"status": {"phase": "Succeeded", "containerStatuses": [state]}}
    store.write(Patch(PODS, "default", f"train-worker-{index}", patch, subresource="status"))


def test_lines_of_all_pods_come_in_the_order_of_their_times_and_then_what_comes(gang, api, moved_clock):
    for number, lines in enumerate(([(1, "a"), (4, "d")], [(2, "b"), (4.0001, "e")], [(3, "c")])):
        api.write(f"train-worker-{number}", *lines)
    following = gang.read()
    message = following.poll()
    assert (texts(message), message["before"], following.poll()) == (["a", "b", "c", "d", "e"], 0, None)
    api.write("train-worker-2", (5, "f"))
    api.write("train-worker-0", (6, "g"), (6, "h"))
    moved_clock.move(1)
    assert texts(following.poll()) == ["f", "g", "h"]
    moved_clock.move(1)
    assert following.poll() is None
    api.write("train-worker-0", (6, "of the same moment"))
    moved_clock.move(1)
    assert texts(following.poll()) == ["of the same moment"]


def test_nothing_is_asked_any_more_of_logs_that_have_ended(gang, alone, api, moved_clock):
    api.write("train-worker-0", (1, "a"))
    following = alone()
    assert texts(following.poll()) == ["a"]
    api.write("train-worker-0", (2, "last words"))
    is_over(0)
    moved_clock.move(1)
    assert (texts(following.poll()), following.is_done) == (["last words"], False)
    assert (following.poll(), following.is_done) == (None, True)
    api.requests.clear()
    moved_clock.move(100)
    alone().followed.refresh()
    backend.nodes.log_extents([gang.uid["worker-0"]])
    assert api.requests == []


def test_container_that_is_started_again_goes_on_with_its_next_attempt(gang, alone, api, moved_clock):
    api.write("train-worker-0", (1, "first"))
    following = alone()
    assert texts(following.poll()) == ["first"]
    api.write("train-worker-0", (1, "first"), (2, "and last"), previous=True)
    api.log("train-worker-0").clear()
    api.write("train-worker-0", (3, "second"))
    again = {"restartCount": 1, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}}
    is_over(0, **again)
    store.write(Patch(PODS, "default", "train-worker-0", {"status": {"phase": "Running"}}, subresource="status"))
    moved_clock.move(1)
    assert texts(following.poll()) == ["and last", "second"]


@pytest.mark.parametrize("zone", ["Z", "+02:00"])
@cases("times", {
    "slow": [n * 0.7 for n in range(600)],
    "many in a millisecond": [n * 0.0004 for n in range(3000)],
    "all in a second": [1 + n // 700 * 0.001 for n in range(2000)],
    "one behind many": [0.5] * 400 + [20.0],
})  # fmt: skip
def test_every_line_is_found_from_the_beginning_from_the_end_and_by_its_link(gang, api, times, zone):
    api.zone = zone
    api.write("train-worker-0", *((second, f"line {number}") for number, second in enumerate(times)))
    api.write("train-worker-1", (0.2501, "other"), (times[-1] + 1, "end"))
    extents = backend.nodes.log_extents(gang.uid.values())
    whole = window.tail(backend.nodes, extents, ALL)
    assert len(whole.entries) == len(times) + 2
    assert window.head(backend.nodes, extents, ALL).entries == whole.entries
    assert (whole.before, window.tail(backend.nodes, extents, Limits(50, 10**6)).before) == (0, None)
    ours = [entry for entry in whole.entries if entry.log.uid == gang.uid["worker-0"]]
    for index in (0, 7, len(times) // 2, len(times) - 1):
        log, line = ours[index]
        around = window.around(backend.nodes, extents, Mark(log, line.offset), Limits(60, 10**6))
        begin = whole.entries.index(around.entries[0])
        assert around.entries == whole.entries[begin : begin + len(around.entries)]
        assert (log, line) in around.entries
        assert len(around.entries) >= 30
        assert (around.before is None) == (begin > 0)


def test_line_that_its_node_has_dropped_is_said_to_be_gone(gang, alone, api):
    api.write("train-worker-0", (1, "dropped"), (9, "kept"))
    line = alone().poll()["lines"][0]
    del api.log("train-worker-0")[0]
    assert "not kept any more" in alone(line=f"{gang.uid['worker-0']}.main.0.{line[5]}").poll()["note"]


@pytest.mark.django_db(transaction=True)
def test_download_has_all_of_it(alice, gang, api, monkeypatch):
    monkeypatch.setattr("cluster.remote.logs.nodes.CHUNK", 500)
    api.write("train-worker-0", *((n * 0.3, f"a{n}") for n in range(1000)))
    api.write("train-worker-1", (1, "b"))
    api.refused["train-worker-2"] = 500, "the node does not answer"
    actor = access.for_user(alice)
    query = LogQuery.read("default", "train", {"pod": "*", "of": gang.job.uid})
    files = unpacked(download.respond(actor, query, times=False))
    missing = "train-worker-2: The cluster does not hand out the log of this pod: the node does not answer\n"
    assert files.pop("missing.txt") == missing
    assert sorted(files.values()) == sorted(["".join(f"a{n}\n" for n in range(1000)), "b\n"])
    one = LogQuery.read("default", "train", {"pod": "train-worker-0", "uid": gang.uid["worker-0"]})
    assert body(download.respond(actor, one, times=True)).startswith(b"2026-11-01T00:00:00.000000Z a0\n")


def test_refusal_is_said_and_asked_again(gang, api, moved_clock):
    api.refused["train-worker-0"] = 403, "pods/log is forbidden"
    api.write("train-worker-1", (1, "a"))
    following = gang.read()
    message = following.poll()
    assert texts(message) == ["a"]
    assert ["train-worker-0"] in [names for why, names in message["absent"] if "pods/log is forbidden" in why]
    api.refused.clear()
    api.write("train-worker-0", (2, "b"))
    moved_clock.move(log_ends.RETRY_S)
    assert texts(following.poll()) == ["b"]


def test_remark_of_a_node_in_the_place_of_a_log_is_the_reason_why_there_is_none(gang, api):
    api.text = lambda moment, line: b"unable to retrieve container logs for containerd://1"
    api.write("train-worker-0", (1, ""))
    [absent] = [why for why, names in gang.read().poll()["absent"] if names == ["train-worker-0"]]
    assert "unable to retrieve container logs" in absent


def test_cluster_that_does_not_answer_is_asked_once_and_not_for_each_log(gang, api, moved_clock, settings):
    api.write("train-worker-0", (1, "a"))
    following = gang.read()
    following.poll()
    api.shutdown()
    api.server_close()
    moved_clock.move(log_memory.FRESH_S)
    assert following.poll() is None, "what is known stays"
    settings.TARGET = None  # to ask again would be another error
    log_memory.log_reading.server.connection.cache_clear()
    with pytest.raises(log_memory.Away, match="does not answer"):
        backend.nodes.tail_log(gang.uid["worker-0"], "main", lines=10)


def test_first_page_reads_the_end_of_each_log_once(gang, api):
    for index in range(3):
        api.write(f"train-worker-{index}", (index, "a"))
    assert read(gang.read()) == ["a", "a", "a"]
    assert [query["tailLines"] for _, query in api.requests] == [str(log_memory.FIRST_LINES)] * 3


@pytest.fixture
def linked_gang(alice, tmp_path, settings):
    settings.DATA = tmp_path
    linked_node._paused_until.clear()
    pods = [running(node=NODE), running(index=1, node=NODE)]
    return Gang(alice, world.make("train", "Running", pods=pods, tasks=(("worker", 2),)))


def test_lines_go_on_where_they_were_when_the_node_is_back(linked_gang, settings):
    log = linked_gang.prints("worker-0", (1, "before"))
    following = linked_gang.read("train-worker-0")
    with linked(settings.DATA, NODE):
        assert texts(following.poll()) == ["before"]
    log.feed("stdout", b"meanwhile\n")
    ((why, names),) = following.poll()["absent"]
    assert (why.startswith(f"Node {NODE} is not connected since "), names) == (True, ["train-worker-0"])
    assert (following.poll(), following.is_done) == (None, False)
    with linked(settings.DATA, NODE):
        message = following.poll()
    assert (texts(message), message["absent"]) == (["meanwhile"], [])


def test_a_pod_that_has_ended_is_waited_for_while_its_node_is_away(linked_gang, settings, monkeypatch):
    linked_gang.prints("worker-0", (1, "all of it"))
    with linked(settings.DATA, NODE):
        pass
    following = linked_gang.read("train-worker-0")
    monkeypatch.setattr(type(following), "rests", True)
    following.followed.may_grow = False
    assert following.poll()["absent"]
    assert not following.is_done
    with linked(settings.DATA, NODE):
        assert texts(following.poll()) == ["all of it"]
        following.poll()
    assert following.is_done


def test_a_download_says_which_logs_are_away(linked_gang, client, settings):
    linked_gang.prints("worker-0", (1, "x"))
    with linked(settings.DATA, NODE):
        assert b"x\n" in body(client.get("/jobs/default/train/log/?pod=train-worker-0"))
    files = unpacked(client.get("/jobs/default/train/log/?pod=*"))
    assert f"Node {NODE} is not connected since " in files["missing.txt"]
