"""Logs of earlier runs and of jobs that were deleted, as long as they are kept."""

from __future__ import annotations

import shutil

import pytest
from django.conf import settings

from cluster import access
from cluster.store import Patch, store
from jobs.logs.follow import Reader
from kube.resources import PODS
from tests.jobs.logs.written import log_of, read, unpacked


@pytest.fixture
def reader(life, person, client, tmp_path, settings):
    """Somebody who reads the logs of a job that has its life."""
    settings.DATA = tmp_path
    user, one = person("alice"), life()
    client.force_login(user)

    def read_of(**params):
        asked = {"namespace": "default", "job": one.name, "of": one.job.uid, "pod": "*", **params}
        return Reader(access.for_user(user), asked)

    read_of.life = one
    return read_of


def speak(words):
    """Let each pod that there is print its name with these words."""
    found = {pod.name: pod.uid for pod in store.find(PODS)}
    for second, (name, uid) in enumerate(sorted(found.items())):
        log_of(uid, entries=[(second, f"{name} {words}")])
    return found


def note(page):
    return "".join(page.find(".//*[@data-part='note']").itertext())


def shown(page):
    return "".join(page.find(".//*[@data-part='first']").itertext())


def downloaded(browser, page):
    return unpacked(browser.get(page.find(".//*[@id='log']//a[@download]").get("href")))


def test_each_run_has_its_own_logs_together(reader, client, parse):
    life = reader.life.admit().place().run()
    speak("once")
    life.passes(60).suspend().passes(600).resume().admit().place().run()
    speak("again")
    assert read(reader(pod="task/main")) == ["demo-main-0 again", "demo-main-1 again"]
    first = reader(pod="task/main", run="1")
    assert read(first) == ["demo-main-0 once", "demo-main-1 once"]
    assert first.is_done
    page = parse(client.get("/jobs/default/demo/?tab=logs&run=1&pod=task/main"))
    assert shown(page) == "demo-main-0  demo-main-0 once\ndemo-main-1  demo-main-1 once\n"
    assert sorted(downloaded(client, page).values()) == ["demo-main-0 once\n", "demo-main-1 once\n"]


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "before the recorder saw it"])
def test_a_deleted_job_has_the_same_choices_and_says_whose_log_is_not_kept(reader, client, parse, is_recorded):
    life = reader.life.admit().place().run()
    kept = speak("here")
    goes_on = reader()
    assert len(read(goes_on)) == 2
    life.delete()
    if is_recorded:
        life.record()
    following = reader()
    assert read(following) == ["demo-main-0 here", "demo-main-1 here"]
    assert following.is_done
    life.passes(2)
    assert (read(goes_on), goes_on.rests) == ([], True), "who read when it was deleted"
    shutil.rmtree(settings.DATA / "node" / "pods" / kept["demo-main-0"])
    page = parse(client.get("/jobs/default/demo/?tab=logs&pod=task/main"))
    assert page.find(".//select[@name='pod']/option[1]").text == "task main · all 2 pods"
    assert shown(page) == "demo-main-1  demo-main-1 here\n"
    removed = "demo-main-0: The pod is gone, and its log has been removed."
    assert note(page) == removed
    files = downloaded(client, page)
    assert files.pop("missing.txt") == f"{removed}\n"
    assert list(files.values()) == ["demo-main-1 here\n"]


def test_of_a_simulated_pod_that_is_gone_no_log_was_removed(reader, client, parse):
    life = reader.life.admit().place()
    running = {"name": "main", "containerID": "simulated://1", "state": {"running": {"startedAt": life.now()}}}
    for pod in store.find(PODS):
        status = {"status": {"phase": "Running", "containerStatuses": [running]}}
        store.write(Patch(PODS, pod.namespace, pod.name, status, "status"))
    life.delete()
    page = parse(client.get("/jobs/default/demo/?tab=logs&pod=demo-main-0"))
    assert "nothing was executed, so there is no output" in note(page)
