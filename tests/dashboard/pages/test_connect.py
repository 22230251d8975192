"""What lets programs and machines in: kubeconfigs, tokens, and the command of a machine that joins."""

import base64
import shlex

import pytest
import yaml

from cluster import access
from cluster.access import joining, tokens
from cluster.access.joining import Machine
from cluster.models import AuditEntry, RoleBinding, Token
from cluster.store import Create, store
from dashboard.pages.snippets import snippets
from kube.resources import NAMESPACES, NODES, SERVICE_ACCOUNTS
from tests.dashboard.pages.conftest import Page, page

pytestmark = pytest.mark.usefixtures("cluster")
MACHINES = "/nodes/-/new/"


def make(browser, **values):
    return Page(browser.post("/connect/", {"name": "laptop", "days": "30", **values}))


def invite(browser, **values):
    return Page(browser.post(MACHINES, {"node": "", "hours": "24", **values}))


def everything_stored(browser, caplog):
    """All that is kept after something was shown."""
    return f"{AuditEntry.objects.values()} {Token.objects.values()} {caplog.text} {dict(browser.session)}"


def test_a_new_kubeconfig_is_shown_once_and_lets_its_reader_in(alice, caplog):
    caplog.set_level("DEBUG")
    document = make(alice)
    text = "".join(document.one(id="kubeconfig").itertext())
    config = yaml.safe_load(text)
    cluster, secret = config["clusters"][0]["cluster"], config["users"][0]["user"]["token"]
    assert (tokens.find(secret).user, cluster["server"]) == (alice.user, "https://testserver:8443")
    assert base64.b64decode(cluster["certificate-authority-data"]).startswith(b"-----BEGIN")
    link = document.one(tag="a", download="volcano-ui.kubeconfig").get("href")
    assert base64.b64decode(link.partition("base64,")[2]).decode() == text
    assert "no-store" in document.answer["Cache-Control"]
    again = page(alice, "/connect/")
    assert (again.one(id="kubeconfig"), "laptop" in again.text(tag="table")) == (None, True)
    assert secret[4:20] not in everything_stored(alice, caplog) + again.answer.content.decode()
    row = AuditEntry.objects.get(verb="issue-token")
    assert (row.actor, row.name, "laptop" in row.message) == ("alice", "alice", True)


def test_what_is_wrong_stands_at_its_field(alice):
    for field, wrong in {"name": ("", "x" * 101, "a\x07b"), "days": ("99", "")}.items():
        for value in wrong:
            document = make(alice, **{field: value})
            assert (document.status, bool(document.text(id=f"token_{field}_error"))) == (422, True), value
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
        text = page(browser, "/access/").text(tag="main")
        assert [each for each in listed if each in text] == seen
    for row in Token.objects.all():
        admin.post(f"/connect/tokens/{row.pk}/revoke/", {"next": "/access/"})
    assert not Token.objects.filter(revoked=None).exists()
    assert AuditEntry.objects.filter(actor="admin", verb="revoke-token").count() == 3


def test_the_page_says_whether_the_api_answers_and_which_certificates_cannot_be_read(alice, settings):
    assert "does not answer" in page(alice, "/connect/").text(tag="main")
    settings.API_CERTIFICATE = settings.API_CERTIFICATE_KEY = settings.DATA / "none.pem"
    document = page(alice, "/connect/")
    assert (document.status, "VOLCANO_UI_API_CERTIFICATE" in document.text(tag="main")) == (200, True)


def test_the_address_is_the_one_by_which_the_reader_came(alice, settings):
    settings.ALLOWED_HOSTS = ["batch.example.org", "[::1]"]
    for host, address in (("batch.example.org:8000", "batch.example.org"), ("[::1]:8000", "[::1]")):
        document = Page(alice.get("/connect/", headers={"host": host}))
        assert document.text(id="api-address") == f"https://{address}:{settings.API_PORT}"


@pytest.mark.parametrize("snippet", snippets("https://x:1", "file"), ids=lambda each: each.name)
def test_a_snippet_is_ready_to_be_copied(alice, snippet):
    assert "{{" not in snippet.text.replace("{{.", "")
    assert page(alice, "/connect/").one(id=f"snippet-{snippet.name}") is not None
    if snippet.title.startswith("Python"):
        compile(snippet.text, snippet.name, "exec")


def typed(document):
    return shlex.split("".join(document.one(id="join-command").itertext()))


def test_the_command_of_a_machine_is_whole_and_shown_once(admin, caplog):
    caplog.set_level("DEBUG")
    words = typed(invite(admin))
    secret = words[words.index("--token") + 1]
    assert words[:5] == [".venv/bin/python", "manage.py", "agent", "--server", "https://testserver:8443"]
    assert words[words.index("--ca") + 1].startswith("sha256:")
    assert ("--name" in words, tokens.find(secret).joins) == (False, True)
    assert secret not in everything_stored(admin, caplog) + page(admin, MACHINES).answer.content.decode()
    assert AuditEntry.objects.get(verb="issue-token").resource == "nodes"


def test_the_command_may_be_for_a_name_that_can_be(admin):
    answer = invite(admin, node="Lab 2").answer
    assert (answer.status_code, b"lower case" in answer.content) == (422, True)
    assert not Token.objects.exists()
    words = typed(invite(admin, node="lab-2"))
    assert words[words.index("--name") + 1] == "lab-2"


def test_a_machine_is_listed_where_its_token_is_revoked(admin):
    store.write(Create(NAMESPACES, {"metadata": {"name": joining.CLUSTER}}))
    issued = joining.invite(access.CONSOLE, "lab-2", 3600)
    joined = joining.join(tokens.actor_of(issued.row), Machine("lab-2", "a"))
    store.write(Create(NODES, {"metadata": {"name": "lab-2"}, "spec": {}, "status": {}}))
    assert "node lab-2" in page(admin, MACHINES).answer.content.decode()
    assert "over the API" in page(admin, "/nodes/lab-2/").text(id="node-head")
    admin.post(f"/connect/tokens/{tokens.find(joined.token).pk}/revoke/")
    assert tokens.find(joined.token) is tokens.find(issued.secret) is None
    assert "over the API" not in page(admin, "/nodes/lab-2/").text(id="node-head")
