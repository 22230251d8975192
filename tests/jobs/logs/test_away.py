"""The logs of pods on another machine, whose link breaks and comes back."""

from __future__ import annotations

import pytest

from node.link import linked_node
from tests.jobs.logs.written import Gang, body, running, texts, unpacked
from tests.jobs.pages import world
from tests.node.link.pair import linked

NODE = "node-0"


@pytest.fixture
def gang(alice, tmp_path, settings):
    """A job of two workers on another machine."""
    settings.DATA = tmp_path
    linked_node._resting.clear()
    pods = [running(node=NODE), running(index=1, node=NODE)]
    return Gang(alice, world.make("train", "Running", pods=pods, tasks=(("worker", 2),)))


def test_lines_go_on_where_they_were_when_the_node_is_back(gang, settings):
    log = gang.prints("worker-0", (1, "before"))
    following = gang.read("train-worker-0")
    with linked(settings.DATA, NODE):
        assert texts(following.look()) == ["before"]
    log.feed("stdout", b"meanwhile\n")
    ((why, names),) = following.look()["absent"]
    assert (why.startswith(f"Node {NODE} is not connected since "), names) == (True, ["train-worker-0"])
    assert following.look() is None
    assert not following.is_done
    with linked(settings.DATA, NODE):
        message = following.look()
    assert (texts(message), message["absent"]) == (["meanwhile"], [])


def test_a_pod_that_has_ended_is_waited_for_while_its_node_is_away(gang, settings, monkeypatch):
    gang.prints("worker-0", (1, "all of it"))
    with linked(settings.DATA, NODE):
        pass
    following = gang.read("train-worker-0")
    monkeypatch.setattr(type(following), "rests", True)
    following.followed.may_grow = False
    assert following.look()["absent"]
    assert not following.is_done
    with linked(settings.DATA, NODE):
        assert texts(following.look()) == ["all of it"]
        following.look()
    assert following.is_done


def test_a_download_says_which_logs_are_away(gang, client, settings):
    gang.prints("worker-0", (1, "x"))
    with linked(settings.DATA, NODE):
        assert b"x\n" in body(client.get("/jobs/default/train/log/?pod=train-worker-0"))
    files = unpacked(client.get("/jobs/default/train/log/?pod=*"))
    assert f"Node {NODE} is not connected since " in files["missing.txt"]
