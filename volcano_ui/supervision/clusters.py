"""`manage.py up` with several clusters: one front on the port, and one `up` for each cluster behind it.

Each cluster has its own processes, database, Redis and logs, so one that cannot
start, or that ends, is started again without the others.
The first one has to be ready before the others start, because it stores the accounts.
"""

from __future__ import annotations

import asyncio
import math
import socket
import sys
from collections.abc import Sequence

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from cluster.several import entries, reports
from cluster.several.entries import Entry
from node.leftovers import AtStop
from volcano_ui import env
from volcano_ui.supervision import up
from volcano_ui.supervision.programs import MANAGE
from volcano_ui.supervision.supervisor import Program
from volcano_ui.supervision.up import StartError, say, step

READY_WITHIN_S = 180
PATIENCE_S = 30.0  # for a cluster to stop, its pods' grace period included


def run() -> int:
    """Start everything, wait for a signal, stop everything; return the exit status."""
    return asyncio.run(Clusters().run())


class Clusters(up.Up):
    """One run of several clusters behind a front."""

    def __init__(self) -> None:
        super().__init__(data=settings.STATE / "clusters")

    async def _start(self) -> None:
        with step(f"state directory {settings.STATE}"):
            self._take_state_directory()
        with step(f"clusters {', '.join(each.name for each in settings.CLUSTERS)}"):
            clusters = _pinned(settings.CLUSTERS)
        with step(f"port {settings.PORT}"):
            listener = self._take_port(settings.PORT, "PORT")
        with step("front end"):
            await self._build_assets()
        await self._settle()
        await self._supervisor.start(_front(listener))
        await self._start_clusters(clusters[:1], clusters)
        await self._ready(clusters[0].name, lambda: _require_report(clusters[0]))
        await self._start_clusters(clusters[1:], clusters)
        await asyncio.gather(*(self._expect(each) for each in clusters[1:]))
        say(f"Open {await asyncio.to_thread(up.login_address)}")

    def _runs_pods(self) -> bool:
        return not all(each.kubeconfig for each in settings.CLUSTERS)

    async def _start_clusters(self, chosen: Sequence[Entry], clusters: Sequence[Entry]) -> None:
        for each in chosen:
            reports.forget(reports.folder(settings.STATE), each.name)
            await self._supervisor.start(_cluster(each, clusters))

    async def _expect(self, entry: Entry) -> None:
        """Wait until a cluster is ready; one that is not ready in time is reported and does not stop the others."""
        try:
            await self._ready(entry.name, lambda: _require_report(entry))
        except StartError as error:
            say(f"✗ {error} It is tried again and again.")


def _pinned(clusters: Sequence[Entry]) -> list[Entry]:
    """Return the clusters with the contexts that are current now, so that a context switched later changes nothing.

    Raise StartError for a cluster that cannot be found, and for two entries of one cluster.
    """
    pinned: dict[str, Entry] = {}
    for entry in clusters:
        try:
            target = env.target_of(entry)
        except ImproperlyConfigured as error:
            raise StartError(str(error)) from None
        directory = target.directory if target else ""
        if directory in pinned:
            raise StartError(
                f"{pinned[directory].name} and {entry.name} of VOLCANO_UI_CLUSTERS are the same cluster; leave one out."
            )
        pinned[directory] = entry
        if target and target.kubeconfig:
            pinned[directory] = entry._replace(kubeconfig=target.kubeconfig, context=target.name)
    return list(pinned.values())


def _front(listener: socket.socket) -> Program:
    command = [sys.executable, "-m", "volcano_ui.front", f"--fd={listener.fileno()}"]
    return Program("front", command, stage=2, descriptors=(listener.fileno(),), gives_signs=True)


def _cluster(entry: Entry, clusters: Sequence[Entry]) -> Program:
    """Return the program that runs a cluster. If it is killed with its supervisor, the next start takes over its pods."""
    environment = {"VOLCANO_UI_CLUSTER": entry.name, "VOLCANO_UI_CLUSTERS": entries.text(clusters)}
    return Program(
        f"cluster-{entry.name}",
        [*MANAGE, "up", "--behind-front"],
        patience_s=math.inf if settings.RUNNING == AtStop.WAIT else PATIENCE_S,
        environment=environment,
        gives_signs=True,
    )


def _require_report(entry: Entry) -> None:
    """Raise TimeoutError until a cluster has written its first report, which it does once it is ready."""
    if reports.read(reports.folder(settings.STATE), entry.name) is None:
        raise TimeoutError(f"see cluster-{entry.name}.log")
