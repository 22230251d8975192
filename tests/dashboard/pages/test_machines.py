from __future__ import annotations

import shlex

import pytest

from cluster import access
from cluster.access import joining, tokens
from cluster.access.joining import Asked
from cluster.models import AuditEntry, Token
from cluster.store import Create, store
from kube.resources import NAMESPACES, NODES
from tests.dashboard.pages.conftest import Page, page

pytestmark = pytest.mark.usefixtures("cluster")
HERE = "/nodes/-/new/"


def make(browser, **values):
    return Page(browser.post(HERE, {"node": "", "hours": "24", **values}))


def words(shown):
    return shlex.split("".join(shown.one(id="join-command").itertext()))


def test_the_command_is_whole_and_shown_once(admin, caplog):
    caplog.set_level("DEBUG")
    shown = make(admin)
    typed = words(shown)
    secret = typed[typed.index("--token") + 1]
    assert typed[:5] == [".venv/bin/python", "manage.py", "agent", "--server", "https://testserver:8443"]
    assert typed[typed.index("--ca") + 1].startswith("sha256:")
    assert "--name" not in typed
    assert tokens.find(secret).joins
    kept = f"{AuditEntry.objects.values()} {Token.objects.values()} {caplog.text} {dict(admin.session)}"
    assert secret not in kept
    assert secret not in page(admin, HERE).answer.content.decode()
    assert AuditEntry.objects.get(verb="issue-token").resource == "nodes"


def test_a_command_may_be_for_a_name_that_can_be(admin):
    answer = make(admin, node="Lab 2").answer
    assert answer.status_code == 422
    assert "lower case" in answer.content.decode()
    assert not Token.objects.exists()
    typed = words(make(admin, node="lab-2"))
    assert typed[typed.index("--name") + 1] == "lab-2"


@pytest.mark.parametrize("who", ["alice", "operator"])
def test_only_who_may_make_nodes_adds_machines(request, who):
    browser = request.getfixturevalue(who)
    assert browser.get(HERE).status_code == 403
    assert browser.post(HERE, {"node": "", "hours": "1"}).status_code == 403
    assert "Add a machine" not in page(browser, "/nodes/").answer.content.decode()
    assert not Token.objects.exists()


def test_a_machine_is_listed_where_its_token_is_revoked(admin):
    store.write(Create(NAMESPACES, {"metadata": {"name": joining.CLUSTER}}))
    issued = joining.invite(access.CONSOLE, "lab-2", 3600)
    joined = joining.join(tokens.actor_of(issued.row), Asked("lab-2", "a"))
    store.write(Create(NODES, {"metadata": {"name": "lab-2"}, "spec": {}, "status": {}}))
    assert "node lab-2" in page(admin, HERE).answer.content.decode()
    assert "over the API" in page(admin, "/nodes/lab-2/").text(id="node-head")
    own = tokens.find(joined.token)
    admin.post(f"/connect/tokens/{own.pk}/revoke/")
    assert tokens.find(joined.token) is None
    assert tokens.find(issued.secret) is None
    assert "over the API" not in page(admin, "/nodes/lab-2/").text(id="node-head")
