"""Readiness probes of the programs that `up` starts. Each raises OSError until its program has answered."""

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
    """Raise OSError unless the web server reports that it is healthy."""
    with urllib.request.urlopen(f"{site.local_pages()}/{settings.PREFIX}healthz", timeout=5):  # noqa: S310
        pass


def ask_web_behind_front() -> None:
    """Raise OSError unless the web server of one of several clusters reports on its socket that it is healthy."""
    client = http.client.HTTPConnection("localhost", timeout=5)
    with contextlib.closing(client):
        client.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.sock.settimeout(client.timeout)
        client.sock.connect(str(sockets.of_cluster(settings.STATE, settings.CLUSTER_NAME)))
        client.request("GET", f"/{settings.PREFIX}healthz")
        if (status := client.getresponse().status) != 200:
            raise OSError(f"it answered {status}")


def ask_api() -> None:
    """Raise OSError unless our API server reports that it is ready."""
    context = ssl.create_default_context(cafile=certificates.current().ca)
    # An administrator's own certificate need not be for the address that is used here.
    context.check_hostname = False
    with urllib.request.urlopen(f"{site.local_api()}/readyz", timeout=5, context=context):  # noqa: S310
        pass


def ask_workers() -> None:
    """Raise TimeoutError unless every Celery worker of this `up` answers."""
    expected = [f"{queue}@{settings.INSTANCE}" for queue in registry.queues()]
    replies = celery_app.control.ping(destination=expected, timeout=1.0, limit=len(expected))
    if len(replies) < len(expected):
        silent = set(expected).difference(*replies)
        raise TimeoutError(f"no answer from {', '.join(sorted(silent))}")


def ask_nodes(revision: int) -> None:
    """Raise TimeoutError unless this machine's agent and all simulated nodes are Ready, and one reported after a revision."""
    try:
        # From the objects, not from the log: a reader of the log may start after the entry that it looks for.
        newest = [one for kind in (NODES, LEASES) for one in store.find(kind, order="-revision", limit=1)]
        reported = any(one.revision > revision for one in newest)
        nodes = store.count(NODES).get("Ready", 0)
    finally:
        connection.close()
    if not reported or nodes <= settings.NODES:
        raise TimeoutError(f"{nodes} of {settings.NODES + 1} have reported")


def ask_mirror(begun: int = 0) -> None:
    """Raise TimeoutError unless the mirror follows its cluster, or has found it away, since `begun` (epoch ms)."""
    try:
        cluster = recorder.cluster()
    finally:
        connection.close()
    if cluster is None or not freshness.is_followed(cluster, begun, clock.milliseconds()):
        raise TimeoutError("it has not reached the cluster lately")


def works(*, leads: bool) -> dict[str, str]:
    """Return "ok" or a problem for each part of an `up` without a web server; on standby it has neither workers nor mirror."""
    try:
        parts = health.servers()
        if leads:
            parts |= {"workers": health.probe_result(ask_workers), "mirror": health.probe_result(ask_mirror)}
    finally:
        connection.close()
    return parts
