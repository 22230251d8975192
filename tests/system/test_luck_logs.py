"""After an hour with a hostile user the logs hold no crash and no secret."""

import contextlib
import json
import re

import httpx
import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from proof.systems.work import job, problems, shell

pytestmark = pytest.mark.system

HOSTILE = [
    "<script>alert(1)</script>", "../../etc/passwd", "🌋", "a\nb\r\nSet-Cookie: x=1", "\0", "9" * 400, "' OR 1=1 --",
]  # fmt: skip
PAGES = [
    "/?namespace={}", "/jobs/?text={}&sort={}&page={}&namespace={}", "/jobs/new/?sample={}&from={}",
    "/jobs/default/{}/", "/jobs/default/noisy/?tab=logs&pod={}&uid={}&container={}",
    "/jobs/default/noisy/log/?pod=noisy-main-0&container={}&attempt={}", "/queues/{}/", "/queues/?text={}",
    "/nodes/{}/", "/events/?text={}&namespace={}", "/audit/?text={}", "/login/{}/", "/{}",
]  # fmt: skip
MESSAGES = [
    ["x" * 20_000], ["x" * 1_000_000], ["hello"], [b"\x00\xff"], ["[" * 10_000], ['{"op": "ping"}'] * 200,
    [json.dumps({"op": "subscribe", "id": "x", "stream": "logs?namespace=" + "🌋" * 100})],
]  # fmt: skip


def knock(system, person, messages, path="/live/", origin=None):
    """Open a socket, say what a hostile page would say, and read until the server has had enough."""
    cookies = "; ".join(f"{each.name}={each.value}" for each in person.client.cookies.jar)
    address, headers = f"ws://127.0.0.1:{system.port}{path}", {"Cookie": cookies}
    with (
        contextlib.suppress(WebSocketException, TimeoutError, OSError),
        connect(address, origin=origin or system.base, additional_headers=headers, max_size=None) as socket,
    ):
        for message in messages:
            socket.send(message)
        while True:
            socket.recv(timeout=0.5)


def browse(person):
    for word in HOSTILE:
        for page in PAGES:
            address = page.replace("{}", str(httpx.QueryParams({"": word}))[1:])
            answer = person.client.get(address, follow_redirects=False)
            assert answer.status_code < 500, (address, answer.text[:300])
            assert "<script>alert" not in answer.text


def push(system, person):
    """Send what is too large, from elsewhere, without a token, or to another name."""
    assert person.post("/jobs/new/", text="a" * 9_000_000).status_code == 413
    assert person.post("/jobs/new/", **{f"f{number}": "1" for number in range(1100)}).status_code == 413
    assert person.client.post("/jobs/new/", data={"text": "x"}).status_code == 403
    assert person.client.get("/", headers={"Host": "elsewhere.example"}).status_code == 400
    assert person.client.post("/jobs/new/", content=b"\xff\xfe\0").status_code == 403
    with httpx.Client(base_url=system.base) as stranger:
        assert stranger.post("/jobs/new/", data={"text": "x"}).status_code == 403
        assert stranger.get("/jobs/").status_code == 302


def test_hostile_user_leaves_no_crash_and_no_secret_in_the_logs(system, person, watcher):
    person.create(job("noisy", shell("printf '<script>alert(1)</script>\\033[31m\\000\\377\\n'")))
    watcher.reaches("noisy", "Completed")
    browse(person)
    push(system, person)
    for messages in MESSAGES:
        knock(system, person, messages)
    knock(system, person, [], path="/nowhere/")
    knock(system, person, [], origin="http://elsewhere.example")
    refused = person.submit(job("no-quantity", shell("true", cpu="")))
    assert refused.status_code == 422, problems(refused)
    person.create(job("afterwards", shell("true")))
    watcher.reaches("afterwards", "Completed")

    secrets = [
        (system.data / "secret-key").read_text().strip(),
        *(each.value for each in person.client.cookies.jar),
        *re.findall(r"/login/([^/]+)/", "".join(system.output)),
    ]
    assert len(secrets) >= 4  # the key, a session, a CSRF token, a link
    for file in (system.data / "logs").glob("*.log*"):
        text = file.read_text(errors="replace")
        assert "Traceback" not in text, f"{file.name}: {text[max(0, text.index('Traceback') - 300) :][:2000]}"
        assert "Internal Server Error" not in text, file.name
        assert not [secret for secret in secrets if secret in text], file.name
