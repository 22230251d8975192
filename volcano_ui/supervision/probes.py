"""Whether the programs that `up` starts have answered: a page, a ping, a node, another cluster. Each raises OSError until then."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import urllib.request

from django.conf import settings
from django.db import connection

from cluster import clock
from cluster.access import certificates, site
from cluster.remote import freshness, recorder
from cluster.runtime import registry
from cluster.store import store
from kube.resources import LEASES, NODES
from volcano_ui import celery_app, health, sockets


def ask_web() -> None:
    """Raise OSError unless the web server says that it can do its work."""
    with urllib.request.urlopen(f"{site.local_pages()}/{settings.PREFIX}healthz", timeout=5):  # noqa: S310
        pass


def ask_web_behind_front() -> None:
    """Raise OSError unless the web server of one of several clusters says so, on its socket."""
    asked = http.client.HTTPConnection("localhost", timeout=5)
    with contextlib.closing(asked):
        asked.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        asked.sock.settimeout(asked.timeout)
        asked.sock.connect(str(sockets.of_cluster(settings.STATE, settings.CLUSTER_NAME)))
        asked.request("GET", f"/{settings.PREFIX}healthz")
        if (status := asked.getresponse().status) != 200:
            raise OSError(f"it answered {status}")


def ask_api() -> None:
    """Raise OSError unless our API server says that it is ready."""
    context = ssl.create_default_context(cafile=certificates.current().ca)
    # An administrator's own certificate need not be for the address that is asked here.
    context.check_hostname = False
    with urllib.request.urlopen(f"{site.local_api()}/readyz", timeout=5, context=context):  # noqa: S310
        pass


def ask_workers() -> None:
    """Raise TimeoutError unless every Celery worker of this `up` answers."""
    expected = [f"{queue}@{settings.INSTANCE}" for queue in registry.queues()]
    answers = celery_app.control.ping(destination=expected, timeout=1.0, limit=len(expected))
    if len(answers) < len(expected):
        silent = set(expected).difference(*answers)
        raise TimeoutError(f"no answer from {', '.join(sorted(silent))}")


def ask_nodes(revision: int) -> None:
    """Raise TimeoutError unless this machine's agent and the simulator have reported after a revision."""
    try:
        # The state, not the log: a reader of the log may come too late for what it looks for.
        newest = [one for kind in (NODES, LEASES) for one in store.find(kind, order="-revision", limit=1)]
        reported = any(one.revision > revision for one in newest)
        nodes = store.count(NODES).get("Ready", 0)
    finally:
        connection.close()
    if not reported or nodes <= settings.NODES:
        raise TimeoutError(f"{nodes} of {settings.NODES + 1} have reported")


def ask_mirror(begun: int = 0) -> None:
    """Raise TimeoutError unless the mirror hears from its cluster, or misses it; one that began at a time must have done so."""
    try:
        known = recorder.cluster()
    finally:
        connection.close()
    if known is None or not freshness.is_followed(known, begun, clock.milliseconds()):
        raise TimeoutError("it has not asked the cluster of late")


def works(*, leads: bool) -> dict[str, str]:
    """Return "ok" for each part of an `up` without a web server, or what is wrong with it; one that stands by has no programs."""
    try:
        parts = health.servers()
        if leads:
            parts |= {"workers": health.answer(ask_workers), "mirror": health.answer(ask_mirror)}
    finally:
        connection.close()
    return parts
