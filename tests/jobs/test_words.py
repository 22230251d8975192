"""Whatever a policy, a plugin or a reason to wait may say has words and a remedy, and a cause is told in short."""

from __future__ import annotations

from django.conf import settings

from dashboard.pages import overview
from jobs.lifecycle import phases
from jobs.plugins.table import PLUGINS
from jobs.rules import image_waits, policies, reasons, remedies, short_cause, words
from kube import pod_health
from kube.kinds.batch import JobEvent
from kube.pod_health import Cause
from scheduler.engine.cause import Reason
from tests.tables import cases


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


def test_a_task_is_offered_what_reaches_its_policies():
    of_job, of_task = (dict(words.event_choices(of_task=of_task)) for of_task in (False, True))
    assert ("Unknown" in of_job, "Unknown" in of_task) == (True, False)
    assert of_task["PodFailed"] == "a pod of this task fails"


@cases("said, expected", {
    "an event": (words.event("PodFailed"), "a pod fails"),
    "of a task": (words.event("PodFailed", "worker"), "a pod of worker fails"),
    "of no task": (words.event("Unknown", "worker"), "pods of the gang are lost and cannot be placed again"),
    "an event that never happens": (words.event("JobUpdated"), "JobUpdated happens"),
    "an action": (words.action("RestartJob"), "restart the whole job"),
    "an unknown action": (words.action("Dance"), "Dance"),
})  # fmt: skip
def test_words(said, expected):
    assert said == expected


def test_every_reason_to_wait_has_words_and_a_remedy_and_the_guide_has_the_whole_list():
    """Run `python -c "from jobs.rules import remedies; print(*remedies.rows(), sep='\\n')"` for the rows."""
    assert {str(each) for each in Reason} <= reasons.WAITING.keys()
    assert remedies.REASONS.keys() == reasons.WAITING.keys() | reasons.KEPT.keys() | {remedies.BEHIND}
    assert {each.value for each in Cause} == reasons.KEPT.keys() == pod_health.SAID.keys()
    assert {each.about for each in remedies.REASONS.values()} == set(remedies.About)
    text = (settings.BASE_DIR / "docs/how-to/why-a-job-waits.md").read_text()
    assert [line for line in text.splitlines() if line.startswith("| ") and "`" in line] == remedies.rows()


def test_what_the_overview_calls_hopeless_does_not_end_by_itself():
    assert not any(remedies.REASONS[reason].is_passing for reason in (*overview.HOPELESS, overview.DEADLOCK))
    assert overview.DEADLOCK == phases.TASK_DEADLOCK


PULL = 'Back-off pulling image "r/a:1": ErrImagePull: failed to pull image "r/a:1": '


@cases("message, said", {
    "behind the pull": (f"{PULL}manifest unknown", "manifest unknown"),
    "behind an address": ('failed to pull image "r/a:1": dial tcp: refused', "dial tcp: refused"),
    "alone": ("anything else", "anything else"),
    "nothing": ("", ""),
})  # fmt: skip
def test_what_the_registry_said_stands_alone(message, said):
    assert image_waits.said(message) == said


UNAUTHORIZED = "unable to retrieve auth token: invalid username/password: unauthorized"


@cases("reason, said, helps", {
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
def test_what_helps_follows_from_what_was_said(reason, said, helps):
    remedy = image_waits.remedy(reason, PULL + said if said else "")
    assert helps in remedy
    assert ("tried again by itself" in remedy) is bool(said)


@cases("reason, elsewhere, is_named", {
    "error": ("ErrImagePull", False, True),
    "again and again": ("ImagePullBackOff", False, True),
    "never pulled": ("ErrImageNeverPull", False, True),
    "no name": ("InvalidImageName", False, False),
    "on another cluster": ("ErrImagePull", True, False),
})  # fmt: skip
def test_the_way_out_is_named_where_commands_can_run_without_images(reason, elsewhere, is_named):
    remedy = image_waits.remedy(reason, "connection refused", elsewhere=elsewhere)
    for way in ("ui.volcano.sh/runtime: process", "VOLCANO_UI_ENGINE=none"):
        assert (way in remedy) is is_named


PODS, REST = "exit 1 · w-0, w-3 and 2 more", "1 of 4 pods succeeded."
NEVER = "This can never start: a pod needs 1.5 CPU"


@cases("name, message, said", {
    "exit code": ("a", f"Exit 1 · w-0, w-3 and 2 more. {REST}", PODS),
    "at length": ("a", f"Exited with code 1 · a-w-0, a-w-3 and 2 more. {REST}", PODS),
    "two codes": ("a", "Exited with code 3 · a-w-0; Exited with code 1 · a-w-1. 0 of 2.", "exit 3 · w-0; exit 1 · w-1"),
    "number with a point": ("a", f"{NEVER}. 0 of 4 run.", NEVER),
    "end of another name": ("large", "Waiting for extra-large-0 and large-0", "Waiting for extra-large-0 and 0"),
    "name with a point": ("a.b", "Could not start · a.b-w-0.", "Could not start · w-0"),
    "no number": ("a", "Exited with code unknown", "Exited with code unknown"),
    "nothing": ("a", "", ""),
})  # fmt: skip
def test_the_cause_leads_and_is_all(name, message, said):
    cause, rest = short_cause.parted(name, message)
    assert cause == said
    assert short_cause.without_name(name, message).endswith(rest)
