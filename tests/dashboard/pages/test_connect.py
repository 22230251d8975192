from __future__ import annotations

import base64

import pytest
import yaml
from django.test import Client

from cluster import access
from cluster.access import tokens
from cluster.models import AuditEntry, RoleBinding, Token
from cluster.store import Create, store
from dashboard.pages.snippets import snippets
from kube.resources import SERVICE_ACCOUNTS
from tests.dashboard.pages.conftest import Page, page

pytestmark = pytest.mark.usefixtures("cluster")


def make(browser, **values):
    return Page(browser.post("/connect/", {"name": "laptop", "days": "30", **values}))


def test_a_new_kubeconfig_is_shown_once_and_lets_its_reader_in(alice):
    shown = make(alice)
    config = yaml.safe_load("".join(shown.one(id="kubeconfig").itertext()))
    secret = config["users"][0]["user"]["token"]
    assert tokens.find(secret).user == alice.user
    assert config["clusters"][0]["cluster"]["server"] == "https://testserver:8443"
    assert base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).startswith(b"-----BEGIN")
    again = page(alice, "/connect/")
    assert secret not in again.answer.content.decode()
    assert again.one(id="kubeconfig") is None
    assert "laptop" in again.text(tag="table")


def test_the_kubeconfig_can_be_downloaded_without_scripts(alice):
    shown = make(alice)
    link = shown.one(tag="a", download="volcano-ui.kubeconfig")
    text = base64.b64decode(link.get("href").partition("base64,")[2]).decode()
    assert text == "".join(shown.one(id="kubeconfig").itertext())


def test_the_token_is_in_that_answer_alone(alice, caplog):
    caplog.set_level("DEBUG")
    answer = make(alice)
    secret = yaml.safe_load("".join(answer.one(id="kubeconfig").itertext()))["users"][0]["user"]["token"]
    assert "no-store" in answer.answer["Cache-Control"]
    kept = str(AuditEntry.objects.values()) + str(Token.objects.values()) + caplog.text + str(dict(alice.session))
    assert secret[4:20] not in kept
    row = AuditEntry.objects.get(verb="issue-token")
    assert (row.actor, row.name) == ("alice", "alice")
    assert "laptop" in row.message


@pytest.mark.parametrize(
    ("values", "field"),
    [({"name": ""}, "token_name"), ({"name": "x" * 101}, "token_name"), ({"name": "a\x07b"}, "token_name"), ({"days": "99"}, "token_days"), ({"days": ""}, "token_days")],
    ids=str,
)  # fmt: skip
def test_what_is_wrong_stands_at_its_field(alice, values, field):
    shown = make(alice, **values)
    assert shown.status == 422
    assert shown.text(id=f"{field}_error")
    assert not Token.objects.exists()


def test_ones_own_token_is_revoked(alice):
    make(alice)
    number = Token.objects.get().pk
    assert f"/connect/tokens/{number}/revoke/" in page(alice, "/connect/").actions()
    answer = alice.post(f"/connect/tokens/{number}/revoke/")
    assert answer["Location"] == "/connect/"
    assert "lets nobody in any more" in page(alice, "/connect/").text(id="toasts")
    assert Token.objects.get().revoked


def test_another_users_token_is_neither_seen_nor_revoked(alice, operator):
    make(alice)
    assert page(operator, "/connect/").one(tag="table") is None
    assert operator.post(f"/connect/tokens/{Token.objects.get().pk}/revoke/").status_code == 404
    assert Token.objects.get().revoked is None


def test_an_administrator_sees_and_revokes_everybodys(admin, alice):
    make(alice)
    store.write(Create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot", "namespace": "team-a"}}))
    tokens.issue_for_account(access.CONSOLE, "team-a", "robot", "nightly", tokens.DAY_S)
    shown = page(admin, "/access/").text(tag="main")
    assert "laptop alice" in shown
    assert "nightly service account team-a/robot" in shown
    for row in Token.objects.all():
        admin.post(f"/connect/tokens/{row.pk}/revoke/", {"next": "/access/"})
    assert not Token.objects.filter(revoked=None).exists()
    assert AuditEntry.objects.filter(actor="admin", verb="revoke-token").count() == 2


def test_an_administrator_of_a_namespace_sees_its_service_accounts_tokens_only(alice, stranger):
    RoleBinding.objects.create(user=stranger.user, namespace="team-a", role="administrator")
    make(alice)
    for namespace in ("team-a", "team-b"):
        store.write(Create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot", "namespace": namespace}}))
        tokens.issue_for_account(access.CONSOLE, namespace, "robot", f"of {namespace}", tokens.DAY_S)
    shown = page(stranger, "/access/").text(tag="main")
    assert "of team-a" in shown
    assert "of team-b" not in shown
    assert "laptop" not in shown


def test_a_service_account_is_given_a_role_and_loses_it(admin):
    values = {"kind": "account", "subject": "team-a/robot", "role": "viewer", "namespace": "team-a"}
    admin.post("/access/roles/", values)
    assert access.allowed(tokens.account_actor("team-a", "robot"), "get", "pods", "team-a")
    assert "service account team-a/robot" in page(admin, "/access/").text(tag="main")
    admin.post("/access/roles/remove/", {"account": "team-a/robot", "namespace": "team-a"})
    assert not RoleBinding.objects.exists()


@pytest.mark.parametrize("subject", ["robot", "team-a/", "/robot", "Team/robot", "team-a/Rob ot", "a/b/c"])
def test_a_service_account_is_named_by_namespace_and_name(admin, subject):
    values = {"kind": "account", "subject": subject, "role": "viewer", "namespace": "*"}
    shown = Page(admin.post("/access/roles/", values))
    assert shown.status == 422
    assert "NAMESPACE/NAME" in shown.text(id="role_subject_error")


def test_whether_the_api_answers_is_said(alice):
    assert "does not answer" in page(alice, "/connect/").text(tag="main")


def test_certificates_that_cannot_be_read_are_named(alice, settings):
    settings.API_CERTIFICATE = settings.API_CERTIFICATE_KEY = settings.DATA / "none.pem"
    shown = page(alice, "/connect/")
    assert shown.status == 200
    assert "VOLCANO_UI_API_CERTIFICATE" in shown.text(tag="main")


def test_the_address_is_the_one_by_which_the_reader_came(alice, settings):
    settings.ALLOWED_HOSTS = ["batch.example.org", "[::1]"]
    for host, address in (("batch.example.org:8000", "batch.example.org"), ("[::1]:8000", "[::1]")):
        shown = Page(alice.get("/connect/", headers={"host": host}))
        assert shown.text(id="api-address") == f"https://{address}:{settings.API_PORT}"


@pytest.mark.parametrize("snippet", snippets("https://x:1", "file"), ids=lambda each: each.name)
def test_a_snippet_is_ready_to_be_copied(alice, snippet):
    assert "{{" not in snippet.text.replace("{{.", "")
    assert page(alice, "/connect/").one(id=f"snippet-{snippet.name}") is not None
    if snippet.title.startswith("Python"):
        compile(snippet.text, snippet.name, "exec")


def test_nobody_makes_a_token_for_a_reader_from_another_site(alice):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice.user)
    assert browser.post("/connect/", {"name": "x", "days": "1"}).status_code == 403
    assert not Token.objects.exists()
