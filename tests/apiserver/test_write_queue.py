"""What waits for the thread that writes, in which order it is done, and what is done together."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from apiserver.http import write_queue
from apiserver.http.write_queue import Call, WriteQueue
from cluster.access import MASTERS, Actor
from cluster.store import store
from kube.errors import Conflict
from kube.resources import CONFIGMAPS
from proof.harness.waiting import HANG_S
from tests.builders import config_map

MAPS = "/api/v1/namespaces/default/configmaps"
CLIENTS, EACH = 16, 12


class Waiting:
    """Calls that pile up while the thread is held; `turns` are the items that were done together."""

    def __init__(self):
        self.queue, self.turns, self.go = WriteQueue("test-write"), [], threading.Event()

    def do(self, items, more):
        self.go.wait(HANG_S)
        items = [*items, *(more() if items[0].startswith("long") else ())]
        self.turns.append(items)
        return [Conflict(item) if item.startswith("bad") else item.upper() for item in items]

    def call(self, actor, item, kind="maps", do=None):
        return asyncio.create_task(self.queue.run(actor, Call(do or self.do, item, kind)))

    async def held(self):
        """Hold the thread with a call of its own."""
        first = self.call("nobody", "first", None)
        await settled()
        return first

    async def answers(self, *tasks):
        """Let the thread go; return the outcomes, a conflict as its text."""
        await settled()
        self.go.set()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        return [f"refused {each}" if isinstance(each, Conflict) else each for each in found]


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def waiting():
    return Waiting()


async def test_what_waits_is_done_together_by_kind_and_each_gets_its_own_outcome(waiting):
    given = [("a", "x", "maps"), ("a", "p", "pods"), ("a", "alone", None), ("b", "bad", "maps"), ("b", "q", "pods")]
    found = await waiting.answers(await waiting.held(), *(waiting.call(*each) for each in given))
    assert waiting.turns == [["first"], ["x", "bad"], ["q", "p"], ["alone"]]
    assert found == ["FIRST", "X", "P", "ALONE", "refused bad", "Q"]


async def test_whose_turn_it_is_does_not_wait_behind_a_flood(waiting):
    flood = [waiting.call("a", f"a{number}", None) for number in range(5)]
    await settled()
    await waiting.answers(*flood, waiting.call("b", "b", None))
    assert [turn[0] for turn in waiting.turns] == ["a0", "a1", "b", "a2", "a3", "a4"]


async def test_who_had_to_wait_itself_takes_what_came_meanwhile(waiting):
    first = waiting.call("a", "long")
    await settled()
    late = [waiting.call("b", "x"), waiting.call("c", "p", "pods"), waiting.call("a", "bad")]
    assert await waiting.answers(first, *late) == ["LONG", "X", "P", "refused bad"]
    assert waiting.turns == [["long", "x", "bad"], ["p"]]


async def test_a_turn_has_a_size(waiting, monkeypatch):
    monkeypatch.setattr(write_queue, "MOST_TOGETHER", 3)
    await waiting.answers(await waiting.held(), *(waiting.call("a", f"x{n}") for n in range(7)))
    assert [len(turn) for turn in waiting.turns] == [1, 3, 3, 1]


async def test_what_nobody_waits_for_any_more_is_not_done(waiting):
    first, gone, kept = await waiting.held(), waiting.call("a", "gone"), waiting.call("b", "kept")
    also = waiting.call("c", "also gone")
    await settled()
    gone.cancel()
    also.cancel()
    await waiting.answers(first, kept)
    assert waiting.turns == [["first"], ["kept"]]


async def test_what_the_function_raises_is_raised_for_all_and_the_next_turn_comes(waiting):
    def fail(items, more):
        raise ZeroDivisionError

    broken = [waiting.call("a", n, "broken", fail) for n in range(3)]
    *failed, last = await waiting.answers(*broken, waiting.call("b", "x"))
    assert ([type(each) for each in failed], last) == ([ZeroDivisionError] * 3, "X")


def test_a_loop_that_ended_in_the_middle_leaves_nothing_behind(waiting):
    async def left():
        await waiting.held()
        waiting.call("a", "never done")
        await settled()

    async def main():
        return await waiting.answers(waiting.call("b", "x"))

    asyncio.run(left())
    assert asyncio.run(main()) == ["X"]
    assert waiting.turns == [["first"], ["x"]]


def test_many_clients_get_revisions_without_gaps_and_in_the_order_of_the_log(api):
    before = store.revision()

    def client(number):
        mine = api.as_(Actor(f"system:client-{number}", (MASTERS,)))
        found = [mine.post(MAPS, config_map(f"map-{number}-{n}")) for n in range(EACH)]
        assert {answer.status_code for answer in found} == {201}
        return [int(answer.json()["metadata"]["resourceVersion"]) for answer in found]

    with ThreadPoolExecutor(CLIENTS) as threads:
        versions = list(threads.map(client, range(CLIENTS)))
    assert all(mine == sorted(mine) for mine in versions), "each answer came before the next request"
    found = [change.revision for change in store.changes(before) if change.resource == CONFIGMAPS.id]
    assert sorted(version for mine in versions for version in mine) == found
    assert found == list(range(found[0], found[0] + CLIENTS * EACH))


@pytest.mark.parametrize("dry", ["", "?dryRun=All"], ids=["stored", "dry run"])
def test_an_odd_object_is_warned_of_once(api, dry):
    answer = api.post(MAPS + dry, {**config_map("odd"), "unknown": 1})
    assert (answer.status_code, answer.headers["warning"]) == (201, '299 - "unknown field \\"unknown\\""')
