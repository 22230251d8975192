from __future__ import annotations

import pytest

from apiserver import health
from apiserver.telemetry import MOST_SERIES, Telemetry
from cluster.runtime import nudge
from tests.apiserver.client import Api
from tests.tables import parts


@pytest.fixture
def api(server):
    # The client of Redis that the set-up used is that of another test.
    nudge.client.cache_clear()
    yield Api(server)
    nudge.client.cache_clear()


@pytest.fixture
def redis_down(monkeypatch):
    def refuse():
        raise ConnectionRefusedError

    monkeypatch.setitem(health.CHECKS, "redis", refuse)
    monkeypatch.setattr(health, "_outages", {})


@parts("apiserver/health", "everybody may ask whether it works, and who is known for figures")
def test_everybody_may_ask_whether_it_works(api, story, part):
    story.goes(part)
    version = api.get("/version").json()
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")
    assert version.keys() >= {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"}
    assert int(version["minor"]) >= 30
    assert api.get("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")


@parts("apiserver/health", "a failing check is named and its reason withheld")
def test_a_failing_check_is_logged_once(story, redis_down, caplog, part):
    story.goes(part)
    lines = [record.getMessage() for record in caplog.records if record.name == health.__name__]
    assert lines == ["what check redis stands for is put off: ConnectionRefusedError"]


def test_requests_are_counted_by_verb_resource_and_code():
    telemetry = Telemetry()
    telemetry.observe("get", "pods/log", 200, 0.03)
    telemetry.observe("create", "jobs.batch.volcano.sh", 201, 0.3)
    lines = telemetry.text().splitlines()
    assert 'apiserver_request_total{code="200",verb="GET",group="",resource="pods",subresource="log"} 1' in lines
    labels = 'verb="CREATE",group="batch.volcano.sh",resource="jobs",subresource="",le="0.4"'
    assert f"apiserver_request_duration_seconds_bucket{{{labels}}} 1" in lines
    with telemetry.inflight("create"), telemetry.watching("pods"):
        text = telemetry.text()
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 1' in text
    assert 'apiserver_longrunning_requests{verb="WATCH",group="",resource="pods",subresource=""} 1' in text
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 0' in telemetry.text()
    for number in range(MOST_SERIES + 100):
        telemetry.observe("get", f"things{number}.example.com", 200, 0.1)
    assert telemetry.text().count("apiserver_request_total{") <= MOST_SERIES + 1
