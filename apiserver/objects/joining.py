"""What a machine asks that is a node over the API, beside objects: whom it speaks to, to be taken on, whose a pod is, and which claims are left."""

from __future__ import annotations

from starlette.responses import JSONResponse, PlainTextResponse, Response

from apiserver.http import routes, threads
from apiserver.http.request import Request
from cluster import access
from cluster.access import Actor, certificates, joining, makers, nodes
from cluster.access.joining import Joined, Machine
from cluster.store import store
from kube import lenient
from kube.errors import Forbidden
from kube.kinds.core import Pod
from kube.resources import CLAIMS, PODS


@routes.path("/node/authority", anonymous=True)
async def show_authority(request: Request) -> Response:
    """The certificate of the authority that vouches for this server, in PEM, "" for one that clients know.

    A machine that joins by the authority's fingerprint takes it from here, and believes it by that alone.
    """
    return PlainTextResponse(await threads.read(lambda: certificates.current().ca_text()))


@routes.path("/node/join", methods=("POST",))
async def join(request: Request) -> Response:
    """Take a machine on as a node. The body is {"name", "agent"}, the answer {"name", "token", "cluster", "time"} (epoch ms)."""
    body = await request.object()
    machine = Machine(lenient.text(body, "name"), lenient.text(body, "agent"))
    joined: Joined = await threads.write(joining.join, request.actor, machine)
    return JSONResponse({**joined._asdict(), "time": request.now})


@routes.path("/node/makers")
async def show_makers(request: Request) -> Response:
    """Whether everybody who had a hand in a pod of the node that asks is an administrator of all namespaces."""
    key = request.query.get("namespace", ""), request.query.get("name", "")
    return JSONResponse({"administrators": await threads.read(_are_administrators, request.actor, *key)})


@routes.path("/node/claims", methods=("POST",))
async def show_claims(request: Request) -> Response:
    """Which of the claims that a node names by their uids there are: it keeps their files. The body is {"uids"}, the answer {"existing"}.

    A node may read claims that its pods mention; here it asks about those of pods that are gone, and learns nothing beside.
    """
    if not access.node_of(request.actor):
        raise Forbidden(f"{request.actor.name} is no node; only nodes keep the files of claims.")
    uids = [each for each in lenient.sequence(await request.object(), "uids") if isinstance(each, str)]
    claims = await threads.read(lambda: store.find(CLAIMS, uid=uids))
    return JSONResponse({"existing": [claim.uid for claim in claims]})


def _are_administrators(actor: Actor, namespace: str, name: str) -> bool:
    node = access.node_of(actor)
    if not node or not nodes.is_bound(node, namespace, name):
        raise Forbidden(f"{actor.name} has no pod {namespace}/{name}; only its node is told who made a pod.")
    return makers.all_administrators(store.get(PODS, namespace, name).read(Pod))
