from __future__ import annotations

import base64

import pytest
import yaml

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


def test_a_new_kubeconfig_is_shown_once_and_lets_its_reader_in(alice, caplog):
    caplog.set_level("DEBUG")
    shown = make(alice)
    text = "".join(shown.one(id="kubeconfig").itertext())
    config = yaml.safe_load(text)
    secret = config["users"][0]["user"]["token"]
    assert tokens.find(secret).user == alice.user
    assert config["clusters"][0]["cluster"]["server"] == "https://testserver:8443"
    assert base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).startswith(b"-----BEGIN")
    link = shown.one(tag="a", download="volcano-ui.kubeconfig").get("href")
    assert base64.b64decode(link.partition("base64,")[2]).decode() == text
    again = page(alice, "/connect/")
    assert secret not in again.answer.content.decode()
    assert again.one(id="kubeconfig") is None
    assert "laptop" in again.text(tag="table")
    assert "no-store" in shown.answer["Cache-Control"]
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


def test_a_token_is_seen_and_revoked_by_its_owner(alice, operator):
    make(alice)
    revoke = f"/connect/tokens/{Token.objects.get().pk}/revoke/"
    assert page(operator, "/connect/").one(tag="table") is None
    assert operator.post(revoke).status_code == 404
    assert Token.objects.get().revoked is None
    assert revoke in page(alice, "/connect/").actions()
    assert alice.post(revoke)["Location"] == "/connect/"
    assert "lets nobody in any more" in page(alice, "/connect/").text(id="toasts")
    assert Token.objects.get().revoked


def test_an_administrator_sees_and_revokes_what_is_where_he_administers(admin, alice, stranger):
    make(alice)
    RoleBinding.objects.create(user=stranger.user, namespace="team-a", role="administrator")
    for namespace in ("team-a", "team-b"):
        store.write(Create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot", "namespace": namespace}}))
        tokens.issue_for_account(access.CONSOLE, namespace, "robot", f"of {namespace}", tokens.DAY_S)
    listed = ["laptop alice", "of team-a service account team-a/robot", "of team-b service account team-b/robot"]
    for browser, seen in (admin, listed), (stranger, listed[1:2]):
        shown = page(browser, "/access/").text(tag="main")
        assert [each for each in listed if each in shown] == seen
    for row in Token.objects.all():
        admin.post(f"/connect/tokens/{row.pk}/revoke/", {"next": "/access/"})
    assert not Token.objects.filter(revoked=None).exists()
    assert AuditEntry.objects.filter(actor="admin", verb="revoke-token").count() == 3


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


def test_the_page_says_whether_the_api_answers_and_which_certificates_cannot_be_read(alice, settings):
    assert "does not answer" in page(alice, "/connect/").text(tag="main")
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
