from __future__ import annotations

from django.conf import settings

from dashboard.pages import overview
from jobs.lifecycle import phases
from jobs.rules import reasons, remedies
from kube import pod_health
from kube.pod_health import Cause
from scheduler.engine.cause import Reason


def test_every_reason_of_the_scheduler_has_words():
    assert {str(each) for each in Reason} <= reasons.WAITING.keys()


def test_every_reason_to_wait_has_a_remedy():
    assert remedies.REASONS.keys() == reasons.WAITING.keys() | reasons.KEPT.keys() | {remedies.BEHIND}


def test_every_cause_of_a_pod_has_words_wherever_it_is_told():
    assert {each.value for each in Cause} == reasons.KEPT.keys() == pod_health.SAID.keys()


def test_each_way_of_waiting_that_people_ask_about_has_a_reason():
    assert {each.about for each in remedies.REASONS.values()} == set(remedies.About)


def test_the_guide_has_the_whole_list():
    """Run `python -c "from jobs.rules import remedies; print(*remedies.rows(), sep='\\n')"` for the rows."""
    text = (settings.BASE_DIR / "docs/how-to/why-a-job-waits.md").read_text()
    assert [line for line in text.splitlines() if line.startswith("| ") and "`" in line] == remedies.rows()


def test_what_the_overview_calls_hopeless_does_not_end_by_itself():
    assert not any(remedies.REASONS[reason].is_passing for reason in (*overview.HOPELESS, overview.DEADLOCK))
    assert overview.DEADLOCK == phases.TASK_DEADLOCK
