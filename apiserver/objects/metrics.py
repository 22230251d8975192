"""`metrics.k8s.io/v1beta1`: what nodes and pods use, measured by the node's agent (`cluster.backend.Nodes.usage`).

What nobody measured is not there: simulated nodes and pods, and containers
that have just been started.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from apiserver.http import forms, listing, query, respond, routes, threads
from apiserver.http.query import ListOptions
from apiserver.http.request import Request
from cluster.api import backend
from cluster.store import Stored, store
from kube.errors import NotFound
from kube.meta import Object, duration_text, now_text
from kube.resources import NODE_METRICS, NODES, POD_METRICS, PODS, Resource

Figures = dict[str, Any]


@routes.virtual(NODE_METRICS)
async def node_metrics(request: Request) -> Response:
    """Answer with the use of one node, or of those that are selected."""
    return await _answer(request, NODE_METRICS, NODES, _nodes)


@routes.virtual(POD_METRICS)
async def pod_metrics(request: Request) -> Response:
    """Answer with the use of one pod's containers, or of those that are selected."""
    return await _answer(request, POD_METRICS, PODS, _pods)


async def _answer(
    request: Request, resource: Resource, source: Resource, find: Callable[[Request, ListOptions], list[Object]]
) -> Response:
    info = request.info
    options = query.list_options(request.query, source)
    objects = await threads.read(find, request, options)
    if not info.name:
        body = forms.as_list(request.form, resource, objects, {}, request.now)
        return respond.respond(request, forms.dump(request.form, body))
    if not objects:
        name = f"{info.namespace}/{info.name}" if info.namespace else info.name
        raise NotFound.of(f"{resource.kind.lower()}.{resource.group}", name)
    return respond.object(request, objects[0])


def _nodes(request: Request, options: ListOptions) -> list[Object]:
    measured = [each for each in backend.nodes.usage(request.now) if each.get("machine")]
    return [
        _object(NODE_METRICS, stored, figures, figures["machine"][2]) | {"usage": _amounts(*figures["machine"][:2])}
        for figures in measured
        if request.info.name in ("", figures["node"])
        for stored in store.find(NODES, name=figures["node"], limit=1)
        if listing.matches(stored, options)
    ]


def _pods(request: Request, options: ListOptions) -> list[Object]:
    return [pod for figures in backend.nodes.usage(request.now) for pod in _of_node(request, options, figures)]


def _of_node(request: Request, options: ListOptions, figures: Figures) -> list[Object]:
    """Return the use of the pods of a node: it has nothing to say of others."""
    measured: dict[str, list[list[Any]]] = {}
    for uid, *rest in figures.get("containers", ()):
        measured.setdefault(uid, []).append(rest)
    if not measured:
        return []
    namespace, name = request.info.namespace or None, request.info.name or None
    pods = store.find(PODS, namespace=namespace, name=name, node=figures["node"])
    return [
        _object(POD_METRICS, stored, figures, max(one[3] for one in measured[stored.uid]))
        | {"containers": [{"name": one[0], "usage": _amounts(*one[1:3])} for one in measured[stored.uid]]}
        for stored in pods
        if stored.uid in measured and listing.matches(stored, options)
    ]


def _object(resource: Resource, stored: Stored, figures: Figures, window_ms: int) -> Object:
    metadata: Object = {"name": stored.name, "creationTimestamp": now_text(figures["at"])}
    if stored.namespace:
        metadata["namespace"] = stored.namespace
    if labels := stored.object["metadata"].get("labels"):
        metadata["labels"] = labels
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "timestamp": now_text(figures["at"]),
        "window": duration_text(window_ms),
    }


def _amounts(nanocores: int, memory: int) -> dict[str, str]:
    return {"cpu": f"{nanocores}n" if nanocores else "0", "memory": f"{memory // 1024}Ki"}
