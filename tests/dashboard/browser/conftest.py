import contextlib

import pytest
from django.conf import settings as django_settings

from dashboard import cluster_usage
from proof.harness.chromium import launched
from proof.harness.ports import free_port
from proof.harness.serving import in_thread
from proof.harness.waiting import HANG_S
from volcano_ui import assets, web


class Site:
    """The product's web server on the test's database, in a thread of this process."""

    def __init__(self):
        self.port = free_port()
        self._running = contextlib.ExitStack()

    def start(self):
        self._running.enter_context(in_thread(web.config(), web.listen("127.0.0.1", self.port)))

    def stop(self):
        self._running.close()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture(scope="session")
def _front_end():
    """The bundle, built if its source changed."""
    assets.build(lambda _: None)


@pytest.fixture
def site(transactional_db, redis, settings, _front_end):
    settings.STATIC_ROOT = django_settings.BASE_DIR / ".cache" / "static"
    settings.SERVESTATIC_USE_FINDERS = settings.SERVESTATIC_AUTOREFRESH = True
    cluster_usage.forget()
    site = Site()
    site.start()
    yield site
    site.stop()
    cluster_usage.forget()


# Playwright runs an event loop in the tests' thread. So it ends with the folder, as other folders' tests need a loop of
# their own; and Django is told that it may be asked between two steps of the browser.
@pytest.fixture(scope="package", autouse=True)
def _asked_between_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield


@pytest.fixture(scope="package")
def chromium(chromium_path):
    with launched(chromium_path) as browser:
        yield browser


@pytest.fixture
def open_tab(chromium, site):
    """Open a tab in which somebody is logged in; what its console says of errors is collected in `tab.errors`."""
    contexts = []

    def open_(browser, address="/", **options):
        context = chromium.new_context(base_url=site.address, **options)
        context.set_default_timeout(HANG_S * 1000)
        contexts.append(context)
        name = django_settings.SESSION_COOKIE_NAME
        context.add_cookies([{"name": name, "value": browser.cookies[name].value, "url": site.address}])
        tab = context.new_page()
        tab.errors = []
        tab.on("pageerror", lambda error: tab.errors.append(str(error)))
        tab.on("console", lambda message: message.type == "error" and tab.errors.append(message.text))
        tab.goto(address)
        return tab

    yield open_
    for context in contexts:
        context.close()
