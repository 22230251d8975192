"""The webhooks' certificate and its authority are renewed while a kube-apiserver asks, and nobody is refused."""

import asyncio
import contextlib
import json
import ssl
import threading
from datetime import UTC, datetime, timedelta

import pytest
import uvicorn

from cluster import clock, issuing
from cluster.remote import recorder
from cluster.remote.door import server
from cluster.remote.http import target
from cluster.remote.leader_election import election
from cluster.remote.leader_election.election import Leadership
from cluster.remote.mirroring.reflection import Step, Update
from cluster.remote.webhooks import hooks
from cluster.remote.webhooks import keys as keeping
from cluster.remote.webhooks.keeper import SECRET, Keeper
from cluster.remote.webhooks.served import Served
from cluster.store import store
from cluster.writes import Mirror
from kube.resources import QUEUES
from proof.harness import clocks
from proof.harness.clocks import ManualClock
from proof.harness.ports import free_port
from proof.harness.waiting import until
from proof.kubernetes.webhooks import CONFIGURATIONS, forget, queue
from volcano_ui import web, webhooks

pytestmark = pytest.mark.system


@contextlib.contextmanager
def serving(folder, port):
    """The server of the webhooks in this process, which looks at its certificate all the time."""
    served = Served(Keeper(server.connection, hooks.Address("127.0.0.1", port)), folder, every_s=0.05)
    served.await_first()
    served.show()
    config = webhooks.config(served)
    config.load()
    running, listener = uvicorn.Server(config), web.listen("127.0.0.1", port)
    thread = threading.Thread(target=lambda: asyncio.run(webhooks._serve(running, listener, served, config.ssl)))
    thread.start()
    try:
        yield
    finally:
        running.should_exit = True
        thread.join()


@contextlib.contextmanager
def applying(kubernetes):
    """kubectl, which applies a queue again and again, each time with another weight; yields what it said of what failed, if so."""
    done, ended = [], threading.Event()

    def run():
        while not ended.is_set():
            text = json.dumps(queue("rolled", weight=len(done) % 100 + 1))
            applied = kubernetes.kubectl.run("apply", "-f", "-", stdin=text)
            done.append(applied.stderr if applied.returncode else "")

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join()


def until_again(done):
    """Wait until something was applied that began after now."""
    enough = len(done) + 2
    until(lambda: len(done) >= enough, what="another change")


@pytest.fixture
def moved_clock():
    """The clock of this process, which the test sets; and the moment that it is in truth."""
    today = datetime.fromtimestamp(clock.microseconds() / 1e6, UTC)
    with clocks.using(ManualClock()) as moved:

        def set_back(by):
            moved.us = round((today - by).timestamp() * 1e6)

        yield set_back, today


@pytest.fixture
def leading(kubernetes, moved_clock, settings, tmp_path):
    """This process is one of those that lead, and its mirror has the queues."""
    settings.TARGET, settings.DATA = target.find(str(kubernetes.config), ""), tmp_path
    settings.WAY, settings.LEASE_NAMESPACE = "in-place", "default"
    server.connection.cache_clear()
    recorder.claim(kubernetes.server)
    election.note(Leadership("me", "me/0", round(moved_clock[1].timestamp() * 1000) + 3_600_000))
    recorder.record([Update(QUEUES, Step.LISTED, version="1")])
    for each in kubernetes.get(QUEUES.id)["items"]:
        store.write(Mirror(QUEUES, each))
    yield
    server.connection.cache_clear()
    forget(kubernetes, "rolled")


# Before now: when it is looked, and what then is trusted and which of these authorities has issued what is shown.
STAGES = (
    (timedelta(days=1), 1, 0),  # the certificate was due long ago, the authority not yet
    (timedelta(hours=3), 2, 0),  # a new authority is made known
    (timedelta(hours=1.5), 2, 1),  # and issues what is shown
    (timedelta(minutes=10), 1, 0),  # and the old one is forgotten
)


@pytest.mark.django_db(transaction=True)
def test_authority_and_certificate_are_rolled_and_nothing_is_refused(kubernetes, leading, moved_clock, tmp_path):
    set_back, today = moved_clock
    set_back(timedelta(days=243.5))  # from when the first authority is
    port, seen, done = free_port(), [], None
    with serving(tmp_path / "run", port), contextlib.ExitStack() as stack:
        for before, authorities, issuer in STAGES:
            set_back(before)

            def is_reached(authorities=authorities, issuer=issuer):
                found = in_use(kubernetes, port)
                if found is None or found.server[0].not_valid_after_utc < today:
                    return None
                same = (len(found.authorities), found.held().issuer) == (authorities, issuer)
                return found if same else None

            seen.append(until(is_reached, every_s=0.1, what=f"{authorities} authorities"))
            done = stack.enter_context(applying(kubernetes)) if done is None else done
            until_again(done)
            wrong = kubernetes.kubectl.fails("apply", "-f", "-", stdin=json.dumps(queue("rolled", parent="none")))
            assert "queue none not found; choose one that exists" in wrong
    assert set(done) == {""}
    assert len({each.server[0].serial_number for each in seen}) == 2
    assert seen[0].authorities[0] != seen[-1].authorities[0]


def in_use(kubernetes, port):
    """Return what the Secret holds, once that is what is shown and what the API server was told; None before."""
    keys = keeping.read(kubernetes.get("secret", SECRET))
    registered = [
        each for plural in CONFIGURATIONS for each in kubernetes.get(plural, hooks.NAME).get("webhooks") or ()
    ]
    if not registered or {each["clientConfig"]["caBundle"] for each in registered} != {keys.bundle}:
        return None
    is_served = ssl.get_server_certificate(("127.0.0.1", port)).encode() == issuing.certificate_text(keys.server[0])
    return keys if is_served else None
