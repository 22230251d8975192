"""The table of actions and the words of all that may happen, and what of a stored job was written."""

import json

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from dashboard.pages import overview
from jobs.controller import commands
from jobs.lifecycle import image_waits, phases
from jobs.lifecycle.phases import FINISHED
from jobs.lifecycle.reading import Job, JobSpec, JobStatus, Metadata, TaskSpec
from jobs.plugins.table import PLUGINS
from jobs.rules import actions, additions, policies, reasons, remedies, words
from jobs.rules.actions import Extent, Result
from jobs.rules.command_warnings import warn
from jobs.rules.written import written
from kube import pod_health
from kube.kinds.batch import Action, JobEvent, JobPhase, JobState, TaskState
from kube.pod_health import Cause
from kube.resources import JOBS
from scheduler.engine.cause import Reason
from tests.builders import of
from tests.jobs.builders import Cluster, defaulted, nested
from tests.tables import cases

PHASES = [str(phase) for phase in JobPhase]
EVERY, ALIVE = frozenset(PHASES), frozenset({"Pending", "Running"})
# Which phases heed an action (reference: volcano-job §2.6), written down once more.
APPLIES = {
    **dict.fromkeys(("clone", "edit", "delete"), EVERY),
    **dict.fromkeys(("scale", "suspend", "restart", "complete", "terminate"), ALIVE),
    "resume": {"Aborting", "Aborted"},
}
OTHERS = {"apiVersion": JOBS.api_version, "kind": "Job", "name": "none"}
PULL = 'Back-off pulling image "r/a:1": ErrImagePull: failed to pull image "r/a:1": '
UNAUTHORIZED = "unable to retrieve auth token: invalid username/password: unauthorized"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
POD = {"containers": [{"name": "main", "image": "busybox"}]}
ONE, OTHER = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}
MOUNTS = [{"name": "v", "mountPath": path} for path in ("/a", "/b")]
values = nested(st.integers() | st.text(max_size=3), st.sampled_from("abc"))


def job(phase="Running", *, reason="", message="", retried=0, deleting=False, replicas=3, there=3, **status):
    state, counts = JobState(phase=phase, reason=reason, message=message), TaskState(phase={"Running": there})
    status |= {"state": state, "retry_count": retried, "task_status_count": {"main": counts} if there else {}}
    metadata = Metadata(name="demo", deletion_timestamp="2026-01-01T00:00:00Z" if deleting else "")
    spec = JobSpec(max_retry=3, tasks=[TaskSpec(name="main", replicas=replicas)])
    return Job(metadata=metadata, spec=spec, status=JobStatus(**status))


def warned(command, phase):
    """What is said of a Command in a cluster with one job, which is in a phase."""
    return warn(command, None, Cluster(of(JOBS, "demo", status={"state": {"phase": phase}})))


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", [action.name for action in actions.ACTIONS])
def test_an_action_applies_in_the_phases_that_heed_it_and_clients_are_warned_of_what_is_not_offered(name, phase):
    action = actions.BY_NAME[name]
    problem = actions.problem(action, job(phase))
    assert (problem == "") == (phase in APPLIES[name])
    assert problem == "" or problem.startswith(f"It is {phase}; only jobs that are ")
    assert actions.problem(action, job(phase, deleting=True)) == ("" if name == "clone" else "It is being deleted.")
    if action in actions.BY_ORDER.values():
        warning = warned(commands.to_job("default", "demo", "", action.order), phase)
        assert warning == [f"target: The job demo stays as it is. {problem}"] * bool(problem)


@cases("name, about", {
    "suspend one": ("suspend", Extent(1, 12, 9, 3)),
    "resume": ("resume", Extent(1, 1)),
    "restart": ("restart", Extent(1, 2, 1)),
    "the last restart": ("restart", Extent(1, 2, 2, 0, 1)),
    "restart many": ("restart", Extent(5, 10, 10, 0, 2)),
    "terminate": ("terminate", Extent(1, 4)),
    "complete two": ("complete", Extent(2, 4, 4)),
    "delete thousands": ("delete", Extent(5000, 20000, 12)),
})  # fmt: skip
def test_the_effect_is_told_in_numbers(golden, name, about):
    golden("effects", " ".join(actions.effect(actions.BY_NAME[name], about, actions.Retention(30, 14))))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 5)), max_size=20))
def test_the_extent_of_many_is_the_sum_of_each(numbers):
    jobs = [job(replicas=ran + waits, running=ran, pending=waits, retried=retried) for ran, waits, retried in numbers]
    each = [actions.extent([one]) for one in jobs]
    assert actions.extent(jobs) == Extent(*(sum(column) for column in zip(*each, Extent(), strict=True)))


DONE, SKIPPED = Result.DONE, Result.SKIPPED
# What comes of an action by the phase of the job, which was restarted so often; None: nothing yet.
OUTCOMES = {
    ("suspend", 0): {"Running": None, "Aborting": None, "Aborted": DONE, "Completed": SKIPPED},
    ("resume", 0): {"Aborted": None, "Restarting": None, "Pending": DONE},
    ("restart", 1): {"Running": None, "Failed": SKIPPED},
    ("restart", 2): {"Restarting": None, "Pending": DONE, "Completed": DONE},
    ("terminate", 0): {"Terminating": None, "Terminated": DONE},
    ("complete", 0): {"Completed": DONE, "Terminated": SKIPPED},
    ("delete", 0): {"Running": None},
}
NO_RETRY = {"reason": "RetriesUsedUp", "message": "The job was restarted 3 times."}


@cases("name, found, result", {
    **{
        f"{name}: {phase} after {retried} restarts": (name, job(phase, retried=retried), result)
        for (name, retried), results in OUTCOMES.items()
        for phase, result in results.items()
    },
    "suspend: deleted meanwhile": ("suspend", None, Result.GONE),
    "restart: none left": ("restart", job("Failed", retried=3, **NO_RETRY), Result.REFUSED),
    "delete: done": ("delete", None, DONE),
    "scale: two lack": ("scale", job(replicas=5), None), "scale: one too many": ("scale", job(replicas=2), None),
    "scale: done": ("scale", job(replicas=3), DONE), "scale: no pods yet": ("scale", job(replicas=3, there=0), None),
})  # fmt: skip
def test_the_outcome_is_judged_by_the_job_as_it_is(name, found, result):
    verdict = actions.verdict(actions.BY_NAME[name], found, 1)
    assert (verdict and verdict.result) == result
    assert verdict is None or verdict.result is Result.DONE or verdict.why


@pytest.mark.parametrize("name", [action.name for action in actions.CONFIRMED if action.name != "delete"])
def test_an_order_to_a_job_that_is_over_is_never_left_open(name):
    assert all(actions.verdict(actions.BY_NAME[name], job(phase), 0) is not None for phase in FINISHED)


@cases("change", {
    "an action of controllers": {"action": "SyncJob"}, "no action": {"action": ["AbortJob"]}, "no target": {"target": None},
    "a queue": {"target": {"kind": "Queue", "name": "demo"}}, "no such job": {"target": OTHERS},
})  # fmt: skip
def test_of_other_commands_nothing_is_said(change):
    assert warned({**commands.to_job("default", "demo", "", Action.ABORT_JOB), **change}, "Completed") == []


def test_what_lasts_too_long_is_told_with_what_the_job_says_of_itself():
    late = actions.overdue(actions.SUSPEND, job("Aborting", message="2 pods have to end."))
    assert late == (Result.TIMED_OUT, "After 30 s it is Aborting. 2 pods have to end.")
    assert "by 2" in actions.overdue(actions.SCALE, job(replicas=5)).why
    assert "being deleted" in actions.overdue(actions.DELETE, job(deleting=True)).why


def test_every_event_that_happens_and_every_action_has_words_and_all_that_make_sense_are_offered():
    assert set(words.EVENT_WORDS) == set(policies.ALLOWED_EVENTS) - {JobEvent.JOB_UPDATED}
    assert set(words.ACTION_WORDS) == set(policies.ALLOWED_ACTIONS)
    assert [each.action for each in words.ACTIONS if not each.is_offered] == ["ResumeJob"]


def test_every_plugin_has_words_and_all_its_arguments_with_their_defaults():
    assert set(words.PLUGIN_WORDS) == set(PLUGINS)
    for plugin in words.PLUGINS:
        written = dict(each.written.removeprefix("--").split("=") for each in plugin.arguments)
        flags = PLUGINS[plugin.name].flags
        assert written.keys() == flags.keys(), plugin.name
        for name, default in flags.items():
            assert written[name] == (str(default).lower() if isinstance(default, bool) else str(default) or "…")


def test_events_and_actions_have_words_and_a_task_is_offered_what_reaches_its_policies():
    of_job, of_task = (dict(words.event_choices(of_task=of_task)) for of_task in (False, True))
    assert ("Unknown" in of_job, "Unknown" in of_task) == (True, False)
    assert of_task["PodFailed"] == "a pod of this task fails"
    assert words.event("PodFailed", "worker") == "a pod of worker fails"
    assert words.event("Unknown", "worker") == "pods of the gang are lost and cannot be placed again"
    assert (words.event("JobUpdated"), words.action("Dance")) == ("JobUpdated happens", "Dance")
    assert (words.event("PodFailed"), words.action("RestartJob")) == ("a pod fails", "restart the whole job")


def test_every_reason_to_wait_has_words_and_a_remedy_and_the_guide_has_the_whole_list():
    """Run `python -c "from jobs.rules import remedies; print(*remedies.rows(), sep='\\n')"` for the rows."""
    assert {str(each) for each in Reason} <= reasons.WAITING.keys()
    assert remedies.REASONS.keys() == reasons.WAITING.keys() | reasons.START_OBSTACLES.keys() | {remedies.BEHIND}
    assert {each.value for each in Cause} == reasons.START_OBSTACLES.keys() == pod_health.TEXTS.keys()
    assert {each.about for each in remedies.REASONS.values()} == set(remedies.About)
    text = (settings.BASE_DIR / "docs/how-to/why-a-job-waits.md").read_text()
    assert [line for line in text.splitlines() if line.startswith("| ") and "`" in line] == remedies.rows()


def test_what_the_overview_calls_hopeless_does_not_end_by_itself():
    assert not any(remedies.REASONS[reason].is_passing for reason in (*overview.HOPELESS, overview.DEADLOCK))
    assert overview.DEADLOCK == phases.TASK_DEADLOCK


def test_what_the_registry_said_stands_alone():
    expected = {f"{PULL}manifest unknown": "manifest unknown", "anything else": "anything else", "": ""}
    expected['failed to pull image "r/a:1": dial tcp: refused'] = "dial tcp: refused"
    assert {message: image_waits.registry_message(message) for message in expected} == expected


@cases("reason, message, helps", {
    "no image": ("ImagePullBackOff", "reading manifest 1 in r/a: manifest unknown", "has no such image"),
    "wrong password": ("ErrImagePull", UNAUTHORIZED, "imagePullSecrets"),
    "denied": ("ErrImagePull", "requested access to the resource is denied", "imagePullSecrets"),
    "refused": ("ErrImagePull", "dial tcp 127.0.0.1:1: connect: connection refused", "does not reach the registry"),
    "no host": ("ErrImagePull", "lookup nosuch.example.org: no such host", "does not reach the registry"),
    "no TLS": ("ErrImagePull", "http: server gave HTTP response to HTTPS client", "does not trust the registry"),
    "full disk": ("ErrImagePull", "write /var/lib: no space left on device", "disk is full"),
    "unknown": ("ErrImagePull", "something new", "Check the image's name and tag."),
    "never pulled": ("ErrImageNeverPull", "", "imagePullPolicy IfNotPresent"),
    "no name": ("InvalidImageName", "", "registry/path:tag"),
})  # fmt: skip
def test_what_helps_follows_from_what_was_said(reason, message, helps):
    remedy = image_waits.remedy(reason, PULL + message if message else "")
    assert helps in remedy
    assert ("tried again by itself" in remedy) is bool(message)


@cases("reason, elsewhere, is_named", {
    "error": ("ErrImagePull", False, True), "again and again": ("ImagePullBackOff", False, True),
    "never pulled": ("ErrImageNeverPull", False, True), "no name": ("InvalidImageName", False, False),
    "on another cluster": ("ErrImagePull", True, False),
})  # fmt: skip
def test_the_way_out_is_named_where_commands_can_run_without_images(reason, elsewhere, is_named):
    remedy = image_waits.remedy(reason, "connection refused", elsewhere=elsewhere)
    assert all((way in remedy) is is_named for way in ("ui.volcano.sh/runtime: process", "VOLCANO_UI_ENGINE=none"))


# ---- what was written of a stored job, and how it differs from what is stored
def stored(spec, **metadata):
    """A job as it is stored after it was written so."""
    return defaulted({"metadata": {"name": "demo", "namespace": "default", **metadata}, "spec": spec}, None)


def task(**fields):
    return {"replicas": 2, "template": {"spec": POD}, **fields}


@cases("spec", {
    "as little as possible": {"tasks": [task()]},
    "numbers of one's own": {"tasks": [task(name="a"), task(name="b", minAvailable=1)], "minAvailable": 2},
    "values of one's own": {"tasks": [task()], "queue": "batch", "maxRetry": 9, "schedulerName": "other"},
    "a plugin that brings others": {"tasks": [task()], "plugins": {"mpi": ["--port=23"]}},
    "partitions": {"tasks": [task(partitionPolicy={"totalPartitions": 2, "partitionSize": 1})]},
    "a topology": {"tasks": [task()], "networkTopology": {"highestTierAllowed": 1}},
    "the host's network": {"tasks": [task(template={"spec": {**POD, "hostNetwork": True}})]},
})  # fmt: skip
def test_what_the_defaults_fill_in_was_not_written(spec):
    assert written(stored(spec)) == (spec, False)


APPLIED = {"tasks": [task()], "queue": "default"}


@cases("noted, found", {
    "nothing: what was written as the default is taken for one": (None, ({"tasks": [task()]}, False)),
    "what kubectl applied": (json.dumps({"spec": APPLIED}), (APPLIED, True)),
    **{
        f"no longer so: {noted}": (noted, ({"tasks": [task()]}, False))
        for noted in ("", "{", "[]", '{"spec": 3}', '{"spec": {"tasks": []}}')
    },
})  # fmt: skip
def test_what_kubectl_noted_is_what_was_written_if_it_is_still_so(noted, found):
    annotations = {} if noted is None else {ANNOTATION: noted}
    assert written(stored(APPLIED, annotations=annotations)) == found


def test_claims_that_the_controller_made_were_not_written():
    volume = {"mountPath": "/data", "volumeClaim": {"storageClassName": "fast"}}
    job = stored({"tasks": [task()], "volumes": [{**volume, "volumeClaimName": "demo-pvc-1"}]})
    assert written(job, {"demo-pvc-1"}).spec["volumes"] == [volume]
    assert written(job).spec["volumes"] == [{**volume, "volumeClaimName": "demo-pvc-1"}]


few = st.integers(0, 4)
partitions = st.fixed_dictionaries({"partitionSize": st.integers(1, 2)}, optional={"minPartitions": st.integers(0, 2)})
names = st.sampled_from(["a", "default0", "default1", ""])
tasks = st.fixed_dictionaries(
    {"template": st.just({"spec": POD})},
    optional={"name": names, "replicas": few, "minAvailable": few, "maxRetry": few, "partitionPolicy": partitions},
)
plugins = st.dictionaries(st.sampled_from(["svc", "ssh", "mpi", "env"]), st.lists(st.just("--x"), max_size=1))
queues = st.sampled_from(["default", "batch", ""])
specs = st.fixed_dictionaries(
    {"tasks": st.lists(tasks, min_size=1, max_size=3)},
    optional={"queue": queues, "minAvailable": few, "maxRetry": few, "plugins": plugins},
)


@given(specs)
def test_what_was_written_is_stored_as_the_job_is(spec):
    job = stored(spec)
    found = written(job)
    assert stored(found.spec)["spec"] == job["spec"]
    assert written(stored(found.spec)) == found


@cases("before, after, found", {
    "equal": ({"a": 1}, {"a": 1}, []),
    "added": ({}, {"queue": "x"}, [("queue", "", "x")]),
    "changed": ({"a": {"b": 1}}, {"a": {"b": 2}}, [("a.b", "1", "2")]),
    "removed": ({"a": "x", "b": 1}, {"b": 1}, [("a", "x", "")]),
    "an item by its name": ({"env": [ONE]}, {"env": [OTHER, ONE]}, [("env[B]", "", "2")]),
    "one volume at two paths": ({"volumeMounts": MOUNTS[:1]}, {"volumeMounts": MOUNTS},
        [("volumeMounts[/b]", "", '{"name": "v", "mountPath": "/b"}')]),
    "texts are one value": ({"args": ["a"]}, {"args": ["a", "b"]}, [("args", '["a"]', '["a", "b"]')]),
    "a name twice": ({"env": [{"name": "A"}, {"name": "A"}]}, {"env": [{"name": "A"}, {"name": "B"}]},
        [("env[1].name", "A", "B")]),
    "an empty text": ({}, {"a": ""}, [("a", "", '""')]),
    "a long value": ({}, {"a": "x" * 999}, [("a", "", "x" * 300 + "…")]),
})  # fmt: skip
def test_each_difference_is_a_field(before, after, found):
    assert [(each.name, each.before, each.after) for each in additions.of(before, after)] == found


@given(values, values)
def test_only_what_is_equal_has_no_differences(before, after):
    assert bool([*additions.of(before, after)]) == (before != after)
