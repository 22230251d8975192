"""Kubeconfigs: one file with which kubectl and every client come in."""

from __future__ import annotations

import base64
import re
import socket
from typing import TYPE_CHECKING

import yaml
from django.conf import settings

from kube.meta import timestamp

if TYPE_CHECKING:
    from kube.meta import Object

NAME = "volcano-ui"  # of cluster and context


def server_address() -> str:
    """Return where clients reach the API: by the first of VOLCANO_UI_HOSTS that is a name, otherwise on this machine."""
    hosts = [host for host in settings.HOSTS if host != "*" and not host.startswith(".")]
    return _address(hosts[0]) if hosts else local_address()


def local_address() -> str:
    """Return where this machine reaches the API."""
    return _address({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.LISTEN, settings.LISTEN))  # noqa: S104


def _address(host: str) -> str:
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    return f"https://{host}:{settings.API_PORT}"


def token_name(now: int) -> str:
    """Return how a token is named for which nobody chose a name: this machine and the day."""
    return f"{socket.gethostname()[:80]} {timestamp(now)[:10]}"


def text(server: str, authority: str, user: str, token: str, *, namespace: str = "default") -> str:
    """Return a kubeconfig with the authority's certificate inlined; authority "" stands for those that clients know."""
    cluster: Object = {"server": server}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority.encode()).decode()
    login = f"{re.sub(r'[^A-Za-z0-9@._-]+', '-', user)}@{NAME}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": login, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": login, "namespace": namespace}}],
        "current-context": NAME,
    }
    return yaml.safe_dump(config, sort_keys=False, width=1_000_000)
