"""Channels: everybody who watches the same selection, and in it everybody who wants the same form.

A selector is evaluated once per change and channel, a line is written once
per change and form, and a pass's lines are joined once per feed: to one more
watcher of the same costs a reference to the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from apiserver.http import forms
from apiserver.http.forms import Form
from apiserver.watch.selection import Selection, Verb, WatchedChange
from cluster.store import Change, Stored
from kube.errors import ApiError
from kube.meta import Object
from kube.resources import Resource

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_encode = msgspec.json.Encoder().encode


class Watcher(Protocol):
    """Who is at the end of a feed. `fresh` until it was sent its first event."""

    fresh: bool

    def put(self, chunk: bytes) -> None:
        """Take lines; may not wait."""

    def fail(self, error: ApiError) -> None:
        """End with an error."""


class Counts:
    """What the channels of this process did."""

    def __init__(self) -> None:
        self.events = 0
        self.encoded = 0
        self.delivered = 0


class Seen(NamedTuple):
    """What an entry is to a channel."""

    entry: WatchedChange
    verb: Verb
    subject: Change


class Feed:
    """A form in which a channel is sent. A table's first line names the columns, so it has two variants."""

    def __init__(self, resource: Resource, form: Form, counts: Counts) -> None:
        self.resource = resource
        self.form = form
        self.counts = counts
        self.watchers: dict[Watcher, None] = {}
        self._key = (form, id(resource))

    def lines(self, seen: Sequence[Seen], now: int, *, first: bool = False) -> bytes:
        """Return the lines of a pass; `first` for whoever was sent nothing yet."""
        headed = first and self.form.kind == "Table"
        return b"".join([self._line(each, now, headed and not i) for i, each in enumerate(seen)])

    def deliver(self, seen: Sequence[Seen], now: int) -> None:
        """Give a pass's lines to all who wait for them."""
        common = first = b""
        for watcher in list(self.watchers):
            if watcher.fresh:
                first = chunk = first or self.lines(seen, now, first=True)
            else:
                common = chunk = common or self.lines(seen, now)
            self.counts.delivered += len(seen)
            watcher.put(chunk)

    def _line(self, seen: Seen, now: int, first: bool) -> bytes:
        key = (*self._key, seen.verb, first)
        line = seen.entry.lines.get(key)
        if line is None:
            self.counts.encoded += 1
            line = forms.event(self.form, self.resource, seen.verb, seen.subject, now, first=first)
            seen.entry.lines[key] = line
        return line

    def bookmark(self, revision: int, now: int, *, initial: bool = False, first: bool = False) -> bytes:
        """Return the line that says how far the watcher has seen; `initial` ends the initial events."""
        metadata: Object = {"resourceVersion": str(revision)}
        if initial:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        obj = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": metadata}
        stored = Stored(self.resource.id, "", "", "", revision, now, _encode(obj))
        # Its row carries the metadata whatever rows carry otherwise: they are all that it has.
        form = self.form._replace(include="Metadata") if self.form.include == "None" else self.form
        return forms.event(form, self.resource, "BOOKMARK", stored, now, first=first)


class Channel:
    """The feeds of one selection."""

    def __init__(self, selection: Selection, counts: Counts) -> None:
        self.selection = selection
        self.counts = counts
        self.feeds: dict[tuple[Form, int], Feed] = {}

    def feed(self, resource: Resource, form: Form) -> Feed:
        """Return the feed of a form. A custom resource that was defined anew is another resource."""
        key = (form, id(resource))
        feed = self.feeds.get(key)
        if feed is None:
            feed = self.feeds[key] = Feed(resource, form, self.counts)
        return feed

    def see(self, entries: Iterable[WatchedChange]) -> list[Seen]:
        """Return what covered entries are to this selection; Expired when that cannot be known any more."""
        found = []
        for entry in entries:
            answer = self.selection.seen(entry)
            if answer is not None:
                found.append(Seen(entry, *answer))
        return found

    def deliver(self, entries: Sequence[WatchedChange], now: int) -> None:
        """Hand covered entries to all feeds."""
        try:
            seen = self.see(entries)
        except ApiError as error:
            self.fail(error)
            return
        if seen:
            for feed in list(self.feeds.values()):
                feed.deliver(seen, now)

    def fail(self, error: ApiError) -> None:
        """End everybody with an error."""
        for feed in list(self.feeds.values()):
            for watcher in list(feed.watchers):
                watcher.fail(error)


class Board:
    """All channels, found by what a change says: its kind, namespace and name."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._places: dict[tuple[str, str, str], dict[Selection, Channel]] = {}

    def join(self, watcher: Watcher, selection: Selection, resource: Resource, form: Form) -> Feed:
        """Let a watcher have what comes from here on."""
        place = self._places.setdefault(_place(selection), {})
        channel = place.get(selection)
        if channel is None:
            channel = place[selection] = Channel(selection, self.counts)
        feed = channel.feed(resource, form)
        feed.watchers[watcher] = None
        return feed

    def leave(self, watcher: Watcher, selection: Selection, feed: Feed) -> None:
        """Let a watcher go, and with the last one what was kept for them."""
        feed.watchers.pop(watcher, None)
        place = self._places.get(_place(selection), {})
        channel = place.get(selection)
        if channel is None or feed.watchers:
            return
        if channel.feeds.get((feed.form, id(feed.resource))) is feed:
            del channel.feeds[feed.form, id(feed.resource)]
        if not channel.feeds:
            del place[selection]
        if not place:
            del self._places[_place(selection)]

    def deliver(self, entries: Sequence[WatchedChange], now: int) -> None:
        """Hand a batch to the channels that it concerns."""
        concerned: dict[Channel, list[WatchedChange]] = {}
        self.counts.events += len(entries)
        for entry in entries:
            change = entry.change
            for namespace in {"", change.namespace}:
                for name in ("", change.name):
                    for channel in self._places.get((change.resource, namespace, name), {}).values():
                        concerned.setdefault(channel, []).append(entry)
        for channel, its in concerned.items():
            channel.deliver(its, now)

    def fail(self, error: ApiError) -> None:
        """End everybody with an error."""
        for place in list(self._places.values()):
            for channel in list(place.values()):
                channel.fail(error)


def _place(selection: Selection) -> tuple[str, str, str]:
    return selection.resource, selection.namespace, selection.name
