"""Requests to the API server of a cluster by a kubeconfig: the one module that imports the official client.

The client reads kubeconfigs, runs their plugins, refreshes tokens and knows TLS and proxies. Bodies pass as the bytes
they are: its models would cost thirty times as long (docs/design/dependencies.md).
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from kubernetes import client as official
from kubernetes import config as kubeconfigs

from cluster.remote.http.exchange import KEEPALIVE, Call, Exchange, send
from cluster.remote.http.request import Unreachable
from cluster.remote.http.target import Target
from kube.errors import Unauthorized

POOL = 40  # connections: one for each kind that is watched, and some for calls


class Connection(Exchange):
    """A cluster's API server. Thread-safe."""

    def __init__(self, target: Target, directory: Path) -> None:
        super().__init__(target.server)
        self.target = target
        self._directory = directory
        self._lock = threading.Lock()
        self._client = self._load()

    @classmethod
    def of(cls, target: Target, directory: Path) -> Connection:
        """Return a connection to a cluster, which is not reached for yet.

        Certificates and keys that the kubeconfig holds are written to files of the directory, which
        OpenSSL wants. Unreachable says why the kubeconfig cannot be used.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(target, directory)

    def _load(self) -> Any:
        configuration = official.Configuration()
        try:
            if self.target.kubeconfig:
                kubeconfigs.load_kube_config(
                    config_file=self.target.kubeconfig,
                    context=self.target.name,
                    client_configuration=configuration,
                    persist_config=False,
                    temp_file_path=str(self._directory),
                )
            else:
                kubeconfigs.load_incluster_config(client_configuration=configuration)
        except (kubeconfigs.ConfigException, OSError) as error:
            raise Unreachable(self.target.server, f"its kubeconfig cannot be used: {error}") from None
        configuration.connection_pool_maxsize = POOL
        configuration.socket_options = KEEPALIVE
        return official.ApiClient(configuration=configuration)

    def _send(self, call: Call) -> Any:
        """Send a request, once more when the kubeconfig's user is not known any more: a new one may stand there."""
        answer = self._try(call)
        if answer.status != Unauthorized.code:
            return answer
        answer.drain_conn()
        self._client = self._load()
        return self._try(call)

    def _try(self, call: Call) -> Any:
        client = self._client
        login: dict[str, str] = {}
        with self._lock:  # a plugin that fetches a new token is run once
            client.update_params_for_auth(login, [], ["BearerToken"])
        call.headers.update(login)
        return send(client.rest_client.pool_manager, client.configuration.host, call)
