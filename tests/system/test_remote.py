"""A system that shows another one: its mirror, its changes, its logs, and what it says when the other is away."""

import itertools
import json
import subprocess
import sys

import pytest

from cluster.remote.mirroring.kinds import KINDS
from kube.resources import COMMANDS, JOBS, PODS
from proof.harness.waiting import until
from proof.systems.system import PROJECT, running
from proof.systems.work import COMPLETED, Person, held, job, problems, shell
from tests.system.pair import here, kubeconfig, person, phases, strip, there

__all__ = ["here", "kubeconfig", "person", "there"]  # fixtures
pytestmark = [pytest.mark.system, pytest.mark.clusters]


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The cluster with Volcano: controllers, scheduler and an agent of its own."""
    with running(tmp_path_factory.mktemp("first") / "data") as started:
        yield started


def third(folder, kubeconfig, **options):
    return running(folder / "data", VOLCANO_UI_KUBECONFIG=str(kubeconfig), **options)


@pytest.fixture(scope="module")
def second(first, kubeconfig, tmp_path_factory):
    """The system whose pages are tried."""
    with running(tmp_path_factory.mktemp("second") / "data", VOLCANO_UI_KUBECONFIG=str(kubeconfig)) as started:
        yield started


def same(one, other):
    """Whether two watchers see the same objects of all mirrored kinds."""

    def versions(watcher, kind):
        return {(stored.key, stored.uid, stored.version) for stored in watcher.store.find(kind)}

    return all(versions(one, kind) == versions(other, kind) for kind in KINDS if kind.id != "configmaps")


def test_runs_neither_agent_nor_scheduler_nor_api_and_every_page_but_that_of_its_own_answers(second, person):
    assert set(second.children()) == {"redis", "web", "controllers", "beat", "mirror"}
    for page in ("/", "/jobs/", "/jobs/new/", "/queues/", "/nodes/", "/events/", "/audit/", "/access/"):
        answer = person.get(page)
        assert (answer.status_code, "/connect/" in answer.text) == (200, False), (page, answer.text[:300])
    assert person.get("/connect/").status_code == 404


def test_job_from_the_form_runs_there_and_is_seen_here(person, here, there, go, tmp_path):
    script = f"echo begun; until [ -e {tmp_path / 'out' / 'go'} ]; do sleep 0.05; done; echo done"
    person.create(job("seen", shell(script, sees=tmp_path / "out", replicas=2)))
    assert here.job("seen"), "who wrote it reads it at once"
    here.reaches("seen", "Running")

    def log(pod):
        answer = person.get("/jobs/default/seen/log/", pod=pod)
        return answer.status_code, answer.content

    until(lambda: log("seen-main-1") == (200, b"begun\n"), what=lambda: log("seen-main-1"))
    go.touch()
    here.reaches("seen", "Completed")
    assert log("seen-main-0") == (200, b"begun\ndone\n")
    assert "begun\ndone\n" in person.get("/jobs/default/seen/", tab="logs", pod="seen-main-0").text
    assert phases(here, "seen") == phases(there, "seen") == ["Pending", "Running", "Completed"]
    assert there.phase("seen") == "Completed"
    assert COMPLETED in person.get("/jobs/default/seen/").text
    assert strip(person) == "volcano-ui live"


def test_what_is_deleted_there_goes_here_and_the_other_way_round(first, person, here, there, tmp_path):
    for name in ("goes-there", "goes-here", "many-0", "many-1", "many-2"):
        person.create(job(name, held(tmp_path / "out" / name, terminationGracePeriodSeconds=0)))
    for name in ("goes-there", "goes-here"):
        here.reaches(name, "Running")
    with Person(first) as other:
        other.post("/jobs/default/goes-there/delete/")
    until(lambda: here.job("goes-there") is None, what="the end of the job here")
    assert person.post("/jobs/default/goes-here/delete/").status_code == 302
    page = person.post("/jobs/-/operations/", action="delete", which="all", q="many-").headers["location"]
    assert person.post(f"{page}confirm/").status_code == 302
    until(lambda: "3 of 3 jobs have a result" in person.get(page).text, what="the operation's end")
    for watcher, text in itertools.product((here, there), ("goes-here", "many-")):
        until(lambda w=watcher, t=text: not w.store.find(JOBS, text=t), what=f"the end of {text}")
    until(lambda: not here.store.find(PODS, text="goes-"), what="the end of their pods")
    assert "goes-there" in person.get("/jobs/default/goes-there/").text, "history keeps it"


def test_job_is_suspended_and_resumed(person, here, there, go):
    person.create(job("paused", held(go, terminationGracePeriodSeconds=0)))
    here.reaches("paused", "Running")
    person.post("/jobs/default/paused/suspend/")
    here.reaches("paused", "Aborted")
    go.touch()
    person.post("/jobs/default/paused/resume/")
    here.reaches("paused", "Completed")
    commands = [each for each in there.everything() if each.resource == COMMANDS.id and each.verb == "ADDED"]
    assert [each.object["action"] for each in commands[-2:]] == ["AbortJob", "ResumeJob"]


def test_sweep_is_made_whole_or_not_at_all(person, here, there):
    def sweep(name):
        text = json.dumps(job(name, shell("echo {{number}}")))
        return person.post("/sweeps/-/new/", text=text, do="submit", **{"grid-number": "1, 2, 3"})

    def names(watcher, text):
        return sorted(stored.name for stored in watcher.store.find(JOBS, text=text))

    made = sweep("whole")
    assert made.status_code == 302, problems(made)
    whole = names(there, "whole")
    assert len(whole) == 3
    taken = whole[1].replace("whole", "partial")
    person.create(job(taken, shell("true")))
    refused = sweep("partial")
    assert (refused.status_code, "already exists" in refused.text) == (409, True)
    for watcher in (here, there):
        until(lambda watcher=watcher: names(watcher, "partial") == [taken], what="only what was there before")


def test_refusal_of_the_cluster_is_shown_and_nothing_is_stored_but_the_audit_of_what_was_done(
    first, person, here, there
):
    def refused(obj, words):
        answer = person.submit(obj)
        assert (answer.status_code, words in problems(answer)) == (422, True), problems(answer)

    refused(job("refused", shell("true"), queue="nowhere"), "nowhere")
    assert (here.job("refused"), there.job("refused")) == (None, None)
    person.create(job("twice", shell("true")))
    with Person(first) as other:
        for each in (person, other):
            assert "twice" in each.get("/audit/").text
    refused(job("twice", shell("true")), "already exists")


def test_away_is_said_and_afterwards_all_is_as_in_a_fresh_list(first, person, here, there):
    first.stop()
    try:
        until(lambda: "away since" in strip(person), what="the word that it is away")
        assert "connection refused" in strip(person)
        answer = person.submit(job("unsent", shell("true")))
        assert (answer.status_code, "does not answer" in answer.text) == (503, True)
    finally:
        first.start()
    until(lambda: strip(person) == "volcano-ui live", what="the word that it is live")
    until(lambda: same(here, there), what="equality")
    assert here.job("unsent") is None


def test_person_acts_there_as_himself_where_that_is_wanted(first, kubeconfig, there, tmp_path):
    with third(tmp_path, kubeconfig, VOLCANO_UI_IMPERSONATE="1") as own:
        with Person(own) as person, Person(first) as other:
            until(lambda: strip(person) == "volcano-ui live", what="the list")
            person.create(job("mine", shell("true")))
            there.reaches("mine", "Completed")
            assert "As admin." in other.get("/audit/", q="mine").text
        command = [sys.executable, "manage.py", "kubeconfig"]
        result = subprocess.run(command, cwd=PROJECT, env=own.environment, capture_output=True, text=True)
        assert (result.returncode, "it gives kubeconfigs itself" in result.stderr) == (1, True)
