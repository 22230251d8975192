"""Logs of many pods together over real files, as the node writes them."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from cluster import access
from cluster.store import Create, Delete, Patch, store
from dashboard.live import StreamRequest
from jobs.logs import follow, pods
from jobs.logs.follow import Reader
from jobs.pages import timeline
from kube.errors import BadRequest, Forbidden, NotFound
from kube.resources import JOBS, PODS
from tests.jobs.logs.written import body, log_of, read, stamp, texts, unpacked
from tests.jobs.pages import world
from tests.tables import cases

T = world.START


@pytest.fixture
def data(tmp_path, settings):
    settings.DATA = tmp_path


def running(task="worker", index=0, **more):
    return {"task": task, "index": index, "scheduled": T, "started": T, **more}


@pytest.fixture
def gang(alice, data):
    """A job of two workers and a server, and the uids of its pods by the ends of their names."""
    pods = [running(), running(index=1), running("ps")]
    job = world.make("train", "Running", pods=pods, tasks=(("worker", 2), ("ps", 1)))
    return job, uids(job)


def uids(job):
    return {pod.name.removeprefix(f"{job.name}-"): pod.uid for pod in store.find(PODS, owner=job.uid)}


def reader(user, job, pod="*", **params):
    asked = {"namespace": job.namespace, "job": job.name, "of": job.uid, "pod": pod, **params}
    return Reader(access.for_user(user), asked)


def at_once(moved):
    """Let the next look of a reader look up the pods."""
    moved.move(follow.PODS_AGAIN_S)


def test_lines_of_all_pods_come_in_the_order_of_their_times(alice, gang):
    job, uid = gang
    log_of(uid["worker-0"], entries=[(1, "a"), (4, "d")])
    log_of(uid["worker-1"], entries=[(2, "b"), (5, "e")])
    log_of(uid["ps-0"], entries=[(3, "c")])
    message = reader(alice, job).look()
    assert texts(message) == ["a", "b", "c", "d", "e"]
    assert [message["logs"][line[0]][0] for line in message["lines"]] == [
        f"train-{name}" for name in ("worker-0", "worker-1", "ps-0", "worker-0", "worker-1")
    ]
    assert message["pods"] == [3, 3]


def test_a_task_alone_is_followed(alice, gang):
    job, uid = gang
    log_of(uid["ps-0"], entries=[(1, "server")])
    _, log = log_of(uid["worker-1"], entries=[(2, "worker")])
    following = reader(alice, job, "task/worker")
    assert texts(following.look()) == ["worker"]
    log.feed("stdout", b"more\n")
    assert texts(following.look()) == ["more"]
    assert following.look() is None


def test_a_pod_that_begins_later_and_one_that_is_restarted_join(alice, gang, moved_clock):
    job, uid = gang
    log_of(uid["worker-0"], entries=[(1, "first attempt")])
    following = reader(alice, job)
    assert texts(following.look()) == ["first attempt"]
    _, again = log_of(uid["worker-0"], 1, entries=[(3, "second attempt")])
    log_of(uid["worker-1"], entries=[(2, "begins later")])
    assert texts(following.look()) == ["begins later", "second attempt"]
    (new,) = store.write(Create(PODS, world.pod_object(job, **running(index=2))))
    log_of(new.uid, entries=[(4, "made later")])
    again.feed("stdout", b"goes on\n")
    at_once(moved_clock)
    message = following.look()
    assert texts(message) == ["made later", "goes on"]
    assert message["pods"] == [4, 4]
    assert following.look() is None


def test_a_pod_that_is_gone_keeps_its_lines_and_the_others_go_on(alice, gang, moved_clock):
    job, uid = gang
    log_of(uid["worker-0"], entries=[(1, "last words")])
    following = reader(alice, job, "task/worker")
    following.look()
    store.write(Delete(PODS, job.namespace, "train-worker-0", grace=0))
    _, log = log_of(uid["worker-1"])
    log.feed("stdout", b"still there\n")
    at_once(moved_clock)
    assert texts(following.look()) == ["still there"]


def test_a_pod_that_was_replaced_within_the_run_is_read_with_the_one_in_its_place(alice, gang):
    job, uid = gang
    log_of(uid["worker-0"], entries=[(1, "it broke")])
    store.write(Delete(PODS, job.namespace, "train-worker-0", grace=0))
    (new,) = store.write(Create(PODS, world.pod_object(job, **running())))
    log_of(new.uid, entries=[(2, "once more")])
    assert texts(reader(alice, job, "task/worker").look()) == ["it broke", "once more"]


@pytest.mark.parametrize("pod", ["*", "task/worker"])
def test_rights_are_asked_for_as_for_one_pod(alice, gang, pod):
    secret = world.make("secret", "Running", namespace="other", pods=[running()])
    with pytest.raises(Forbidden):
        reader(alice, secret, pod)
    query = f"namespace=other&job=secret&of={secret.uid}&pod={pod}"
    with pytest.raises(Forbidden):
        follow.may(StreamRequest(access.for_user(alice), QueryDict(query)))


def test_a_task_without_pods_says_so(alice, gang):
    job, _ = gang
    with pytest.raises(NotFound, match="The task nope has no pods"):
        reader(alice, job, "task/nope")


def test_why_pods_have_no_log_is_said_once_for_all_of_them(alice, gang):
    job, uid = gang
    log_of(uid["ps-0"], entries=[(1, "server")])
    [(why, names)] = reader(alice, job).look()["absent"]
    assert "not started" in why
    assert names == ["train-worker-0", "train-worker-1"]


def test_only_so_many_pods_are_followed_the_failed_ones_first_and_that_is_said(alice, data, moved_clock):
    more = [running(index=number) for number in range(follow.MOST_PODS)]
    job = world.make("big", "Running", pods=[*more, running("last", phase="Failed")])
    log_of(uids(job)["last-0"], entries=[(1, "why it failed")])
    following = reader(alice, job)
    message = following.look()
    assert texts(message) == ["why it failed"]
    assert message["pods"] == [follow.MOST_PODS, follow.MOST_PODS + 1]
    for number in (2, 3):
        store.write(Create(PODS, world.pod_object(job, **running("late", number))))
        at_once(moved_clock)
        assert following.look() == {"pods": [follow.MOST_PODS, follow.MOST_PODS + number]}


def test_the_tail_is_the_end_of_all_logs_together_and_says_what_is_before(alice, gang, monkeypatch):
    job, uid = gang
    monkeypatch.setattr(follow, "TAIL", follow.Limits(5, 10_000))
    log_of(uid["worker-0"], entries=[(number, f"a{number}") for number in range(0, 20, 2)])
    log_of(uid["worker-1"], entries=[(number, f"b{number}") for number in range(1, 20, 2)])
    message = reader(alice, job).look()
    assert texts(message) == ["b15", "a16", "b17", "a18", "b19"]
    kept = sum(extent.end for extent in pods.backend.nodes.log_extents(uid.values()))
    assert 0 < message["before"] < kept


def test_a_reader_who_comes_back_after_long_gets_the_end_and_hears_of_the_gap(alice, gang, monkeypatch):
    job, uid = gang
    monkeypatch.setattr(follow, "TAIL", follow.Limits(5, 10_000))
    log_of(uid["worker-0"], entries=[(number, f"line {number}") for number in range(40)])
    message = reader(alice, job, since=stamp(10)).look()
    assert texts(message)[-1] == "line 39"
    assert message["cut"]


def line_of(message, text):
    """Return how links name a line."""
    number, _, _, _, _, offset, *_ = next(line for line in message["lines"] if line[3] == text)
    _, uid, container, attempt, *_ = message["logs"][number]
    return f"{uid}.{container}.{attempt}.{offset}"


def test_a_link_shows_its_line_with_what_surrounds_it_and_goes_on_when_the_end_is_near(alice, gang):
    job, uid = gang
    _, log = log_of(uid["worker-0"], entries=[(1, "a"), (3, "c")])
    log_of(uid["worker-1"], entries=[(2, "b"), (4, "d")])
    link = line_of(reader(alice, job).look(), "b")
    opened = reader(alice, job, line=link)
    message = opened.look()
    assert texts(message) == ["a", "b", "c", "d"]
    assert not message["more"]
    log.feed("stdout", b"e\n")
    assert texts(opened.look()) == ["e"]


def test_a_link_to_a_line_far_before_the_end_shows_it_and_says_that_more_follows(alice, gang, monkeypatch):
    job, uid = gang
    log_of(uid["worker-0"], entries=[(number / 10, f"line {number}") for number in range(500)])
    link = line_of(reader(alice, job).look(), "line 100")
    monkeypatch.setattr(follow, "AROUND", follow.Limits(20, 10_000))
    opened = reader(alice, job, line=link)
    message = opened.look()
    assert texts(message) == [f"line {number}" for number in range(90, 110)]
    assert message["more"]
    assert opened.is_done
    assert texts(reader(alice, job, line="start").look())[:2] == ["line 0", "line 1"]


def test_a_link_to_a_line_that_is_not_kept_says_so_and_shows_the_end(alice, gang):
    job, uid = gang
    log_of(uid["worker-0"], entries=[(1, "a")])
    message = reader(alice, job, line=f"{uid['worker-1']}.main.0.0").look()
    assert "not kept any more" in message["note"]
    assert texts(message) == ["a"]


@pytest.mark.parametrize("line", ["nonsense", "a.b.c", "uid.main.0.x", "uid.main.-1.0", "uid.main.0." + "9" * 40])
def test_an_address_that_names_no_line_is_refused_with_the_remedy(alice, gang, client, line):
    job, _ = gang
    with pytest.raises(BadRequest, match="copy the link to the line once more"):
        reader(alice, job, line=line)
    assert client.get("/jobs/default/train/", {"tab": "logs", "pod": "*", "line": line}).status_code == 400


def test_the_download_has_each_log_whole_and_says_which_are_missing(gang, client):
    _, uid = gang
    log_of(uid["worker-0"], entries=[(1, "first attempt")])
    log_of(uid["worker-0"], 1, entries=[(2, "second attempt")])
    log_of(uid["ps-0"], entries=[(number % 60, "x" * 1000) for number in range(2000)])
    files = unpacked(client.get("/jobs/default/train/log/?pod=*"))
    assert files.pop("missing.txt").startswith("train-worker-1: This pod's container has not started yet")
    assert {name.split("/")[0]: len(text) for name, text in files.items() if "ps-0" in name} == {
        "train-ps-0": 2_002_000
    }
    assert [text for name, text in files.items() if "worker-0" in name] == ["first attempt\n", "second attempt\n"]
    only = unpacked(client.get("/jobs/default/train/log/?pod=task/worker&times=1"))
    assert f"{stamp(1)} first attempt\n" in only.values()
    assert not any("ps-0" in name for name in only)


def test_a_log_that_goes_on_ends_in_the_download_where_it_ended_when_it_was_asked_for(alice, gang, client):
    _, uid = gang
    _, log = log_of(uid["worker-0"], entries=[(1, "before")])
    answer = client.get(f"/jobs/default/train/log/?pod=train-worker-0&uid={uid['worker-0']}")
    asked = body(answer)
    log.feed("stdout", b"after\n")
    assert asked == b"before\n"


def test_the_download_is_refused_where_one_may_not_read(alice, gang, client):
    world.make("secret", "Running", namespace="other", pods=[running()])
    assert client.get("/jobs/other/secret/log/?pod=*").status_code == 403


def options(page):
    return {option.get("value"): option.text for option in page.findall(".//select[@name='pod']/option")}


def test_the_tab_offers_all_pods_each_task_and_each_pod(alice, gang, client, parse):
    page = parse(client.get("/jobs/default/train/?tab=logs"))
    assert options(page) == {
        "*": "all 3 pods of the job",
        "task/worker": "task worker · all 2 pods",
        "train-ps-0": "train-ps-0",
        "train-worker-0": "train-worker-0",
        "train-worker-1": "train-worker-1",
    }


def test_without_javascript_the_tab_shows_the_end_of_all_logs_with_the_pods_names(gang, client, parse):
    _, uid = gang
    log_of(uid["worker-0"], entries=[(2, "later <b>")])
    log_of(uid["ps-0"], entries=[(1, "first")])
    page = parse(client.get("/jobs/default/train/?tab=logs&pod=*"))
    shown = "".join(page.find(".//*[@data-part='first']").itertext())
    assert shown == "train-ps-0  first\ntrain-worker-0  later <b>\n"
    assert "train-worker-1: This pod's container has not started yet" in "".join(
        page.find(".//*[@data-part='note']").itertext()
    )


def test_without_javascript_a_link_marks_its_line(alice, gang, client, parse):
    job, uid = gang
    log_of(uid["worker-0"], entries=[(1, "a"), (2, "b")])
    link = line_of(reader(alice, job).look(), "b")
    page = parse(client.get("/jobs/default/train/", {"tab": "logs", "pod": "*", "line": link}))
    assert page.find(".//mark[@id='line']").text == "train-worker-0  b"


@cases("phases, begins", {
    "several failed: their task": (["Running", "Failed", "Failed"], "task/worker"),
    "one failed: that one": (["Running", "Running", "Failed"], "train-worker-2"),
    "none failed: the task of one that runs": (["Pending", "Running", "Running"], "task/worker"),
    "the only pod of a task": (["Running"], "train-worker-0"),
})  # fmt: skip
def test_the_tab_begins_with_what_helps(alice, data, client, parse, phases, begins):
    world.make("train", "Running", pods=[running(index=index, phase=phase) for index, phase in enumerate(phases)])
    page = parse(client.get("/jobs/default/train/?tab=logs"))
    assert page.find(".//*[@id='log']").get("data-pod") == begins


def test_of_several_tasks_the_tab_begins_with_that_of_a_pod_that_runs(alice, data, client, parse):
    pods = [running(index=0, phase="Pending"), running(index=1, phase="Pending"), running(task="ps")]
    world.make("train", "Running", pods=pods)
    page = parse(client.get("/jobs/default/train/?tab=logs"))
    assert page.find(".//*[@id='log']").get("data-pod") == "train-ps-0"


def test_a_living_run_of_which_all_pods_have_ended_is_followed_on(alice, gang, moved_clock):
    job, uid = gang
    log_of(uid["worker-0"], entries=[(1, "done")])
    for name in ("train-worker-0", "train-worker-1"):
        store.write(Patch(PODS, job.namespace, name, {"status": {"phase": "Failed"}}, subresource="status"))
    following = reader(alice, job, "task/worker")
    assert read(following) == ["done"]
    assert following.rests
    assert not following.is_done
    store.write(Delete(PODS, job.namespace, "train-worker-0", grace=0))
    (new,) = store.write(Create(PODS, world.pod_object(job, **running())))
    log_of(new.uid, entries=[(2, "restarted")])
    at_once(moved_clock)
    assert read(following) == ["restarted"]
    assert not following.rests


def test_pods_of_an_earlier_job_of_the_name_are_not_read(alice, gang):
    job, uid = gang
    log_of(uid["worker-0"], entries=[(1, "of another job")])
    store.write(
        Delete(JOBS, job.namespace, job.name), *(Delete(PODS, job.namespace, f"train-{name}", grace=0) for name in uid)
    )
    again = world.make("train", "Running", pods=[running(), running(index=1)])
    log_of(uids(again)["worker-0"], entries=[(2, "ours")])
    assert texts(reader(alice, again).look()) == ["ours"]


def test_of_a_job_whose_page_reads_some_pods_all_are_counted_and_can_be_chosen(alice, client, data):
    """A page of very many pods reads those that matter most, and the ps is not among them."""
    many = timeline.MOST_BARS + 50
    workers = [running(index=index, phase="Failed", code=1) for index in range(many)]
    job = world.make("big", "Running", pods=[*workers, running("ps")], tasks=(("worker", many), ("ps", 1)))
    log_of(uids(job)["ps-0"], entries=[(1, "server")])
    assert reader(alice, job).look()["pods"] == [follow.MOST_PODS, many + 1]
    assert texts(reader(alice, job, "task/ps").look()) == ["server"]
    page = client.get(f"/jobs/{job.namespace}/big/?tab=logs").content.decode()
    assert f"task worker · all {many} pods" in page
    assert f"all {many + 1} pods of the job" in page
