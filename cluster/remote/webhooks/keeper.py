"""Keeping the webhooks' certificate in a Secret of the cluster, and telling its API server where they are.

All processes that answer show the same certificate, the one in the Secret, since the API server asks any of them. Only
the installation that leads (`cluster.remote.leader_election.election`) changes the Secret and the two configurations; what several of its
processes do at once is settled by resourceVersions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from django.conf import settings

from cluster import clock, issuing
from cluster.models import MirroredCluster
from cluster.remote.http import paths
from cluster.remote.http.request import decode, look_up
from cluster.remote.leader_election import election
from cluster.remote.webhooks import hooks
from cluster.remote.webhooks import keys as keeping
from cluster.remote.webhooks.hooks import Address, Verb
from cluster.remote.webhooks.keys import Keys
from cluster.remote.webhooks.rotation import Lives, Step, next_step
from kube.errors import AlreadyExists, Conflict, NotFound
from kube.meta import Object
from kube.resources import SECRETS

if TYPE_CHECKING:  # it brings the official client, which is 900 modules
    from cluster.remote.connection import Connection

SECRET = "volcano-ui-webhooks"  # noqa: S105  its name
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ANSWER_S = 10.0
log = logging.getLogger(__name__)


class Keeper:
    """Keeps what one process serves. ApiError and Unreachable say why the cluster could not be asked; try again then."""

    def __init__(self, connect: Callable[[], Connection], address: Address, lives: Lives | None = None) -> None:
        self._connect, self._address = connect, address
        self._lives = lives or Lives()
        self._names = frozenset(str(each.value) for each in issuing.general_names([address.host]))
        self._user: str | None = None

    def look(self, now: datetime) -> Keys | None:
        """Return what is to be served, after the next step of its rotation; None while there is nothing to serve."""
        secret = self._get(self._secret)
        keys = keeping.read(secret) if secret is not None else None
        if not _leads():
            return keys
        held = keys.held() if keys is not None else None
        is_trusted = keys is not None and all(
            (current := self._get(_path(verb, hooks.NAME))) is not None and hooks.trusts(current, keys.bundle)
            for verb in hooks.KINDS
        )
        step = next_step(held, self._names, now, self._lives, is_trusted=is_trusted)
        if step is Step.NONE:
            return keys
        new = keeping.after(keys, step, self._names, now, self._lives)
        try:
            self._save(secret, new)
        except (Conflict, AlreadyExists):  # another process was quicker, with another certificate
            newest = self._get(self._secret)
            return keeping.read(newest) if newest is not None else None
        log.info("the webhooks' certificates change", extra={"step": step.value})
        return new

    def publish(self, keys: Keys) -> None:
        """Have the API server ask the webhooks, and trust what they show."""
        if not _leads():
            return
        for verb, wanted in hooks.configurations(self._address, keys.bundle, self._me()).items():
            current = self._get(_path(verb, hooks.NAME))
            try:
                if current is None:
                    self._send("POST", _path(verb), wanted)
                elif (changed := hooks.changed(current, wanted)) is not None:
                    self._send("PUT", _path(verb, hooks.NAME), changed)
            except (Conflict, AlreadyExists):
                continue  # another process says the same, or the next look does

    def _save(self, before: Object | None, keys: Keys) -> None:
        metadata: Object = {"name": SECRET, "namespace": settings.LEASE_NAMESPACE}
        if before is not None:
            metadata = before["metadata"]
        kind = {"apiVersion": SECRETS.api_version, "kind": SECRETS.kind}
        secret = {**kind, "metadata": metadata, "type": keeping.TYPE, "data": keys.data()}
        if before is None:
            self._send("POST", paths.collection(SECRETS, settings.LEASE_NAMESPACE), secret)
        else:
            self._send("PUT", self._secret, secret)

    @property
    def _secret(self) -> str:
        return paths.one(SECRETS, settings.LEASE_NAMESPACE, SECRET)

    def _me(self) -> str:
        """Return in whose name requests from here are made; "", which nobody is called, where the server does not tell."""
        if self._user is None:
            wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            try:
                answer = self._send("POST", WHO_AM_I, wanted)
            except NotFound:  # before Kubernetes 1.28
                answer = {}
            self._user = str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")
        return self._user

    def _get(self, path: str) -> Object | None:
        return look_up(self._connect(), path, ANSWER_S)

    def _send(self, method: str, path: str, body: Object) -> Object:
        return decode(self._connect().request(method, path, body=body, answer_s=ANSWER_S))


def note(trouble: str) -> None:
    """Note for the pages what keeps the webhooks from being asked; "" when nothing does."""
    MirroredCluster.objects.filter(id=1).update(webhooks=trouble)


def _leads() -> bool:
    return election.current().is_held(clock.milliseconds())


def _path(verb: Verb, name: str = "") -> str:
    collection = f"/apis/{hooks.GROUP_VERSION}/{hooks.KINDS[verb][1]}"
    return f"{collection}/{name}" if name else collection
