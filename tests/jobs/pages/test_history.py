"""A job's earlier runs, and a job that is gone: what their pages say."""

from __future__ import annotations

import json

import pytest

from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, Patch, store
from jobs.pages.reading import moment
from kube.kinds.batch import Action
from kube.resources import JOBS, PODS, QUEUES
from tests.jobs.control import task
from tests.jobs.history.lives import Life
from tests.jobs.pages.test_detail import text_of


@pytest.fixture
def life(db, moved_clock):
    bootstrap()
    return lambda name="demo", **spec: Life(moved_clock, name, **spec)


@pytest.fixture
def reader(life, person, client):
    client.force_login(person("alice"))
    return client


def runs_twice(life, name="demo"):
    """A job that ran for a minute, was suspended for ten and runs again."""
    first = life(name).passes(2).admit().passes(3).place().passes(1).run()
    return first.passes(60).suspend().passes(600).resume().passes(4).admit().place().passes(1).run()


def page(parse, reader, query="", name="demo"):
    response = reader.get(f"/jobs/default/{name}/{query}")
    assert response.status_code == 200
    return parse(response)


def drawn(page):
    return json.loads(page.find(".//*[@id='timeline']").get("data-drawn"))


def steps(page):
    return [" ".join("".join(step.itertext()).split()) for step in page.findall(".//*[@id='job-steps']/li")]


def pods(page):
    return {
        row.find("th/a").text: "".join(row.find("td[@data-label='Phase']").itertext()).strip()
        for row in page.findall(".//tbody[@id='table-rows']/tr")
    }


def runs(page):
    return [" ".join("".join(run.itertext()).split()) for run in page.findall(".//*[@id='job-runs']//a")]


def test_a_job_that_ran_once_has_no_chapters(life, reader, parse):
    life().admit().place().run()
    assert runs(page(parse, reader)) == []


def test_each_run_has_its_own_steps_waits_and_pods(life, reader, parse):
    runs_twice(life)
    newest, first = page(parse, reader), page(parse, reader, "?run=1")
    assert runs(newest) == ["Run 1 suspended after 1 min 6 s", "Run 2 goes on"]
    assert [each[:2] for each in drawn(first)["waits"]] == [["queue", 0], ["gang", 2000], ["starting", 5000]]
    assert drawn(newest)["waits"][0] == ["queue", 0, 4000]
    assert drawn(newest)["zero"] - drawn(first)["zero"] == 666_000
    assert [bar[2:6] for bar in drawn(first)["bars"]] == [[2000, 5000, 6000, 66_000]] * 2
    assert steps(first)[0].startswith("Created")
    assert steps(newest)[0].startswith("Resumed")
    assert "Group created" in steps(newest)[1]
    assert "0 ms later" in steps(newest)[1]
    assert pods(first).keys() == pods(newest).keys() == {"demo-main-0", "demo-main-1"}


def test_a_run_goes_on_while_some_of_its_pods_are_restarted(life, reader, parse):
    runs_twice(life)
    # As the controller leaves it when one of the pods has yet to end: the pod group stays.
    phase = {"status": {"state": {"phase": "Restarting"}}}
    store.write(Patch(JOBS, "default", "demo", phase, "status"))
    assert runs(page(parse, reader))[-1] == "Run 2 goes on"


def test_a_suspended_job_shows_the_run_that_was(life, reader, parse):
    life().admit().place().run().passes(60).suspend()
    shown = page(parse, reader)
    assert len(drawn(shown)["bars"]) == 2
    assert {bar[6] for bar in drawn(shown)["bars"]} == {"stopped"}
    assert set(pods(shown).values()) == {"Stopped"}
    assert "0 of 2 pods succeeded" in text_of(shown, ".//*[@id='job-tasks']")


def test_a_restart_says_what_ended_the_run_before(life, reader, parse):
    one = life(maxRetry=3).admit().place().run().passes(30).ask(Action.RESTART_JOB)
    one.passes(2).bury().admit().place().run()
    first = page(parse, reader, "?run=1")
    assert runs(first)[0] == "Run 1 restarted after 30 s"
    assert steps(first)[-1].startswith("Restarted")
    assert drawn(first)["marks"]
    assert drawn(page(parse, reader))["marks"] == []


def test_a_run_that_is_over_asks_nobody_to_do_anything(life, reader, parse):
    resume = "Resume it to run it from the start."
    one = runs_twice(life)
    for found in (page(parse, reader, "?run=1"), page(parse, reader)):
        text = "".join(found.itertext()) + " ".join(each.get("title", "") for each in found.iter())
        assert resume not in text
    told = text_of(page(parse, reader, "?run=1"), ".//*[@id='job-runs']/p")
    assert told == "Run 1 suspended: None of 2 pods had ended when the job was suspended."
    one.passes(5).suspend()
    assert resume in text_of(page(parse, reader), ".//*[@id='job-head']")
    one.delete()
    assert resume not in text_of(page(parse, reader), ".//main")


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "before the recorder saw it"])
def test_a_deleted_job_keeps_its_page(life, reader, parse, is_recorded):
    one = runs_twice(life)
    began = one.now()
    one.passes(10).end("demo-main-0", 3, began=began).tell("Note", "it <b>broke</b>")
    one.delete()
    if is_recorded:
        one.record()
    shown = page(parse, reader)
    assert "This job was deleted" in text_of(shown, ".//*[@id='job-why']")
    assert [name.split(" ")[2] for name in runs(shown)] == ["suspended", "deleted"]
    assert {bar[0]: bar[7] for bar in drawn(shown)["bars"]} == {"demo-main-0": 3, "demo-main-1": None}
    assert len(drawn(page(parse, reader, "?run=1"))["bars"]) == 2
    events = reader.get("/jobs/default/demo/?tab=events").content.decode()
    assert "it &lt;b&gt;broke&lt;/b&gt;" in events
    assert "replicas: 2" in reader.get("/jobs/default/demo/?tab=yaml").content.decode()
    assert shown.find(".//*[@data-live]") is None
    assert "Suspend" not in text_of(shown, ".//*[@id='job-actions']")


def test_the_pods_of_a_deleted_job_are_filtered_and_lead_to_their_logs(life, reader, parse):
    one = life().admit().place().run()
    one.end("demo-main-1", 1, began=one.now()).delete()
    one.record()
    shown = page(parse, reader, f"?of={one.job.uid}&phase=Failed")
    assert list(pods(shown)) == ["demo-main-1"]
    assert shown.find(".//input[@name='of']").get("value") == one.job.uid
    link = shown.find(".//tbody[@id='table-rows']/tr/th/a").get("href")
    assert f"of={one.job.uid}" in link
    assert "has been removed" in reader.get(link).content.decode()


def test_deleted_jobs_are_listed_behind_a_chip(life, reader, parse):
    gone, _ = life("gone"), life("there")
    gone.delete()
    gone.record()
    everything, deleted = parse(reader.get("/jobs/")), parse(reader.get("/jobs/?phase=Deleted"))
    names = ".//tbody[@id='table-rows']/tr/th/a"
    assert [each.text for each in everything.findall(names)] == ["there"]
    assert [each.text for each in deleted.findall(names)] == ["gone"]
    chips = text_of(everything, ".//*[@id='table-chips']")
    assert "All 1" in chips
    assert "Deleted 1" in chips
    assert reader.get(f"/jobs/default/{deleted.find(names).get('href').split('/')[-1]}").status_code in (200, 404)


def offered(page, name):
    return [each.get("value") for each in page.findall(f".//select[@name='{name}']/option")][1:]


def test_filters_of_deleted_jobs_offer_what_these_have(life, reader, parse):
    queue = {"metadata": {"name": "research"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
    store.write(Create(QUEUES, queue))
    gone = life("gone", queue="research")
    note = {"metadata": {"annotations": {"ui.volcano.sh/created-by": "bob"}}}
    store.write(Patch(JOBS, "default", "gone", note))
    life("there")
    gone.delete()
    gone.record()
    living, deleted = parse(reader.get("/jobs/")), parse(reader.get("/jobs/?phase=Deleted"))
    assert (offered(living, "queue"), offered(deleted, "queue")) == (["default"], ["research"])
    assert (offered(living, "owner"), offered(deleted, "owner")) == (["alice"], ["alice", "bob"])
    assert offered(deleted, "namespace") == ["default"]


def test_filters_of_an_earlier_runs_pods_offer_the_tasks_that_it_had(life, reader, parse):
    one = life(tasks=[task("early", 1), task("late", 0)]).admit().place().run().suspend()
    tasks = [{"name": "early", "replicas": 0}, {"name": "late", "replicas": 1}]
    spec = store.get(JOBS, "default", "demo").object["spec"]
    changed = [{**old, **new} for old, new in zip(spec["tasks"], tasks, strict=True)]
    store.write(Patch(JOBS, "default", "demo", {"spec": {"tasks": changed}}))
    one.resume().admit().place().run()
    assert offered(page(parse, reader, "?run=1"), "task") == ["early"]
    assert offered(page(parse, reader), "task") == ["early", "late"]


def test_a_deleted_job_is_found_beside_a_living_one_of_its_name(life, reader, parse):
    one = life().admit().place().run()
    one.delete()
    one.record()
    life(replicas=1)
    href = parse(reader.get("/jobs/?phase=Deleted")).find(".//tbody[@id='table-rows']/tr/th/a").get("href")
    old, new = reader.get(href), reader.get("/jobs/default/demo/")
    assert b"This job was deleted" in old.content
    assert b"This job was deleted" not in new.content
    assert b"replicas: 2" in reader.get(f"/jobs/new/?from=default/demo&of={one.job.uid}").content
    assert b"replicas: 1" in reader.get("/jobs/new/?from=default/demo").content


def test_only_who_could_see_the_job_sees_what_is_kept_of_it(life, person, client):
    one = life().admit().place().run()
    one.delete()
    one.record()
    client.force_login(person("bob", namespace="other"))
    assert client.get(f"/jobs/default/demo/?of={one.job.uid}").status_code == 403
    assert client.get(f"/jobs/new/?from=default/demo&of={one.job.uid}").status_code == 403
    assert b"demo" not in client.get("/jobs/?phase=Deleted").content.split(b"<tbody")[1].split(b"</tbody")[0]
    # Not by the way of a namespace that he may see either.
    assert client.get(f"/jobs/other/demo/?of={one.job.uid}").status_code == 404


def test_a_pod_that_starts_again_keeps_its_first_start(life, reader, parse):
    one = life(replicas=1).admit().place().run()
    began = one.now()
    one.passes(5)
    last = {"terminated": {"exitCode": 1, "startedAt": began, "finishedAt": one.now()}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    one.status("demo-main-0", "Running", state=waiting, last=last, restarts=1)
    one.passes(10)
    one.status("demo-main-0", "Running", state={"running": {"startedAt": one.now()}}, last=last, restarts=2)
    bar = drawn(page(parse, reader))["bars"][0]
    assert bar[4] == 0
    assert bar[9] == [[0, 5000, 1], [15_000, None, 0]]


def test_a_job_whose_pods_crash_loop_says_so_beside_its_phase(life, reader, parse):
    one = life(replicas=2).admit().place().run()
    ended = {"terminated": {"exitCode": 1, "startedAt": one.now(), "finishedAt": one.now()}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    one.status("demo-main-0", "Running", state=waiting, last=ended, restarts=1)
    assert "Running 1 crash-looping" in text_of(page(parse, reader), ".//*[@id='job-head']")
    assert "Running 1 crash-looping" in text_of(parse(reader.get("/jobs/")), ".//tbody[@id='table-rows']")
    one.run()
    assert "crash-looping" not in reader.get("/jobs/").content.decode()


def test_a_delayed_action_counts_down_until_it_is_done_or_called_off(life, reader, parse):
    policy = {"event": "PodFailed", "action": "RestartJob", "timeout": "1m"}
    one = life(policies=[policy], minAvailable=1, maxRetry=3).admit().place().run()
    quiet = text_of(page(parse, reader), ".//*[@id='job-policies']")
    one.passes(5).end("demo-main-1", 3, began=one.now())
    due = page(parse, reader).find(".//*[@id='job-policies']//time")
    assert due.get("data-mode") == "until"
    assert moment(due.get("datetime")) - moment(one.now()) == 60_000
    assert "Restart the whole job" in text_of(page(parse, reader), ".//*[@id='job-policies']")
    one.passes(61).jobs.settle()
    done = page(parse, reader, "?run=1")
    assert done.find(".//*[@id='job-policies']//time[@data-mode='until']") is None
    assert "Restart the whole job" not in quiet
    (fired,) = [
        " ".join("".join(cell.itertext()).split())
        for cell in done.findall(".//table/tbody/tr[th]")
        if "PodFailed" in "".join(cell.itertext())
    ]
    assert fired.endswith("PodFailed demo-main-1 3 RestartJob after 1m0s run 2 began")


def test_the_pods_of_an_earlier_run_are_those_of_the_run(life, reader, parse):
    one = runs_twice(life)
    (new,) = {store.get(PODS, "default", "demo-main-0").uid}
    first = page(parse, reader, "?run=1")
    link = first.find(".//tbody[@id='table-rows']/tr/th/a").get("href")
    assert new not in link
    assert "run=1" in link
    assert store.get(JOBS, "default", "demo").uid == one.job.uid


def cells(page):
    return [
        [" ".join("".join(cell.itertext()).split()) for cell in row]
        for row in page.findall(".//section[@id='job-policies']//tbody/tr")
    ]


@pytest.mark.parametrize("is_deleted", [False, True], ids=["alive", "deleted"])
def test_the_page_tells_what_policies_did_in_this_run_and_in_others(life, reader, parse, is_deleted):
    policy = {"event": "PodFailed", "action": "RestartJob"}
    one = life(policies=[policy], maxRetry=3).admit().place().run()
    one.passes(5).end("demo-main-1", 3, began=one.now())
    one.jobs.settle()
    one.bury().admit().place().run()
    if is_deleted:
        one.delete()
    first, newest = page(parse, reader, "?run=1"), page(parse, reader)
    row = ["PodFailed", "demo-main-1", "3", "RestartJob", "run 2 began"]
    assert [each[1:] for each in cells(first)] == [row]
    assert [[each[0], *each[2:]] for each in cells(newest)] == [["Run 1", *row]]
    (log,) = [
        link.get("href")
        for link in first.findall(".//section[@id='job-policies']//tbody//a")
        if link.text == "demo-main-1"
    ]
    assert "run=1" in log
    assert reader.get(log).status_code == 200


def test_a_job_whose_policies_did_nothing_has_no_table(life, reader, parse):
    life(policies=[{"event": "PodFailed", "action": "RestartJob"}]).admit().place().run()
    assert cells(page(parse, reader)) == []


def test_pods_that_had_one_name_in_a_run_are_told_once_with_their_number(life, reader, parse):
    one = life(maxRetry=9).admit().place()
    lacks = {"waiting": {"reason": "CreateContainerConfigError", "message": 'configmap "c" not found'}}
    for _ in range(3):
        for pod in store.find(PODS):
            one.status(pod.name, "Pending", state=lacks)
            one.status(pod.name, "Failed", state=lacks)
            store.write(Delete(PODS, pod.namespace, pod.name))
        one.passes(2).bury().place()
    for pod in store.find(PODS):
        one.status(pod.name, "Failed", state=lacks)
    one.record()
    one.delete()
    shown = page(parse, reader)
    head = text_of(shown, ".//*[@id='job-head']")
    assert 'cannot start: configmap "c" not found · main-0 (4 times), main-1 (4 times)' in head
    assert "0 of 2 pods succeeded, 2 failed" in text_of(shown, ".//*[@id='job-tasks']")
