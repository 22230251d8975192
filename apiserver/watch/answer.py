"""The verb "watch": how each one begins (reference: kubernetes-api §4.2) and what answers it."""

from __future__ import annotations

import random
from array import array
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from apiserver import telemetry
from apiserver.http import query, respond, routes, threads
from apiserver.http.query import ListOptions
from apiserver.http.request import Request
from apiserver.watch import selection
from apiserver.watch.channels import Board
from apiserver.watch.log_follower import follower
from apiserver.watch.sinks import HttpSink, SocketSink
from apiserver.watch.stream import Plan, Stream, error_line
from apiserver.watch.stream_keeper import Keeper
from cluster import clock
from cluster.store import log as history
from cluster.store import store
from kube.errors import Expired, MethodNotAllowed
from kube.resources import Resource

SECONDS = (1800.0, 3600.0)  # of a watch whose client does not say how long; random, so that not all come back at once
LONGEST_S = 24 * 3600.0
_random = random.SystemRandom()
board = Board()
keeper = Keeper()


follower.listen_in_batches(
    lambda entries: board.deliver(entries, clock.milliseconds()),
    lambda: board.fail(Expired("too old resource version: history was forgotten before it was sent")),
)
for _name, _text, _read in (
    ("changes", "Changes of the log that were handed on.", lambda: board.counts.events),
    ("lines_written", "Lines written for them, each once per form.", lambda: board.counts.encoded),
    ("lines_sent", "Lines given to watches.", lambda: board.counts.delivered),
    ("cut_off", "Clients cut off because they took too little.", lambda: keeper.slow),
):
    telemetry.counter(f"volcano_ui_watch_{_name}_total", _text, _read)


class WatchResponse(Response):
    """An answer that goes on until its stream ends."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.status_code = 200
        self.background = None
        self.init_headers({"Content-Type": "application/json"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the stream."""
        await self.stream.run(HttpSink(scope, receive, send, self.status_code, self.raw_headers))


async def watch(request: Request, resource: Resource, options: ListOptions) -> Response:
    """Answer a watch. What is wrong with it is raised here, before the stream begins.

    Raise Expired for a beginning that history does not reach back to, Timeout
    for one in the future, TooManyRequests when there is no room.
    """
    return respond.finish(request, WatchResponse(await _stream(request, resource, options)))


@routes.websocket(None, "watch")
async def watch_socket(request: Request) -> None:
    """Answer a watch on a WebSocket, one message per event; raises as `watch` does, before it accepts.

    But a beginning that is forgotten is told as an event, as Kubernetes does: clients that look only there, such as
    fabric8's informers, would otherwise ask for the same beginning again and again.
    """
    resource = request.info.resource
    if resource is None or not resource.stored or "watch" not in resource.verbs:
        raise MethodNotAllowed()
    request.negotiate()
    options = query.list_options(request.query, resource)
    query.check_list(options, watch=True)
    sink = SocketSink(request.scope, request.receive, request.send)
    try:
        stream = await _stream(request, resource, options)
    except Expired as error:
        with suppress(OSError):
            await sink.open()
            await sink.send(error_line(error))
            await sink.close()
        return
    with suppress(OSError):  # who goes while something is sent is no defect
        await stream.run(sink)


async def _stream(request: Request, resource: Resource, options: ListOptions) -> Stream:
    if request.method == "HEAD":  # it would wait for a body that never comes
        raise MethodNotAllowed()
    keeper.admit(request.actor)
    await follower.start()
    info = request.info
    selected = selection.of(resource, info.namespace, info.name, options)
    revision = query.revision(options.resource_version)
    if revision:
        await follower.reach(revision)
    initial = options.send_initial_events if options.send_initial_events is not None else not revision
    after, objects = await _beginning(selected, revision, initial=initial)
    return Stream(
        Plan(
            selection=selected,
            resource=resource,
            form=request.form._replace(pretty=False, yaml=False),
            after=after,
            objects=objects,
            initial_end=bool(options.send_initial_events and options.allow_bookmarks),
            bookmarks=options.allow_bookmarks,
            seconds=min(float(options.timeout_seconds or _random.uniform(*SECONDS)), LONGEST_S),
        ),
        request,
        follower,
        board,
        keeper,
    )


async def _beginning(selected: selection.Selection, revision: int, *, initial: bool) -> tuple[int, array[int] | None]:
    """Return after which revision changes are sent, and the objects that are sent before them."""
    if initial:
        state = await threads.read(history.snapshot, selected.resource, selected.namespace, selected.name)
        return state.revision, state.objects
    if not revision:
        return await threads.read(store.revision), None
    if follower.window.since(selected.resource, revision) is None:
        await threads.read(history.check, revision)
    return revision, None
