"""What the scheduler decided, on the page of a job that lives and of one that is gone."""

from __future__ import annotations

import pytest

from cluster.api import backend
from cluster.remote.backend import Remote
from cluster.store import Delete, decisions, store
from cluster.writes import Decision
from dashboard.parts import decisions as rows
from kube.resources import JOBS
from scheduler.decided import Kind
from tests.jobs.pages import world
from tests.jobs.pages.job_page import JobPage, words

T = world.START


def decided(job, at, kind, reason, message, **more):
    name = f"{job.name}-{job.uid}"
    decisions.put([Decision(T + at, kind, reason, job.namespace, name, "default", 2, message, **more)])


@pytest.fixture
def job(alice):
    made = world.make("train", "Running")
    decided(made, 0, "refuse", "QueueLimit", "Queue default is at its limit.")
    decided(made, 1000, "bind", "MinimumFits", "2 pods got nodes.", nodes=[("n1", 2), ("n2", 1)])
    return made


def shown(client, query=""):
    return [words(row) for row in JobPage(client, "train", f"?tab=decisions{query}").tree.findall(".//tbody/tr")]


def test_every_kind_has_a_word():
    assert set(rows.WORDS) == set(Kind)


def test_decisions_stand_newest_first_with_reason_and_nodes_and_stay_when_the_job_is_gone(client, job):
    other = world.make("train", "Running", namespace="other")
    decided(other, 5, "bind", "MinimumFits", "of another namespace")
    newest, oldest = shown(client)
    assert "Bound 2 MinimumFits 2 pods got nodes. n1 ×2, n2" in newest
    assert "Waits 2 QueueLimit Queue default is at its limit. –" in oldest
    store.write(Delete(JOBS, "default", "train"), now=T + 5000)
    assert len(shown(client)) == 2
    world.make("train", "Pending")
    assert (len(shown(client)), len(shown(client, f"&of={job.uid}"))) == (0, 2)


def test_where_another_scheduler_works_there_is_no_such_tab(client, job, monkeypatch):
    assert "tab=decisions" in JobPage(client, "train").html
    monkeypatch.setattr(backend, "runs", Remote().runs)
    assert "tab=decisions" not in JobPage(client, "train").html
