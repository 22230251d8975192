"""The page of a job: its head, pods, timeline, tabs and buttons, and why it waits."""

import pytest

from cluster import clock
from cluster.access import SYSTEM
from cluster.api import backend
from cluster.consumers import behind
from cluster.models import Cursor
from cluster.remote.backend import Remote
from cluster.store import Create, Delete, Patch, decisions, store
from cluster.writes import Decision
from dashboard.live.topics import TopicRequest
from dashboard.pages import overview
from dashboard.parts import decisions as rows
from jobs.lifecycle import causes
from jobs.lifecycle.causes import Failure
from jobs.pages import live
from jobs.pages.job.detail import Detail
from kube.meta import now_text
from kube.resources import COMMANDS, EVENTS, JOBS, POD_GROUPS, PODS
from scheduler.decided import Kind
from scheduler.engine.cause import Cause, Exclusion, ExclusionKind, Reason
from tests.builders import of, owner
from tests.jobs.pages import world
from tests.jobs.pages.job_page import JobPage, words
from tests.tables import cases
from tests.verify import render

T = world.START
PLACED = {"scheduled": T - 50_000, "started": T - 40_000}
FINISHED = {**PLACED, "phase": "Succeeded", "finished": T - 30_000, "code": 0}
SIMULATED = (3, Exclusion(ExclusionKind.TAINT, display="ui.volcano.sh/simulated=true"))
OVERUSED = "resource in cluster is overused: overused cpu"
EMPTY_GANG = "0/0 tasks in gang unschedulable: pod group is not ready, 1 minAvailable"
WHY = "/jobs/default/wait/ job-why"


def worker(index, **options):
    return {"task": "worker", "index": index, **options}


@pytest.fixture
def running(alice):
    pods = [worker(i, scheduled=T - 50_000, started=T - 49_000 + i * 1000) for i in range(3)]
    pods.append(worker(3, phase="Failed", scheduled=T - 50_000, started=T - 48_000, finished=T - 9_000, code=3))
    return world.make("train", "Running", began=T - 46_000, pods=pods, counts={"running": 3, "failed": 1})


def test_the_page_shows_phase_gang_steps_pods_and_times(client, running, reads):
    reads(client, "/jobs/default/train/ job-head job-steps rows")
    page = JobPage(client, "train")
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


@cases("why", {
    "another scheduler's words": world.GANG_TEXT,
    "a taint": Cause(Reason.NODES_UNAVAILABLE, excluded=((1, Exclusion(ExclusionKind.NOT_READY)), SIMULATED)),
})  # fmt: skip
def test_a_waiting_job_says_why_and_how_to_run_elsewhere(client, alice, why, reads):
    pods = [worker(0, phase="Pending")] if isinstance(why, Cause) and SIMULATED in why.excluded else []
    world.make("wait", "Pending", why=why, pods=pods)
    reads(client, "/jobs/default/wait/ job-why table-empty", "/jobs/default/wait/?tab=logs log")


def test_pods_that_wait_on_their_node_have_not_started(client, alice):
    pods = [worker(index, phase="Pending", scheduled=T - 50_000) for index in range(4)]
    world.make("pulls", "Pending", pods=pods)
    taken_on = {"status": {"startTime": now_text(T - 50_000)}}
    for index in range(4):
        store.write(Patch(PODS, "default", f"pulls-worker-{index}", taken_on, "status"))
    drawn = JobPage(client, "pulls").drawn
    assert (drawn["met"], {(bar[4], bar[6]) for bar in drawn["bars"]}) == (None, {(None, "starting")})


def test_of_very_many_pods_those_that_matter_most_have_bars_and_those_on_a_clock_are_counted(client, alice):
    asking = {"spec": {**world.TEMPLATE["spec"], "nodeSelector": {"ui.volcano.sh/simulated": "true"}}}
    tasks = [{"name": "worker", "replicas": 501, "template": asking}]
    pods = [worker(i, **FINISHED) for i in range(501)]
    for index in (7, 400):
        pods[index] |= {"phase": "Failed", "code": 3}
    pods[9] = worker(9, **PLACED)
    counted = {"worker": {"phase": {"Succeeded": 498, "Failed": 2, "Running": 1}}}
    counts = {"failed": 2, "succeeded": 498, "taskStatusCount": counted}
    world.make("wide", "Failed", pods=pods, spec={"tasks": tasks}, minimum=501, began=T - 40_000, counts=counts)
    page = JobPage(client, "wide")
    names = [bar[0] for bar in page.drawn["bars"]]
    assert (names[:2], len(names), "wide-worker-9" in names) == (["wide-worker-7", "wide-worker-400"], 500, True)
    assert (page.drawn["lanes"], page.drawn["met"]) == ([["Failed", 2, 2], ["worker", 498, 499]], 20_000)
    assert "500 of 501 pods" in page.text("job-timeline")
    assert "simulated" in page.text("job-head")
    assert page.steps[3].endswith(" later"), "the pod group tells when the gang had its nodes"


@cases("codes", {"alike": [3, 3], "two causes": [3, 4, 3], "many": [1] * 5, "many causes": [1, 2, 3, 4, 5]})
def test_a_failed_job_leads_with_the_cause(client, alice, codes, reads):
    failed = {**PLACED, "phase": "Failed"}
    pods = [worker(i, **failed, finished=T - 30_000 + i, code=code) for i, code in enumerate(codes)]
    found = causes.summed_up(Failure(f"bad-worker-{i}", "worker", (code,)) for i, code in enumerate(codes))
    summary = f"{4 - len(codes)} of 4 pods succeeded."
    counts = {"failed": len(codes), "summary": summary}
    world.make("bad", "Failed", pods=pods, began=T - 40_000, message=f"{found.sentence} {summary}", counts=counts)
    reads(client, "/jobs/default/bad/ job-head")
    link = JobPage(client, "bad").tree.find(".//*[@id='job-head']//ul[@class='job-causes']/li/a").get("href")
    assert (link, client.get(link).status_code) == ("/jobs/default/bad/?tab=logs&pod=bad-worker-0", 200)


def test_pods_are_ordered_and_filtered(client, alice, reads):
    pods = [worker(i, **FINISHED) for i in range(4)]
    pods[2] |= {"phase": "Failed", "code": 3}
    world.make("bad", "Failed", pods=pods, counts={"failed": 1, "succeeded": 3})
    queries = ("", "?sort=name", "?sort=-phase", "?task=worker", "?phase=Failed", "?q=worker-3")
    reads(client, *(f"/jobs/default/bad/{query} names" for query in queries))
    by_number = [worker(i, scheduled=T, started=T) for i in (10, 2, 1, 0, 11)]
    world.make("many", "Running", pods=by_number, tasks=(("worker", 12),))
    store.write(Delete(PODS, "default", "many-worker-11", grace=0))
    assert JobPage(client, "many", "?per=25").names == [f"many-worker-{i}" for i in (0, 1, 2, 10)]


def test_events_of_the_job_and_its_pods_are_shown_and_what_policies_did_is_marked(client, running, reads):
    (namesake,) = store.write(Create(JOBS, world.job_object("train-2")))
    series = {"count": 7, "lastObservedTime": "2026-01-01T00:09:00.000001Z"}
    for event in (
        world.event_object(running, "Placed", "All four.", now=T - 4000) | {"series": series},
        world.event_object(running, "Started", "Main <b>began</b>.", about="Pod", name="train-worker-0"),
        world.event_object(running, "CommandIssued", "Suspended by alice.", now=T - 1000),
        world.event_object(running, "ExecuteAction", "A pod of worker failed: RestartJob <now>.", now=T - 5000),
        world.event_object(running, "ExecuteAction", "Of a pod.", about="Pod", name="train-worker-0"),
        world.event_object(namesake, "Placed", "Not ours."),
        world.event_object(namesake, "Started", "Nor this.", about="Pod", name="train-2-worker-0"),
    ):
        store.write(Create(EVENTS, event))
    reads(client, "/jobs/default/train/?tab=events tbody")
    page = JobPage(client, "train")
    message = "A pod of worker failed: RestartJob <now>."
    assert page.drawn["marks"] == [[55_000, message], [59_000, "Suspended by alice."]]
    assert message in page.text("job-timeline")


def test_the_page_says_what_policies_will_do_and_what_plugins_gave(client, alice, reads):
    policies, plugins = [{"event": "PodFailed", "action": "RestartJob"}], {"svc": ["--inject-hosts-env=false"]}
    world.make("train", "Running", spec={"policies": policies, "plugins": plugins}, counts={"retryCount": 1})
    reads(client, "/jobs/default/train/ job-policies job-plugins")


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
    form = client.get("/jobs/new/?from=default/train").content
    assert (b"name: train-2" in form, b"minAvailable: 4" in form) == (True, True)


def test_a_container_that_the_pod_has_not_is_refused_in_words(client, running):
    for container in ("nope", "../main", "_work", "x" * 400, "\0", "🌋"):
        answer = client.get("/jobs/default/train/log/", {"pod": "train-worker-0", "container": container})
        assert (answer.status_code, b"has no container of that name" in answer.content) == (404, True)


def test_a_job_without_pods_has_every_tab(client, alice):
    world.make("bare", "Pending", why="The queue is closed.")
    for tab in ("", "?tab=logs", "?tab=events", "?tab=yaml", "?tab=nonsense"):
        assert JobPage(client, "bare", tab)


@pytest.mark.shows("6.3/suspend, resume", "6.3/vcctl's")
@cases("phase, verb, action", {
    "suspend": ("Running", "suspend", "AbortJob"), "resume": ("Aborted", "resume", "ResumeJob"),
    "restart": ("Running", "restart", "RestartJob"), "terminate": ("Pending", "terminate", "TerminateJob"),
    "complete": ("Running", "complete", "CompleteJob"),
})  # fmt: skip
def test_the_button_sends_the_command_that_vcctl_sends(client, alice, phase, verb, action):
    job = world.make("mine", phase)
    offered = JobPage(client, "mine").tree.xpath("//*[@id='job-actions']/a | //*[@id='job-actions']/form/button")
    assert [words(each) for each in offered if words(each).lower() == verb] == [verb.capitalize()]
    answer = client.post(f"/jobs/default/mine/{verb}/")
    assert answer.url == "/jobs/default/mine/"
    sent = store.find(COMMANDS)[0].object
    assert (sent["action"], sent["target"]) == (action, owner(job.object, blockOwnerDeletion=True))
    assert sent["metadata"]["name"].startswith(f"mine-{action.lower()}-")
    assert sent["metadata"]["ownerReferences"] == [sent["target"]]
    assert sent["metadata"]["annotations"]["ui.volcano.sh/created-by"] == "alice"


def test_a_restarting_job_says_once_what_it_waits_for(client, alice, reads):
    world.make("again", "Restarting", message="2 pods have to end before the job starts again.")
    reads(client, "/jobs/default/again/ job-head job-why")


def test_the_yaml_tab_says_what_the_system_added(client, alice, reads):
    spec = {"plugins": {"svc": []}}
    world.make("train", "Running", pods=[worker(0, scheduled=T)], spec=spec)
    world.make("lone", "Pending", spec=spec)
    env = [{"name": "VC_WORKER_NUM", "value": "4"}, {"name": "MINE", "value": "<1>"}]
    container = {**store.get(PODS, "default", "train-worker-0").object["spec"]["containers"][0], "env": env}
    patch = {"spec": {"containers": [container], "nodeName": "this-machine"}}
    store.write(Patch(PODS, "default", "train-worker-0", patch))

    reads(client, *(f"/jobs/default/{name}/?tab=yaml job-effective" for name in ("train", "lone")))
    assert "maxRetry" not in JobPage(client, "train", "?tab=yaml").text("job-written")


def test_a_part_hears_of_the_jobs_own_pods_and_events_and_of_no_others(running):
    for topic, resource in (("jobs:pods", PODS), ("jobs:timeline", EVENTS)):
        watches = render(SYSTEM, f"{topic}?name=train&namespace=default").watches
        assert {watch.owner for watch in watches if watch.resource == resource.id} == {running.uid}
    assert EVENTS.index(world.event_object(running, "ExecuteAction", "Restarted.")).owner == running.uid
    of_pod = world.event_object(running, "Started", "Began.", about="Pod", name="train-worker-0")
    assert EVENTS.index(of_pod).owner != running.uid


def why(client, name="wait"):
    return JobPage(client, name).text("job-why")


def say(kind, name, changes, **status):
    store.write(Patch(kind, "default", name, {"status": {**status, **changes}}, "status"), now=clock.milliseconds())


def unschedulable(reason, message):
    return {"conditions": [{"type": "Unschedulable", "status": "True", "reason": reason, "message": message}]}


def group_of(job):
    return next(each.name for each in store.find(POD_GROUPS) if each.name.startswith(f"{job}-"))


def read_by(consumer, position=None):
    position = store.revision() if position is None else position
    Cursor.objects.update_or_create(name=f"{consumer}/0", defaults={"position": position})


@pytest.fixture
def waiting(alice):
    world.make("wait", "Pending")
    cause = Cause(Reason.PARENT_LIMIT, queue="team", resource="cpu", requested=2000, free=500, whole=4000)
    say(POD_GROUPS, group_of("wait"), {"conditions": world.waits(cause)})
    read_by("jobs")
    read_by("scheduler")


def test_a_waiting_job_says_what_helps(client, waiting, reads):
    reads(client, WHY)


@cases("consumer, named", {
    "jobs": ("jobs", "The job controller is behind."), "scheduler": ("scheduler", "The scheduler is behind."),
})  # fmt: skip
def test_a_controller_that_has_not_read_the_newest_change_is_named(client, waiting, monkeypatch, consumer, named):
    read_by(consumer, 0)
    late = Detail.of(SYSTEM, "default", "wait").waiting.unread.since + behind.LATE_MS
    for now, is_named, again in ((late - 1, False, late), (late, True, late + 5000)):
        monkeypatch.setattr(clock, "milliseconds", lambda now=now: now)
        assert (named in why(client)) == is_named
        assert Detail.of(SYSTEM, "default", "wait").waiting.again == again


def test_a_job_that_runs_says_why_some_of_its_pods_wait(client, alice, reads):
    pods = [{"task": "worker", "index": index, "phase": "Pending"} for index in (1, 2)]
    running = {"task": "worker", "index": 0, "scheduled": 1, "started": 1}
    world.make("wait", "Running", tasks=(("worker", 3),), minimum=1, pods=[running, *pods])
    condition = {"type": "PodScheduled", "status": "False", "message": "1 of 3 pods have a node; each of the others"}
    for number in (1, 2):
        say(PODS, f"wait-worker-{number}", {"conditions": [condition]})
    reads(client, WHY)
    cause = Cause(Reason.NOT_ENOUGH_RESOURCES, started=True, excluded=(SIMULATED,))
    say(POD_GROUPS, group_of("wait"), {"conditions": world.waits(cause)})
    reads(client, WHY)


@cases("phase, reason, message", {
    "tasks wait for others": ("Running", "WaitingForTasks", "Task b waits for a."),
    "and not what the scheduler counts": ("Pending", "TaskDeadlock", "This can never start: b waits for a."),
})  # fmt: skip
def test_a_job_says_which_tasks_wait_for_each_other(client, waiting, reads, phase, reason, message):
    say(JOBS, "wait", {"state": {"phase": phase, "reason": reason, "message": message}})
    reads(client, WHY)


def test_a_waiting_job_says_its_place_and_who_is_before_it(client, alice, reads):
    for number, namespace in enumerate(("default", "other", "default", "default")):
        world.make(f"job-{number}", "Pending", namespace=namespace, now=world.START + number * 60_000)
    reads(client, "/jobs/default/job-3/ job-place", "/jobs/default/job-0/ job-place")
    say(POD_GROUPS, group_of("job-0"), {"phase": "Running"})
    reads(client, "/jobs/default/job-3/ job-place", "/jobs/default/job-2/ job-place")


@pytest.mark.parametrize("reason", sorted(overview.HOPELESS))
def test_a_job_that_cannot_start_is_told_no_place(client, waiting, reason):
    say(POD_GROUPS, group_of("wait"), unschedulable(reason, "This can never start."), phase="Inqueue")
    text = why(client)
    assert ("This can never start." in text, "Place in queue" in text) == (True, False)


def test_image_that_cannot_be_had_is_told_with_what_the_registry_said_and_what_helps(client, alice, reads):
    world.make("wait", "Running", pods=[{"task": "worker", "index": each} for each in (0, 1)], counts={"pending": 2})
    error = 'ErrImagePull: failed to pull image "r.example.org/a:1": reading manifest 1: manifest unknown'
    waiting = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "r.example.org/a:1": {error}'}
    for number in (0, 1):
        status = {"name": "main", "image": "r.example.org/a:1", "state": {"waiting": waiting}}
        say(PODS, f"wait-worker-{number}", {"containerStatuses": [status]}, phase="Pending")
    reads(client, WHY)


@pytest.fixture
def beside_volcano(alice, monkeypatch):
    """Nothing but the events of Volcano's scheduler says why a job waits."""
    monkeypatch.setattr(backend, "runs", Remote().runs)


def tell(message, at, reason="Unschedulable"):
    (group,) = store.find(POD_GROUPS)
    kind, moment = "Warning" if message == EMPTY_GANG else "Normal", f"2026-11-23T12:00:{at:02}Z"
    fields = {"reason": reason, "type": kind, "message": message, "lastTimestamp": moment}
    about = {"kind": "PodGroup", "name": group.name, "namespace": group.namespace, "uid": group.uid}
    event = of(EVENTS, f"{group.name}.{at}", {"involvedObject": about, **fields}, namespace=group.namespace)
    store.write(Create(EVENTS, event), now=world.START)


@cases("fields, messages", {
    "and that there is no pod": ({}, [OVERUSED, EMPTY_GANG]),
    "the newest": ({}, [OVERUSED, "queue resource quota insufficient"]),
    "only that there is no pod": ({}, [EMPTY_GANG]), "nothing": ({}, []),
    "the group's own word goes first": ({"why": "Needs 4 CPU; 2 are free."}, [OVERUSED]),
    "the job's own word goes first": ({"message": "The queue is closed."}, [OVERUSED]),
})  # fmt: skip
def test_newest_event_about_the_group_says_why_the_job_waits(client, beside_volcano, reads, fields, messages):
    world.make("wait", "Pending", **fields)
    tell("pod group is ready", 9, reason="Scheduled")
    for at, message in enumerate(messages):
        tell(message, at)
    reads(client, WHY)


def test_events_of_the_group_bring_the_head_of_the_page_up_to_date(beside_volcano):
    world.make("wait", "Pending")
    (group,) = store.find(POD_GROUPS)
    parts = live.job_head(TopicRequest(SYSTEM, {"namespace": "default", "name": "wait"}))
    assert group.uid in {watch.owner for watch in parts.watches if watch.resource == EVENTS.id}


def decided(job, at, kind, reason, message, **more):
    name = f"{job.name}-{job.uid}"
    decisions.put([Decision(T + at, kind, reason, job.namespace, name, "default", 2, message, **more)])


@pytest.fixture
def job(alice):
    made = world.make("train", "Running")
    decided(made, 0, "refuse", "QueueLimit", "Queue default is at its limit.")
    decided(made, 1000, "bind", "MinimumFits", "2 pods got nodes.", nodes=[("n1", 2), ("n2", 1)])
    return made


def test_every_kind_has_a_word():
    assert set(rows.WORDS) == set(Kind)


def test_decisions_stand_newest_first_with_reason_and_nodes_and_stay_when_the_job_is_gone(client, job, reads):
    page = "/jobs/default/train/?tab=decisions"
    other = world.make("train", "Running", namespace="other")
    decided(other, 5, "bind", "MinimumFits", "of another namespace")
    reads(client, f"{page} tbody")
    store.write(Delete(JOBS, "default", "train"), now=T + 5000)
    reads(client, f"{page} tbody")
    world.make("train", "Pending")
    pages = (JobPage(client, address=each) for each in (page, f"{page}&of={job.uid}"))
    assert [len(each.tree.findall(".//tbody/tr")) for each in pages] == [0, 2]


def test_where_another_scheduler_works_there_is_no_such_tab(client, job, monkeypatch):
    assert "tab=decisions" in JobPage(client, "train").html
    monkeypatch.setattr(backend, "runs", Remote().runs)
    assert "tab=decisions" not in JobPage(client, "train").html
