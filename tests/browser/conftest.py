import contextlib
import logging
import os
from http import HTTPStatus

import pytest

from proof.harness import chromium
from proof.pictures import world
from proof.systems.system import running
from proof.systems.work import Person, Watcher

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
    folder = tmp_path_factory.mktemp("browser")
    with django_db_blocker.unblock(), running(folder / "data", nodes=5) as started:
        world.furnish(started)
        yield started


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


class PageLog:
    """Records what pages say: their scripts complain of nothing, and the rest is logged, so that a failed test shows it."""

    def __init__(self):
        self.complaints = []
        self.events = {"console": self._log_message, "requestfailed": self._missed, "response": self._answered}
        self.events["weberror"] = lambda error: self.complaints.append(str(error.error))

    @contextlib.contextmanager
    def record(self, context):
        """Record what a context's pages say until the end of the block."""
        for event, listener in self.events.items():
            context.on(event, listener)
        try:
            yield
        finally:
            for page in context.pages:
                log.info("ended at %s", page.url)
            for event, listener in self.events.items():
                context.remove_listener(event, listener)

    def _log_message(self, message):
        log.info("%s: %s", message.type, message.text)
        if message.type == "error" and not any(words in message.text for words in QUIET):
            self.complaints.append(message.text)

    def _missed(self, request):
        log.info("not answered: %s %s: %s", request.method, request.url, request.failure)

    def _answered(self, response):
        if response.status >= HTTPStatus.BAD_REQUEST:
            log.info("%s: %s", response.status, response.url)


@pytest.fixture
def page_log():
    log_of_test = PageLog()
    yield log_of_test
    assert not log_of_test.complaints


@pytest.fixture
def enter(request, browser, page_log):
    """Open windows of the test's own, for what a window keeps: a clock, scripts that are off."""
    with contextlib.ExitStack() as opened:

        def begin(on=None, **options):
            # Tests with systems of their own do without the furnished one.
            system = on or request.getfixturevalue("system")
            context = opened.enter_context(world.enter(browser, system, **options))
            opened.enter_context(page_log.record(context))
            return context.new_page()

        yield begin


@pytest.fixture(scope="package")
def opener(browser, system):
    """The page that opens a window for each test: in its process, as one of their own costs more than what most do in it."""
    with world.enter(browser, system) as context:
        page = context.new_page()
        page.goto("/healthz")
        yield page


@pytest.fixture
def page(opener, system, page_log):
    """A window of the administrator."""
    context = opener.context
    context.add_cookies(world.cookies_of(system))
    with page_log.record(context):
        with opener.expect_popup() as opened:
            opener.evaluate("void open('about:blank')")
        yield opened.value
    for other in context.pages:
        if other is not opener:
            other.close()
    opener.evaluate("localStorage.clear()")
    context.clear_cookies()
    context.clear_permissions()
