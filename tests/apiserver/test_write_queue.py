"""What waits for the thread that writes, in which order it is done, and what is done together."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from apiserver.http import write_queue
from apiserver.http.write_queue import Call, WriteQueue
from cluster.access import MASTERS, Actor
from cluster.store import store
from kube.errors import Conflict
from kube.resources import CONFIGMAPS
from proof.harness.waiting import HANG_S
from tests.cluster.api.conftest import config_map
from tests.tables import cases

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

    def call(self, actor, item, kind="maps"):
        return asyncio.create_task(self.queue.run(actor, Call(self.do, item, kind)))

    async def held(self):
        """Hold the thread with a call of its own."""
        first = self.call("nobody", "first", None)
        await settled()
        return first

    async def answers(self, *tasks):
        await settled()
        self.go.set()
        return await asyncio.gather(*tasks, return_exceptions=True)


async def settled():
    for _ in range(20):
        await asyncio.sleep(0)


def test_what_waits_is_done_together_and_each_gets_its_own_outcome():
    async def main():
        waiting = Waiting()
        found = await waiting.answers(
            await waiting.held(), waiting.call("a", "x"), waiting.call("b", "bad"), waiting.call("c", "y")
        )
        assert waiting.turns == [["first"], ["x", "bad", "y"]]
        assert [found[0], found[1], found[3]] == ["FIRST", "X", "Y"]
        assert isinstance(found[2], Conflict)

    asyncio.run(main())


def test_other_kinds_and_lone_calls_have_turns_of_their_own():
    async def main():
        waiting = Waiting()
        await waiting.answers(
            await waiting.held(),
            waiting.call("a", "x1", "maps"),
            waiting.call("a", "p1", "pods"),
            waiting.call("a", "alone", None),
            waiting.call("b", "x2", "maps"),
            waiting.call("b", "p2", "pods"),
        )
        assert waiting.turns == [["first"], ["x1", "x2"], ["p2", "p1"], ["alone"]]

    asyncio.run(main())


def test_whose_turn_it_is_does_not_wait_behind_a_flood():
    async def main():
        waiting = Waiting()
        flood = [waiting.call("a", f"a{number}", None) for number in range(5)]
        await settled()
        await waiting.answers(*flood, waiting.call("b", "b", None))
        assert [turn[0] for turn in waiting.turns] == ["a0", "a1", "b", "a2", "a3", "a4"]

    asyncio.run(main())


def test_who_had_to_wait_itself_takes_what_came_meanwhile():
    async def main():
        waiting = Waiting()
        first = waiting.call("a", "long")
        await settled()
        late = [waiting.call("b", "x"), waiting.call("c", "p", "pods"), waiting.call("a", "bad")]
        found = await waiting.answers(first, *late)
        assert waiting.turns == [["long", "x", "bad"], ["p"]]
        assert found[:3] == ["LONG", "X", "P"]
        assert isinstance(found[3], Conflict)

    asyncio.run(main())


def test_a_turn_has_a_size(monkeypatch):
    monkeypatch.setattr(write_queue, "MOST_TOGETHER", 3)

    async def main():
        waiting = Waiting()
        await waiting.answers(await waiting.held(), *(waiting.call("a", f"x{n}") for n in range(7)))
        assert [len(turn) for turn in waiting.turns] == [1, 3, 3, 1]

    asyncio.run(main())


def test_what_nobody_waits_for_any_more_is_not_done():
    async def main():
        waiting = Waiting()
        first, gone, kept = await waiting.held(), waiting.call("a", "gone"), waiting.call("b", "kept")
        also = waiting.call("c", "also gone")
        await settled()
        gone.cancel()
        also.cancel()
        await waiting.answers(first, kept)
        assert waiting.turns == [["first"], ["kept"]]

    asyncio.run(main())


def test_what_the_function_raises_is_raised_for_all_and_the_next_turn_comes():
    async def main():
        waiting = Waiting()
        broken = [asyncio.create_task(waiting.queue.run("a", Call(fail, n, "broken"))) for n in range(3)]
        found = await waiting.answers(*broken, waiting.call("b", "x"))
        assert [type(each) for each in found[:3]] == [ZeroDivisionError] * 3
        assert found[3] == "X"

    def fail(items, more):
        raise ZeroDivisionError

    asyncio.run(main())


def test_a_loop_that_ended_in_the_middle_leaves_nothing_behind():
    waiting = Waiting()

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
        mine = api.as_(api_actor(number))
        found = [mine.post(MAPS, config_map(f"map-{number}-{n}")) for n in range(EACH)]
        assert {answer.status_code for answer in found} == {201}
        return [int(answer.json()["metadata"]["resourceVersion"]) for answer in found]

    with ThreadPoolExecutor(CLIENTS) as threads:
        versions = list(threads.map(client, range(CLIENTS)))
    assert all(mine == sorted(mine) for mine in versions), "each answer came before the next request"
    changes = [change for change in store.changes(before) if change.resource == CONFIGMAPS.id]
    assert sorted(version for mine in versions for version in mine) == [change.revision for change in changes]
    assert [change.revision for change in changes] == list(
        range(changes[0].revision, changes[0].revision + CLIENTS * EACH)
    )


def api_actor(number):
    return Actor(f"system:client-{number}", (MASTERS,))


@cases("dry", {"stored": "", "dry run": "?dryRun=All"})
def test_an_odd_object_is_warned_of_once(api, dry):
    answer = api.post(MAPS + dry, {**config_map("odd"), "unknown": 1})
    assert answer.status_code == 201
    assert answer.headers["warning"] == '299 - "unknown field \\"unknown\\""'
