"""Kubeconfigs: one file with which kubectl and every client come in."""

from __future__ import annotations

import base64
import re
import socket
from urllib.parse import urlsplit

import yaml

from cluster import issuing
from cluster.store import store
from kube.meta import Object, timestamp
from kube.resources import NAMESPACES

KUBE_SYSTEM = "kube-system"  # whose uid identifies the cluster, as for other tools of Kubernetes


def name(server: str) -> str:
    """Return by which name a kubeconfig has the cluster at an address: another one than those of other installations."""
    host = urlsplit(server).hostname or ""
    if host == "localhost" or ((number := issuing.address(host)) and number.is_loopback):
        host = socket.gethostname()
    namespace = store.get_or_none(NAMESPACES, "", KUBE_SYSTEM)  # None where an administrator took it away
    return "-".join(filter(None, ("volcano-ui", host, namespace.uid[:8] if namespace else "")))


def token_name(now: int) -> str:
    """Return how a token is named for which nobody chose a name: this machine and the day."""
    return f"{socket.gethostname()[:80]} {timestamp(now)[:10]}"


def text(server: str, authority: str, user: str, token: str, *, called: str, namespace: str = "default") -> str:
    """Return a kubeconfig with the authority's certificate inlined; authority "" stands for those that clients know.

    `called` is the name of cluster and context, and part of the user's.
    """
    cluster: Object = {"server": server}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority.encode()).decode()
    login = f"{re.sub(r'[^A-Za-z0-9@._-]+', '-', user)}@{called}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": called, "cluster": cluster}],
        "users": [{"name": login, "user": {"token": token}}],
        "contexts": [{"name": called, "context": {"cluster": called, "user": login, "namespace": namespace}}],
        "current-context": called,
    }
    return yaml.safe_dump(config, sort_keys=False, width=1_000_000)
