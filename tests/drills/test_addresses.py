"""A pod that wants the address of its stopped cluster, to be sent the cookies that browsers send there."""

import json
import os
import secrets
import signal
import time

import httpx
import pytest

from proof.harness.waiting import until
from proof.systems.system import System
from proof.systems.work import Person, Watcher, job, task

pytestmark = pytest.mark.system

# Tries for ever and tells of each round; where it is let in it writes down the first request, and lets go.
SQUAT = """
import os, socket, time
while True:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        ours = socket.socket(family)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            ours.bind((host, {port}))
            ours.listen()
        except OSError:
            ours.close()
            continue
        asked, _ = ours.accept()
        open("{folder}/caught", "wb").write(asked.recv(65536))
        asked.close()
        ours.close()
        time.sleep(3600)
    open("{folder}/tried", "w").write(str(time.monotonic()))
    time.sleep(0.02)
"""


@pytest.fixture(params=[{}, {"VOLCANO_UI_CLUSTERS": "home=embedded"}], ids=["one cluster", "behind a front"])
def own(tmp_path, request):
    system = System(tmp_path / "data", VOLCANO_UI_RUNNING="", **request.param)
    yield system
    system.kill() if system.process.poll() is None else None
    system.end_pods()
    system.assert_gone()


def test_pod_never_has_the_address_while_it_is_held_and_sessions_end_where_it_was_not(own, tmp_path):
    folder = tmp_path / "out"
    caught, tried = folder / "caught", folder / "tried"

    def squats():
        """Wait until the pod has tried again."""
        now = time.monotonic()
        until(lambda: tried.exists() and float(tried.read_text() or 0) > now, what="a try")
        assert not caught.exists()

    def is_in():
        """Tell whether the cookies of before still open the page of an administrator."""
        return httpx.get(f"{own.base}/access/", cookies=own.cookies, follow_redirects=True).url.path

    with own, Person(own) as person, own.store() as store:
        squatting = task(["python3", "-c", SQUAT.format(port=own.port, folder=folder)], sees=folder)
        jobs = person.get("/jobs/").url.path  # with the cluster's name in it where there are several
        person.post(f"{jobs}new/", text=json.dumps(job("squats", squatting)), token=secrets.token_hex(8))
        Watcher(store).reaches("squats", "Running")
        inside = is_in()
        assert inside.endswith("/access/")
        for end in (own.stop, own.kill):
            squats()
            end()
            has_notice = f"Process {own.holder()} holds the ports until then" in "".join(own.output)
            assert has_notice == (end == own.stop)
            squats()
            answer = until(lambda: away(own), what="an answer")
            assert "1 pod goes on" in answer.text
            assert answer.headers["cache-control"] == "no-store"
            own.start()
            assert is_in() == inside
        assert "Everybody has to log in again" not in "".join(own.output)

        os.kill(own.holder(), signal.SIGSTOP)  # so that no other one is started meanwhile
        own.kill()
        os.kill(own.holder(), signal.SIGKILL)
        until(lambda: catches(own, caught), what="the pod to be asked")
        assert b"volcano_ui_session" in caught.read_bytes()
        own.start()
        assert "Everybody has to log in again" in "".join(own.output)
        assert is_in().endswith("/login/")


def away(own, host="127.0.0.1"):
    """Ask as a browser does, a cookie with it; return the answer of who stands in for the cluster."""
    try:
        answer = httpx.get(own.base.replace("127.0.0.1", host), cookies=own.cookies)
    except httpx.TransportError:
        return None
    return answer if answer.status_code == 503 else None


def catches(own, caught):
    for host in ("127.0.0.1", "[::1]"):  # the pod may get either first
        away(own, host)
    return caught.exists() and caught.read_bytes()
