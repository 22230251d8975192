"""What containers are given from a cluster on another machine: ConfigMaps, Secrets, claims, and whose pods are."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import msgspec
from django.conf import settings

from cluster.access.hostpaths import EVERYTHING
from cluster.remote.http import paths
from cluster.remote.http.request import Unreachable
from cluster.rules.node import node_rights
from cluster.runtime.outage import Outage
from cluster.store import Change
from cluster.store.types import Verb
from kube.errors import ApiError, Forbidden, NotFound
from kube.kinds.core import ConfigMap, Pod, Secret
from kube.meta import Object
from kube.resources import CLAIMS, CONFIGMAPS, SECRETS, Resource
from node.faults import Repeated
from node.joined.client import Client
from node.pods.cluster import Dismissed
from node.pods.environment import Claim, claim_of, decoded

CHECK_S = 10.0  # between checks of what was read: mounted files follow their objects, within twice that
log = logging.getLogger(__name__)


class Key(NamedTuple):
    """One ConfigMap or Secret."""

    kind: str
    namespace: str
    name: str


class ReadValues(NamedTuple):
    """What was last read of one, and at which version; None and "" when there was none."""

    values: Mapping[str, bytes] | None
    version: str


UNREAD = ReadValues(None, "unread")  # what an earlier agent gave to containers that run

KINDS = {each.id: each for each in (CONFIGMAPS, SECRETS)}


class ApiLookup(Repeated):
    """The `Lookup` that reads from the API each time. While that does not answer, it returns what was read last, from memory.

    A companion of the agent: it checks whether what was read has changed, and drops what no pod of this node mentions
    any more, which the server then refuses to return.
    """

    def __init__(self, client: Client, notify: Callable[[Change], None], cluster: str) -> None:
        what = "looking for changes of ConfigMaps and Secrets"
        super().__init__(self._check_once, "configuration", CHECK_S, what, log)
        self._client = client
        self._cluster = cluster
        self._notify = notify
        self._read: dict[Key, ReadValues] = {}
        self._lock = threading.Lock()
        self._outage = Outage(what, log)

    def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        return self._values(Key(CONFIGMAPS.id, namespace, name))

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        return self._values(Key(SECRETS.id, namespace, name))

    def claim(self, namespace: str, name: str) -> Claim | None:
        try:
            return claim_of(self._client.call("GET", paths.one(CLAIMS, namespace, name)))
        except (NotFound, Forbidden):  # Forbidden: the pod is gone, or not bound to this node any more
            return None

    def existing_claims(self, uids: Collection[str]) -> set[str]:
        return set(self._client.call("POST", "/node/claims", body={"uids": sorted(uids)})["existing"])

    def cluster(self) -> str:
        return self._cluster

    def host_paths(self, pod: Pod) -> tuple[str, ...]:
        """Return the directories of this machine below which a pod may mount: those that this machine names, or all."""
        return EVERYTHING if self.is_administrators(pod) else tuple(settings.HOST_PATHS)

    def is_administrators(self, pod: Pod) -> bool:
        """Whether everybody who had a hand in a pod is an administrator of all namespaces; False where the server refuses to say."""
        query = {"namespace": pod.metadata.namespace, "name": pod.metadata.name}
        try:
            return self._client.call("GET", "/node/makers", query=query).get("administrators") is True
        except ApiError:
            return False

    def follow(self, pod: Object) -> None:
        """Check what a pod mentions for changes from now on, also where an earlier agent has read it."""
        namespace = pod["metadata"].get("namespace") or ""
        with self._lock:
            for kind, name in node_rights.mentions(pod):
                if kind in KINDS:
                    self._read.setdefault(Key(kind, namespace, name), UNREAD)

    def _values(self, key: Key) -> Mapping[str, bytes] | None:
        try:
            read = self._fetch(key)
        except Unreachable:
            cached = self._read.get(key, UNREAD)
            if cached is UNREAD:
                raise
            return cached.values
        except Forbidden:  # the pod is gone, or not bound to this node any more
            return None
        with self._lock:
            self._read[key] = read
        return read.values

    def _fetch(self, key: Key) -> ReadValues:
        kind: Resource = KINDS[key.kind]
        try:
            obj = self._client.call("GET", paths.one(kind, key.namespace, key.name))
        except NotFound:
            return ReadValues(None, "")
        version = str(obj["metadata"]["resourceVersion"])
        if kind is CONFIGMAPS:
            config_map = msgspec.convert(obj, ConfigMap)
            return ReadValues(decoded(config_map.data, config_map.binary_data), version)
        secret = msgspec.convert(obj, Secret)
        return ReadValues(decoded(secret.string_data, secret.data), version)

    def _check_once(self) -> None:
        try:
            self.check()
            self._outage.over()
        except Unreachable as error:
            self._outage.lasts(error)
        except Dismissed:
            self.stop()  # the watch raises it in the agent

    def check(self) -> None:
        """Notify the agent of what has changed since it was read."""
        for key, previous in list(self._read.items()):
            try:
                current = self._fetch(key)
            except Forbidden:
                with self._lock:
                    self._read.pop(key, None)
                continue
            except ApiError as error:
                log.warning("%s %s/%s was not looked at: %s", key.kind, key.namespace, key.name, error)
                continue
            if current.version != previous.version:
                with self._lock:
                    self._read[key] = current
                verb: Verb = "MODIFIED" if current.version else "DELETED"
                # It has no place in the log: only its kind, name and verb count for the agent.
                self._notify(Change(0, key.kind, key.namespace, key.name, "", verb, 0, b"{}"))
