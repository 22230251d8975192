"""The log of one pod over real files, as the node writes them."""

from __future__ import annotations

import asyncio

import pytest
from asgiref.sync import async_to_sync
from django.http import QueryDict

from cluster import access, clock
from cluster.store import Delete, Patch, store
from dashboard.live import StreamRequest, streams
from jobs.logs.follow import Reader, logs
from jobs.logs.text import RUN_LENGTH
from kube.errors import Forbidden, NotFound
from kube.meta import now_text
from kube.resources import PODS
from proof.harness.waiting import HANG_S
from tests.jobs.logs.written import body, log_of, texts
from tests.jobs.pages import world

T = world.START


@pytest.fixture
def pod(alice, tmp_path, settings):
    settings.DATA = tmp_path
    world.make("train", "Running", pods=[{"task": "worker", "index": 0, "scheduled": T, "started": T}])
    return store.get(PODS, "default", "train-worker-0")


@pytest.fixture
def follow(alice, pod):
    """Begin to follow the log of the pod."""

    def begin(**params):
        asked = {"namespace": pod.namespace, "pod": pod.name, "uid": pod.uid, **params}
        return Reader(access.for_user(alice), asked)

    return begin


@pytest.fixture
def log(pod):
    return log_of(pod.uid)[1]


def test_a_reader_sees_why_there_is_nothing_then_what_is_there_and_then_what_comes(follow, pod):
    reader = follow()
    message = reader.look()
    [(why, names)] = message["absent"]
    assert (message["lines"], names, "not started" in why) == ([], [pod.name], True)
    assert reader.look() is None
    _, log = log_of(pod.uid)
    log.feed("stdout", b"one\ntwo\n")
    message = reader.look()
    assert (texts(message), message["absent"], reader.look()) == (["one", "two"], [], None)
    log.feed("stderr", b"three\n")
    message = reader.look()
    assert (texts(message), message["lines"][0][2]) == (["three"], "stderr")


def test_a_reader_who_comes_back_gets_nothing_from_long_ago_and_nothing_less(follow, pod):
    _, log = log_of(pod.uid, entries=[(1, "long ago"), (30, "one")])
    first = follow().look()
    log.feed("stdout", b"two\n")
    again = follow(since=first["lines"][-1][1]).look()
    assert (texts(again), again["cut"]) == (["one", "two"], False)


def test_the_next_attempt_follows_the_one_that_ended(follow, pod):
    directory, log = log_of(pod.uid)
    log.feed("stdout", b"first\n")
    log.close()
    (directory / "status.json").write_text("{}")
    reader = follow()
    assert (texts(reader.look()), reader.look()) == (["first"], None)
    _, again = log_of(pod.uid, 1)
    again.feed("stdout", b"second\n")
    message = reader.look()
    assert (texts(message), message["logs"]) == (["second"], {1: [pod.name, pod.uid, "main", 1, True, 0]})
    assert [texts(follow(**params).look()) for params in ({}, {"attempt": "0"})] == [["first", "second"], ["first"]]


def test_a_log_is_readable_after_its_pod_is_gone(follow, pod, log, client):
    log.feed("stdout", b"remembered\n")
    store.write(Delete(PODS, pod.namespace, pod.name, grace=0))
    assert texts(follow().look()) == ["remembered"]
    query = f"pod={pod.name}&uid={pod.uid}"
    assert "remembered" in client.get(f"/jobs/default/train/?tab=logs&{query}").content.decode()
    assert body(client.get(f"/jobs/default/train/log/?{query}")) == b"remembered\n"


def test_what_rotation_dropped_is_said(follow, pod):
    _, log = log_of(pod.uid, segment_bytes=2000, count=2)
    reader = follow()
    for word in ("line", "later"):
        for number in range(300):
            log.feed("stdout", f"{word} {number}\n".encode())
        message = reader.look()
        assert (message["lost"] > 0, texts(message)[-1]) == (True, f"{word} 299")


def test_a_download_is_whole_and_has_times_when_asked(pod, log, client):
    log.feed("stdout", b"x" * 40_000 + b"\n" + b"\x00\xff\n" + b"half")
    log.close()
    url = f"/jobs/default/train/log/?pod={pod.name}&uid={pod.uid}"
    lines = body(client.get(url + "&times=1")).split(b"\n")
    assert body(client.get(url)) == b"x" * 40_000 + b"\n\x00\xff\nhalf"
    assert len(lines) == 3
    assert all(line[:2] == b"20" and line[4:5] == b"-" for line in lines)


class Page:
    """What a page has of the lines that are sent to it, by the rules of the protocol."""

    def __init__(self):
        self.rows, self.open, self.reached = {}, {}, {}

    def take(self, message):
        for number, _, stream, shown, whole, offset, last, keep, states in message["lines"]:
            key = (number, stream)
            if self.reached.get(key, -1) >= last:
                continue
            self.reached[key] = last
            name = self.open.pop(key, offset)
            before = self.rows.get(name, ([], 0))[0]
            assert keep <= len(before)
            new = [[shown]] if isinstance(shown, str) else [list(run) for run in shown]
            self.rows[name] = (before[:keep] + new, states)
            if not whole:
                self.open[key] = name

    @property
    def lines(self):
        return ["".join(run[0] for run in runs) for runs, _ in self.rows.values()]


def test_a_bar_that_is_redrawn_is_one_line_that_changes(follow, log):
    reader, page = follow(), Page()
    log.feed("stdout", b"start\n")
    page.take(reader.look())
    for step in range(4):
        log.feed("stderr", f"\repoch 1: {step}/3".encode())
        log.flush()
        page.take(reader.look())
        assert page.lines == ["start", f"epoch 1: {step}/3"]
    log.feed("stdout", b"between\n")
    log.feed("stderr", b"\r\x1b[Kdone\nnext\n")
    page.take(reader.look())
    assert page.lines == ["start", "done", "between", "next"]
    assert [states for _, states in page.rows.values()] == [0, 4, 0, 0]
    again = Page()
    again.take(follow().look())
    assert sorted(again.rows.items()) == sorted(page.rows.items())


def test_of_a_line_that_grows_only_what_is_new_is_sent(follow, log):
    reader, page, sent = follow(), Page(), []
    for _ in range(10):
        log.feed("stdout", b"." * 5000)
        log.flush()
        message = reader.look()
        sent.append(sum(map(len, texts(message))))
        page.take(message)
    assert page.lines == ["." * 50_000]
    assert max(sent) <= 5000 + RUN_LENGTH


def test_a_reader_who_comes_back_has_lines_that_were_under_way_from_their_beginning(follow, pod, log):
    page = Page()
    log.feed("stdout", b"one")
    log.flush()
    log.feed("stderr", b"between\n")
    page.take(follow().look())
    (offset,) = page.open.values()
    log.feed("stdout", b" two")
    log.flush()
    since = now_text(clock.milliseconds() + 60_000)  # long after the line began
    message = follow(since=since, open=f"{pod.uid}.main.0.{offset}").look()
    page.take(message)
    assert (page.lines, {line[2] for line in message["lines"]}) == (["one two", "between"], {"stdout"})


@pytest.mark.parametrize("key", ["{}.main.0.0", "{}.other.7.0", "00000000-0000-4000-8000-000000000000.main.0.0"])
def test_lines_that_are_not_ones_own_are_not_sent_again(follow, pod, key):
    _, log = log_of(pod.uid, entries=[(1, "long ago")])
    log.feed("stdout", b"x")
    found = follow(since=now_text(clock.milliseconds() + 60_000), open=key.format(pod.uid)).look()
    assert texts(found) == (["long ago"] if key.startswith("{}.main") else [])


def test_what_a_line_has_said_is_listed_on_demand(follow, pod, log, client):
    for piece in (b"\r1%", b"\r\x1b[32m2%\x1b[0m", b"\rdone <b>\nnext\n"):
        log.feed("stderr", piece)
        log.flush()
    row = follow().look()["lines"][0]
    assert (row[3], row[-1]) == ("done <b>", 2)
    url = f"/jobs/default/train/log/?pod={pod.name}&uid={pod.uid}&line={pod.uid}.main.0.{row[5]}"
    answer = client.get(url)
    assert (answer.content.decode(), answer["Content-Type"]) == ("1%\n2%\ndone <b>\n", "text/plain; charset=utf-8")
    for wrong in (url + "9", url.replace(f"line={pod.uid}", "line=other")):
        assert client.get(wrong).status_code == 404


def test_without_scripts_the_page_has_colours_links_and_earlier_states(log, client, parse):
    log.feed("stdout", b"1%\r\x1b[1;31mno\x1b[0m <b> https://e.x/a\n")
    first = parse(client.get("/jobs/default/train/?tab=logs")).find(".//*[@data-part='first']")
    assert "".join(first.itertext()).strip() == "no <b> https://e.x/a earlier states"
    assert first.find("span").get("class") == "log-ink-red log-bold"
    link, earlier = first.findall("a")
    assert (link.get("href"), link.get("rel")) == ("https://e.x/a", "noopener noreferrer")
    assert client.get(earlier.get("href")).content == b"1%\nno <b> https://e.x/a\n"


def test_a_log_is_refused_where_one_may_not_read_and_of_a_uid_that_no_pod_has(follow):
    world.make("secret", "Running", namespace="other", pods=[{"task": "worker", "index": 0, "scheduled": T}])
    secret = store.get(PODS, "other", "secret-worker-0")
    with pytest.raises(Forbidden):
        follow(namespace="other", pod=secret.name, uid=secret.uid).look()
    with pytest.raises(NotFound):
        follow(pod=secret.name, uid=secret.uid).look()
    for uid in ("../../..", "x" * 200, "%", "0"):
        with pytest.raises(NotFound):
            follow(uid=uid).look()


@pytest.mark.django_db(transaction=True)
def test_the_stream_ends_with_the_pod(alice, pod):
    directory, log = log_of(pod.uid)
    log.feed("stdout", b"done\n")
    log.close()
    (directory / "status.json").write_text("{}")
    store.write(Patch(PODS, pod.namespace, pod.name, {"status": {"phase": "Succeeded"}}, subresource="status"))
    request = StreamRequest(access.for_user(alice), QueryDict(f"namespace=default&pod={pod.name}&uid={pod.uid}"))
    assert streams.find("logs") is logs

    async def read():
        async with asyncio.timeout(HANG_S):
            return [message async for message in logs.items(request)]

    assert texts(async_to_sync(read)()[0]) == ["done"]
