from __future__ import annotations

import logging
import os
from http import HTTPStatus

import pytest

from tests import chromium
from tests.browser import world
from tests.system.harness import System
from tests.system.work import Person, Watcher

log = logging.getLogger(__name__)
QUIET = ("net::ERR_", "WebSocket connection to", "the server responded with a status of")


@pytest.fixture(scope="package")
def browser(chromium_path):
    # Playwright's loop runs in this thread, so Django takes it for one that must not ask a database.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with chromium.launched(chromium_path) as launched:
        yield launched
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="package")
def system(tmp_path_factory, django_db_blocker):
    """One furnished system for all journeys."""
    running = System(tmp_path_factory.mktemp("browser") / "data", nodes=5)
    try:
        with django_db_blocker.unblock():
            world.furnish(running.start())
            yield running
    finally:
        running.stop()
    running.assert_gone()


@pytest.fixture(autouse=True)
def _database(django_db_blocker):
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def person(system):
    with Person(system) as somebody:
        yield somebody


@pytest.fixture
def watcher(system):
    with system.store() as store:
        yield Watcher(store)


@pytest.fixture
def enter(browser, system):
    """Open windows; at the end no script of theirs may have complained.

    What they heard and where they ended up is logged: a failed test shows it.
    """
    contexts, complaints = [], []

    def heard(message):
        log.info("%s: %s", message.type, message.text)
        if message.type == "error" and not any(words in message.text for words in QUIET):
            complaints.append(message.text)

    def missed(request):
        log.info("not answered: %s %s: %s", request.method, request.url, request.failure)

    def answered(response):
        if response.status >= HTTPStatus.BAD_REQUEST:
            log.info("%s: %s", response.status, response.url)

    def begin(on=None, **options):
        context = world.enter(browser, on or system, **options)
        contexts.append(context)
        context.on("console", heard)
        context.on("requestfailed", missed)
        context.on("response", answered)
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        return context.new_page()

    yield begin
    for context in contexts:
        for page in context.pages:
            log.info("ended at %s", page.url)
        context.close()
    assert not complaints


@pytest.fixture
def page(enter):
    return enter()
