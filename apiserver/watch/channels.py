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


class ChannelEvent(NamedTuple):
    """A change of the log as one channel's event."""

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

    def lines(self, events: Sequence[ChannelEvent], now: int, *, first: bool = False) -> bytes:
        """Return the lines of a pass; `first` for whoever was sent nothing yet."""
        headed = first and self.form.kind == "Table"
        return b"".join([self._line(each, now, headed and not i) for i, each in enumerate(events)])

    def deliver(self, events: Sequence[ChannelEvent], now: int) -> None:
        """Give a pass's lines to all who wait for them."""
        common = first = b""
        for watcher in list(self.watchers):
            if watcher.fresh:
                first = chunk = first or self.lines(events, now, first=True)
            else:
                common = chunk = common or self.lines(events, now)
            self.counts.delivered += len(events)
            watcher.put(chunk)

    def _line(self, event: ChannelEvent, now: int, first: bool) -> bytes:
        key = (*self._key, event.verb, first)
        line = event.entry.lines.get(key)
        if line is None:
            self.counts.encoded += 1
            line = forms.event(self.form, self.resource, event.verb, event.subject, now, first=first)
            event.entry.lines[key] = line
        return line

    def bookmark(self, revision: int, now: int, *, initial: bool = False, first: bool = False) -> bytes:
        """Return the line that says up to which revision the watcher has read; `initial` ends the initial events."""
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

    def events_of(self, entries: Iterable[WatchedChange]) -> list[ChannelEvent]:
        """Return the events of covered entries for this selection; Expired when history lacks what that takes."""
        events = []
        for entry in entries:
            event = self.selection.event_of(entry)
            if event is not None:
                events.append(ChannelEvent(entry, *event))
        return events

    def deliver(self, entries: Sequence[WatchedChange], now: int) -> None:
        """Hand covered entries to all feeds."""
        try:
            events = self.events_of(entries)
        except ApiError as error:
            self.fail(error)
            return
        if events:
            for feed in list(self.feeds.values()):
                feed.deliver(events, now)

    def fail(self, error: ApiError) -> None:
        """End everybody with an error."""
        for feed in list(self.feeds.values()):
            for watcher in list(feed.watchers):
                watcher.fail(error)


class Board:
    """All channels, found by what a change says: its kind, namespace and name."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._channels: dict[tuple[str, str, str], dict[Selection, Channel]] = {}

    def join(self, watcher: Watcher, selection: Selection, resource: Resource, form: Form) -> Feed:
        """Let a watcher have what comes from here on."""
        channels = self._channels.setdefault(_key(selection), {})
        channel = channels.get(selection)
        if channel is None:
            channel = channels[selection] = Channel(selection, self.counts)
        feed = channel.feed(resource, form)
        feed.watchers[watcher] = None
        return feed

    def leave(self, watcher: Watcher, selection: Selection, feed: Feed) -> None:
        """Remove a watcher, and with the last one its channel."""
        feed.watchers.pop(watcher, None)
        channels = self._channels.get(_key(selection), {})
        channel = channels.get(selection)
        if channel is None or feed.watchers:
            return
        if channel.feeds.get((feed.form, id(feed.resource))) is feed:
            del channel.feeds[feed.form, id(feed.resource)]
        if not channel.feeds:
            del channels[selection]
        if not channels:
            del self._channels[_key(selection)]

    def deliver(self, entries: Sequence[WatchedChange], now: int) -> None:
        """Hand a batch to the channels that it concerns."""
        concerned: dict[Channel, list[WatchedChange]] = {}
        self.counts.events += len(entries)
        for entry in entries:
            change = entry.change
            for namespace in {"", change.namespace}:
                for name in ("", change.name):
                    for channel in self._channels.get((change.resource, namespace, name), {}).values():
                        concerned.setdefault(channel, []).append(entry)
        for channel, its in concerned.items():
            channel.deliver(its, now)

    def fail(self, error: ApiError) -> None:
        """End everybody with an error."""
        for channels in list(self._channels.values()):
            for channel in list(channels.values()):
                channel.fail(error)


def _key(selection: Selection) -> tuple[str, str, str]:
    return selection.resource, selection.namespace, selection.name
