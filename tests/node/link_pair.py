"""Both sides of a link in a thread of their own, with a line between them that is only memory."""

import asyncio
import contextlib
import json
import threading

from node.link import frames, presence
from node.link.dialer import Dialer
from node.link.frames import LINE, Frame, Kind
from node.link.holder import Holder
from node.membership import Server
from node.paths import Layout
from proof.harness.waiting import HANG_S, until


class Line:
    """One direction to each side; what the node's side takes for a connection."""

    def __init__(self):
        self.to_node, self.to_server = asyncio.Queue(), asyncio.Queue()
        self.send = self.to_server.put

    async def __aiter__(self):
        while (message := await self.to_node.get()) is not None:
            yield message


@contextlib.contextmanager
def linked(data, node="there", answer=None):
    """Keep a node linked. `answer` is what stands in for its side: a coroutine function of the line."""
    loop = asyncio.new_event_loop()
    made = {}

    async def hold():
        line = made["line"] = Line()
        holder = Holder(data, node, line.to_node.put)
        made["end"] = asyncio.Event()
        side = answer or Dialer(Server("", "", ""), node, Layout(data))._answer
        node_side = asyncio.ensure_future(side(line))
        held = asyncio.ensure_future(holder.run(line.to_server.get))
        ending = asyncio.ensure_future(made["end"].wait())
        await asyncio.wait({held, ending}, return_when=asyncio.FIRST_COMPLETED)
        holder.stop()
        await held
        for each in (node_side, ending):
            each.cancel()
        await asyncio.gather(node_side, ending, return_exceptions=True)

    def run():
        asyncio.set_event_loop(loop)
        loop.run_until_complete(hold())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    port = presence.directory(data, node) / presence.PORT
    before = port.stat().st_ino if port.exists() else 0
    thread = threading.Thread(target=run)
    thread.start()
    try:
        until(lambda: port.exists() and port.stat().st_ino != before, what="the link")
        yield
    finally:
        with contextlib.suppress(RuntimeError):  # the link has ended by itself
            loop.call_soon_threadsafe(made["end"].set)
        thread.join(HANG_S)


def says(*answers, closes=True):
    """Return a node's side that answers each request with these lines, or bytes as they are, and closes it."""

    async def side(line):
        async for message in line:
            frame = frames.decode(message)
            if frame.kind == Kind.OPEN:
                for each in answers:
                    data = each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n"
                    await line.send(frames.encode(Frame(Kind.DATA, frame.conversation, LINE, data)))
                if closes:
                    await line.send(frames.encode(Frame(Kind.CLOSE, frame.conversation)))

    return side
