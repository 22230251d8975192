from __future__ import annotations

import asyncio
import socket

import pytest

from node import pipes
from node.port_client import AnswerLine


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for end in (ours, theirs):
            end.setblocking(False)
        yield ours, theirs


async def test_answers_come_one_by_one(ends):
    ours, theirs = ends
    line = AnswerLine(ours)
    theirs.sendall(b'{"started": 1}\n{"exit')
    assert await line.hear() == ({"started": 1}, [])
    theirs.sendall(b'Code": 0}\n')
    theirs.close()
    assert await line.hear() == ({"exitCode": 0}, [])
    assert await line.hear() == ({}, [])


@pytest.mark.parametrize("said", [b"no JSON\n", b"[1]\n", b"[" * 50_000 + b"\n", b"9" * 5000 + b"\n", b"\xff\n"])
async def test_what_is_no_answer_is_nobody_s(ends, said):
    ours, theirs = ends
    theirs.sendall(said)
    assert await AnswerLine(ours).hear() == ({}, [])


async def test_an_answer_without_an_end_is_not_kept(ends):
    ours, theirs = ends
    writing = asyncio.ensure_future(pipes.write(theirs.fileno(), bytes(64 * 1024 * 1024)))
    assert await AnswerLine(ours).hear() == ({}, [])
    assert not writing.done()
    writing.cancel()
