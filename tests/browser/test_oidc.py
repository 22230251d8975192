"""Logging in at a provider in a real browser, with and without its scripts."""

import pytest

from proof.harness import provider
from proof.systems.system import System
from tests.browser.journey import Window
from tests.browser.test_pages import findings

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def keeper():
    """The provider."""
    with provider.running() as started:
        yield started


@pytest.fixture(scope="module")
def guarded(keeper, tmp_path_factory, django_db_blocker):
    """A system that its accounts may enter, and nobody by a password."""
    folder = tmp_path_factory.mktemp("oidc")
    (folder / "secret").write_text(f"{provider.SECRET}\n")
    settings = {
        "OIDC_ISSUER": keeper.issuer,
        "OIDC_NAME": "Lab login",
        "OIDC_CLIENT_SECRET_FILE": str(folder / "secret"),
        "OIDC_ADMIN_GROUP": "staff",
        "PASSWORD_LOGIN": "0",
    }
    with System(folder / "data", **{f"VOLCANO_UI_{name}": value for name, value in settings.items()}) as running:
        yield running
    running.assert_gone()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_somebody_comes_in_by_the_provider_and_goes_out_again(enter, guarded, keeper, scripts):
    page = enter(guarded, cookies={}, java_script_enabled=scripts)
    Window(page).goes("""
        open /queues/; click link Log in with Lab login
        fill field Name = alice; click button Log in → heading Queues >> nth=0 is visible
        open /access/ → table Users: Lab login
        click button Menu of alice; click button Log out
    """)
    keeper.left.clear()
    Window(page).goes("click link Log out of Lab login as well → link Log in with Lab login is visible")
    assert keeper.left == ["id-of-alice"]


def test_who_is_refused_comes_back_to_the_login(enter, guarded):
    Window(enter(guarded, cookies={})).goes("""
        open /login/oidc/; click button Refuse → alert: not in the group lab
        click link Back to the login → link Log in with Lab login is visible
    """)


@pytest.mark.parametrize("path", ["/login/", "/login/oidc/callback/?state=x", "/login/oidc/connection/"])
def test_its_pages_keep_nobody_out_and_fit_a_narrow_window(enter, guarded, axe, path):
    if guarded.cookies is None:
        guarded.client().close()
    cookies = guarded.cookies if "connection" in path else {}
    for theme in "light", "dark":
        page = enter(guarded, cookies=cookies, theme=theme)
        page.set_viewport_size({"width": 360, "height": 720})
        page.goto(path)
        assert findings(page, axe) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
