"""What is removed of an engine's containers, with a program that stands in for the engine."""

from __future__ import annotations

import json
import os
import threading

import pytest

from node.agent.engine_sweep import EngineSweep
from node.paths import Layout
from node.shim.contained import VARIABLES
from proof.harness.waiting import until

LABELS = json.dumps({"io.kubernetes.pod.uid": "u", "io.kubernetes.container.name": "main"})
# As docker: of a container that has gone meanwhile there is an empty line.
ENGINE = f"""#!/bin/sh
case "$1 $5" in
  "ps "*) cat FOLDER/gate; echo asked >> FOLDER/asked; printf 'went-0\\nleft-0\\n';;
  "container went-0") echo; exit 1;;
  "container left-0") echo '{LABELS}';;
  "rm "*) echo "$4" >> FOLDER/removed;;
esac
"""


@pytest.fixture
def engine(tmp_path):
    program = tmp_path / "engine"
    program.write_text(ENGINE.replace("FOLDER", str(tmp_path)))
    program.chmod(0o755)
    (tmp_path / "gate").touch()
    return program


@pytest.fixture
def sweep(tmp_path):
    return EngineSweep(Layout(tmp_path), None)


def test_container_that_goes_meanwhile_keeps_no_other_from_being_removed(tmp_path, engine, sweep):
    sweep._all([str(engine)])
    assert (tmp_path / "removed").read_text() == "left-0\n"


def test_variables_of_a_container_whose_shim_was_killed_before_it_was_created_are_removed(tmp_path, sweep):
    (tmp_path / VARIABLES).write_text("PASSWORD=hush\n")
    sweep.remove(tmp_path)
    assert not (tmp_path / VARIABLES).exists()


def test_engine_that_hangs_is_asked_once(tmp_path, engine, sweep):
    (tmp_path / "gate").unlink()
    os.mkfifo(tmp_path / "gate")
    first = threading.Thread(target=sweep._all, args=([str(engine)],))
    first.start()
    until(sweep._sweeping.locked)
    sweep._all([str(engine)])
    (tmp_path / "gate").write_text("")
    first.join()
    assert (tmp_path / "asked").read_text() == "asked\n"
