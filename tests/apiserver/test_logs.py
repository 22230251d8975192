import asyncio
import contextlib
import threading

import pytest
from asgiref.sync import sync_to_async
from starlette.datastructures import QueryParams

from apiserver.streams import logs
from cluster import access
from cluster.backend import LogText
from cluster.store import Create, Patch, store
from kube.errors import BadRequest, Invalid
from kube.resources import PODS
from node import inotify, log_stream
from node.paths import Layout
from node.shim import linux
from node.shim.crilog import CriLog
from proof.harness.waiting import HANG_S, until
from tests import builders
from tests.apiserver.client import linked
from tests.builders import container
from tests.tables import parts

LOG = "/api/v1/namespaces/default/pods/p/log"


class Pod:
    """A pod as a node reports it, and its containers' logs as their shims write them."""

    def __init__(self, data, *, scheme="process", node="here", containers=("main",), init=()):
        self.data, self.scheme = data, scheme
        spec = {"nodeName": node, "initContainers": [container(name) for name in init]}
        body = builders.pod("p", *(container(name) for name in containers), **spec)
        self.uid = store.write(Create(PODS, body))[0].uid

    def id(self, name="main", number=0):
        return f"{self.scheme}://{self.uid}/{name}/{number}"

    def says(self, name="main", state=None, last=None, field="containerStatuses", number=0):
        entry = {"name": name, "state": state or {"running": {}}, "lastState": last or {}}
        status = {field: [{**entry, "containerID": self.id(name, number)}]}
        store.write(Patch(PODS, "default", "p", {"status": status}, "status"))
        return self

    def directory(self, name="main", number=0):
        path = Layout(self.data).attempt(self.uid, name, number)
        path.mkdir(parents=True, exist_ok=True)
        (path / "claim").write_text(f"1 {linux.start_ticks(1)}")
        return path

    def log(self, name="main", number=0, **options):
        return CriLog(str(self.directory(name, number)), **options)

    def wrote(self, data, stream="stdout", **which):
        log = self.log(**which)
        log.feed(stream, data)
        log.close()
        return self

    def ended(self):
        (self.directory() / "status.json.new").write_text("{}")
        (self.directory() / "status.json.new").rename(self.directory() / "status.json")


@pytest.fixture(params=["its files", "a link"])
def pod(request, server, settings, tmp_path):
    """A pod whose node is reached through the files of this machine, or by a link as on another one."""
    settings.DATA = tmp_path
    with linked(server, tmp_path) if request.param == "a link" else contextlib.nullcontext():
        yield lambda **fields: Pod(tmp_path, **fields)


@parts("apiserver/logs", "what parameters choose")
def test_parameters_choose_what_is_answered(pod, story, part):
    log = pod().says().log()
    for stream, data in (("stdout", b"1\n2\n"), ("stderr", b"3\n"), ("stdout", b"4\n")):
        log.feed(stream, data)
    log.close()
    story.goes(part)


def test_a_log_is_plain_text_and_its_timestamps_have_nine_digits(api, pod):
    made = pod().says()
    assert api.get(LOG).text == f"unable to retrieve container logs for {made.id()}\n", "one that was removed"
    made.directory()
    answer = api.get(LOG)
    assert (answer.status_code, answer.text) == (200, ""), "one of who has printed nothing"
    made.wrote("one\nzwei ü\nhalf".encode())
    for headers in ({}, {"accept": "text/plain"}):
        answer = api.get(LOG, headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain")
        assert answer.content == "one\nzwei ü\nhalf".encode()
    lines = api.get(f"{LOG}?timestamps=true").text.splitlines()
    assert [line[30:] for line in lines] == [" one", " zwei ü", " half"]
    assert all(len(line.split(".")[1].split("Z")[0]) == 9 for line in lines)
    answer = api.as_(access.Actor("nobody", ("system:authenticated",))).get(LOG)
    assert (answer.status_code, "cannot get" in answer.json()["message"]) == (403, True)


@parts("apiserver/logs", "parameters that do not hold")
def test_parameters_that_do_not_hold_are_invalid(part):
    def invalid(parameters):
        with pytest.raises(Invalid) as caught:
            logs.options(QueryParams(parameters), "p", 0)
        return caught.value.message.removeprefix('PodLogOptions "p" is invalid: ')

    part.check(invalid)
    for unreadable in ("tailLines=x", "tailLines=1_0", "tailLines=", f"limitBytes={2**63}", "sinceTime=yesterday"):
        with pytest.raises(BadRequest):
            logs.options(QueryParams(unreadable), "p", 0)


@parts("apiserver/logs", "containers without a log")
def test_containers_without_a_log_are_bad_requests(pod, story, part):
    pod(containers=("a", "b"), init=("i",)).says("a", {"waiting": {"reason": "CrashLoopBackOff"}})
    story.goes(part)


def test_previous_is_the_instance_that_ended_last_and_an_init_container_has_a_log(api, pod):
    made = pod(init=("i",))
    made.wrote(b"first\n", number=0).wrote(b"second\n", number=1).wrote(b"set up\n", name="i")
    last = {"terminated": {"containerID": made.id(number=0)}}
    made.says(last=last, number=1)
    assert api.get(f"{LOG}?container=main").text == "second\n"
    assert api.get(f"{LOG}?container=main&previous=true").text == "first\n"
    made.says(state={"waiting": {"reason": "CrashLoopBackOff"}}, last=last)
    assert api.get(f"{LOG}?container=main").text == "first\n"
    made.says("i", {"terminated": {"containerID": "process://u/i/0"}}, field="initContainerStatuses")
    assert api.get(f"{LOG}?container=i").text == "set up\n"


def test_a_pod_without_a_log_says_why(api, pod):
    answer = api.get(LOG)
    assert (answer.status_code, answer.json()["message"]) == (404, 'pods "p" not found')
    made = pod(node="")
    assert api.get(LOG).status_code == 204
    store.write(Patch(PODS, "default", "p", {"spec": {"nodeName": "here"}}))
    made.says(number="9" * 5000)  # which no attempt can have
    assert api.get(LOG).text.startswith("unable to retrieve container logs for ")
    made.scheme = "simulated"
    message = "This pod ran on a simulated node: nothing was executed, so there is no output.\n"
    made.says()
    assert api.get(f"{LOG}?follow=true").text == message


def test_following_gives_what_comes_until_the_instance_ends(api, pod):
    made = pod().says()
    log = made.log(segment_bytes=3000, count=3)  # it is rotated many times meanwhile
    log.feed("stdout", b"before\n")
    written = [b"line %d %s\n" % (number, b"x" * (number % 90)) for number in range(300)]
    got = bytearray()

    def write():
        for number, line in enumerate(written):
            log.feed("stdout", line)
            if number % 30 == 29:  # who is further behind than what is kept misses the rest of it
                until(lambda line=line: got.endswith(line), what="that what was written is read")
        log.close()
        made.ended()

    thread = threading.Thread(target=write)
    with api.stream(f"{LOG}?follow=true") as answer:
        for part in answer.iter_raw():
            got += part
            if got == b"before\n":
                thread.start()
    thread.join()
    assert got == b"before\n" + b"".join(written)


def test_following_ends_when_the_shim_was_killed(api, pod, monkeypatch):
    monkeypatch.setattr(log_stream, "ALIVE_S", 0.05)
    made = pod().says().wrote(b"last words\n")
    (made.directory() / "claim").write_text("1 1")  # another process has the number by now
    assert api.get(f"{LOG}?follow=true").text == "last words\n"


def test_a_client_that_goes_is_noticed_while_nothing_is_written(api, pod, monkeypatch):
    pod().says().wrote(b"x\n")
    watching, left = inotify.Changes._leave, threading.Event()
    monkeypatch.setattr(inotify.Changes, "_leave", lambda *given: (watching(*given), left.set()))
    with api.stream(f"{LOG}?follow=true") as answer:
        parts = answer.iter_raw()  # kept: one that is forgotten ends its stream
        assert next(parts) == b"x\n"
        assert not left.is_set()
    assert left.wait(HANG_S)


@pytest.mark.parametrize("pod", ["its files"], indirect=True)
async def test_hundreds_of_followers_hold_no_threads(pod):
    made = await sync_to_async(lambda: pod().says())()
    log, before, outputs = made.log(), threading.active_count(), [[] for _ in range(400)]
    log.feed("stdout", b"begin\n")

    async def follow(got):
        async for part in log_stream.text(made.directory(), 0, LogText(follow=True)):
            got.append(part)

    tasks = [asyncio.ensure_future(follow(got)) for got in outputs]
    while not all(outputs):
        await asyncio.sleep(0.01)
    assert threading.active_count() - before < 100  # asyncio's own are 32 on a large machine
    log.feed("stdout", b"end\n")
    log.close()
    made.ended()
    await asyncio.wait_for(asyncio.gather(*tasks), HANG_S)
    assert {b"".join(got) for got in outputs} == {b"begin\nend\n"}


def test_a_reader_that_is_slow_holds_up_nobody_and_little_memory(api, pod):
    made = pod().says()
    with (made.directory() / "log.000000000000000").open("wb") as file:
        file.write((b"2026-01-01T00:00:00.000000Z stdout F " + b"x" * 99 + b"\n") * 200_000)
    with api.stream(LOG) as answer:
        parts = answer.iter_raw()
        total = len(next(parts))
        assert api.get(f"{LOG}?tailLines=1").text == "x" * 99 + "\n"
        total += sum(map(len, parts))
    assert total == 200_000 * 100


def test_an_actor_follows_a_bounded_number_of_logs(api, pod, monkeypatch):
    monkeypatch.setattr(logs, "MAX_OF_ONE", 2)
    pod().says().wrote(b"one\n")
    with api.stream(f"{LOG}?follow=true") as first, api.stream(f"{LOG}?follow=1") as second:
        reading = first.iter_text(), second.iter_text()  # kept: one that is forgotten ends its stream
        assert [next(part) for part in reading] == ["one\n", "one\n"]
        assert api.get(f"{LOG}?follow=true").status_code == 429
        assert api.get(LOG).status_code == 200
    until(lambda: logs._followers.total() == 0)
