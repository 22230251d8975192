"""A container of an engine that is not there: what the shim keeps of it by itself."""

from __future__ import annotations

import os

import pytest

from node.shim.contained import Contained
from node.shim.launch import Streams
from node.shim.order import Image, Order

KEPT = 10


def contained(*engine):
    image = Image(engine, "podman", "sha256:1", "c")
    return Contained(Order("/none", [], {}, "/", image=image), image)


@pytest.fixture(autouse=True)
def _few_are_kept(monkeypatch):
    # Each command is a fork of all that this process has.
    monkeypatch.setattr("node.shim.contained.ENDED_KEPT", KEPT)


def test_commands_that_have_ended_are_forgotten_but_for_the_last():
    container = contained("/bin/true")
    for _ in range(KEPT * 2):
        os.waitpid(container.execute(["x"], Streams(), {}), 0)
    assert len(container._commands) <= KEPT + 1


def test_marks_of_commands_are_never_the_same(tmp_path):
    said = tmp_path / "said"
    program = tmp_path / "engine"
    program.write_text(f'#!/bin/sh\necho "$2" >> {said}\n')
    program.chmod(0o755)
    container = contained(str(program))
    for _ in range(KEPT * 2):
        os.waitpid(container.execute(["x"], Streams(), {}), 0)
    assert len(set(said.read_text().splitlines())) == KEPT * 2
