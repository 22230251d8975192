"""Which cluster the pages are about: a context of a kubeconfig, or the cluster that this process is a pod of.

Settings need the name before anything else runs, so the kubeconfig is looked
into here; how to come in with it is the official client's business (`connection`).
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

IN_CLUSTER = "in-cluster"  # instead of a file: the service account that Kubernetes gives to a pod


class TargetError(ValueError):
    """The kubeconfig does not say which cluster is meant; the message says why, and what to do."""


class Target(NamedTuple):
    """A cluster: the name by which people know it, where its API is, and the kubeconfig ("" in the cluster)."""

    name: str
    server: str
    kubeconfig: str

    @property
    def directory(self) -> str:
        """The name of its state directory; another server of the same name has another one."""
        plain = re.sub(r"[^A-Za-z0-9.-]+", "-", self.name).strip(".-")[:60]
        return f"{plain}-{hashlib.sha256(self.server.encode()).hexdigest()[:8]}"


def state_directory(state: Path, target: Target | None) -> Path:
    """Return where what is kept of a cluster lies: in the state directory itself for the embedded one (None)."""
    return state / "clusters" / target.directory if target else state


def find(kubeconfig: str, context: str) -> Target:
    """Return the cluster of a context, by default the current one; TargetError when there is none."""
    if kubeconfig == IN_CLUSTER:
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise TargetError("This process runs in no cluster; name a kubeconfig's file instead.")
        return Target(IN_CLUSTER, f"https://{f'[{host}]' if ':' in host else host}:{port}", "")
    file = Path(kubeconfig).expanduser().absolute()
    try:
        config = yaml.safe_load(file.read_text())
    except OSError as error:
        raise TargetError(f"{file} cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise TargetError(f"{file} is no YAML, so it is no kubeconfig.") from None
    return _of_config(config, context, str(file))


def _of_config(config: Any, context: str, file: str) -> Target:
    """Return the cluster of a context of a kubeconfig that was read."""
    if not isinstance(config, dict):
        raise TargetError(f"{file} is no kubeconfig.")
    contexts, clusters = _named(config, "contexts"), _named(config, "clusters")
    name = context or str(config.get("current-context") or "")
    choices = f"It has {', '.join(sorted(contexts))}." if contexts else "It has none."
    if not name:
        raise TargetError(f"{file} has no current context, so name one. {choices}")
    if name not in contexts:
        raise TargetError(f"{file} has no context {name!r}. {choices}")
    cluster = (contexts[name].get("context") or {}).get("cluster")
    server = (clusters.get(str(cluster), {}).get("cluster") or {}).get("server")
    if not server:
        raise TargetError(f"The context {name!r} of {file} names the cluster {cluster!r}, which has no server.")
    return Target(name, str(server).rstrip("/"), file)


def _named(config: dict[str, Any], section: str) -> dict[str, dict[str, Any]]:
    entries = config.get(section) or ()
    return {str(entry["name"]): entry for entry in entries if isinstance(entry, dict) and entry.get("name")}
