"""Which tests of our API server ask what clients ask: noted while the tests in `tests/apiserver` run, in this process.

It is a plugin of pytest too. Tests that start whole systems ask servers in other processes, and are not seen.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from apiserver.app import App
from proof.traffic import exchange, use

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "apiserver"
FILE = Path(__file__).parent / "touched.json"
MOST = 3  # tests that are named for a use: those that ask for the fewest other things
BODILY = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class Touching:
    """The plugin: notes who asks what."""

    def __init__(self) -> None:
        self.uses: dict[str, set[str]] = defaultdict(set)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> object:
        """Listen at the door of the application while tests run."""
        serve = App.__call__

        async def noting(app: App, scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] in {"http", "websocket"}:
                self._note(scope)
            await serve(app, scope, receive, send)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(App, "__call__", noting)
            return (yield)

    def _note(self, scope: Scope) -> None:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0].partition("[")[0]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        method = scope.get("method", "GET")
        path = f"{scope['path']}?{scope['query_string'].decode()}"
        has_body = method in BODILY and headers.get("content-length", "0") != "0"
        row = use.of(method, path, headers.get("content-type", ""), headers.get("accept", ""), has_body=has_body)
        self.uses[row.key].add(test)


def collect() -> None:
    """Run the tests, and keep which of them ask what is recorded."""
    plugin = Touching()
    # This process has imported what pytest would rewrite.
    options = ["-q", "-n", "0", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    if pytest.main([*options, f"--ignore={TESTS / 'test_traffic.py'}", str(TESTS)], plugins=[plugin]):
        raise SystemExit("Tests fail; nothing was written.")
    recorded = {of(each).key for name in exchange.names() for each in exchange.load(name)}
    counts = defaultdict[str, int](int)
    for tests in plugin.uses.values():
        for test in tests:
            counts[test] += 1
    chosen = {
        key: sorted(sorted(tests), key=counts.__getitem__)[:MOST]
        for key, tests in sorted(plugin.uses.items())
        if key in recorded
    }
    FILE.write_text(json.dumps(chosen, indent=0) + "\n", encoding="utf-8")


def of(request: exchange.Exchange) -> use.Use:
    """Return what a recorded request is one of."""
    return use.of(request.method, request.path, request.content_type, request.accept, has_body=request.body is not None)


def load() -> dict[str, list[str]]:
    """Return the tests by what they ask."""
    found: dict[str, list[str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def missing() -> list[str]:
    """Return the tests that are named and are there no more."""
    named = {test for tests in load().values() for test in tests}
    return sorted(test for test in named if not _is_there(*test.split("::")[:: len(test.split("::")) - 1]))


def _is_there(file: str, name: str) -> bool:
    path = ROOT / file
    return path.exists() and f"def {name}(" in path.read_text(encoding="utf-8")
