"""The plugin of pytest that tells `switch` which test runs: `pytest -p proof.mutants.recorder`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from proof.mutants import switch


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """A test runs."""
    switch.running = item.nodeid
    try:
        return (yield)
    finally:
        switch.running = ""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """A fixture is set up; all tests of the file may use it, if it is for more than one."""
    was = switch.running
    if fixturedef.scope != "function":
        switch.running = was.partition("::")[0]
    try:
        return (yield)
    finally:
        switch.running = was
