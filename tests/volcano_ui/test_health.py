from __future__ import annotations

import pytest

pytestmark = pytest.mark.django_db


def test_healthy(client, settings, redis_url):
    settings.REDIS_URL = redis_url
    answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"database": "ok", "redis": "ok"})


def test_without_redis_it_says_so(client, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    answer = client.get("/healthz")
    assert answer.status_code == 503
    assert answer.json()["database"] == "ok"
    assert "refused" in answer.json()["redis"]


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
