from __future__ import annotations

import pytest

from apiserver import health
from apiserver.http.app import ANONYMOUS
from apiserver.telemetry import MOST_SERIES, Telemetry
from cluster.access import Actor
from cluster.runtime import nudge
from tests.apiserver.client import Api

NOBODY = Actor(ANONYMOUS)


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


def test_version_is_for_everybody_and_metrics_for_those_who_are_known(api):
    answer = api.as_(NOBODY).get("/version").json()
    assert answer["gitVersion"].startswith(f"v{answer['major']}.{answer['minor']}.")
    assert int(answer["minor"]) >= 30
    assert set(answer) >= {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"}
    assert api.as_(NOBODY).get("/metrics").status_code == 401
    answer = api.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "# TYPE apiserver_request_total counter" in answer.text


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/livez/ping", "/readyz/database"])
def test_everybody_may_ask_whether_it_works(api, path):
    answer = api.as_(NOBODY).get(path)
    assert (answer.status_code, answer.text) == (200, "ok")
    assert api.get("/livez?verbose").text == "[+]ping ok\n[+]log ok\nlivez check passed\n"
    assert api.get("/readyz/nonsense").status_code == 404


def test_a_failing_check_is_named_its_reason_withheld_and_logged_once(api, redis_down, caplog):
    for _ in range(3):
        answer = api.get("/readyz")
        assert (answer.status_code, "[-]redis failed: reason withheld" in answer.text) == (500, True)
        assert answer.text.endswith("readyz check failed\n")
    lines = [record.getMessage() for record in caplog.records if record.name == health.__name__]
    assert lines == ["what check redis stands for is put off: ConnectionRefusedError"]
    assert api.get("/readyz/redis").status_code == 500
    answer = api.get("/readyz?exclude=redis&exclude=nonsense&verbose")
    assert (answer.status_code, "[+]redis excluded: ok" in answer.text) == (200, True)
    assert 'warn: some health checks cannot be excluded: no matches for "nonsense"' in answer.text


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
