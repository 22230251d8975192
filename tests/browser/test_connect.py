"""From the page "Connect" to a client's first answer, and out again."""

from __future__ import annotations

import base64
import ssl
import urllib.error
import urllib.request

import pytest
import yaml
from playwright.sync_api import expect

from proof.harness.waiting import HANG_S, until

pytestmark = pytest.mark.system


def made(page, name):
    """Make a kubeconfig on the page and return it as it is downloaded."""
    page.goto("/connect/")
    expect(page.locator("main")).to_contain_text("answers")
    page.get_by_label("What it is for").fill(name)
    page.get_by_role("button", name="Make a kubeconfig").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.suggested_filename == "volcano-ui.kubeconfig"
    return yaml.safe_load(download.value.path().read_text())


def answer(config, path):
    """Ask the API as a kubeconfig says; return the status code."""
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    request = urllib.request.Request(
        cluster["server"] + path, headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    )
    try:
        with urllib.request.urlopen(
            request, timeout=HANG_S, context=ssl.create_default_context(cadata=authority)
        ) as got:
            return got.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_kubeconfig_of_the_page_works_until_it_is_revoked(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    config = made(page, "night shift")
    page.get_by_role("button", name="Copy the kubeconfig").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert yaml.safe_load(page.evaluate("navigator.clipboard.readText()")) == config
    assert answer(config, "/api/v1/namespaces/default/pods") == 200
    page.goto("/connect/")
    assert config["users"][0]["user"]["token"] not in page.content()
    page.get_by_role("button", name="Revoke night shift").click()
    page.get_by_role("button", name="Keep it").click()
    assert answer(config, "/version") == 200
    page.get_by_role("button", name="Revoke night shift").click()
    page.get_by_role("button", name="Revoke the token").click()
    expect(page.locator("#toasts")).to_contain_text("lets nobody in any more")
    until(lambda: answer(config, "/api/v1/namespaces/default/pods") == 401)


def test_the_page_works_without_scripts(enter):
    page = enter(java_script_enabled=False)
    config = made(page, "no scripts")
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    assert answer(config, "/version") == 200
    row = page.locator("tr", has_text="no scripts")
    row.get_by_role("button", name="Revoke").click()
    expect(page.locator("main")).not_to_contain_text("no scripts")
