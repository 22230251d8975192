"""What the scheduler decided, on the page of a job that lives and of one that is gone."""

from __future__ import annotations

import pytest

from cluster.access import SYSTEM
from cluster.api import backend
from cluster.remote.backend import Remote
from cluster.store import Delete, decisions, store
from cluster.writes import Decision
from dashboard.live.topics import TopicRequest
from dashboard.parts import decisions as rows
from jobs.pages import live
from kube.resources import JOBS
from scheduler.decided import Kind
from tests.jobs.pages import world

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


def shown(client, parse, query=""):
    page = parse(client.get(f"/jobs/default/train/?tab=decisions{query}"))
    bodies = [body for body in page.iter("tbody") if body.findall("tr")]
    return [" ".join("".join(row.itertext()).split()) for body in bodies for row in body.findall("tr")]


def test_every_kind_has_a_word():
    assert set(rows.WORDS) == set(Kind)


def test_decisions_stand_newest_first_with_reason_and_nodes(client, job, parse):
    other = world.make("train", "Running", namespace="other")
    decided(other, 5, "bind", "MinimumFits", "of another namespace")
    newest, oldest = shown(client, parse)
    assert "Bound 2 MinimumFits 2 pods got nodes. n1 ×2, n2" in newest
    assert "Waits 2 QueueLimit Queue default is at its limit. –" in oldest


def test_they_stay_when_the_job_is_gone(client, job, parse):
    store.write(Delete(JOBS, "default", "train"), now=T + 5000)
    assert len(shown(client, parse)) == 2
    again = world.make("train", "Pending")
    assert again.uid != job.uid
    assert shown(client, parse) == []
    assert len(shown(client, parse, f"&of={job.uid}")) == 2


def test_whoever_may_not_see_the_job_sees_none(client, person, job):
    client.force_login(person("bob", namespace="other"))
    assert client.get("/jobs/default/train/?tab=decisions").status_code == 403


def test_the_topic_says_the_same_as_the_page(job):
    request = TopicRequest(SYSTEM, {"namespace": "default", "name": "train"})
    parts = live.job_decisions(request)
    assert [len(parts.order), *parts.order] == [2, *list(parts.parts)[:2]]
    assert "Nothing has been decided yet" not in parts.parts["decisions-empty"]


def test_where_another_scheduler_works_there_is_no_such_tab(client, job, monkeypatch):
    assert "tab=decisions" in client.get("/jobs/default/train/").content.decode()
    monkeypatch.setattr(backend, "runs", Remote().runs)
    assert "tab=decisions" not in client.get("/jobs/default/train/").content.decode()
