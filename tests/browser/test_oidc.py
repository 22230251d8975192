"""Logging in at a provider in a real browser, with and without its scripts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from proof.harness import provider
from proof.systems.system import System
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
    page.goto("/queues/")
    page.get_by_role("link", name="Log in with Lab login").click()
    page.get_by_label("Name").fill("alice")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Queues", level=1)).to_be_visible()
    page.goto("/access/")
    expect(page.get_by_role("table", name="Users")).to_contain_text("Lab login")
    page.get_by_role("button", name="Menu of alice").click()
    page.get_by_role("button", name="Log out").click()
    keeper.left.clear()
    page.get_by_role("link", name="Log out of Lab login as well").click()
    expect(page.get_by_role("link", name="Log in with Lab login")).to_be_visible()
    assert keeper.left == ["id-of-alice"]


def test_who_is_refused_comes_back_to_the_login(enter, guarded):
    page = enter(guarded, cookies={})
    page.goto("/login/oidc/")
    page.get_by_role("button", name="Refuse").click()
    expect(page.get_by_role("alert")).to_contain_text("not in the group lab")
    page.get_by_role("link", name="Back to the login").click()
    expect(page.get_by_role("link", name="Log in with Lab login")).to_be_visible()


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
