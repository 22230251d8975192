"""Logs of earlier runs and of jobs that were deleted, as long as they are kept."""

from __future__ import annotations

import shutil

import pytest
from django.conf import settings

from cluster import access
from cluster.bootstrap import bootstrap
from cluster.store import Patch, store
from jobs.logs.follow import Reader
from kube.resources import PODS
from tests.jobs.history.lives import Life
from tests.jobs.logs.written import log_of, read, unpacked


@pytest.fixture
def life(db, moved_clock, tmp_path, settings):
    settings.DATA = tmp_path
    bootstrap()
    return Life(moved_clock)


@pytest.fixture
def alice(life, person, client):
    user = person("alice")
    client.force_login(user)
    return user


def speak(words):
    """Let each pod that there is print its name with these words."""
    found = {pod.name: pod.uid for pod in store.find(PODS)}
    for second, (name, uid) in enumerate(sorted(found.items())):
        log_of(uid, entries=[(second, f"{name} {words}")])
    return found


def reader(user, life, **params):
    asked = {"namespace": "default", "job": life.name, "of": life.job.uid, "pod": "*", **params}
    return Reader(access.for_user(user), asked)


def twice(life):
    """Let a job run, be suspended and run again, with words of each run."""
    life.admit().place().run()
    speak("once")
    life.passes(60).suspend().passes(600).resume().admit().place().run()
    speak("again")
    return life


def note(page):
    return "".join(page.find(".//*[@data-part='note']").itertext())


def test_each_run_has_its_own_logs_together(life, alice, client, parse):
    twice(life)
    assert read(reader(alice, life, pod="task/main")) == ["demo-main-0 again", "demo-main-1 again"]
    first = reader(alice, life, pod="task/main", run="1")
    assert read(first) == ["demo-main-0 once", "demo-main-1 once"]
    assert first.is_done
    page = parse(client.get("/jobs/default/demo/?tab=logs&run=1&pod=task/main"))
    shown = page.find(".//*[@data-part='first']").text
    assert shown == "demo-main-0  demo-main-0 once\ndemo-main-1  demo-main-1 once\n"
    link = page.find(".//*[@id='log']//a[@download]").get("href")
    assert sorted(unpacked(client.get(link)).values()) == ["demo-main-0 once\n", "demo-main-1 once\n"]


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "before the recorder saw it"])
def test_a_deleted_job_has_the_same_choices_and_says_whose_log_is_not_kept(life, alice, client, parse, is_recorded):
    life.admit().place().run()
    kept = speak("here")
    life.delete()
    if is_recorded:
        life.record()
    following = reader(alice, life)
    assert read(following) == ["demo-main-0 here", "demo-main-1 here"]
    assert following.is_done
    shutil.rmtree(settings.DATA / "node" / "pods" / kept["demo-main-0"])
    page = parse(client.get("/jobs/default/demo/?tab=logs&pod=task/main"))
    assert page.find(".//select[@name='pod']/option[1]").text == "task main · all 2 pods"
    assert page.find(".//*[@data-part='first']").text == "demo-main-1  demo-main-1 here\n"
    assert note(page) == "demo-main-0: The pod is gone, and its log has been removed."
    files = unpacked(client.get(page.find(".//*[@id='log']//a[@download]").get("href")))
    assert files.pop("missing.txt") == "demo-main-0: The pod is gone, and its log has been removed.\n"
    assert list(files.values()) == ["demo-main-1 here\n"]


def test_of_a_simulated_pod_that_is_gone_no_log_was_removed(life, alice, client, parse):
    life.admit().place()
    running = {"name": "main", "containerID": "simulated://1", "state": {"running": {"startedAt": life.now()}}}
    for pod in store.find(PODS):
        status = {"status": {"phase": "Running", "containerStatuses": [running]}}
        store.write(Patch(PODS, pod.namespace, pod.name, status, "status"))
    life.delete()
    page = parse(client.get("/jobs/default/demo/?tab=logs&pod=demo-main-0"))
    assert "nothing was executed, so there is no output" in note(page)


def test_a_reader_goes_on_when_the_job_is_deleted_while_he_reads(life, alice):
    life.admit().place().run()
    speak("here")
    following = reader(alice, life)
    assert len(read(following)) == 2
    life.delete()
    life.passes(2)
    assert read(following) == []
    assert following.rests
