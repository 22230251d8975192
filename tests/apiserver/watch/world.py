"""An API server in the test's own event loop, over real TCP, and a client that reads a watch line by line."""

import asyncio
import contextlib
import json
import re
import time
from urllib.parse import parse_qsl

import httpx
from asgiref.sync import sync_to_async

from apiserver import handlers  # noqa: F401  handlers registers who answers what
from apiserver.app import App
from apiserver.http import threads
from cluster import access, clock
from cluster.runtime import retention
from cluster.store import Create, Delete, Patch, store
from kube.resources import EVENTS, PODS
from proof.harness.serving import in_loop
from proof.harness.waiting import HANG_S
from tests.apiserver.story import FORMS, whole
from tests.builders import of
from volcano_ui import apiserver
from volcano_ui.web import listen

in_db = sync_to_async
ACTORS = {"": access.SYSTEM}


async def by_header(headers):
    return ACTORS[headers.get("x-actor", "")]


@contextlib.asynccontextmanager
async def serving(listener=None):
    """Serve, by default on a socket of this machine; yield the port. Everything is ended with the block."""
    listener = listener or listen("127.0.0.1", 0)
    try:
        async with in_loop(apiserver.config(App(by_header)), listener):
            yield listener.getsockname()[1]
    finally:
        await asyncio.to_thread(threads.close)


class Line:
    def __init__(self, text):
        self.text = text
        event = json.loads(text)
        self.type, self.object = event["type"], event["object"]
        meta = self.object.get("metadata", {})
        self.name, self.revision = meta.get("name"), int(meta.get("resourceVersion") or 0)

    def __repr__(self):
        return f"{self.type} {self.name} {self.revision}"


class Client:
    """A watch over a connection of its own: `async with Client(port, "/api/v1/pods", resourceVersion=3) as it`."""

    def __init__(self, port, path, *, headers=None, **params):
        self.http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=HANG_S, verify=False)
        headers = {"accept-encoding": "identity", **(headers or {})}
        self.request = self.http.build_request("GET", path, params={"watch": "true", **params}, headers=headers)

    async def __aenter__(self):
        self.answer = await self.http.send(self.request, stream=True)
        self.status, self.headers = self.answer.status_code, dict(self.answer.headers)
        self._lines = self.answer.aiter_lines()
        return self

    async def __aexit__(self, *_):
        await self.answer.aclose()
        await self.http.aclose()

    async def body(self):
        return json.loads(await self.answer.aread())

    async def hear(self, count):
        return [Line((await anext(self._lines)).encode()) for _ in range(count)]

    async def rest(self):
        return [Line(line.encode()) async for line in self._lines]


def pod(name, namespace="default", **labels):
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": {}, "status": {}}


@in_db
def make(name, namespace="default", **labels):
    return store.write(Create(PODS, pod(name, namespace, **labels)))[0].revision


@in_db
def label(name, **labels):
    return store.write(Patch(PODS, "default", name, {"metadata": {"labels": labels}}))[0].revision


@in_db
def phase(name, word):
    return store.write(Patch(PODS, "default", name, {"status": {"phase": word}}, "status"))[0].revision


@in_db
def remove(name):
    return store.write(Delete(PODS, "default", name, grace=0))[0].revision


@in_db
def tell(name, reason):
    body = {
        "involvedObject": {"kind": "Pod", "name": "web-0", "namespace": "default"},
        "reason": reason,
        "message": "m",
    }
    return store.write(Create(EVENTS, of(EVENTS, name, body)))[0].revision


class Story:
    """Writes and watches of a server, as they stand in `tests/golden/apiserver/watches.txt`.

        make a app=web
        w watches pods?resourceVersion=0
        label a app=db
        w → ADDED a app=web #1, MODIFIED a app=db #2

    Behind the arrow stand the next events of a watch: their type, the name and labels of the object, and the number of the write
    that made it so, of which a query has the revision as `$1`.
    """

    WRITES = {"make": make, "label": label, "phase": phase, "remove": remove, "tell": tell}

    def __init__(self, port):
        self.port, self.clients, self.revisions, self.opened = port, {}, [], contextlib.AsyncExitStack()

    async def goes(self, part):
        async with self.opened:
            for _, given, expected in part.lines:
                name, *words = given.split()
                if expected:
                    events = await self.clients[name].hear(expected.count(", ") + 1)
                    assert ", ".join(map(self.event_text, events)) == expected
                elif words[0] == "watches":
                    self.clients[name] = await self.opened.enter_async_context(self.client(*words[1:]))
                else:
                    labels = dict(word.split("=") for word in words if "=" in word)
                    words = [word for word in words if "=" not in word]
                    self.revisions.append(await self.WRITES[name](*words, **labels))

    def client(self, path, *form):
        path, _, query = path.partition("?")
        query = re.sub(r"\$(\d)", lambda found: str(self.revisions[int(found[1]) - 1]), query)
        headers = {"Accept": FORMS[form[1]]} if form else {}
        return Client(self.port, whole(path), headers=headers, **dict(parse_qsl(query)))

    def event_text(self, line):
        obj = line.object
        if obj["kind"] == "Table":
            (row,) = obj["rows"]
            meta = (row["object"] or {}).get("metadata", {})
            words = ["row", meta.get("name") or row["cells"][0], "with columns" if obj.get("columnDefinitions") else ""]
        else:
            meta = obj["metadata"]
            texts = [f"{name}={obj[name]}" for name in ("note", "message") if name in obj]
            labels = [f"{name}={value}" for name, value in sorted(meta.get("labels", {}).items())]
            version = obj["apiVersion"] if obj["kind"] == "Event" else ""
            form = obj["kind"] if obj["kind"].startswith("Partial") else ""
            words = [line.name, *texts, *labels, version, form, f"#{self.revisions.index(line.revision) + 1}"]
        if line.type == "BOOKMARK":
            assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
            words = ["end", *words[1:]] if obj["kind"] != "Table" else ["end"]
        return " ".join([line.type, *filter(None, words)])


async def until(condition, what="the condition"):
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true"
        await asyncio.sleep(0.01)


def forget():
    retention.run(time.monotonic() + HANG_S, now=clock.milliseconds() + 3_600_000)
