"""The page of a job that lives: its head, pods, timeline, tabs and buttons."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster.access import SYSTEM
from cluster.store import Create, Delete, Patch, store
from dashboard.live import topics
from jobs.lifecycle import causes
from jobs.lifecycle.causes import Failure
from kube.meta import now_text
from kube.resources import COMMANDS, EVENTS, JOBS, PODS
from tests.jobs.pages import world
from tests.jobs.pages.job_page import JobPage, words
from tests.tables import cases

T = world.START
PLACED = {"scheduled": T - 50_000, "started": T - 40_000}
FINISHED = {**PLACED, "phase": "Succeeded", "finished": T - 30_000, "code": 0}


def worker(index, **options):
    return {"task": "worker", "index": index, **options}


@pytest.fixture
def running(alice):
    pods = [worker(i, scheduled=T - 50_000, started=T - 49_000 + i * 1000) for i in range(3)]
    pods.append(worker(3, phase="Failed", scheduled=T - 50_000, started=T - 48_000, finished=T - 9_000, code=3))
    return world.make("train", "Running", began=T - 46_000, pods=pods, counts={"running": 3, "failed": 1})


def test_the_page_shows_phase_gang_steps_pods_and_times(client, running):
    page = JobPage(client, "train")
    assert "3 of 4 needed are running, 1 failed" in page.text("job-head")
    titles = ["Created", "Group created", "In queue", "Gang placed", "Running", "Finished"]
    assert all(step.startswith(title) for step, title in zip(page.steps, titles, strict=True))
    assert page.names == [f"train-worker-{i}" for i in range(4)]
    assert "3" in words(page.rows[3].find("td[@data-label='Exit code']"))
    drawn = page.drawn
    assert (drawn["zero"], drawn["met"], drawn["lanes"]) == (T - 60_000, 13_000, [["Failed", 1, 1], ["worker", 3, 3]])
    assert drawn["bars"][0][:6] == ["train-worker-3", 0, 60, 10_000, 12_000, 51_000]
    assert drawn["bars"][0][6:] == ["failed", 3, "this-machine", []]
    for panel in (page.tree.get_element_by_id(f"job-{part}") for part in ("policies", "plugins")):
        assert (words(panel), panel.get("hidden") is not None) == ("", True)


def test_a_pod_names_the_devices_that_it_has_once_each(client, running):
    had = [{"name": "nvidia.com/gpu", "resources": [{"resourceID": each} for each in ("GPU-1a", "GPU-2b", "GPU-1a")]}]
    status = {"name": "main", "state": {"running": {}}, "allocatedResourcesStatus": had}
    store.write(Patch(PODS, "default", "train-worker-0", {"status": {"containerStatuses": [status]}}, "status"))
    first, second, *_ = (words(row.find("td[@data-label='Node']")) for row in JobPage(client, "train").rows)
    assert first.replace(" ", "") == f"{second}GPU-1a,GPU-2b"


def test_a_waiting_job_says_why_in_the_schedulers_words_and_its_empty_table_without_them(client, alice):
    why = "Needs 4 × 64 CPU; the largest node has 2."
    world.make("wait", "Pending", why=f"{why} 4/0 tasks in gang unschedulable: pod group is not ready.")
    page = JobPage(client, "wait")
    assert why in page.text("job-why")
    assert why in page.text("table-empty")
    assert "tasks in gang" not in page.text("table-empty")


@cases("told, is_told_how", {
    "no taint": ("", False),
    "a taint": (" Other nodes have taints: ui.volcano.sh/simulated=true on 3 nodes.", True),
})  # fmt: skip
def test_a_job_that_a_taint_keeps_from_simulated_nodes_says_how_to_run_there(client, alice, told, is_told_how):
    world.make("wait", "Pending", why=f"No node takes pods: 1 is unschedulable.{told}")
    assert ('ui.volcano.sh/simulated: "true"' in JobPage(client, "wait").text("job-why")) == is_told_how


def test_pods_that_wait_on_their_node_have_not_started(client, alice):
    pods = [worker(index, phase="Pending", scheduled=T - 50_000) for index in range(4)]
    world.make("pulls", "Pending", pods=pods)
    taken_on = {"status": {"startTime": now_text(T - 50_000)}}
    for index in range(4):
        store.write(Patch(PODS, "default", f"pulls-worker-{index}", taken_on, "status"))
    drawn = JobPage(client, "pulls").drawn
    assert (drawn["met"], {(bar[4], bar[6]) for bar in drawn["bars"]}) == (None, {(None, "starting")})


def test_of_very_many_pods_those_that_matter_most_have_bars(client, alice):
    pods = [worker(i, **FINISHED) for i in range(501)]
    for index in (7, 400):
        pods[index] |= {"phase": "Failed", "code": 3}
    pods[9] = worker(9, **PLACED)
    counted = {"worker": {"phase": {"Succeeded": 498, "Failed": 2, "Running": 1}}}
    counts = {"failed": 2, "succeeded": 498, "taskStatusCount": counted}
    tasks = (("worker", 501),)
    world.make("wide", "Failed", pods=pods, tasks=tasks, minimum=501, began=T - 40_000, counts=counts)
    page = JobPage(client, "wide")
    names = [bar[0] for bar in page.drawn["bars"]]
    assert (names[:2], len(names), "wide-worker-9" in names) == (["wide-worker-7", "wide-worker-400"], 500, True)
    assert (page.drawn["lanes"], page.drawn["met"]) == ([["Failed", 2, 2], ["worker", 498, 499]], 20_000)
    assert "500 of 501 pods" in page.text("job-timeline")
    assert page.steps[3].endswith(" later"), "the pod group tells when the gang had its nodes"


def test_a_job_of_very_many_pods_says_that_those_run_on_a_clock_that_ask_for_it(client, alice):
    asking = {"spec": {**world.TEMPLATE["spec"], "nodeSelector": {"ui.volcano.sh/simulated": "true"}}}
    tasks = [
        {"name": "worker", "replicas": 500, "template": asking},
        {"name": "ps", "replicas": 1, "template": world.TEMPLATE},
    ]
    pods = [*(worker(i) for i in range(500)), {"task": "ps", "index": 0}]
    world.make("wide", "Running", pods=pods, spec={"tasks": tasks})
    assert "500 of 501 simulated" in JobPage(client, "wide").text("job-head")


@cases("codes, told", {
    "alike": ([3, 3], "exit 3 · worker-0, worker-1"),
    "two causes": ([3, 4, 3], "exit 3 · worker-0, worker-2exit 4 · worker-1"),
    "many": ([1] * 5, "exit 1 · worker-0, worker-1, worker-2 and 2 more"),
    "many causes": ([1, 2, 3, 4, 5],
        "exit 1 · worker-0exit 2 · worker-1exit 3 · worker-2and 2 that failed otherwise"),
})  # fmt: skip
def test_a_failed_job_leads_with_the_cause(client, alice, codes, told):
    failed = {**PLACED, "phase": "Failed"}
    pods = [worker(i, **failed, finished=T - 30_000 + i, code=code) for i, code in enumerate(codes)]
    rest = f"{4 - len(codes)} of 4 pods succeeded."
    sentence = causes.sentence([Failure(f"bad-worker-{i}", "worker", (code,)) for i, code in enumerate(codes)])
    message, counts = f"{sentence} {rest}", {"failed": len(codes)}
    world.make("bad", "Failed", pods=pods, began=T - 40_000, message=message, counts=counts)
    head = JobPage(client, "bad").tree.get_element_by_id("job-head")
    assert "".join("".join(each.itertext()) for each in head.findall(".//ul[@class='job-causes']/li")) == told
    assert words(head.find(".//p[@class='job-gang']")) == rest
    link = head.find(".//ul[@class='job-causes']/li/a").get("href")
    assert link == "/jobs/default/bad/?tab=logs&pod=bad-worker-0"
    assert client.get(link).status_code == 200


@cases("query, order", {
    "those that failed first": ("", "2013"), "by name": ("?sort=name", "0123"), "by phase": ("?sort=-phase", "0132"),
    "of a task": ("?task=worker", "2013"), "of a phase": ("?phase=Failed", "2"), "by text": ("?q=worker-3", "3"),
})  # fmt: skip
def test_pods_are_ordered_and_filtered(client, alice, query, order):
    pods = [worker(i, **FINISHED) for i in range(4)]
    pods[2] |= {"phase": "Failed", "code": 3}
    world.make("bad", "Failed", pods=pods, counts={"failed": 1, "succeeded": 3})
    assert "".join(name[-1] for name in JobPage(client, "bad", query).names) == order


def test_pods_come_in_the_order_of_their_numbers_and_deleted_ones_leave(client, alice):
    pods = [worker(i, scheduled=T, started=T) for i in (10, 2, 1, 0, 11)]
    world.make("many", "Running", pods=pods, tasks=(("worker", 12),))
    assert JobPage(client, "many", "?per=25").names == [f"many-worker-{i}" for i in (0, 1, 2, 10, 11)]
    store.write(Delete(PODS, "default", "many-worker-11", grace=0))
    assert len(JobPage(client, "many").rows) == 4


def test_events_of_the_job_and_its_pods_are_shown_and_those_of_namesakes_are_not(client, running):
    (other,) = store.write(Create(JOBS, world.job_object("train-2")))
    series = {"count": 7, "lastObservedTime": "2026-01-01T00:09:00.000001Z"}
    for event in (
        world.event_object(running, "Placed", "All four.") | {"series": series},
        world.event_object(running, "Started", "Main <b>began</b>.", about="Pod", name="train-worker-0"),
        world.event_object(other, "Placed", "Not ours."),
        world.event_object(other, "Started", "Nor this.", about="Pod", name="train-2-worker-0"),
    ):
        store.write(Create(EVENTS, event))
    html = JobPage(client, "train", "?tab=events").html
    assert all(text in html for text in ("All four.", "7 times", "Main &lt;b&gt;began&lt;/b&gt;."))
    assert "Not ours." not in html
    assert "Nor this." not in html


def test_the_page_says_what_policies_will_do_and_what_plugins_gave(client, alice):
    policies, plugins = [{"event": "PodFailed", "action": "RestartJob"}], {"svc": ["--inject-hosts-env=false"]}
    world.make("train", "Running", spec={"policies": policies, "plugins": plugins}, counts={"retryCount": 1})
    page = JobPage(client, "train")
    assert "When a pod fails: restart the whole job.PodFailed → RestartJob" in page.text("job-policies")
    assert "1 of 2 restarts is used up" in page.text("job-policies")
    assert "svc --inject-hosts-env=false" in page.text("job-plugins")
    assert "found as train-worker-0.train to train-worker-3.train" in page.text("job-plugins")


def test_what_a_policy_did_is_an_event_and_a_mark_in_the_timeline(client, running):
    said = "A pod of worker failed: RestartJob <now>."
    for event in (
        world.event_object(running, "CommandIssued", "Suspended by alice.", now=T - 1000),
        world.event_object(running, "ExecuteAction", said, now=T - 5000),
        world.event_object(running, "Placed", "All four.", now=T - 4000),
        world.event_object(running, "ExecuteAction", "Of a pod.", about="Pod", name="train-worker-0"),
    ):
        store.write(Create(EVENTS, event))
    page = JobPage(client, "train")
    assert page.drawn["marks"] == [[55_000, said], [59_000, "Suspended by alice."]]
    assert said in page.text("job-timeline")
    rows = JobPage(client, "train", "?tab=events").tree.findall(".//tbody/tr")
    (row,) = (each for each in rows if "RestartJob" in "".join(each.itertext()))
    assert [row.find(f"td[@data-label='{each}']").text.strip() for each in ("Reason", "Message")] == [
        "ExecuteAction",
        said,
    ]


def test_yaml_is_shown_and_downloaded(client, running):
    assert "minAvailable: 4" in JobPage(client, "train", "?tab=yaml").html
    download = client.get("/jobs/default/train/yaml/")
    assert download["Content-Disposition"] == 'attachment; filename="train.yaml"'
    assert download.content.startswith(b"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata:\n  name: train\n")


def test_a_log_is_not_had_through_another_namespace(client, alice):
    world.make("secret", "Running", namespace="other", pods=[worker(0, scheduled=T, started=T)])
    uid = store.find(PODS, namespace="other")[0].uid
    world.make("mine", "Running")
    assert client.get(f"/jobs/default/mine/log/?pod=secret-worker-0&uid={uid}").status_code == 404


def test_a_deleted_job_says_so_and_can_be_run_again(client, running):
    client.post("/jobs/default/train/delete/", {"uid": "another"})
    assert "This job was deleted" not in JobPage(client, "train").html
    assert client.post("/jobs/default/train/delete/", {"uid": running.uid}).status_code == 302
    assert "This job was deleted" in JobPage(client, "train").html
    form = client.get("/jobs/new/?from=default/train")
    assert b"name: train-2" in form.content
    assert b"minAvailable: 4" in form.content


@pytest.mark.parametrize("container", ["nope", "../main", "_work", "x" * 400, "\0", "🌋"])
def test_a_container_that_the_pod_has_not_is_refused_in_words(client, running, container):
    answer = client.get("/jobs/default/train/log/", {"pod": "train-worker-0", "container": container})
    assert answer.status_code == 404
    assert "has no container of that name" in answer.content.decode()


def test_the_log_of_a_waiting_pod_says_why_it_is_empty(client, alice):
    world.make("wait", "Pending", why="Nothing is free.", pods=[worker(0, phase="Pending")])
    html = JobPage(client, "wait", "?tab=logs").html
    assert "waits for a node" in html
    assert "Nothing is free." in html


@pytest.mark.parametrize("tab", ["", "?tab=logs", "?tab=events", "?tab=yaml", "?tab=nonsense"])
def test_a_job_without_pods_has_every_tab(client, alice, tab):
    world.make("bare", "Pending", why="The queue is closed.")
    assert JobPage(client, "bare", tab)


def test_the_page_costs_the_same_queries_for_four_pods_and_for_hundreds(client, running):
    pods = [worker(i, scheduled=T, started=T) for i in range(300)]
    world.make("wide", "Running", pods=pods, tasks=(("worker", 300),), minimum=300)
    counts = []
    for name in ("train", "wide"):
        JobPage(client, name)
        with CaptureQueriesContext(connection) as captured:
            JobPage(client, name)
        counts.append(len(captured))
    assert counts[0] == counts[1] <= 17


def labels(client, name):
    """The buttons that a job's page offers, as words."""
    actions = JobPage(client, name).tree.get_element_by_id("job-actions")
    return [words(each) for each in (*actions.findall("a"), *actions.findall("form/button"))]


@cases("phase, offered", {
    "Pending": ("Pending", ["Suspend"]), "Running": ("Running", ["Suspend"]), "Aborting": ("Aborting", ["Resume"]),
    "Aborted": ("Aborted", ["Resume"]), "Restarting": ("Restarting", []), "Completed": ("Completed", []),
})  # fmt: skip
def test_a_job_is_suspended_and_resumed_in_the_phases_that_heed_it(client, alice, phase, offered):
    world.make("mine", phase)
    assert [each for each in labels(client, "mine") if each in ("Suspend", "Resume")] == offered


@pytest.mark.shows("6.3/suspend, resume", "6.3/vcctl's")
@cases("phase, verb, action", {
    "suspend": ("Running", "suspend", "AbortJob"),
    "resume": ("Aborted", "resume", "ResumeJob"),
    "restart": ("Running", "restart", "RestartJob"),
    "terminate": ("Pending", "terminate", "TerminateJob"),
    "complete": ("Running", "complete", "CompleteJob"),
})  # fmt: skip
def test_the_button_sends_the_command_that_vcctl_sends(client, alice, phase, verb, action):
    job = world.make("mine", phase)
    answer = client.post(f"/jobs/default/mine/{verb}/")
    assert answer.url == "/jobs/default/mine/"
    sent = store.find(COMMANDS)[0].object
    assert (sent["action"], sent["target"]["uid"]) == (action, job.uid)
    assert sent["metadata"]["name"].startswith(f"mine-{action.lower()}-")
    assert sent["metadata"]["ownerReferences"] == [sent["target"]]
    assert sent["metadata"]["annotations"]["ui.volcano.sh/created-by"] == "alice"


def test_a_job_of_somebody_else_is_not_suspended(client, alice):
    world.make("other", "Running", owner="bob")
    assert "Suspend" not in labels(client, "other")
    client.post("/jobs/default/other/suspend/")
    assert store.find(COMMANDS) == []
    assert client.post("/jobs/default/gone/suspend/").status_code == 404


def test_a_restarting_job_says_once_what_it_waits_for(client, alice):
    said = "2 pods have to end before the job starts again."
    world.make("again", "Restarting", message=said)
    page = JobPage(client, "again")
    assert page.text("job-head").count(said) == page.text("job-why").count(said) == 1


def test_the_yaml_tab_says_what_the_system_added(client, alice):
    spec = {"plugins": {"svc": []}}
    world.make("train", "Running", pods=[worker(0, scheduled=T)], spec=spec)
    world.make("lone", "Pending", spec=spec)
    env = [{"name": "VC_WORKER_NUM", "value": "4"}, {"name": "MINE", "value": "<1>"}]
    container = {**store.get(PODS, "default", "train-worker-0").object["spec"]["containers"][0], "env": env}
    patch = {"spec": {"containers": [container], "nodeName": "this-machine"}}
    store.write(Patch(PODS, "default", "train-worker-0", patch))

    def added(name):
        """What was added to the job and to its pods: field → cells."""
        page = JobPage(client, name, "?tab=yaml")
        sections = page.tree.findall(".//*[@id='job-effective']/section")
        rows = ([[words(cell) for cell in row] for row in each.findall(".//tbody/tr")] for each in sections)
        return page, words(sections[1]), *({field: cells for field, *cells in found} for found in rows)

    page, said, job, pods = added("train")
    assert job["spec.maxRetry"] == ["–", "3", "a default"]
    assert job["spec.queue"] == ["–", "default", "a default"]
    assert "minAvailable" in "".join(job)
    assert "maxRetry" not in page.text("job-written")
    assert "as train-worker-0 has it" in said
    assert pods["spec.containers[main].env[VC_WORKER_NUM]"] == ["–", "4", "the plugin svc"]
    assert pods["spec.containers[main].env[MINE]"] == ["–", "<1>", "the job controller"]
    assert pods["spec.nodeName"] == ["–", "this-machine", "the scheduler"]
    _, said, _, pods = added("lone")
    assert "as the controller would make the first" in said
    assert pods["spec.hostname"] == ["–", "lone-worker-0", "the plugin svc"]


@pytest.fixture
def job(alice):
    return world.make("train", "Running", pods=[{"task": "worker", "index": 0, "scheduled": 1, "started": 1}])


def rendered(topic):
    with store.reading():
        return topics.find(topic)(topics.TopicRequest(SYSTEM, {"namespace": "default", "name": "train"}))


@pytest.mark.parametrize("topic", ["jobs:detail", "jobs:timeline", "jobs:pods", "jobs:events", "jobs:yaml"])
def test_a_job_that_is_deleted_while_somebody_looks_says_so(job, topic):
    store.write(Delete(JOBS, "default", "train", grace=0))
    parts = rendered(topic)
    assert "This job was deleted" in "".join(parts.parts.values())
    assert parts.watches


def test_a_part_hears_of_the_jobs_own_pods_and_events_and_of_no_others(job):
    for topic, resource in (("jobs:pods", PODS), ("jobs:timeline", EVENTS)):
        assert {watch.owner for watch in rendered(topic).watches if watch.resource == resource.id} == {job.uid}
    assert EVENTS.index(world.event_object(job, "ExecuteAction", "Restarted.")).owner == job.uid
    of_pod = world.event_object(job, "Started", "Began.", about="Pod", name="train-worker-0")
    assert EVENTS.index(of_pod).owner != job.uid
