from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from cluster.store import Create, Delete, Patch, store
from jobs.lifecycle import causes
from jobs.lifecycle.causes import Failure
from kube.meta import now_text
from kube.resources import COMMANDS, EVENTS, JOBS, PODS
from tests.jobs.pages import world
from tests.tables import cases

T = world.START


def worker(index, **options):
    return {"task": "worker", "index": index, **options}


@pytest.fixture
def running(alice):
    pods = [worker(i, scheduled=T - 50_000, started=T - 49_000 + i * 1000) for i in range(3)]
    pods.append(worker(3, phase="Failed", scheduled=T - 50_000, started=T - 48_000, finished=T - 9_000, code=3))
    return world.make("train", "Running", began=T - 46_000, pods=pods, counts={"running": 3, "failed": 1})


def text_of(page, path):
    return " ".join("".join(page.find(path).itertext()).split())


def test_the_page_shows_phase_gang_steps_and_pods(client, running, parse):
    page = parse(client.get("/jobs/default/train/"))
    assert "3 of 4 needed are running, 1 failed" in text_of(page, ".//*[@id='job-head']")
    steps = text_of(page, ".//*[@id='job-steps']")
    for title in ("Created", "Group created", "In queue", "Gang placed", "Running", "Finished"):
        assert title in steps
    pods = page.findall(".//tbody[@id='table-rows']/tr")
    assert [pod.find("th/a").text for pod in pods] == [f"train-worker-{i}" for i in range(4)]
    assert "3" in "".join(pods[3].find("td[@data-label='Exit code']").itertext())


def test_a_pod_names_the_devices_that_it_has_once_each(client, running, parse):
    had = [{"name": "nvidia.com/gpu", "resources": [{"resourceID": each} for each in ("GPU-1a", "GPU-2b", "GPU-1a")]}]
    status = {"name": "main", "state": {"running": {}}, "allocatedResourcesStatus": had}
    store.write(Patch(PODS, "default", "train-worker-0", {"status": {"containerStatuses": [status]}}, "status"))
    page = parse(client.get("/jobs/default/train/"))
    first, second, *_ = (
        " ".join("".join(row.find("td[@data-label='Node']").itertext()).split())
        for row in page.findall(".//tbody[@id='table-rows']/tr")
    )
    assert first == f"{second} GPU-1a, GPU-2b" or first == f"{second}GPU-1a, GPU-2b"


def test_a_waiting_job_says_why_in_the_schedulers_words(client, alice, parse):
    world.make("wait", "Pending", why="Needs 4 × 64 CPU; the largest node has 2.", message="0 of 4 pods are running.")
    page = parse(client.get("/jobs/default/wait/"))
    assert "Needs 4 × 64 CPU; the largest node has 2." in text_of(page, ".//*[@id='job-why']")


def test_the_empty_table_of_pods_says_why_without_the_schedulers_own_words(client, alice, parse):
    why = "Needs 4 CPU; 2 are free."
    world.make("wait", "Pending", why=f"{why} 4/0 tasks in gang unschedulable: pod group is not ready.")
    empty = text_of(parse(client.get("/jobs/default/wait/")), ".//*[@id='table-empty']")
    assert why in empty
    assert "tasks in gang" not in empty


def test_a_job_that_a_taint_keeps_from_simulated_nodes_says_how_to_run_there(client, alice, parse):
    waits = "No node takes pods: 1 is unschedulable."
    world.make("plain", "Pending", why=waits)
    world.make("tainted", "Pending", why=f"{waits} Other nodes have taints: ui.volcano.sh/simulated=true on 3 nodes.")
    wish = 'ui.volcano.sh/simulated: "true"'
    assert wish not in text_of(parse(client.get("/jobs/default/plain/")), ".//*[@id='job-why']")
    assert wish in text_of(parse(client.get("/jobs/default/tainted/")), ".//*[@id='job-why']")


def test_the_timeline_holds_every_pods_times_and_the_moment_of_the_gang(client, running, parse):
    page = parse(client.get("/jobs/default/train/"))
    drawn = json.loads(page.find(".//*[@id='timeline']").get("data-drawn"))
    assert drawn["zero"] == T - 60_000
    assert drawn["met"] == 13_000
    assert drawn["lanes"] == [["Failed", 1, 1], ["worker", 3, 3]]
    name, lane, created, scheduled, started, finished, state, code, node, runs = drawn["bars"][0]
    assert (name, lane, created, scheduled, started, finished) == ("train-worker-3", 0, 60, 10_000, 12_000, 51_000)
    assert (state, code, node, runs) == ("failed", 3, "this-machine", [])


def test_pods_that_wait_on_their_node_have_not_started(client, alice, parse):
    pods = [worker(index, phase="Pending", scheduled=T - 50_000) for index in range(4)]
    world.make("pulls", "Pending", pods=pods)
    taken_on = {"status": {"startTime": now_text(T - 50_000)}}
    for index in range(4):
        store.write(Patch(PODS, "default", f"pulls-worker-{index}", taken_on, "status"))
    drawn = json.loads(parse(client.get("/jobs/default/pulls/")).find(".//*[@id='timeline']").get("data-drawn"))
    assert drawn["met"] is None
    assert {(bar[4], bar[6]) for bar in drawn["bars"]} == {(None, "starting")}


def test_of_very_many_pods_those_that_matter_most_have_bars(client, alice, parse):
    pods = [
        worker(i, phase="Succeeded", scheduled=T - 50_000, started=T - 40_000, finished=T - 30_000, code=0)
        for i in range(501)
    ]
    for index in (7, 400):
        pods[index] |= {"phase": "Failed", "code": 3}
    pods[9] = worker(9, scheduled=T - 50_000, started=T - 40_000)
    counted = {"worker": {"phase": {"Succeeded": 498, "Failed": 2, "Running": 1}}}
    world.make(
        "wide",
        "Failed",
        pods=pods,
        tasks=(("worker", 501),),
        minimum=501,
        began=T - 40_000,
        counts={"failed": 2, "succeeded": 498, "taskStatusCount": counted},
    )
    page = parse(client.get("/jobs/default/wide/"))
    drawn = json.loads(page.find(".//*[@id='timeline']").get("data-drawn"))
    assert [bar[0] for bar in drawn["bars"][:2]] == ["wide-worker-7", "wide-worker-400"]
    assert len(drawn["bars"]) == 500
    assert "wide-worker-9" in {bar[0] for bar in drawn["bars"]}
    assert drawn["lanes"] == [["Failed", 2, 2], ["worker", 498, 499]]
    assert drawn["met"] == 20_000
    assert "500 of 501 pods" in text_of(page, ".//*[@id='job-timeline']")
    steps = [" ".join("".join(step.itertext()).split()) for step in page.findall(".//*[@id='job-steps']/li")]
    assert steps[3].endswith(" later"), "the pod group tells when the gang had its nodes"


def test_a_job_of_very_many_pods_says_that_those_run_on_a_clock_that_ask_for_it(client, alice, parse):
    asking = {"spec": {**world.TEMPLATE["spec"], "nodeSelector": {"ui.volcano.sh/simulated": "true"}}}
    tasks = [
        {"name": "worker", "replicas": 500, "template": asking},
        {"name": "ps", "replicas": 1, "template": world.TEMPLATE},
    ]
    pods = [*(worker(i) for i in range(500)), {"task": "ps", "index": 0}]
    world.make("wide", "Running", pods=pods, spec={"tasks": tasks})
    page = parse(client.get("/jobs/default/wide/"))
    assert "500 of 501 simulated" in text_of(page, ".//*[@id='job-head']")


@cases("codes, told", {
    "alike": ([3, 3], "exit 3 · worker-0, worker-1"),
    "two causes": ([3, 4, 3], "exit 3 · worker-0, worker-2exit 4 · worker-1"),
    "many": ([1] * 5, "exit 1 · worker-0, worker-1, worker-2 and 2 more"),
    "many causes": ([1, 2, 3, 4, 5], "exit 1 · worker-0exit 2 · worker-1exit 3 · worker-2and 2 that failed otherwise"),
})  # fmt: skip
def test_a_failed_job_leads_with_the_cause(client, alice, parse, codes, told):
    pods = [
        worker(i, phase="Failed", scheduled=T - 50_000, started=T - 40_000, finished=T - 30_000 + i, code=code)
        for i, code in enumerate(codes)
    ]
    rest = f"{4 - len(codes)} of 4 pods succeeded."
    sentence = causes.sentence([Failure(f"bad-worker-{i}", "worker", (code,)) for i, code in enumerate(codes)])
    counts = {"failed": len(codes)}
    world.make("bad", "Failed", pods=pods, began=T - 40_000, message=f"{sentence} {rest}", counts=counts)
    page = parse(client.get("/jobs/default/bad/"))
    head = page.find(".//*[@id='job-head']")
    assert "".join("".join(each.itertext()) for each in head.findall(".//ul[@class='job-causes']/li")) == told
    assert text_of(head, ".//p[@class='job-gang']") == rest
    link = head.find(".//ul[@class='job-causes']/li/a").get("href")
    assert link == "/jobs/default/bad/?tab=logs&pod=bad-worker-0"
    assert client.get(link).status_code == 200


def test_the_pods_of_a_failed_job_begin_with_those_that_failed(client, alice, parse):
    pods = [worker(i, phase="Succeeded", scheduled=T - 50_000, started=T, finished=T, code=0) for i in range(4)]
    pods[2] |= {"phase": "Failed", "code": 3}
    world.make("bad", "Failed", pods=pods, counts={"failed": 1, "succeeded": 3})

    def names(query=""):
        page = parse(client.get(f"/jobs/default/bad/{query}"))
        return [row.find("th/a").text[-1] for row in page.findall(".//tbody[@id='table-rows']/tr")]

    assert names() == ["2", "0", "1", "3"]
    assert names("?sort=name") == ["0", "1", "2", "3"]
    assert names("?sort=-phase") == ["0", "1", "3", "2"]


@pytest.mark.parametrize("query", ["task=worker", "phase=Failed", "q=worker-3"])
def test_pods_are_filtered(client, running, parse, query):
    page = parse(client.get(f"/jobs/default/train/?{query}"))
    names = [row.find("th/a").text for row in page.findall(".//tbody[@id='table-rows']/tr")]
    assert names == ([f"train-worker-{i}" for i in range(4)] if query.startswith("task") else ["train-worker-3"])


def test_events_of_the_job_and_its_pods_are_shown_and_those_of_namesakes_are_not(client, running, parse):
    (other,) = store.write(Create(JOBS, world.job_object("train-2")))
    for event in (
        world.event_object(running, "Placed", "All four."),
        world.event_object(running, "Started", "Main <b>began</b>.", about="Pod", name="train-worker-0"),
        world.event_object(other, "Placed", "Not ours."),
        world.event_object(other, "Started", "Nor this.", about="Pod", name="train-2-worker-0"),
    ):
        store.write(Create(EVENTS, event))
    content = client.get("/jobs/default/train/?tab=events").content.decode()
    assert "All four." in content
    assert "Main &lt;b&gt;began&lt;/b&gt;." in content
    assert "Not ours." not in content
    assert "Nor this." not in content


POLICIES = {
    "policies": [{"event": "PodFailed", "action": "RestartJob"}],
    "plugins": {"svc": ["--inject-hosts-env=false"]},
}


def test_the_page_says_what_policies_will_do_and_what_plugins_gave(client, alice, parse):
    world.make("train", "Running", spec=POLICIES, counts={"retryCount": 1})
    page = parse(client.get("/jobs/default/train/"))
    policies, plugins = (text_of(page, f".//*[@id='job-{part}']") for part in ("policies", "plugins"))
    assert "When a pod fails: restart the whole job.PodFailed → RestartJob" in policies
    assert "1 of 2 restarts is used up" in policies
    assert "svc --inject-hosts-env=false" in plugins
    assert "found as train-worker-0.train to train-worker-3.train" in plugins


def test_a_job_without_policies_and_plugins_has_no_panels_for_them(client, running, parse):
    page = parse(client.get("/jobs/default/train/"))
    for part in ("policies", "plugins"):
        panel = page.find(f".//*[@id='job-{part}']")
        assert panel.get("hidden") is not None
        assert text_of(page, f".//*[@id='job-{part}']") == ""


def test_what_a_policy_did_is_an_event_and_a_mark_in_the_timeline(client, running, parse):
    said = "A pod of worker failed: RestartJob <now>."
    fired = world.event_object(running, "ExecuteAction", said, now=T - 5000)
    later = world.event_object(running, "CommandIssued", "Suspended by alice.", now=T - 1000)
    placed = world.event_object(running, "Placed", "All four.", now=T - 4000)
    pods = world.event_object(running, "ExecuteAction", "Of a pod.", about="Pod", name="train-worker-0")
    for event in (later, fired, placed, pods):
        store.write(Create(EVENTS, event))
    page = parse(client.get("/jobs/default/train/"))
    drawn = json.loads(page.find(".//*[@id='timeline']").get("data-drawn"))
    assert drawn["marks"] == [[55_000, said], [59_000, "Suspended by alice."]]
    assert said in text_of(page, ".//*[@id='job-timeline']")
    rows = parse(client.get("/jobs/default/train/?tab=events")).findall(".//tbody/tr")
    (row,) = (each for each in rows if "RestartJob" in "".join(each.itertext()))
    assert row.find("td[@data-label='Reason']").text == "ExecuteAction"
    assert row.find("td[@data-label='Message']").text.strip() == said


def test_a_series_of_events_shows_its_count(client, running):
    event = world.event_object(running, "Placed", "Again and again.")
    series = {"count": 7, "lastObservedTime": "2026-01-01T00:09:00.000001Z"}
    store.write(Create(EVENTS, {**event, "series": series}))
    assert "7 times" in client.get("/jobs/default/train/?tab=events").content.decode()


def test_yaml_is_shown_and_downloaded(client, running):
    assert "minAvailable: 4" in client.get("/jobs/default/train/?tab=yaml").content.decode()
    download = client.get("/jobs/default/train/yaml/")
    assert download["Content-Disposition"] == 'attachment; filename="train.yaml"'
    assert download.content.startswith(b"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata:\n  name: train\n")


def test_the_page_is_only_read(client, running):
    assert client.post("/jobs/default/train/").status_code == 405
    for address in ("suspend", "delete", "edit", "scale"):
        assert client.get(f"/jobs/default/train/{address}/").status_code == 200
    assert store.find(COMMANDS) == []
    assert store.get(JOBS, "default", "train").revision == running.revision


@pytest.mark.parametrize("path", ["", "yaml/", "log/?pod=train-worker-0", "?tab=logs"])
def test_who_is_not_logged_in_sees_nothing(running, path):
    assert Client().get(f"/jobs/default/train/{path}").status_code == 302


@pytest.mark.parametrize("path", ["", "yaml/", "log/?pod=secret-worker-0", "?tab=logs", "?tab=events"])
def test_another_namespace_is_refused(client, alice, path):
    world.make("secret", "Running", namespace="other", pods=[worker(0, scheduled=T, started=T)])
    response = client.get(f"/jobs/other/secret/{path}")
    assert response.status_code == 403


def test_a_log_is_not_had_through_another_namespace(client, alice):
    world.make("secret", "Running", namespace="other", pods=[worker(0, scheduled=T, started=T)])
    uid = store.find(PODS, namespace="other")[0].uid
    world.make("mine", "Running")
    assert client.get(f"/jobs/default/mine/log/?pod=secret-worker-0&uid={uid}").status_code == 404


@pytest.mark.parametrize("name", ["never", "..", "%3Cscript%3E", "🌋", "a" * 300, "x%0Ay"])
def test_a_job_that_is_not_there_is_a_page_with_404(client, alice, name):
    response = client.get(f"/jobs/default/{name}/")
    assert response.status_code == 404
    assert b"<script>" not in response.content.split(b"<main")[-1]


def test_a_deleted_job_says_so_and_can_be_run_again(client, running, parse):
    assert client.post("/jobs/default/train/delete/", {"uid": running.uid}).status_code == 302
    response = client.get("/jobs/default/train/")
    assert response.status_code == 200
    assert b"This job was deleted" in response.content
    form = client.get("/jobs/new/?from=default/train")
    assert b"name: train-2" in form.content
    assert b"minAvailable: 4" in form.content


def test_deleting_needs_the_job_that_was_looked_at(client, running):
    client.post("/jobs/default/train/delete/", {"uid": "another"})
    assert store.get(JOBS, "default", "train").uid == running.uid


def test_who_may_not_delete_has_no_button_and_is_refused(cluster, person, client):
    client.force_login(person("victor", "viewer"))
    world.make("train", "Running")
    assert b"Delete" not in client.get("/jobs/default/train/").content
    client.post("/jobs/default/train/delete/")
    assert store.get(JOBS, "default", "train")


@pytest.mark.parametrize("container", ["nope", "../main", "_work", "x" * 400, "\0", "🌋"])
def test_a_container_that_the_pod_has_not_is_refused_in_words(client, running, container):
    answer = client.get("/jobs/default/train/log/", {"pod": "train-worker-0", "container": container})
    assert answer.status_code == 404
    assert "has no container of that name" in answer.content.decode()


def test_the_log_of_a_waiting_pod_says_why_it_is_empty(client, alice):
    world.make("wait", "Pending", why="Nothing is free.", pods=[worker(0, phase="Pending")])
    content = client.get("/jobs/default/wait/?tab=logs").content.decode()
    assert "waits for a node" in content
    assert "Nothing is free." in content


def test_a_job_without_pods_has_every_tab(client, alice):
    world.make("bare", "Pending", why="The queue is closed.")
    for tab in ("", "?tab=logs", "?tab=events", "?tab=yaml", "?tab=nonsense"):
        assert client.get(f"/jobs/default/bare/{tab}").status_code == 200


def test_the_page_costs_the_same_queries_for_four_pods_and_for_hundreds(client, running):
    pods = [worker(i, scheduled=T, started=T) for i in range(300)]
    world.make("wide", "Running", pods=pods, tasks=(("worker", 300),), minimum=300)
    counts = []
    for name in ("train", "wide"):
        client.get(f"/jobs/default/{name}/")
        with CaptureQueriesContext(connection) as captured:
            client.get(f"/jobs/default/{name}/")
        counts.append(len(captured))
    assert counts[0] == counts[1]
    assert counts[0] <= 17


def test_deleted_pods_leave_the_table(client, running, parse):
    store.write(Delete(PODS, "default", "train-worker-3", grace=0))
    page = parse(client.get("/jobs/default/train/"))
    assert len(page.findall(".//tbody[@id='table-rows']/tr")) == 3


def test_pods_come_in_the_order_of_their_numbers(client, alice, parse):
    pods = [worker(i, scheduled=T, started=T) for i in (10, 2, 1, 0, 11)]
    world.make("many", "Running", pods=pods, tasks=(("worker", 12),))
    page = parse(client.get("/jobs/default/many/?per=25"))
    names = [row.find("th/a").text for row in page.findall(".//tbody[@id='table-rows']/tr")]
    assert names == [f"many-worker-{i}" for i in (0, 1, 2, 10, 11)]


def labels(client, parse, name):
    """The buttons that a job's page offers, as words."""
    actions = parse(client.get(f"/jobs/default/{name}/")).find(".//*[@id='job-actions']")
    found = [*actions.findall("a"), *actions.findall("form/button")]
    return [" ".join("".join(each.itertext()).split()) for each in found]


@cases("phase, offered", {
    "Pending": ("Pending", "Suspend"),
    "Running": ("Running", "Suspend"),
    "Aborting": ("Aborting", "Resume"),
    "Aborted": ("Aborted", "Resume"),
    "Restarting": ("Restarting", None),
    "Completed": ("Completed", None),
})  # fmt: skip
def test_a_job_is_suspended_and_resumed_in_the_phases_that_heed_it(client, alice, parse, phase, offered):
    world.make("mine", phase)
    assert [each for each in labels(client, parse, "mine") if each in ("Suspend", "Resume")] == (
        [offered] if offered else []
    )


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


def test_a_job_of_somebody_else_is_not_suspended(client, alice, parse):
    world.make("other", "Running", owner="bob")
    assert "Suspend" not in labels(client, parse, "other")
    client.post("/jobs/default/other/suspend/")
    assert store.find(COMMANDS) == []


def test_a_job_that_is_gone_cannot_be_suspended(client, alice):
    assert client.post("/jobs/default/gone/suspend/").status_code == 404


def test_a_restarting_job_says_once_what_it_waits_for(client, alice, parse):
    said = "2 pods have to end before the job starts again."
    world.make("again", "Restarting", message=said)
    page = parse(client.get("/jobs/default/again/"))
    assert text_of(page, ".//*[@id='job-head']").count(said) == 1
    assert said in text_of(page, ".//*[@id='job-why']")


def test_the_yaml_tab_says_what_the_system_added(client, alice, parse):
    spec = {"plugins": {"svc": []}}
    world.make("train", "Running", pods=[worker(0, scheduled=T)], spec=spec)
    real = store.get(PODS, "default", "train-worker-0")
    env = [{"name": "VC_WORKER_NUM", "value": "4"}, {"name": "MINE", "value": "<1>"}]
    container = {**real.object["spec"]["containers"][0], "env": env}
    patch = {"spec": {"containers": [container], "nodeName": "this-machine"}}
    store.write(Patch(PODS, "default", "train-worker-0", patch))
    page = parse(client.get("/jobs/default/train/?tab=yaml"))

    def rows(section):
        found = {}
        for row in section.findall(".//tbody/tr"):
            field, *cells = (" ".join("".join(cell.itertext()).split()) for cell in row)
            found[field] = cells
        return found

    added, pods = page.findall(".//*[@id='job-effective']/section")
    assert rows(added)["spec.maxRetry"] == ["–", "3", "a default"]
    assert rows(added)["spec.queue"] == ["–", "default", "a default"]
    assert "minAvailable" in "".join(rows(added))
    assert "maxRetry" not in text_of(page, ".//*[@id='job-written']")
    assert "as train-worker-0 has it" in text_of(pods, ".")
    assert rows(pods)["spec.containers[main].env[VC_WORKER_NUM]"] == ["–", "4", "the plugin svc"]
    assert rows(pods)["spec.containers[main].env[MINE]"] == ["–", "<1>", "the job controller"]
    assert rows(pods)["spec.nodeName"] == ["–", "this-machine", "the scheduler"]
    world.make("lone", "Pending", spec=spec)
    pods = parse(client.get("/jobs/default/lone/?tab=yaml")).findall(".//*[@id='job-effective']/section")[1]
    assert "as the controller would make the first" in text_of(pods, ".")
    assert rows(pods)["spec.hostname"] == ["–", "lone-worker-0", "the plugin svc"]
