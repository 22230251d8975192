from __future__ import annotations

import asyncio

from node import inotify
from proof.harness.waiting import HANG_S


async def soon(waiter):
    waiter.clear()
    await asyncio.wait_for(waiter.changed(HANG_S), HANG_S)
    return waiter.event.is_set()


def test_all_who_wait_for_a_directory_hear_of_a_change(tmp_path):
    async def story():
        own = inotify.of_loop()
        assert own is inotify.of_loop()
        with own.waiting(tmp_path) as first, own.waiting(tmp_path) as second:
            waits = asyncio.gather(soon(first), soon(second))
            await asyncio.sleep(0)
            (tmp_path / "log").write_bytes(b"x")
            assert await waits == [True, True]
        with own.waiting(tmp_path) as third:
            wait = asyncio.ensure_future(soon(third))
            await asyncio.sleep(0)
            (tmp_path / "new").write_bytes(b"x")
            (tmp_path / "new").rename(tmp_path / "status.json")
            assert await wait

    asyncio.run(story())


def test_a_wait_without_a_change_ends_in_time(tmp_path):
    async def story():
        with inotify.of_loop().waiting(tmp_path) as waiter:
            await waiter.changed(0.01)
            assert not waiter.event.is_set()

    asyncio.run(story())


def test_a_directory_that_goes_wakes_and_is_then_looked_at_by_time(tmp_path):
    async def story():
        directory = tmp_path / "a"
        directory.mkdir()
        with inotify.of_loop().waiting(directory) as waiter:
            wait = asyncio.ensure_future(soon(waiter))
            await asyncio.sleep(0)
            directory.rmdir()
            assert await wait
            assert waiter.blind

    asyncio.run(story())


def test_nothing_is_left_of_those_who_have_gone(tmp_path):
    async def story():
        own = inotify.of_loop()
        for _ in range(3):
            with own.waiting(tmp_path), own.waiting(tmp_path):
                pass
        assert not own._waiters

    asyncio.run(story())
