"""From the page "Connect" to a client's first answer, and out again."""

import base64
import ssl

import httpx
import pytest
import yaml

from proof.harness.waiting import HANG_S, until
from tests.browser.journey import Window

pytestmark = pytest.mark.system


def made(page, name):
    """Make a kubeconfig on the page and return it as it is downloaded."""
    Window(page).goes(
        f"open /connect/ → main: answers\nfill field What it is for = {name}; click button Make a kubeconfig"
    )
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "volcano-ui.kubeconfig"
    return yaml.safe_load(download.value.path().read_text())


def answer(config, path):
    """Ask the API as a kubeconfig says; return the status code."""
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    context = ssl.create_default_context(cadata=authority)
    return httpx.get(cluster["server"] + path, headers=headers, verify=context, timeout=HANG_S).status_code


def test_a_kubeconfig_of_the_page_works_until_it_is_revoked(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    config = made(page, "night shift")
    Window(page).goes("click button Copy the kubeconfig → button Copied is visible")
    assert yaml.safe_load(page.evaluate("navigator.clipboard.readText()")) == config
    assert answer(config, "/api/v1/namespaces/default/pods") == 200
    page.goto("/connect/")
    assert config["users"][0]["user"]["token"] not in page.content()
    Window(page).goes("click button Revoke night shift; click button Keep it")
    assert answer(config, "/version") == 200
    Window(page).goes(
        "click button Revoke night shift; click button Revoke the token → #toasts: lets nobody in any more"
    )
    until(lambda: answer(config, "/api/v1/namespaces/default/pods") == 401)
