"""One check for whatever changes the system: everything that must agree afterwards.

    with verify_action(cluster, queries=40) as action:
        cluster.reader.browser.post("/queues/spare/edit/", {"weight": "3"})
    assert action.kinds == {"queues.scheduling.volcano.sh"}

It makes no difference how something is done: by a page, the Kubernetes API, a command, a turn of the controllers.
When the block has ended, all of this must hold:

1. Each row that it added to the log fulfils the schema of its kind, and the whole log every invariant of `proof.invariants`.
2. What is on the screen after the messages of the socket is what a fresh load brings: each topic for the reader and for the
   outsider, and each whole page of the reader that was told of something or names what changed.
3. What the Kubernetes API lists, gets and tells in a watch from the beginning of the block on follows from the log; so do the
   rows of the store, with the columns by which it searches.
4. The outsider, who has no role where the change was made, reads nothing of it: in no message, page, list or watch.
5. The block took no more queries than it may.

Zulip's tests do so with `verify_action` of its test_events.py. All runs in the process and the database of the test.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import lxml.html
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cluster import access, clock
from cluster.store import sql, store
from cluster.store.types import key_of
from dashboard.live import topics
from dashboard.live.rendering import Rendering, WatchIndex
from kube import definitions, resources, schema
from kube.errors import ApiError
from kube.resources import NAMESPACES
from proof.invariants import Broken, check
from proof.simulation.people.request import path

# These show everybody who has a role how much is in use everywhere: of the work of others they tell amounts, and nothing else.
AMOUNTS = frozenset(
    {"dashboard:overview", "dashboard:nodes", "dashboard:node", "dashboard:hypernodes", "queues:list", "queues:detail"}
)
# What is another text in each answer, and what can be chosen, which stays as it was when the page was opened.
OWN = re.compile(
    r' data-revision="[^"]*"|<input type="hidden" name="(csrfmiddlewaretoken|token|next)"[^>]*>|<option.*?</option>',
    re.DOTALL,
)
# What is counted only once it is recorded, for which the list looks every so often.
RECORDED = re.compile(r'\s*<a class="chip" href="[^"]*phase=Deleted".*?</a>', re.DOTALL)


READ, WRITTEN = re.compile(r'(?:FROM|JOIN) "?(\w+)'), re.compile(r'(?:INTO|UPDATE|DELETE FROM) "?(\w+)')
KINDS = {resource.id for resource in resources.ALL}
MOMENT_MS = 10_000


class Person(NamedTuple):
    """Somebody with an account: who acts, and the browser in which he is logged in."""

    actor: access.Actor
    browser: object


@dataclass
class Action:
    """What a block did: the rows that it added to the log, its queries, and what the reader's sockets were told."""

    before: int
    rows: list = field(default_factory=list)
    queries: int = 0
    messages: list = field(default_factory=list)

    @property
    def kinds(self):
        """The kinds that changed."""
        return {row.resource for row in self.rows}


@contextmanager
def verify_action(cluster, queries=None, *, whole=True):
    """Check at the end of the block all that must agree after what was done in it.

    Whole pages are the dear part: where another block follows at once they may be left to it, with what this one told them.
    The cluster's `screens` are those of a reader and of an outsider; its API server is asked by `ask` and `watch`.
    """
    screen, other = cluster.screens
    action = Action(store.revision())
    with CaptureQueriesContext(connection) as captured:
        yield action
    executed = [*captured]  # which the requests that follow would empty
    action.queries = len(executed)
    action.rows = store.changes(action.before)
    written = action.kinds | {key_of(row.resource, row.namespace, row.name) for row in action.rows}
    written |= {table for each in executed for table in WRITTEN.findall(each["sql"])}
    log = store.changes(0)
    action.messages = screen.hear(action.rows)
    messages = other.hear(action.rows)
    found = [
        *wrong_in_log(action.rows, log),
        *screen.wrong_topics(written),
        *other.wrong_topics(written),
        *(screen.wrong_pages() if whole else ()),
        *wrong_in_api(cluster, screen.person, action, log),
        *leaks(cluster, other.person, action, log, messages, written),
        *too_many(executed, queries),
    ]
    assert not found, "\n".join(found)


# 1. The log.


def wrong_in_log(rows, log):
    """Yield what of the rows does not fulfil the schemas of their kinds, and the first invariant that the log breaks."""
    for row in rows:
        definition = definitions.of(resources.by_id(row.resource))
        wrong = [str(cause) for cause in schema.check(row.object, definition)]
        wrong += [f"{each} is no field" for each in schema.unknown_fields(row.object, definition)]
        if wrong:
            yield f"revision {row.revision}, {row.resource} {row.key}: {'; '.join(wrong)}"
    try:
        check(log)
    except Broken as broken:
        yield str(broken)


# 2. The screen.


class Screen:
    """Pages as somebody has them open, each with the topics that its socket subscribed to."""

    def __init__(self, person, addresses, watched=(), memories=(), reads=None):
        self.person = person
        self.addresses = addresses
        self.pages = {each: self.load(each) for each in addresses}
        found = [topic for text in self.pages.values() for topic in topics_of(text)]
        self.rendered = {}  # topic → the parts that are on the screen, or why there are none
        self.reads = {**(reads or {})}  # topic → what they are made of
        for topic in dict.fromkeys([*found, *watched]):
            for memory in memories:
                memory.forget()
            self.rendered[topic] = self.render(topic)
        self._subscribe()

    def render(self, topic):
        """Render a topic for the person, and know from then on what it is made of."""
        self.seen = clock.milliseconds()
        with noted() as reads:
            found = render(self.person.actor, topic)
        self.reads[topic] = self.reads.get(topic, frozenset()) | reads
        return found

    def copy(self):
        """Return the same pages in windows of their own."""
        other = object.__new__(Screen)
        # What an actor may is remembered in it, and does not go with the roles of a test.
        other.person, other.addresses = self.person._replace(actor=replace(self.person.actor)), self.addresses
        other.pages, other.rendered, other.reads, other.seen = (
            {**self.pages},
            {**self.rendered},
            {**self.reads},
            self.seen,
        )
        other._subscribe()
        return other

    def _subscribe(self):
        self.unread, self.names = [], set()  # messages and names of what changed since whole pages were looked at
        self.messages, self.index, self.renderings, self.over = [], WatchIndex(), [], []
        for topic, parts in self.rendered.items():
            if isinstance(parts, topics.Parts):
                name, params = topics.parse(topic)
                rendering = Rendering(topic, None, topics.find(name), params, self.person.actor)
                rendering.take(store.revision(), parts)
                rendering.readers.add(self)
                self.index.put(rendering, parts.watches)
                self.renderings.append(rendering)

    def load(self, address):
        """Return the text of a page; "" where there is none for the reader."""
        answer = self.person.browser.get(address)
        return answer.content.decode() if answer.status_code == 200 else ""

    def offer(self, text):
        """Take a message of the hub."""
        self.messages.append(json.loads(text))

    def hear(self, changes):
        """Render what the changes make stale, as the hub does; return the messages, with which the screen is patched."""
        self.messages = []
        self.names |= {change.name for change in changes}
        now = clock.milliseconds()
        stale = {id(each): each for each in self.renderings if each.again is not None and each.again <= now}
        stale |= {id(each): each for change in changes for each in self.index.match(change)}
        for rendering in stale.values():
            parts = self.render(rendering.topic)
            if isinstance(parts, topics.Parts):
                rendering.take(store.revision(), parts)
                self.index.put(rendering, parts.watches)
            else:
                rendering.refuse(parts)
                self.over.append(rendering.topic)
                self.index.put(rendering, ())
                self.renderings.remove(rendering)
        for message in self.messages:
            topic = message["id"]
            self.rendered[topic] = patched(self.rendered[topic], message)
        self.unread += self.messages
        return self.messages

    def wrong_topics(self, written):
        """Yield each topic that is on the screen in another way than a fresh load brings it.

        What is made of nothing that was written is as it was, unless time has passed: more than watches are let wait.
        """
        has_passed = clock.milliseconds() > self.seen + MOMENT_MS
        for topic, previous in self.rendered.items():
            if not has_passed and not self.reads[topic] & written:
                continue
            fresh = self.render(topic)
            one, other = _without_pictures(previous, fresh)
            if _as_read(one) != _as_read(other):
                yield f"the topic {topic} of {self.person.actor.name}: {_difference(one, other)}"
            self.rendered[topic] = fresh
        for topic in self.over:  # its subscription, and the page says so
            del self.rendered[topic]
        self.over.clear()

    def wrong_pages(self):
        """Yield each page that was told of something or names what changed, and is not as a fresh load brings it."""
        for address, before in self.pages.items():
            live = set(topics_of(before))  # a page without any does not say that it is up to date
            messages = [message for message in self.unread if message["id"] in live]
            if not live or not (messages or self.names & _words(before)):
                continue
            fresh = self.load(address)
            if not any(message["op"] == "denied" for message in messages):
                yield from _wrong_page(address, before, messages, fresh)
            self.pages[address] = fresh
        self.unread, self.names = [], set()


@lru_cache(maxsize=200)
def _words(text):
    """Return the words that are read on a page; also names are words."""
    return frozenset(re.findall(r"\w(?:[\w.-]*\w)?", re.sub("<[^>]*>", " ", text.partition("<main")[2])))


def _wrong_page(address, before, messages, fresh):
    """Yield where a page is not as it is loaded afresh; of what is gone, what can be done on it and not on a fresh one."""
    page = patched_page(before, messages)
    afresh = lxml.html.document_fromstring(fresh) if fresh else None
    if topics_of(before)[0] in topics_of(fresh):
        if content(page) != content(afresh):
            yield f"the page {address}: {_first(content(page), content(afresh))}"
    elif left := posted(page) - posted(afresh):
        yield f"the page {address} of what is gone offers {sorted(left)}"


def posted(page):
    """Return where the forms and buttons of a page, if there is one, send to."""
    return set() if page is None else set(page.get_element_by_id("content").xpath(".//form/@action | .//@formaction"))


def topics_of(text):
    """Return the topics to which a page subscribes."""
    return [each.replace("&amp;", "&") for each in re.findall(r'data-live="([^"]*)"', text)]


def render(actor, topic):
    """Return the parts of a topic as a page has them, or in words why the reader does not get them."""
    name, params = topics.parse(topic)
    try:
        with store.reading():
            return topics.find(name)(topics.TopicRequest(actor, params))
    except ApiError as error:
        return error.message


@contextmanager
def noted():
    """Note what is read meanwhile: of objects their keys or their kind, where the query names them, and else the tables."""
    found = set()

    def note(execute, sql, params, many, context):
        tables, words = set(READ.findall(sql)) - {"cluster_log"}, {str(each) for each in params or ()}
        named = KINDS & words or {each for each in words if each.partition("/")[0] in KINDS}
        found.update(named if named and tables <= {"cluster_object", "cluster_change"} else tables)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield found


def patched(previous, message):
    """Return what is on the screen of a topic after a message."""
    if message["op"] == "denied":
        return message["message"]
    parts, order = {**previous.parts, **message["set"]}, message.get("order", previous.order)
    gone = set(previous.order or ()) - set(order or ())
    return topics.Parts({name: html for name, html in parts.items() if name not in gone}, order)


def _as_read(rendered):
    if not isinstance(rendered, topics.Parts):
        return rendered
    return {name: " ".join(RECORDED.sub("", html).split()) for name, html in rendered.parts.items()}, rendered.order


def _without_pictures(previous, fresh):
    """Return both without what a fresh load lacks and in which nothing can be done: the last pictures of an object that is gone."""
    if not (isinstance(previous, topics.Parts) and isinstance(fresh, topics.Parts)):
        return previous, fresh
    left = {
        name
        for name, html in previous.parts.items()
        if not fresh.parts.get(name, "").strip() and not re.search("<form|formaction", html)
    }
    order = None if fresh.order is None else previous.order
    one, other = ({name: html for name, html in each.parts.items() if name not in left} for each in (previous, fresh))
    return topics.Parts(one, order), topics.Parts(other, fresh.order)


def _difference(previous, fresh):
    if not (isinstance(previous, topics.Parts) and isinstance(fresh, topics.Parts)):
        return f"{_as_read(previous)!s:.300} instead of {_as_read(fresh)!s:.300}"
    if previous.order != fresh.order:
        return f"the order {previous.order} instead of {fresh.order}"
    names = [each for each in {**previous.parts, **fresh.parts} if previous.parts.get(each) != fresh.parts.get(each)]
    return "; ".join(f"{each}: {_first(previous.parts.get(each, ''), fresh.parts.get(each, ''))}" for each in names)


def _first(one, other):
    """Return where two texts begin to differ."""
    at = next(
        (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )
    return f"…{one[max(at - 80, 0) : at + 160]!r} instead of …{other[max(at - 80, 0) : at + 160]!r}"


def patched_page(text, messages):
    """Return a page as frontend/modules/live.js leaves it after messages, while nobody reads in its lists."""
    page = lxml.html.document_fromstring(text)
    for message in messages:
        fresh = {}
        for name, html in message["set"].items():
            made = lxml.html.fragment_fromstring(html) if html.strip() else None
            old = page.get_element_by_id(name, None)
            if made is None:
                continue
            if old is None:
                fresh[name] = made
            else:
                made.tail = old.tail
                old.getparent().replace(old, made)
        if "order" in message:
            for container in page.xpath("//*[@data-live=$topic]", topic=message["id"]):
                here = {child.get("id"): child for child in container} | fresh
                container[:] = [here[name] for name in message["order"] if name in here]
    return page


def content(page):
    """Return what is between the bars of a page, but for what each answer has of its own, and what somebody writes there."""
    for form in page.xpath("//form[@data-draft]"):
        form.drop_tree()
    text = RECORDED.sub("", OWN.sub("", lxml.html.tostring(page.get_element_by_id("content"), encoding="unicode")))
    text = " ".join(text.split())
    for bracket in "<>":
        text = text.replace(f" {bracket}", bracket).replace(f"{bracket} ", bracket)
    return text


# 3. The API and the store.


def wrong_in_api(cluster, person, action, log):
    """Yield what API and store have of the kinds that changed, where it is not what follows from the log."""
    for kind in sorted(action.kinds):
        resource = resources.by_id(kind)
        state = folded(log, kind)
        listed = cluster.ask(person.actor, path(resource)).object
        before = {"resourceVersion": action.before, "resourceVersionMatch": "Exact"}
        earlier = cluster.ask(person.actor, path(resource, **before)).object
        events = cluster.watch(person.actor, path(resource, watch="true", resourceVersion=action.before))
        by_source = {
            "the store": _objects(stored.object for stored in store.find(resource)),
            "a list": _objects(listed["items"]),
            "a watch": watched(earlier["items"], events),
        }
        for where, objects in by_source.items():
            if objects != state:
                yield f"{where} of {kind} has {_other(objects, state)}"
        if listed["metadata"]["resourceVersion"] != str(log[-1].revision):
            yield f"the list of {kind} is of {listed['metadata']['resourceVersion']}, the log ends with {log[-1].revision}"
        yield from wrong_columns(resource, state)
        for row in {row.key: row for row in action.rows if row.resource == kind}.values():
            got = cluster.ask(person.actor, path(resource, row.namespace, row.name))
            if (_plain(got.object) if got.status == 200 else None) != state.get((row.namespace, row.name)):
                yield f"{kind} {row.key} is got with {got.status} as {got.object!s:.300}"


def folded(log, kind):
    """Return the objects of a kind that follow from the log."""
    state = {}
    for row in log:
        if row.resource == kind:
            state[_key(row.object)] = _plain(row.object)
            if row.verb == "DELETED":
                del state[_key(row.object)]
    return state


def watched(objects, events):
    """Return the objects that somebody knows who has had a list and then the events of a watch."""
    state = _objects(objects)
    for event in events:
        state[_key(event["object"])] = _plain(event["object"])
        if event["type"] == "DELETED":
            del state[_key(event["object"])]
    return state


def wrong_columns(resource, state):
    """Yield the rows of objects that have other columns than those by which these are to be found."""
    text = f"SELECT namespace, name, {', '.join(sql.INDEXED[2:])} FROM cluster_object WHERE resource = %s"
    for namespace, name, *columns in sql.rows(store.using, text, [resource.id]):
        wanted = resource.index(state.get((namespace, name), {"metadata": {}}))
        if columns != [*wanted]:
            yield f"{resource.id} {namespace}/{name} is found by {columns} instead of {[*wanted]}"


def _key(obj):
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _plain(obj):
    return {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}


def _objects(found):
    return {_key(obj): _plain(obj) for obj in found}


def _other(objects, state):
    """Return which objects are others than in the state."""
    return [
        (key, objects.get(key), state.get(key)) for key in {**objects, **state} if objects.get(key) != state.get(key)
    ]


# 4. The outsider.


def leaks(cluster, outsider, action, log, messages, written):
    """Yield in which ways the outsider is told of what lies where he has no role."""
    hidden = [row for row in action.rows if row.namespace and row.namespace not in cluster.world.open_to_outsider]
    public = {row.name for row in log if not row.namespace and row.resource != NAMESPACES.id}
    words = {word for row in hidden for word in (row.name, row.uid, row.namespace)} - public
    for message in messages:
        name = topics.parse(message["id"])[0]
        if found := [word for word in words if word in json.dumps(message)]:
            yield f"the topic {message['id']} tells the outsider of {found}"
        elif len(hidden) == len(action.rows) and name not in AMOUNTS:
            yield f"the topic {message['id']} tells the outsider something: {message!s:.300}"
    for address in [each for each, reads in cluster.world.silent.items() if words and reads & written]:
        text = outsider.browser.get(address).content.decode()
        if found := [word for word in words if word in text]:
            yield f"the page {address} tells the outsider of {found}"
    for kind, namespace in sorted({(row.resource, row.namespace) for row in hidden}):
        for scope in (namespace, ""):
            for query in ({}, {"watch": "true"}):
                where = path(resources.by_id(kind), scope, **query)
                if (status := cluster.ask(outsider.actor, where).status) != 403:
                    yield f"{where} answers the outsider with {status}"
                    break


# 5. Queries.


def too_many(queries, most):
    """Yield the queries, if there are more than there may be."""
    if most is not None and len(queries) > most:
        yield f"{len(queries)} queries, {most} at most:\n" + "\n".join(each["sql"][:160] for each in queries)
