from __future__ import annotations

from pathlib import Path

import pytest

from cluster.version import VERSION

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _data(settings, tmp_path):
    settings.DATA = tmp_path


def test_healthy(client, settings, redis_url):
    settings.REDIS_URL = redis_url
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (
        200,
        {"version": VERSION, "database": "ok", "disk": "ok", "redis": "ok"},
    )


def test_without_redis_it_says_so(client, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert answer.json()["database"] == "ok"
    assert "refused" in answer.json()["redis"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_on_a_full_disk_it_says_so_although_reading_goes_on(client, settings, redis_url):
    settings.REDIS_URL = redis_url
    (settings.DATA / "run").mkdir()
    (settings.DATA / "run" / "health").symlink_to("/dev/full")
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert (answer.json()["database"], answer.json()["redis"]) == ("ok", "ok")
    assert "No space left on device" in answer.json()["disk"]


def test_other_methods_are_refused(client):
    assert client.post("/healthz").status_code == 405


def test_strange_host_is_refused(client):
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 400


def test_answers_carry_the_security_headers(client, settings, redis_url):
    settings.REDIS_URL = redis_url
    headers = client.get("/healthz").headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert (headers["X-Frame-Options"], headers["X-Content-Type-Options"]) == ("DENY", "nosniff")
    assert headers["Referrer-Policy"] == "same-origin"
