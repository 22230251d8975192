"""The logs of one pod and of many together over real files, also of earlier runs and of deleted jobs."""

import asyncio
import shutil

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import User
from django.http import QueryDict

from cluster import access, clock
from cluster.store import Delete, Patch, store
from dashboard.live import StreamRequest, streams
from jobs.logs.text import RUN_LENGTH
from jobs.pages.job import timeline
from jobs.pages.logs import follow, pods
from jobs.pages.logs.follow import Reader, logs
from kube.errors import BadRequest, Forbidden, NotFound
from kube.meta import now_text
from kube.resources import JOBS, PODS
from proof.harness.waiting import HANG_S
from tests.jobs.logs.written import Gang, body, log_of, read, running, stamp, texts, unpacked
from tests.jobs.pages import world
from tests.jobs.pages.job_page import JobPage
from tests.tables import cases


@pytest.fixture
def data(tmp_path, settings):
    settings.DATA = tmp_path


@pytest.fixture
def pod(alice, data):
    world.make("train", "Running", pods=[running()])
    return store.get(PODS, "default", "train-worker-0")


@pytest.fixture
def opened(alice, pod):
    def begin(**params):
        query = {"namespace": pod.namespace, "pod": pod.name, "uid": pod.uid, **params}
        return Reader(access.for_user(alice), query)

    return begin


@pytest.fixture
def log(pod):
    return log_of(pod.uid)[1]


def test_a_reader_sees_why_there_is_nothing_then_what_is_there_and_then_what_comes(opened, pod):
    reader = opened()
    message = reader.poll()
    [(why, names)] = message["absent"]
    assert (message["lines"], names, "not started" in why) == ([], [pod.name], True)
    assert reader.poll() is None
    _, log = log_of(pod.uid)
    log.feed("stdout", b"one\ntwo\n")
    message = reader.poll()
    assert (texts(message), message["absent"], reader.poll()) == (["one", "two"], [], None)
    log.feed("stderr", b"three\n")
    message = reader.poll()
    assert (texts(message), message["lines"][0][2]) == (["three"], "stderr")


def test_a_reader_who_comes_back_gets_nothing_from_long_ago_and_nothing_less(opened, pod):
    _, log = log_of(pod.uid, entries=[(1, "long ago"), (30, "one")])
    first = opened().poll()
    log.feed("stdout", b"two\n")
    again = opened(since=first["lines"][-1][1]).poll()
    assert (texts(again), again["cut"]) == (["one", "two"], False)


def test_the_next_attempt_follows_the_one_that_ended(opened, pod):
    directory, log = log_of(pod.uid)
    log.feed("stdout", b"first\n")
    log.close()
    (directory / "status.json").write_text("{}")
    reader = opened()
    assert (texts(reader.poll()), reader.poll()) == (["first"], None)
    _, again = log_of(pod.uid, 1)
    again.feed("stdout", b"second\n")
    message = reader.poll()
    assert (texts(message), message["logs"]) == (["second"], {1: [pod.name, pod.uid, "main", 1, True, 0]})
    assert [texts(opened(**params).poll()) for params in ({}, {"attempt": "0"})] == [["first", "second"], ["first"]]


def test_a_log_is_readable_after_its_pod_is_gone(opened, pod, log, client):
    log.feed("stdout", b"remembered\n")
    store.write(Delete(PODS, pod.namespace, pod.name, grace=0))
    assert texts(opened().poll()) == ["remembered"]
    query = f"pod={pod.name}&uid={pod.uid}"
    assert "remembered" in client.get(f"/jobs/default/train/?tab=logs&{query}").content.decode()
    assert body(client.get(f"/jobs/default/train/log/?{query}")) == b"remembered\n"


def test_what_rotation_dropped_is_said(opened, pod):
    _, log = log_of(pod.uid, segment_bytes=2000, count=2)
    reader = opened()
    for word in ("line", "later"):
        for number in range(300):
            log.feed("stdout", f"{word} {number}\n".encode())
        message = reader.poll()
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
        for number, _, stream, content, whole, offset, last, keep, states in message["lines"]:
            key = (number, stream)
            if self.reached.get(key, -1) >= last:
                continue
            self.reached[key] = last
            name = self.open.pop(key, offset)
            before = self.rows.get(name, ([], 0))[0]
            assert keep <= len(before)
            new = [[content]] if isinstance(content, str) else [list(run) for run in content]
            self.rows[name] = (before[:keep] + new, states)
            if not whole:
                self.open[key] = name

    @property
    def lines(self):
        return ["".join(run[0] for run in runs) for runs, _ in self.rows.values()]


def test_a_bar_that_is_redrawn_is_one_line_that_changes(opened, log):
    reader, page = opened(), Page()
    log.feed("stdout", b"start\n")
    page.take(reader.poll())
    for step in range(4):
        log.feed("stderr", f"\repoch 1: {step}/3".encode())
        log.flush()
        page.take(reader.poll())
        assert page.lines == ["start", f"epoch 1: {step}/3"]
    log.feed("stdout", b"between\n")
    log.feed("stderr", b"\r\x1b[Kdone\nnext\n")
    page.take(reader.poll())
    assert page.lines == ["start", "done", "between", "next"]
    assert [states for _, states in page.rows.values()] == [0, 4, 0, 0]
    again = Page()
    again.take(opened().poll())
    assert sorted(again.rows.items()) == sorted(page.rows.items())


def test_of_a_line_that_grows_only_what_is_new_is_sent(opened, log):
    reader, page, sent = opened(), Page(), []
    for _ in range(10):
        log.feed("stdout", b"." * 5000)
        log.flush()
        message = reader.poll()
        sent.append(sum(map(len, texts(message))))
        page.take(message)
    assert page.lines == ["." * 50_000]
    assert max(sent) <= 5000 + RUN_LENGTH


def test_a_reader_who_comes_back_has_lines_that_were_under_way_from_their_beginning(opened, pod, log):
    page = Page()
    log.feed("stdout", b"one")
    log.flush()
    log.feed("stderr", b"between\n")
    page.take(opened().poll())
    (offset,) = page.open.values()
    log.feed("stdout", b" two")
    log.flush()
    since = now_text(clock.milliseconds() + 60_000)  # long after the line began
    message = opened(since=since, open=f"{pod.uid}.main.0.{offset}").poll()
    page.take(message)
    assert (page.lines, {line[2] for line in message["lines"]}) == (["one two", "between"], {"stdout"})


@pytest.mark.parametrize("key", ["{}.main.0.0", "{}.other.7.0", "00000000-0000-4000-8000-000000000000.main.0.0"])
def test_lines_that_are_not_ones_own_are_not_sent_again(opened, pod, key):
    _, log = log_of(pod.uid, entries=[(1, "long ago")])
    log.feed("stdout", b"x")
    found = opened(since=now_text(clock.milliseconds() + 60_000), open=key.format(pod.uid)).poll()
    assert texts(found) == (["long ago"] if key.startswith("{}.main") else [])


def test_what_a_line_has_said_is_listed_on_demand(opened, pod, log, client):
    for piece in (b"\r1%", b"\r\x1b[32m2%\x1b[0m", b"\rdone <b>\nnext\n"):
        log.feed("stderr", piece)
        log.flush()
    row = opened().poll()["lines"][0]
    assert (row[3], row[-1]) == ("done <b>", 2)
    url = f"/jobs/default/train/log/?pod={pod.name}&uid={pod.uid}&line={pod.uid}.main.0.{row[5]}"
    answer = client.get(url)
    assert (answer.content.decode(), answer["Content-Type"]) == ("1%\n2%\ndone <b>\n", "text/plain; charset=utf-8")
    for wrong in (url + "9", url.replace(f"line={pod.uid}", "line=other")):
        assert client.get(wrong).status_code == 404


def test_without_scripts_the_page_has_colours_links_and_earlier_states(log, client):
    log.feed("stdout", b"1%\r\x1b[1;31mno\x1b[0m <b> https://e.x/a\n")
    first = JobPage(client, address="/jobs/default/train/?tab=logs").tree.find(".//*[@data-part='first']")
    assert "".join(first.itertext()).strip() == "no <b> https://e.x/a earlier states"
    assert first.find("span").get("class") == "log-ink-red log-bold"
    link, earlier = first.findall("a")
    assert (link.get("href"), link.get("rel")) == ("https://e.x/a", "noopener noreferrer")
    assert client.get(earlier.get("href")).content == b"1%\nno <b> https://e.x/a\n"


def test_a_log_is_refused_where_one_may_not_read_and_of_a_uid_that_no_pod_has(opened):
    world.make("secret", "Running", namespace="other", pods=[running()])
    secret = store.get(PODS, "other", "secret-worker-0")
    with pytest.raises(Forbidden):
        opened(namespace="other", pod=secret.name, uid=secret.uid).poll()
    with pytest.raises(NotFound):
        opened(pod=secret.name, uid=secret.uid).poll()
    for uid in ("../../..", "x" * 200, "%", "0"):
        with pytest.raises(NotFound):
            opened(uid=uid).poll()


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


# ---- many logs together
@pytest.fixture
def gang(alice, data):
    pods = [running(), running(index=1), running("ps")]
    return Gang(alice, world.make("train", "Running", pods=pods, tasks=(("worker", 2), ("ps", 1))))


def at_once(moved):
    """Let the next look of a reader look up the pods."""
    moved.move(follow.PODS_AGAIN_S)


def test_lines_of_all_pods_or_of_a_task_come_in_the_order_of_their_times(gang):
    gang.prints("worker-0", (1, "a"), (4, "d"))
    gang.prints("worker-1", (2, "b"), (5, "e"))
    log = gang.prints("ps-0", (3, "c"))
    message = gang.read().poll()
    assert texts(message) == ["a", "b", "c", "d", "e"]
    names = [message["logs"][line[0]][0].removeprefix("train-") for line in message["lines"]]
    assert names == ["worker-0", "worker-1", "ps-0", "worker-0", "worker-1"]
    assert message["pods"] == [3, 3]
    server = gang.read("task/ps")
    assert texts(server.poll()) == ["c"]
    log.feed("stdout", b"more\n")
    assert texts(server.poll()) == ["more"]
    assert server.poll() is None
    with pytest.raises(NotFound, match="The task nope has no pods"):
        gang.read("task/nope")


def test_a_pod_that_begins_later_and_one_that_is_restarted_join(gang, moved_clock):
    gang.prints("worker-0", (1, "first attempt"))
    following = gang.read()
    message = following.poll()
    assert texts(message) == ["first attempt"]
    [(why, names)] = message["absent"]
    assert ("not started" in why, sorted(names)) == (True, ["train-ps-0", "train-worker-1"]), "once for all of them"
    again = gang.prints("worker-0", (3, "second attempt"), attempt=1)
    gang.prints("worker-1", (2, "begins later"))
    assert texts(following.poll()) == ["begins later", "second attempt"]
    gang.replace("worker-2", index=2)
    gang.prints("worker-2", (4, "made later"))
    again.feed("stdout", b"goes on\n")
    at_once(moved_clock)
    message = following.poll()
    assert (texts(message), message["pods"]) == (["made later", "goes on"], [4, 4])
    assert following.poll() is None


def test_a_pod_that_is_gone_or_was_replaced_keeps_its_lines_and_the_others_go_on(gang, moved_clock):
    gang.prints("worker-0", (1, "last words"))
    following = gang.read("task/worker")
    assert texts(following.poll()) == ["last words"]
    store.write(Delete(PODS, "default", "train-worker-0", grace=0))
    gang.prints("worker-1").feed("stdout", b"still there\n")
    at_once(moved_clock)
    assert texts(following.poll()) == ["still there"]
    del gang.uid["worker-0"]
    gang.replace("worker-0")
    gang.prints("worker-0", (2, "once more"))
    assert texts(gang.read("task/worker").poll())[:2] == ["last words", "once more"]


@pytest.mark.parametrize("pod", ["*", "task/worker"])
def test_rights_are_asked_for_as_for_one_pod(alice, gang, client, pod):
    secret = Gang(alice, world.make("secret", "Running", namespace="other", pods=[running()]))
    query = QueryDict(f"namespace=other&job=secret&of={secret.job.uid}&pod={pod}")
    for ask in (lambda: secret.read(pod), lambda: follow.may(StreamRequest(access.for_user(alice), query))):
        with pytest.raises(Forbidden):
            ask()
    assert client.get(f"/jobs/other/secret/log/?pod={pod}").status_code == 403


def test_only_so_many_pods_are_followed_the_failed_ones_first_and_that_is_said(alice, data, moved_clock):
    more = [running(index=number) for number in range(follow.MAX_PODS)]
    big = Gang(alice, world.make("big", "Running", pods=[*more, running("last", phase="Failed")]))
    big.prints("last-0", (1, "why it failed"))
    following = big.read()
    message = following.poll()
    assert texts(message) == ["why it failed"]
    assert message["pods"] == [follow.MAX_PODS, follow.MAX_PODS + 1]
    for number in (2, 3):
        big.replace(f"late-{number}", "late", number)
        at_once(moved_clock)
        assert following.poll() == {"pods": [follow.MAX_PODS, follow.MAX_PODS + number]}


def test_the_tail_is_the_end_of_all_logs_together_and_says_what_is_before(gang, monkeypatch):
    monkeypatch.setattr(follow, "TAIL", follow.Limits(5, 10_000))
    gang.prints("worker-0", *((number, f"a{number}") for number in range(0, 20, 2)))
    gang.prints("worker-1", *((number, f"b{number}") for number in range(1, 20, 2)))
    message = gang.read().poll()
    assert texts(message) == ["b15", "a16", "b17", "a18", "b19"]
    assert 0 < message["before"] < sum(extent.end for extent in pods.backend.nodes.log_extents(gang.uid.values()))
    message = gang.read(since=stamp(10)).poll()
    assert (texts(message)[-1], message["cut"]) == ("b19", True), "who comes back hears of the gap"


def line_of(message, text):
    number, _, _, _, _, offset, *_ = next(line for line in message["lines"] if line[3] == text)
    _, uid, container, attempt, *_ = message["logs"][number]
    return f"{uid}.{container}.{attempt}.{offset}"


def test_a_link_shows_its_line_with_what_surrounds_it_and_goes_on_when_the_end_is_near(gang, client):
    log = gang.prints("worker-0", (1, "a"), (3, "c"))
    gang.prints("worker-1", (2, "b"), (4, "d"))
    link = line_of(gang.read().poll(), "b")
    page = JobPage(client, address=f"/jobs/default/train/?tab=logs&pod=*&line={link}").tree
    assert page.find(".//mark[@id='line']").text == "train-worker-1  b"
    reader = gang.read(line=link)
    message = reader.poll()
    assert (texts(message), message["more"]) == (["a", "b", "c", "d"], False)
    log.feed("stdout", b"e\n")
    assert texts(reader.poll()) == ["e"]


def test_a_link_to_a_line_far_before_the_end_shows_it_and_says_that_more_follows(gang, monkeypatch):
    gang.prints("worker-0", *((number / 10, f"line {number}") for number in range(500)))
    link = line_of(gang.read().poll(), "line 100")
    monkeypatch.setattr(follow, "AROUND", follow.Limits(20, 10_000))
    reader = gang.read(line=link)
    message = reader.poll()
    assert texts(message) == [f"line {number}" for number in range(90, 110)]
    assert (message["more"], reader.is_done) == (True, True)
    assert texts(gang.read(line="start").poll())[:2] == ["line 0", "line 1"]


def test_a_link_to_a_line_that_is_not_kept_says_so_and_shows_the_end(gang):
    gang.prints("worker-0", (1, "a"))
    message = gang.read(line=f"{gang.uid['worker-1']}.main.0.0").poll()
    assert ("not kept any more" in message["note"], texts(message)) == (True, ["a"])


@pytest.mark.parametrize("line", ["nonsense", "a.b.c", "uid.main.0.x", "uid.main.-1.0", "uid.main.0." + "9" * 40])
def test_an_address_that_names_no_line_is_refused_with_the_remedy(gang, client, line):
    with pytest.raises(BadRequest, match="copy the link to the line once more"):
        gang.read(line=line)
    assert client.get("/jobs/default/train/", {"tab": "logs", "pod": "*", "line": line}).status_code == 400


def test_the_download_has_each_log_whole_and_says_which_are_missing(gang, client):
    gang.prints("worker-0", (1, "first attempt"))
    gang.prints("worker-0", (2, "second attempt"), attempt=1)
    gang.prints("ps-0", *((number % 60, "x" * 1000) for number in range(2000)))
    files = unpacked(client.get("/jobs/default/train/log/?pod=*"))
    assert files.pop("missing.txt").startswith("train-worker-1: This pod's container has not started yet")
    assert [text for name, text in files.items() if "worker-0" in name] == ["first attempt\n", "second attempt\n"]
    ((name, server),) = [each for each in files.items() if "ps-0" in each[0]]
    assert (name.split("/")[0], len(server)) == ("train-ps-0", 2_002_000)
    only = unpacked(client.get("/jobs/default/train/log/?pod=task/worker&times=1"))
    assert f"{stamp(1)} first attempt\n" in only.values()
    assert not any("ps-0" in name for name in only)


def test_without_javascript_the_tab_offers_each_choice_and_shows_the_end_of_all_logs(gang, client, reads):
    gang.prints("worker-0", (2, "later <b>"))
    gang.prints("ps-0", (1, "first"))
    reads(client, "/jobs/default/train/?tab=logs&pod=* log")


@cases("phases, begins", {
    "several failed: their task": ({"worker": "Running Failed Failed"}, "task/worker"),
    "one failed: that one": ({"worker": "Running Running Failed"}, "train-worker-2"),
    "none failed: the task of one that runs": ({"worker": "Pending Running Running"}, "task/worker"),
    "the only pod of a task": ({"worker": "Running"}, "train-worker-0"),
    "of several tasks that of a pod that runs": ({"worker": "Pending Pending", "ps": "Running"}, "train-ps-0"),
})  # fmt: skip
def test_the_tab_begins_with_what_helps(alice, data, client, phases, begins):
    found = [(task, *each) for task, of_task in phases.items() for each in enumerate(of_task.split())]
    world.make("train", "Running", pods=[running(task, index, phase=phase) for task, index, phase in found])
    page = JobPage(client, address="/jobs/default/train/?tab=logs").tree
    assert page.find(".//*[@id='log']").get("data-pod") == begins


def test_a_living_run_of_which_all_pods_have_ended_is_followed_on(gang, moved_clock):
    gang.prints("worker-0", (1, "done"))
    for name in ("train-worker-0", "train-worker-1"):
        store.write(Patch(PODS, "default", name, {"status": {"phase": "Failed"}}, subresource="status"))
    following = gang.read("task/worker")
    assert read(following) == ["done"]
    assert (following.rests, following.is_done) == (True, False)
    gang.replace("worker-0")
    gang.prints("worker-0", (2, "restarted"))
    at_once(moved_clock)
    assert read(following) == ["restarted"]
    assert not following.rests


def test_pods_of_an_earlier_job_of_the_name_are_not_read(alice, gang):
    gang.prints("worker-0", (1, "of another job"))
    pods_of = [Delete(PODS, "default", f"train-{name}", grace=0) for name in gang.uid]
    store.write(Delete(JOBS, "default", "train"), *pods_of)
    again = Gang(alice, world.make("train", "Running", pods=[running(), running(index=1)]))
    again.prints("worker-0", (2, "ours"))
    assert texts(again.read().poll()) == ["ours"]


def test_of_a_job_whose_page_reads_some_pods_all_are_counted_and_can_be_chosen(alice, client, data):
    """A page of very many pods reads those that matter most, and the ps is not among them."""
    many = timeline.MAX_BARS + 50
    pods = [*(running(index=index, phase="Failed", code=1) for index in range(many)), running("ps")]
    big = Gang(alice, world.make("big", "Running", pods=pods, tasks=(("worker", many), ("ps", 1))))
    big.prints("ps-0", (1, "server"))
    assert big.read().poll()["pods"] == [follow.MAX_PODS, many + 1]
    assert texts(big.read("task/ps").poll()) == ["server"]
    page = client.get("/jobs/default/big/?tab=logs").content.decode()
    assert all(words in page for words in (f"task worker · all {many} pods", f"all {many + 1} pods of the job"))


@pytest.fixture
def one(life, data):
    one, user = life().does("admit, place"), User.objects.get(username="alice")
    about = {"namespace": "default", "job": one.name, "of": one.job.uid, "pod": "*"}
    one.read = lambda **params: Reader(access.for_user(user), about | params)
    return one


def speak(words):
    found = {pod.name: pod.uid for pod in store.find(PODS)}
    for second, (name, uid) in enumerate(sorted(found.items())):
        log_of(uid, entries=[(second, f"{name} {words}")])
    return found


def part(page, name):
    return "".join(page.find(f".//*[@data-part='{name}']").itertext())


def downloaded(browser, page):
    return unpacked(browser.get(page.find(".//*[@id='log']//a[@download]").get("href")))


def test_each_run_has_its_own_logs_together(one, client):
    one.does("run")
    speak("once")
    one.does("wait 60, suspend, wait 600, resume, admit, place, run")
    speak("again")
    assert read(one.read(pod="task/main")) == ["demo-main-0 again", "demo-main-1 again"]
    first = one.read(pod="task/main", run="1")
    assert (read(first), first.is_done) == (["demo-main-0 once", "demo-main-1 once"], True)
    page = JobPage(client, address="/jobs/default/demo/?tab=logs&run=1&pod=task/main").tree
    assert part(page, "first") == "demo-main-0  demo-main-0 once\ndemo-main-1  demo-main-1 once\n"
    assert sorted(downloaded(client, page).values()) == ["demo-main-0 once\n", "demo-main-1 once\n"]


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "before the recorder saw it"])
def test_a_deleted_job_has_the_same_choices_and_says_whose_log_is_not_kept(one, client, is_recorded):
    one.does("run")
    uids = speak("here")
    goes_on = one.read()
    assert len(read(goes_on)) == 2
    one.does("delete" + ", record" * is_recorded)
    following = one.read()
    assert (read(following), following.is_done) == (["demo-main-0 here", "demo-main-1 here"], True)
    one.clock.move(2)
    assert (read(goes_on), goes_on.rests) == ([], True), "who read when it was deleted"
    shutil.rmtree(settings.DATA / "node" / "pods" / uids["demo-main-0"])
    page = JobPage(client, address="/jobs/default/demo/?tab=logs&pod=task/main").tree
    assert page.find(".//select[@name='pod']/option[1]").text == "task main · all 2 pods"
    removed = "demo-main-0: The pod is gone, and its log has been removed."
    assert (part(page, "first"), part(page, "note")) == ("demo-main-1  demo-main-1 here\n", removed)
    assert sorted(downloaded(client, page).values()) == [f"{removed}\n", "demo-main-1 here\n"]


def test_of_a_simulated_pod_that_is_gone_no_log_was_removed(one, client):
    running = {"name": "main", "containerID": "simulated://1", "state": {"running": {"startedAt": one.now()}}}
    for pod in store.find(PODS):
        status = {"status": {"phase": "Running", "containerStatuses": [running]}}
        store.write(Patch(PODS, pod.namespace, pod.name, status, "status"))
    one.does("delete")
    page = JobPage(client, address="/jobs/default/demo/?tab=logs&pod=demo-main-0").tree
    assert "nothing was executed, so there is no output" in part(page, "note")
