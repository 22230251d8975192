"""Many who watch other things than the one that changes: over the API, and on live pages."""

from __future__ import annotations

from contextlib import nullcontext

import msgspec
from django.http import QueryDict

from apiserver.http.forms import Form
from apiserver.watch.channels import Board
from apiserver.watch.selection import Selection, WatchedChange
from cluster.store import Change
from dashboard.live import Watch
from dashboard.live.rendering import Rendering, WatchIndex
from dashboard.live.topics import Parts
from kube.resources import PODS
from tests.costs.meter import counted

NOW = 1_767_225_600_000


class Client:
    """Who watches over the API, and keeps what he is sent."""

    fresh = False

    def __init__(self):
        self.chunks = []

    def put(self, chunk):
        self.chunks.append(chunk)


class Watching:
    """One watches a namespace over the API, another one on a page; each hears of a change in it once."""

    MANY = ("watches", "names", "pages")
    MOST: dict[str, int] = {}
    running = nullcontext

    def __init__(self):
        self.board, self.index = Board(), WatchIndex()
        self.client = self._watch(Selection(PODS.id, "default"))
        self.page = self._show(Watch(PODS.id, "default"))

    def add(self, kind, numbers):
        for number in numbers:
            if kind == "pages":
                self._show(Watch(PODS.id, f"ns-{number}"))
            elif kind == "watches":
                self._watch(Selection(PODS.id, f"ns-{number}"))
            else:
                self._watch(Selection(PODS.id, "default", f"pod-{number}"))

    def costs(self):
        found = {}
        for revision in (1, 2):
            change = self._change(revision)
            with counted() as found["to watches"]:
                self.board.deliver([WatchedChange(change)], NOW)
            assert len(self.client.chunks) == revision
            with counted() as found["to pages"]:
                assert [*self.index.match(change)] == [self.page]
        return found

    def _watch(self, selection):
        client = Client()
        self.board.join(client, selection, PODS, Form())
        return client

    def _show(self, watch):
        page = Rendering(str(watch), "all", lambda request: Parts({}), QueryDict(), None)
        self.index.put(page, [watch])
        return page

    @staticmethod
    def _change(revision):
        body = msgspec.json.encode({"metadata": {"name": "changed", "namespace": "default"}})
        return Change(revision, PODS.id, "default", "changed", "uid", "MODIFIED", NOW, body, body)
