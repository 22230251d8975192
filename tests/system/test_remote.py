"""A system that shows another one: its mirror, its changes, its logs, and what it says when the other is away."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from cluster.remote.kinds import KINDS
from kube.resources import COMMANDS, JOBS, PODS, QUEUES
from proof.harness.proxy import CuttingProxy
from proof.harness.waiting import until
from proof.systems.system import PROJECT, running
from proof.systems.work import COMPLETED, Person, Watcher, held, job, problems, shell
from tests.system.pair import here, kubeconfig, person, phases, strip, there

__all__ = ["here", "kubeconfig", "person", "there"]  # fixtures
pytestmark = [pytest.mark.system, pytest.mark.clusters]

# Where a form or a button of a page leads that changes the cluster, and pages that are there for that.
CHANGES = re.compile(
    r'action="(/(?:jobs|queues|sweeps|flows|cronjobs|access/namespaces)/[^"]*)"|href="([^"]*/(?:new|edit)/[^"]*)"'
)
READ_ONLY_PAGES = ("/", "/jobs/", "/jobs/default/kept/", "/queues/", "/queues/default/", "/nodes/", "/sweeps/", "/flows/",
                   "/cronjobs/", "/jobs/-/operations/", "/access/")  # fmt: skip


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The cluster with Volcano: controllers, scheduler and an agent of its own."""
    with running(tmp_path_factory.mktemp("first") / "data") as started:
        yield started


def third(folder, kubeconfig, **options):
    """One more system that shows the cluster."""
    return running(folder / "data", VOLCANO_UI_KUBECONFIG=str(kubeconfig), **options)


@pytest.fixture(scope="module")
def second(first, kubeconfig, tmp_path_factory):
    """The system whose pages are tried."""
    with running(tmp_path_factory.mktemp("second") / "data", VOLCANO_UI_KUBECONFIG=str(kubeconfig)) as started:
        yield started


def same(one, other):
    """Whether two watchers see the same objects of all mirrored kinds."""
    return all(versions(one, kind) == versions(other, kind) for kind in KINDS if kind.id != "configmaps")


def versions(watcher, kind):
    return {(stored.key, stored.uid, stored.version) for stored in watcher.store.find(kind)}


def test_runs_neither_agent_nor_scheduler_nor_api(second):
    assert set(second.children()) == {"redis", "web", "controllers", "beat", "mirror"}


def test_job_from_the_form_runs_there_and_is_seen_here(person, here, there, tmp_path):
    script = f"echo begun; until [ -e {tmp_path / 'out' / 'go'} ]; do sleep 0.05; done; echo done"
    person.create(job("seen", shell(script, sees=tmp_path / "out", replicas=2)))
    assert here.job("seen"), "who wrote it reads it at once"
    here.reaches("seen", "Running")

    def log(pod):
        answer = person.get("/jobs/default/seen/log/", pod=pod)
        return answer.status_code, answer.content

    until(lambda: log("seen-main-1") == (200, b"begun\n"), what=lambda: log("seen-main-1"))
    (tmp_path / "out" / "go").touch()
    here.reaches("seen", "Completed")
    assert log("seen-main-0") == (200, b"begun\ndone\n")
    assert "begun\ndone\n" in person.get("/jobs/default/seen/", tab="logs", pod="seen-main-0").text
    assert phases(here, "seen") == phases(there, "seen") == ["Pending", "Running", "Completed"]
    assert there.phase("seen") == "Completed"
    assert COMPLETED in person.get("/jobs/default/seen/").text
    assert strip(person) == "volcano-ui live"


def test_every_page_answers_and_those_of_our_own_api_are_not_there(person):
    for page in ("/", "/jobs/", "/jobs/new/", "/queues/", "/nodes/", "/events/", "/audit/", "/access/"):
        answer = person.get(page)
        assert answer.status_code == 200, (page, answer.text[:300])
        assert "/connect/" not in answer.text
    assert person.get("/connect/").status_code == 404


def test_what_is_deleted_there_goes_here_and_the_other_way_round(first, person, here, there, tmp_path):
    for name in ("goes-there", "goes-here"):
        person.create(job(name, held(tmp_path / "out" / name, terminationGracePeriodSeconds=0)))
        here.reaches(name, "Running")
    with Person(first) as other:
        other.post("/jobs/default/goes-there/delete/")
    until(lambda: here.job("goes-there") is None, what="the end of the job here")
    assert person.post("/jobs/default/goes-here/delete/").status_code == 302
    until(lambda: here.job("goes-here") is None, what="the end of the other one here")
    until(lambda: there.job("goes-here") is None, what="the end of the job there")
    until(lambda: not here.store.find(PODS, text="goes-"), what="the end of their pods")
    assert "goes-there" in person.get("/jobs/default/goes-there/").text, "history keeps it"


def test_job_is_suspended_and_resumed_by_commands(person, here, tmp_path):
    person.create(job("paused", held(tmp_path / "out" / "go", terminationGracePeriodSeconds=0)))
    here.reaches("paused", "Running")
    person.post("/jobs/default/paused/suspend/")
    here.reaches("paused", "Aborted")
    (tmp_path / "out" / "go").touch()
    person.post("/jobs/default/paused/resume/")
    here.reaches("paused", "Completed")


def test_queue_is_closed_and_opened_by_commands(person, here, there):
    person.post("/queues/-/new/", name="shared", weight="1")
    for action, state in (("close", "Closed"), ("open", "Open")):
        assert person.post(f"/queues/shared/{action}/").status_code == 302
        until(lambda state=state: queue_state(here, "shared") == state, what=f"{state} of the queue")
    assert queue_state(there, "shared") == "Open"
    asked = [each for each in there.everything() if each.resource == COMMANDS.id and each.verb == "ADDED"]
    assert [each.object["action"] for each in asked[-2:]] == ["CloseQueue", "OpenQueue"]


def queue_state(watcher, name):
    return watcher.store.get(QUEUES, "", name).object["status"]["state"]


def test_many_jobs_are_deleted_at_once(person, here, there):
    for number in range(3):
        person.create(job(f"many-{number}", shell("sleep 3600", terminationGracePeriodSeconds=0)))
    page = person.post("/jobs/-/operations/", action="delete", which="all", q="many-").headers["location"]
    assert person.post(f"{page}confirm/").status_code == 302
    until(lambda: "3 of 3 jobs have a result" in person.get(page).text, what="the operation's end")
    for watcher in (here, there):
        until(lambda watcher=watcher: not watcher.store.find(JOBS, text="many-"), what="the end of the jobs")


def sweep(name):
    """The fields of a form that asks for three jobs."""
    text = json.dumps(job(name, shell("echo {{number}}")))
    return {"text": text, "do": "submit", "grid-number": "1, 2, 3"}


def names(watcher, text):
    return {stored.name for stored in watcher.store.find(JOBS, text=text)}


def test_sweep_is_made_whole_or_not_at_all(person, here, there):
    made = person.post("/sweeps/-/new/", **sweep("whole"))
    assert made.status_code == 302, problems(made)
    whole = names(there, "whole")
    assert len(whole) == 3
    taken = sorted(whole)[1].replace("whole", "partial")
    person.create(job(taken, shell("true")))
    refused = person.post("/sweeps/-/new/", **sweep("partial"))
    assert refused.status_code == 409
    assert "already exists" in refused.text
    for watcher in (here, there):
        until(lambda watcher=watcher: names(watcher, "partial") == {taken}, what="only what was there before")


def test_refusal_of_the_cluster_is_shown_and_nothing_is_stored_but_the_audit_of_what_was_done(
    first, person, here, there
):
    unknown = job("refused", shell("true"), queue="nowhere")
    answer = person.submit(unknown)
    assert answer.status_code == 422
    assert "nowhere" in problems(answer)
    assert here.job("refused") is None
    assert there.job("refused") is None
    person.create(job("twice", shell("true")))
    with Person(first) as other:
        for each in (person, other):
            assert "twice" in each.get("/audit/").text
    again = person.submit(job("twice", shell("true")))
    assert again.status_code == 422
    assert "already exists" in problems(again)


def test_away_is_said_and_afterwards_all_is_as_in_a_fresh_list(first, person, here, there):
    first.stop()
    try:
        until(lambda: "away since" in strip(person), what="the word that it is away")
        assert "connection refused" in strip(person)
        answer = person.submit(job("unsent", shell("true")))
        assert answer.status_code == 503
        assert "does not answer" in answer.text
    finally:
        first.start()
    until(lambda: strip(person) == "volcano-ui live", what="the word that it is live")
    until(lambda: same(here, there), what="equality")
    assert here.job("unsent") is None


def test_nothing_is_lost_when_every_connection_is_cut_and_the_mirror_is_killed(first, kubeconfig, tmp_path):
    with CuttingProxy(first.api_port) as proxy, Person(first) as other, first.store() as there:
        config = tmp_path / "config"
        config.write_text(kubeconfig.read_text().replace(f":{first.api_port}", f":{proxy.port}"))
        with third(tmp_path, config) as system, system.store() as here, Person(system) as person:
            until(lambda: strip(person) == "volcano-ui live", what="the first list")
            proxy.cutting = True
            for number in range(6):
                other.create(job(f"cut-{number}", shell("sleep 0.3", replicas=2)))
                if number == 3:
                    os.kill(system.children()["mirror"], signal.SIGKILL)
                Watcher(there).reaches(f"cut-{number}", "Completed")
            until(lambda: same(Watcher(here), Watcher(there)), what="equality")
            assert proxy.cuts > 6
            for kind in (JOBS, PODS):
                assert story(here, kind) == story(there, kind)


def story(store, kind):
    """What happened to each object of a kind that was made for the test, as the log has it."""
    found = {}
    for change in Watcher(store).everything():
        if change.resource == kind.id and change.name.startswith("cut-"):
            found.setdefault(change.name, []).append((change.verb, change.version))
    return found


def test_read_only_offers_nothing_and_refuses_everything(first, kubeconfig, person, there, tmp_path):
    person.create(job("kept", shell("true")))
    for page in ("/jobs/", "/jobs/default/kept/", "/queues/", "/access/"):
        assert CHANGES.search(person.get(page).text), page
    with third(tmp_path, kubeconfig, VOLCANO_UI_WAY="read-only") as reading, Person(reading) as reader:
        until(lambda: strip(reader) == "volcano-ui live read-only", what="the list")
        for page in READ_ONLY_PAGES:
            answer = reader.get(page)
            assert answer.status_code == 200, page
            assert not CHANGES.findall(answer.text), page
        for page in ("/jobs/new/", "/jobs/default/kept/edit/", "/queues/-/new/", "/sweeps/-/new/"):
            assert "only show the cluster" in reader.get(page).text, page
        answer = reader.submit(job("written", shell("true")))
        assert answer.status_code in (403, 422)
        assert "only show the cluster" in answer.text
        reader.post("/jobs/default/kept/delete/")
        assert "only show the cluster" in reader.get("/jobs/default/kept/").text
    assert there.job("kept")


def test_person_acts_there_as_himself_where_that_is_wanted(first, kubeconfig, tmp_path):
    with third(tmp_path, kubeconfig, VOLCANO_UI_IMPERSONATE="1") as own:
        with Person(own) as person, own.store() as here, Person(first) as other:
            until(lambda: strip(person) == "volcano-ui live", what="the list")
            person.create(job("mine", shell("true")))
            Watcher(here).reaches("mine", "Completed")
            assert "As admin." in other.get("/audit/", q="mine").text
        command = [sys.executable, "manage.py", "kubeconfig"]
        asked = subprocess.run(command, cwd=PROJECT, env=own.environment, capture_output=True, text=True)
        assert asked.returncode == 1
        assert "it gives kubeconfigs itself" in asked.stderr
