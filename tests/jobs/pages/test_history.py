"""A job's earlier runs, its restarts, and a job that is gone: what their pages say."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.store import Create, Delete, Patch, store
from jobs.pages.reading import moment
from kube.kinds.batch import Action
from kube.resources import JOBS, PODS, QUEUES
from tests.builders import queue
from tests.jobs.control import task
from tests.jobs.pages.job_page import JobPage, words
from tests.tables import cases

RESUME = "Resume it to run it from the start."


def runs_twice(life, name="demo"):
    """A job that ran for a minute, was suspended for ten and runs again."""
    first = life(name).passes(2).admit().passes(3).place().passes(1).run()
    return first.passes(60).suspend().passes(600).resume().passes(4).admit().place().passes(1).run()


def crash_loops(one, restarts=1):
    """Let a pod wait to start again; return how it ended."""
    last = {"terminated": {"exitCode": 1, "startedAt": one.began, "finishedAt": one.now()}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    one.status("demo-main-0", "Running", state=waiting, last=last, restarts=restarts)
    return last


def test_each_run_has_its_own_steps_waits_and_pods(life, reader):
    one = life().passes(2).admit().passes(3).place().passes(1).run()
    assert JobPage(reader).runs == [], "it ran once"
    one.passes(60).suspend().passes(600).resume().passes(4).admit().place().passes(1).run()
    newest, first = JobPage(reader), JobPage(reader, query="?run=1")
    assert newest.runs == ["Run 1 suspended after 1 min 6 s", "Run 2 goes on"]
    assert [each[:2] for each in first.drawn["waits"]] == [["queue", 0], ["gang", 2000], ["starting", 5000]]
    assert newest.drawn["waits"][0] == ["queue", 0, 4000]
    assert newest.drawn["zero"] - first.drawn["zero"] == 666_000
    assert [bar[2:6] for bar in first.drawn["bars"]] == [[2000, 5000, 6000, 66_000]] * 2
    assert first.steps[0].startswith("Created")
    assert newest.steps[0].startswith("Resumed")
    assert "Group created" in newest.steps[1]
    assert "0 ms later" in newest.steps[1]
    assert first.pods.keys() == newest.pods.keys() == {"demo-main-0", "demo-main-1"}
    link = first.rows[0].find("th/a").get("href")
    assert "run=1" in link
    assert store.get(PODS, "default", "demo-main-0").uid not in link
    # As the controller leaves it when one of the pods has yet to end: the pod group stays.
    phase = {"status": {"state": {"phase": "Restarting"}}}
    store.write(Patch(JOBS, "default", "demo", phase, "status"))
    assert JobPage(reader).runs[-1] == "Run 2 goes on"


def test_a_suspended_job_shows_the_run_that_was(life, reader):
    life().admit().place().run().passes(60).suspend()
    page = JobPage(reader)
    assert [bar[6] for bar in page.drawn["bars"]] == ["stopped"] * 2
    assert set(page.pods.values()) == {"Stopped"}
    assert "0 of 2 pods succeeded" in page.text("job-tasks")


def test_a_restart_says_what_ended_the_run_before(life, reader):
    one = life(maxRetry=3).admit().place().run().passes(30).ask(Action.RESTART_JOB)
    one.passes(2).bury().admit().place().run()
    first = JobPage(reader, query="?run=1")
    assert first.runs[0] == "Run 1 restarted after 30 s"
    assert first.steps[-1].startswith("Restarted")
    assert (bool(first.drawn["marks"]), JobPage(reader).drawn["marks"]) == (True, [])


def test_a_run_that_is_over_asks_nobody_to_do_anything(life, reader):
    one = runs_twice(life)
    first = JobPage(reader, query="?run=1")
    assert RESUME not in first.html + JobPage(reader).html
    told = words(first.tree.find(".//*[@id='job-runs']/p"))
    assert told == "Run 1 suspended: None of 2 pods had ended when the job was suspended."
    one.passes(5).suspend()
    assert RESUME in JobPage(reader).text("job-head")
    one.delete()
    assert RESUME not in JobPage(reader).html


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "before the recorder saw it"])
def test_a_deleted_job_keeps_its_page(life, reader, is_recorded):
    one = runs_twice(life)
    began = one.now()
    one.passes(10).end("demo-main-0", 3, began=began).tell("Note", "it <b>broke</b>").delete()
    if is_recorded:
        one.record()
    page = JobPage(reader)
    assert "This job was deleted" in page.text("job-why")
    assert [name.split(" ")[2] for name in page.runs] == ["suspended", "deleted"]
    assert {bar[0]: bar[7] for bar in page.drawn["bars"]} == {"demo-main-0": 3, "demo-main-1": None}
    assert len(JobPage(reader, query="?run=1").drawn["bars"]) == 2
    assert "it &lt;b&gt;broke&lt;/b&gt;" in JobPage(reader, query="?tab=events").html
    assert "replicas: 2" in JobPage(reader, query="?tab=yaml").html
    assert "data-live=" not in page.html
    assert "Suspend" not in page.text("job-actions")
    failed = JobPage(reader, query=f"?of={one.job.uid}&phase=Failed")
    assert failed.names == ["demo-main-0"]
    assert failed.tree.find(".//input[@name='of']").get("value") == one.job.uid
    link = failed.rows[0].find("th/a").get("href")
    assert f"of={one.job.uid}" in link
    assert "has been removed" in reader.get(link).content.decode()


@pytest.fixture
def deleted_and_living(life):
    """A deleted job of a queue and an owner of its own beside one that lives."""
    store.write(Create(QUEUES, queue("research")))
    gone = life("gone", queue="research")
    store.write(Patch(JOBS, "default", "gone", {"metadata": {"annotations": {"ui.volcano.sh/created-by": "bob"}}}))
    life("there")
    gone.delete().record()


def test_deleted_jobs_are_listed_behind_a_chip_with_filters_of_their_own(deleted_and_living, reader):
    living, deleted = (JobPage.of_list(reader, query) for query in ("", "?phase=Deleted"))
    assert (living.names, deleted.names) == (["there"], ["gone"])
    assert all(text in living.text("table-chips") for text in ("All 1", "Deleted 1"))
    assert (living.offered("queue"), deleted.offered("queue")) == (["default"], ["research"])
    assert (living.offered("owner"), deleted.offered("owner")) == (["alice"], ["alice", "bob"])
    assert deleted.offered("namespace") == ["default"]


def test_filters_of_an_earlier_runs_pods_offer_the_tasks_that_it_had(life, reader):
    one = life(tasks=[task("early", 1), task("late", 0)]).admit().place().run().suspend()
    early, late = store.get(JOBS, "default", "demo").object["spec"]["tasks"]
    changed = [{**early, "replicas": 0}, {**late, "replicas": 1}]
    store.write(Patch(JOBS, "default", "demo", {"spec": {"tasks": changed}}))
    one.resume().admit().place().run()
    assert JobPage(reader, query="?run=1").offered("task") == ["early"]
    assert JobPage(reader).offered("task") == ["early", "late"]


def test_a_deleted_job_is_found_beside_a_living_one_of_its_name(life, reader):
    one = life().admit().place().run().delete()
    one.record()
    life(replicas=1)
    href = JobPage.of_list(reader, "?phase=Deleted").rows[0].find("th/a").get("href")
    assert b"This job was deleted" in reader.get(href).content
    assert "This job was deleted" not in JobPage(reader).html
    assert b"replicas: 2" in reader.get(f"/jobs/new/?from=default/demo&of={one.job.uid}").content
    assert b"replicas: 1" in reader.get("/jobs/new/?from=default/demo").content


def test_only_who_could_see_the_job_sees_what_is_kept_of_it(life, person, client):
    one = life().admit().place().run().delete()
    one.record()
    client.force_login(person("bob", namespace="other"))
    for address, status in (("default/demo/?", 403), ("new/?from=default/demo&", 403), ("other/demo/?", 404)):
        assert client.get(f"/jobs/{address}of={one.job.uid}").status_code == status
    assert JobPage.of_list(client, "?phase=Deleted").names == []


def test_a_pod_that_starts_again_keeps_its_first_start(life, reader):
    one = life(replicas=1).admit().place().run()
    one.began = one.now()
    last = crash_loops(one.passes(5))
    one.passes(10)
    one.status("demo-main-0", "Running", state={"running": {"startedAt": one.now()}}, last=last, restarts=2)
    bar = JobPage(reader).drawn["bars"][0]
    assert (bar[4], bar[9]) == (0, [[0, 5000, 1], [15_000, None, 0]])


def test_a_job_whose_pods_crash_loop_says_so_beside_its_phase(life, reader):
    one = life(replicas=2).admit().place().run()
    one.began = one.now()
    crash_loops(one)
    for found in (JobPage(reader).text("job-head"), JobPage.of_list(reader).text("table-rows")):
        assert "Running 1 crash-looping" in found
    one.run()
    assert "crash-looping" not in reader.get("/jobs/").content.decode()


def fired(page):
    """The cells of what policies did."""
    return [[words(cell) for cell in row] for row in page.tree.findall(".//section[@id='job-policies']//tbody/tr")]


def test_a_delayed_action_counts_down_until_it_is_done_or_called_off(life, reader):
    policy = {"event": "PodFailed", "action": "RestartJob", "timeout": "1m"}
    one = life(policies=[policy], minAvailable=1, maxRetry=3).admit().place().run()
    quiet = JobPage(reader)
    assert "Restart the whole job" not in quiet.text("job-policies")
    assert fired(quiet) == []
    one.passes(5).end("demo-main-1", 3, began=one.now())
    page = JobPage(reader)
    due = page.tree.find(".//*[@id='job-policies']//time")
    assert due.get("data-mode") == "until"
    assert moment(due.get("datetime")) - moment(one.now()) == 60_000
    assert "Restart the whole job" in page.text("job-policies")
    one.passes(61).jobs.settle()
    done = JobPage(reader, query="?run=1")
    assert done.tree.find(".//*[@id='job-policies']//time[@data-mode='until']") is None
    assert fired(done)[0][1:] == ["2 × PodFailed", "demo-main-1", "3", "RestartJob after 1m0s", "run 2 began"]


@pytest.mark.parametrize("is_deleted", [False, True], ids=["alive", "deleted"])
def test_the_page_tells_what_policies_did_in_this_run_and_in_others(life, reader, is_deleted):
    policy = {"event": "PodFailed", "action": "RestartJob"}
    one = life(policies=[policy], maxRetry=3).admit().place().run()
    one.passes(5).end("demo-main-1", 3, began=one.now()).jobs.settle()
    one.bury().admit().place().run()
    if is_deleted:
        one.delete()
    first = JobPage(reader, query="?run=1")
    row = ["PodFailed", "demo-main-1", "3", "RestartJob", "run 2 began"]
    assert [each[1:] for each in fired(first)] == [row]
    assert [[each[0], *each[2:]] for each in fired(JobPage(reader))] == [["Run 1", *row]]
    links = first.tree.findall(".//section[@id='job-policies']//tbody//a")
    (log,) = [link.get("href") for link in links if link.text == "demo-main-1"]
    assert "run=1" in log
    assert reader.get(log).status_code == 200


def test_pods_that_had_one_name_in_a_run_are_told_once_with_their_number(life, reader):
    one = life(maxRetry=9).admit().place()
    lacks = {"waiting": {"reason": "CreateContainerConfigError", "message": 'configmap "c" not found'}}
    for round_ in range(4):
        for pod in store.find(PODS):
            one.status(pod.name, "Pending", state=lacks)
            one.status(pod.name, "Failed", state=lacks)
            if round_ < 3:
                store.write(Delete(PODS, pod.namespace, pod.name))
        one.passes(2).bury().place()
    one.record()
    one.delete()
    page = JobPage(reader)
    assert 'cannot start: configmap "c" not found · main-0 (4 times), main-1 (4 times)' in page.text("job-head")
    assert "0 of 2 pods succeeded, 2 failed" in page.text("job-tasks")


POLICIES = [
    {"exitCode": 1, "action": "RestartJob"},
    {"exitCode": 2, "action": "RestartPod"},
    {"event": "TaskCompleted", "action": "CompleteJob"},
]


def go_on(one):
    """Let a job come to run, if anything lets it."""
    for _ in range(3):
        one.passes(1).bury(143).admit().place()
        one.jobs.settle()
    for pod in store.find(PODS, owner=one.job.uid):
        if pod.object["spec"].get("nodeName") and pod.object["status"].get("phase") == "Pending":
            one.status(pod.name, "Running", state={"running": {"startedAt": one.now()}})
    one.jobs.settle()
    return one


def status(one):
    return store.get(JOBS, "default", one.name).object["status"]


def fails(code):
    return lambda one: one.end(f"{one.name}-main-0", code, began=one.now())


WAYS = {
    "restart of the job, by its policy": fails(1),
    "restart of a pod, by its policy": fails(2),
    "restart of the job, on request": lambda one: one.ask(Action.RESTART_JOB),
    "suspended and resumed": lambda one: one.suspend().resume(),
}


def test_what_is_said_of_restarts_agrees_everywhere(life, reader):
    number = itertools.count()

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(st.sampled_from(sorted(WAYS)), max_size=5), st.integers(1, 4))
    def of(ways, most):
        name = f"job-{next(number)}"
        one = go_on(life(name, replicas=2, minAvailable=1, maxRetry=most, policies=POLICIES))
        whole = parts = resumed = asked = 0
        for way in ways:
            if status(one)["state"]["phase"] != "Running":
                break
            WAYS[way](one)
            go_on(one)
            resumed += "resumed" in way
            asked += "restart" in way
            if "restart" in way and asked < most:
                whole += "of the job" in way
                parts += "of a pod" in way
        made, page, told = whole + parts, JobPage(reader, name), status(one)
        assert told.get("retryCount", 0) == asked
        assert len(page.runs) in (1 + whole + resumed, 0 if not whole + resumed else None)
        assert f"{made} of {most - 1} restart" in page.text("job-policies")
        facts = words(page.tree.find(".//*[@class='job-facts']"))
        if asked:
            assert re.search(rf"Restarts\s*{made} of {most - 1}", facts)
            assert (f", {parts} of parts" in facts) == bool(parts)
        assert (told["state"]["phase"] == "Failed") == (asked >= most)
        if asked >= most:
            times = "once" if made == 1 else f"{made} times"
            assert f"The job was restarted {times}; instead of restart {asked} it" in told["state"]["message"]

    of()


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("restart of the job, by its policy", "Restarted by its policy exitCode 1 → RestartJob (main)"),
        ("restart of the job, on request", "Restarted on request, which counts as a retry"),
        ("suspended and resumed", "Aborted"),
    ],
)
def test_a_run_says_who_restarted_it(life, reader, way, said):
    one = go_on(life(maxRetry=3, policies=POLICIES))
    WAYS[way](one)
    go_on(one)
    assert said in words(JobPage(reader, query="?run=1").tree.find(".//main"))


@cases("complete, reason, who", {
    "by its policy": (lambda one: one.end("demo-ps-0", 0, began=one.now()), "CompletedByPolicy",
        "by its policy TaskCompleted → CompleteJob (ps)"),
    "on request": (lambda one: one.ask(Action.COMPLETE_JOB), "CompletedOnRequest", "on request"),
})  # fmt: skip
def test_a_completed_job_says_who_completed_it(life, complete, reason, who):
    one = go_on(life(tasks=[task("ps", 1), task("worker", 2)], policies=POLICIES))
    complete(one)
    for _ in range(2):  # a round in which pods are waited for
        one.jobs.settle()
    assert status(one)["state"]["phase"] == "Completing"
    state = status(one.bury(143))["state"]
    assert state["message"].endswith(f"when the job was completed {who}.")
    assert state["reason"] == reason
