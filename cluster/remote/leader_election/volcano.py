"""Whether Volcano's own controllers and scheduler work on a cluster where these pages leave the work to them: a thread of the mirror program."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings

from cluster import clock
from cluster.models import MirroredCluster
from cluster.remote.http import paths
from cluster.remote.http.request import RestClient, Unreachable, look_up
from cluster.remote.leader_election import lease
from cluster.remote.leader_election.election import ANSWER_S
from cluster.remote.leader_election.lease import ObservedLease
from cluster.store import store
from kube.errors import ApiError, Forbidden
from kube.meta import Object, now_text
from kube.resources import LEASES, PODS

LOOK_EVERY_S = 5.0
EMBEDDED = "+volcano-ui."  # in the version of an API server of ours, whose cluster has controllers of its own
log = logging.getLogger(__name__)


class VolcanoWatch:
    """Looks at Volcano's Leases, and at its pods in the mirror, and notes which of its programs do not work."""

    def __init__(self, connect: Callable[[], RestClient]) -> None:
        self._connect = connect
        self._leases: dict[str, ObservedLease] = {}
        self._is_embedded: bool | None = None  # None: not known yet

    def run(self, patiently: Callable[..., Any]) -> None:
        """Look until the process ends; `patiently` calls a function until the database lets it."""
        while True:
            pods = patiently(running_pods)
            try:
                text = self.look(pods)
            except (Unreachable, ApiError) as error:
                log.info("whether Volcano works cannot be seen: %s", error)  # the strip says that the cluster is away
            else:
                patiently(note, text)
            clock.sleep(LOOK_EVERY_S)

    def look(self, pods: Iterable[Object]) -> str:
        """Return which of Volcano's programs do not work, in sentences; "" where both do, or where that may not be seen.

        pods are those that run in the namespace of the Leases. Where an installation of these pages works in their place nothing is missing either.
        """
        connection, now = self._connect(), clock.monotonic()
        try:
            if self._is_embedded is None:
                self._is_embedded = EMBEDDED in str((look_up(connection, "/version", ANSWER_S) or {}).get("gitVersion"))
            if self._is_embedded:
                return ""
            for name in (lease.NAME, *lease.VOLCANOS):
                found = look_up(connection, paths.one(LEASES, settings.LEASE_NAMESPACE, name), ANSWER_S)
                self._leases[name] = lease.observe(self._leases.get(name), found, now)
        except Forbidden:
            return ""
        if self._leases[lease.NAME].is_held(now):
            return ""
        observed = {**self._leases, **lease.running(pods, now)}
        return lease.absence(observed, now, _time_of_day)


def running_pods() -> list[Object]:
    """Return the pods that run in the namespace of Volcano's Leases, as they are mirrored."""
    return [stored.object for stored in store.find(PODS, namespace=settings.LEASE_NAMESPACE, phase="Running")]


def _time_of_day(moment: float) -> str:
    """Return a moment of our monotonic clock for people: `12:23 UTC`."""
    passed_ms = round((clock.monotonic() - moment) * 1000)
    return f"{now_text(clock.milliseconds() - passed_ms)[11:16]} UTC"


def note(text: str) -> None:
    """Note it for the other processes, in the field that says why nobody works on the cluster."""
    MirroredCluster.objects.filter(id=1).exclude(hindrance=text).update(hindrance=text)
