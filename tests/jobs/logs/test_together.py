"""Logs of many pods together over real files, also those of earlier runs and of jobs that were deleted."""

from __future__ import annotations

import shutil

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.http import QueryDict

from cluster import access
from cluster.store import Delete, Patch, store
from dashboard.live import StreamRequest
from jobs.logs import follow, pods
from jobs.logs.follow import Reader
from jobs.pages import timeline
from kube.errors import BadRequest, Forbidden, NotFound
from kube.resources import JOBS, PODS
from tests.jobs.logs.written import Gang, log_of, read, running, stamp, texts, unpacked
from tests.jobs.pages import world
from tests.tables import cases

T = world.START


@pytest.fixture
def data(tmp_path, settings):
    settings.DATA = tmp_path


@pytest.fixture
def gang(alice, data):
    """A job of two workers and a server."""
    pods = [running(), running(index=1), running("ps")]
    return Gang(alice, world.make("train", "Running", pods=pods, tasks=(("worker", 2), ("ps", 1))))


def at_once(moved):
    """Let the next look of a reader look up the pods."""
    moved.move(follow.PODS_AGAIN_S)


def test_lines_of_all_pods_or_of_a_task_come_in_the_order_of_their_times(gang):
    gang.prints("worker-0", (1, "a"), (4, "d"))
    gang.prints("worker-1", (2, "b"), (5, "e"))
    log = gang.prints("ps-0", (3, "c"))
    message = gang.read().look()
    assert texts(message) == ["a", "b", "c", "d", "e"]
    names = [message["logs"][line[0]][0].removeprefix("train-") for line in message["lines"]]
    assert names == ["worker-0", "worker-1", "ps-0", "worker-0", "worker-1"]
    assert message["pods"] == [3, 3]
    server = gang.read("task/ps")
    assert texts(server.look()) == ["c"]
    log.feed("stdout", b"more\n")
    assert texts(server.look()) == ["more"]
    assert server.look() is None
    with pytest.raises(NotFound, match="The task nope has no pods"):
        gang.read("task/nope")


def test_a_pod_that_begins_later_and_one_that_is_restarted_join(gang, moved_clock):
    gang.prints("worker-0", (1, "first attempt"))
    following = gang.read()
    message = following.look()
    assert texts(message) == ["first attempt"]
    [(why, names)] = message["absent"]
    assert ("not started" in why, sorted(names)) == (True, ["train-ps-0", "train-worker-1"]), "once for all of them"
    again = gang.prints("worker-0", (3, "second attempt"), attempt=1)
    gang.prints("worker-1", (2, "begins later"))
    assert texts(following.look()) == ["begins later", "second attempt"]
    gang.replace("worker-2", index=2)
    gang.prints("worker-2", (4, "made later"))
    again.feed("stdout", b"goes on\n")
    at_once(moved_clock)
    message = following.look()
    assert (texts(message), message["pods"]) == (["made later", "goes on"], [4, 4])
    assert following.look() is None


def test_a_pod_that_is_gone_or_was_replaced_keeps_its_lines_and_the_others_go_on(gang, moved_clock):
    gang.prints("worker-0", (1, "last words"))
    following = gang.read("task/worker")
    assert texts(following.look()) == ["last words"]
    store.write(Delete(PODS, "default", "train-worker-0", grace=0))
    gang.prints("worker-1").feed("stdout", b"still there\n")
    at_once(moved_clock)
    assert texts(following.look()) == ["still there"]
    del gang.uid["worker-0"]
    gang.replace("worker-0")
    gang.prints("worker-0", (2, "once more"))
    assert texts(gang.read("task/worker").look())[:2] == ["last words", "once more"]


@pytest.mark.parametrize("pod", ["*", "task/worker"])
def test_rights_are_asked_for_as_for_one_pod(alice, gang, client, pod):
    secret = Gang(alice, world.make("secret", "Running", namespace="other", pods=[running()]))
    query = QueryDict(f"namespace=other&job=secret&of={secret.job.uid}&pod={pod}")
    for ask in (lambda: secret.read(pod), lambda: follow.may(StreamRequest(access.for_user(alice), query))):
        with pytest.raises(Forbidden):
            ask()
    assert client.get(f"/jobs/other/secret/log/?pod={pod}").status_code == 403


def test_only_so_many_pods_are_followed_the_failed_ones_first_and_that_is_said(alice, data, moved_clock):
    more = [running(index=number) for number in range(follow.MOST_PODS)]
    big = Gang(alice, world.make("big", "Running", pods=[*more, running("last", phase="Failed")]))
    big.prints("last-0", (1, "why it failed"))
    following = big.read()
    message = following.look()
    assert texts(message) == ["why it failed"]
    assert message["pods"] == [follow.MOST_PODS, follow.MOST_PODS + 1]
    for number in (2, 3):
        big.replace(f"late-{number}", "late", number)
        at_once(moved_clock)
        assert following.look() == {"pods": [follow.MOST_PODS, follow.MOST_PODS + number]}


def test_the_tail_is_the_end_of_all_logs_together_and_says_what_is_before(gang, monkeypatch):
    monkeypatch.setattr(follow, "TAIL", follow.Limits(5, 10_000))
    gang.prints("worker-0", *((number, f"a{number}") for number in range(0, 20, 2)))
    gang.prints("worker-1", *((number, f"b{number}") for number in range(1, 20, 2)))
    message = gang.read().look()
    assert texts(message) == ["b15", "a16", "b17", "a18", "b19"]
    assert 0 < message["before"] < sum(extent.end for extent in pods.backend.nodes.log_extents(gang.uid.values()))
    message = gang.read(since=stamp(10)).look()
    assert (texts(message)[-1], message["cut"]) == ("b19", True), "who comes back hears of the gap"


def line_of(message, text):
    """Return how links name a line."""
    number, _, _, _, _, offset, *_ = next(line for line in message["lines"] if line[3] == text)
    _, uid, container, attempt, *_ = message["logs"][number]
    return f"{uid}.{container}.{attempt}.{offset}"


def test_a_link_shows_its_line_with_what_surrounds_it_and_goes_on_when_the_end_is_near(gang, client, parse):
    log = gang.prints("worker-0", (1, "a"), (3, "c"))
    gang.prints("worker-1", (2, "b"), (4, "d"))
    link = line_of(gang.read().look(), "b")
    page = parse(client.get("/jobs/default/train/", {"tab": "logs", "pod": "*", "line": link}))
    assert page.find(".//mark[@id='line']").text == "train-worker-1  b"
    opened = gang.read(line=link)
    message = opened.look()
    assert (texts(message), message["more"]) == (["a", "b", "c", "d"], False)
    log.feed("stdout", b"e\n")
    assert texts(opened.look()) == ["e"]


def test_a_link_to_a_line_far_before_the_end_shows_it_and_says_that_more_follows(gang, monkeypatch):
    gang.prints("worker-0", *((number / 10, f"line {number}") for number in range(500)))
    link = line_of(gang.read().look(), "line 100")
    monkeypatch.setattr(follow, "AROUND", follow.Limits(20, 10_000))
    opened = gang.read(line=link)
    message = opened.look()
    assert texts(message) == [f"line {number}" for number in range(90, 110)]
    assert (message["more"], opened.is_done) == (True, True)
    assert texts(gang.read(line="start").look())[:2] == ["line 0", "line 1"]


def test_a_link_to_a_line_that_is_not_kept_says_so_and_shows_the_end(gang):
    gang.prints("worker-0", (1, "a"))
    message = gang.read(line=f"{gang.uid['worker-1']}.main.0.0").look()
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
def test_the_tab_begins_with_what_helps(alice, data, client, parse, phases, begins):
    found = [(task, *each) for task, of_task in phases.items() for each in enumerate(of_task.split())]
    world.make("train", "Running", pods=[running(task, index, phase=phase) for task, index, phase in found])
    page = parse(client.get("/jobs/default/train/?tab=logs"))
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
    assert texts(again.read().look()) == ["ours"]


def test_of_a_job_whose_page_reads_some_pods_all_are_counted_and_can_be_chosen(alice, client, data):
    """A page of very many pods reads those that matter most, and the ps is not among them."""
    many = timeline.MOST_BARS + 50
    pods = [*(running(index=index, phase="Failed", code=1) for index in range(many)), running("ps")]
    big = Gang(alice, world.make("big", "Running", pods=pods, tasks=(("worker", many), ("ps", 1))))
    big.prints("ps-0", (1, "server"))
    assert big.read().look()["pods"] == [follow.MOST_PODS, many + 1]
    assert texts(big.read("task/ps").look()) == ["server"]
    page = client.get("/jobs/default/big/?tab=logs").content.decode()
    assert all(words in page for words in (f"task worker · all {many} pods", f"all {many + 1} pods of the job"))


@pytest.fixture
def one(life, data):
    """A job that has its life, and somebody who reads its logs."""
    one, user = life().does("admit, place"), User.objects.get(username="alice")
    about = {"namespace": "default", "job": one.name, "of": one.job.uid, "pod": "*"}
    one.read = lambda **params: Reader(access.for_user(user), about | params)
    return one


def speak(words):
    """Let each pod that there is print its name with these words."""
    found = {pod.name: pod.uid for pod in store.find(PODS)}
    for second, (name, uid) in enumerate(sorted(found.items())):
        log_of(uid, entries=[(second, f"{name} {words}")])
    return found


def part(page, name):
    return "".join(page.find(f".//*[@data-part='{name}']").itertext())


def downloaded(browser, page):
    return unpacked(browser.get(page.find(".//*[@id='log']//a[@download]").get("href")))


def test_each_run_has_its_own_logs_together(one, client, parse):
    one.does("run")
    speak("once")
    one.does("wait 60, suspend, wait 600, resume, admit, place, run")
    speak("again")
    assert read(one.read(pod="task/main")) == ["demo-main-0 again", "demo-main-1 again"]
    first = one.read(pod="task/main", run="1")
    assert (read(first), first.is_done) == (["demo-main-0 once", "demo-main-1 once"], True)
    page = parse(client.get("/jobs/default/demo/?tab=logs&run=1&pod=task/main"))
    assert part(page, "first") == "demo-main-0  demo-main-0 once\ndemo-main-1  demo-main-1 once\n"
    assert sorted(downloaded(client, page).values()) == ["demo-main-0 once\n", "demo-main-1 once\n"]


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "before the recorder saw it"])
def test_a_deleted_job_has_the_same_choices_and_says_whose_log_is_not_kept(one, client, parse, is_recorded):
    one.does("run")
    kept = speak("here")
    goes_on = one.read()
    assert len(read(goes_on)) == 2
    one.does("delete" + ", record" * is_recorded)
    following = one.read()
    assert (read(following), following.is_done) == (["demo-main-0 here", "demo-main-1 here"], True)
    one.clock.move(2)
    assert (read(goes_on), goes_on.rests) == ([], True), "who read when it was deleted"
    shutil.rmtree(settings.DATA / "node" / "pods" / kept["demo-main-0"])
    page = parse(client.get("/jobs/default/demo/?tab=logs&pod=task/main"))
    assert page.find(".//select[@name='pod']/option[1]").text == "task main · all 2 pods"
    removed = "demo-main-0: The pod is gone, and its log has been removed."
    assert (part(page, "first"), part(page, "note")) == ("demo-main-1  demo-main-1 here\n", removed)
    assert sorted(downloaded(client, page).values()) == [f"{removed}\n", "demo-main-1 here\n"]


def test_of_a_simulated_pod_that_is_gone_no_log_was_removed(one, client, parse):
    running = {"name": "main", "containerID": "simulated://1", "state": {"running": {"startedAt": one.now()}}}
    for pod in store.find(PODS):
        status = {"status": {"phase": "Running", "containerStatuses": [running]}}
        store.write(Patch(PODS, pod.namespace, pod.name, status, "status"))
    one.does("delete")
    page = parse(client.get("/jobs/default/demo/?tab=logs&pod=demo-main-0"))
    assert "nothing was executed, so there is no output" in part(page, "note")
