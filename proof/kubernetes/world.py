"""Systems whose pages show the cluster, and whether what they show is what the cluster has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from cluster.remote.http.paths import collection
from cluster.remote.mirroring.kinds import KINDS, selectors
from cluster.store import Store
from kube.meta import Object
from kube.resources import Resource
from proof.harness.waiting import until
from proof.kubernetes.cluster import Kubernetes
from proof.systems.system import System, running
from proof.systems.work import Person

NAMESPACE, ACCOUNT = "volcano-ui", "pages"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"


def account(kubernetes: Kubernetes, *roles: str) -> Path:
    """Give the pages' account these cluster roles and no others; return a kubeconfig of it."""
    kubernetes.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
    )
    kubernetes.kubectl("delete", "clusterrolebinding", "-l", f"account={ACCOUNT}")
    for role in roles:
        kubernetes.apply(_binding(role))
    return kubernetes.account_kubeconfig(NAMESPACE, ACCOUNT)


def _binding(role: str) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{ACCOUNT}-{role}", "labels": {"account": ACCOUNT}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }


def showing(folder: Path, config: Path, **variables: str) -> AbstractContextManager[System]:
    """A system whose pages show the cluster of a kubeconfig; at its end nothing of it may be left."""
    return running(folder / "data", VOLCANO_UI_KUBECONFIG=str(config), **variables)


def strip_text(system: System) -> str:
    """What the strip below the navigation says."""
    with Person(system) as person:
        found = re.search(r'<aside class="cluster-strip".*?</aside>', person.get("/").text, re.DOTALL)
    assert found, "no strip"
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found[0])).strip()


def live(system: System) -> None:
    """Wait until the pages say that the cluster is live."""
    until(lambda: " live" in strip_text(system) and "partly" not in strip_text(system), what="the word that it is live")


def differences(kubernetes: Kubernetes, store: Store) -> list[tuple[str, str, str]]:
    """Return what of the mirrored kinds is not the same in the cluster and in the store: kind, namespace and name."""
    found: list[tuple[str, str, str]] = []
    for kind in KINDS:
        if not kubernetes.serves(kind):
            continue
        there, here = served(kubernetes, kind), mirrored(store, kind)
        found += [(kind.plural, *key) for key in there.keys() | here.keys() if there.get(key) != here.get(key)]
    return found


def served(kubernetes: Kubernetes, kind: Resource) -> dict[tuple[str, str], Object]:
    """Return a kind's objects by namespace and name, as the cluster has them."""
    selector = selectors(works=False).get(kind.id)
    answer = kubernetes.kubectl("get", "--raw", f"{collection(kind)}{f'?labelSelector={selector}' if selector else ''}")
    return _by_key(msgspec.json.decode(answer)["items"])


def mirrored(store: Store, kind: Resource) -> dict[tuple[str, str], Object]:
    """Return a kind's objects by namespace and name, as the store has them."""
    return _by_key(stored.object for stored in store.find(kind))


def _by_key(objects: Iterable[Object]) -> dict[tuple[str, str], Object]:
    """Return objects by their keys, without what only the objects of some lists say and without nulls."""
    return {
        (obj["metadata"].get("namespace") or "", obj["metadata"]["name"]): without_nulls(
            {**obj, "apiVersion": None, "kind": None}
        )
        for obj in objects
    }


def without_nulls(value: Any) -> Any:
    """Return a value as it means: what is null is absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def equal(kubernetes: Kubernetes, store: Store) -> None:
    """Wait until the store has what the cluster has."""
    last: list[tuple[str, str, str]] = []

    def same() -> bool:
        last[:] = differences(kubernetes, store)
        return not last

    until(same, every_s=0.2, what=lambda: f"that it is the same (not the same: {last[:20]})")
