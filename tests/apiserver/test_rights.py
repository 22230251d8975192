"""Every role, every kind, every verb: what the API lets through is what the table of roles says; and who is a node."""

from __future__ import annotations

import pytest

from cluster import access
from cluster.access.roles import Role
from cluster.models import AuditEntry
from cluster.store import Create, store
from kube import resources
from kube.resources import CLAIMS, NODES, PODS
from tests.builders import node, of, pod
from tests.cluster.api.conftest import person  # noqa: F401  a fixture

SOMEBODY = "somebody"  # whose all the objects are
METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}
NAMED = frozenset({"get", "update", "patch", "delete"})
PLACES = ("default", "other")
KINDS = [kind for kind in resources.ALL if kind is not resources.COMMANDS]  # whose right is that on their target


def paths(kind, place, name):
    """Return the path of the collection and that of one object."""
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    where = f"{base}/namespaces/{place}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"
    return where, f"{where}/{name}"


def ask(api, kind, verb, place, name):
    """Send the verb as a dry run, or such that it is refused once the right is checked; return the code."""
    collection, one = paths(kind, place, name)
    path = one if verb in NAMED else collection
    query = {"watch": "?watch=1&resourceVersionMatch=Exact"}.get(verb, "?dryRun=All")
    body = {"metadata": {"name": "new" if verb == "create" else name}} if verb in ("create", "update") else None
    if verb == "patch":
        return api.patch(path + query, {"metadata": {"labels": {"a": "b"}}}).status_code
    return api.request(METHODS.get(verb, "GET"), path + query, body).status_code


@pytest.fixture
def somebodys(server):
    """One object of each kind in each namespace; the name of a namespace is a place of its own."""
    creator = {resources.CREATOR_ANNOTATION: SOMEBODY}
    for kind in KINDS:
        for place in PLACES if kind.namespaced else (None,):
            metadata = {"name": "a", "annotations": creator, **({"namespace": place} if place else {})}
            store.write(Create(kind, {"metadata": metadata}))


@pytest.mark.parametrize("role", list(Role), ids=lambda role: role.value)
def test_a_role_in_one_namespace_reaches_what_the_table_says(api, somebodys, person, role):  # noqa: F811
    actor = person("somebody-else", default=role.value)
    client = api.as_(actor)
    wrong = []
    for kind in KINDS:
        for verb in kind.verbs:
            for place in PLACES if kind.namespaced else ("",):
                looked_up = "a" if kind is resources.NAMESPACES and verb in NAMED else place
                owner = actor.name if verb == "create" else SOMEBODY
                may = access.allowed(actor, verb, kind, looked_up, owner=owner)
                code = ask(client, kind, verb, place, "a")
                if (code != 403) != may:
                    wrong.append(f"{verb} {kind.id} in {place or 'the cluster'}: {code}, allowed is {may}")
    assert wrong == []


def test_nobody_learns_what_he_may_not_read(api, somebodys, person):  # noqa: F811
    client = api.as_(person("stranger", other="administrator"))
    for kind in (each for each in KINDS if each.namespaced):
        there, missing = (client.get(paths(kind, "default", name)[1]) for name in ("a", "missing"))
        assert (there.status_code, missing.status_code) == (403, 403), kind.id
        assert there.json()["message"].replace('"a"', '"missing"') == missing.json()["message"]
        everywhere = paths(kind, "default", "a")[0].replace("namespaces/default/", "")
        assert client.get(everywhere).status_code == 403, kind.id


CORE = "/api/v1/namespaces/default"
STATUS = {"status": {"phase": "Running"}}


@pytest.fixture
def lab(api):
    """A client that is the node lab, which has the pod `mine`; `other` is on another node."""
    store.write(Create(NODES, node("lab")), Create(NODES, node("first")))
    store.write(Create(PODS, pod("mine", nodeName="lab")), Create(PODS, pod("other", nodeName="first")))
    return api.as_(access.Actor("system:node:lab", ("system:nodes", "system:authenticated")))


def test_a_group_without_a_name_is_no_node(lab):
    for name, groups in (("system:node:", ("system:nodes",)), ("alice", ("system:nodes",)), ("system:node:lab", ())):
        somebody = lab.as_(access.Actor(name, (*groups, "system:authenticated")))
        for path in ("/api/v1/pods?fieldSelector=spec.nodeName=lab", f"{CORE}/pods/mine"):
            assert somebody.get(path).status_code == 403


def test_what_a_node_does_is_not_audited_and_what_it_may_not_is(lab):
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    pinned = {"metadata": {"resourceVersion": "1"}, **STATUS}
    for path, change, code in (
        ("/api/v1/nodes/lab/status", ready, 200), (f"{CORE}/pods/mine/status", STATUS, 200),
        (f"{CORE}/pods/mine/status", pinned, 409),
    ):  # fmt: skip
        assert lab.patch(path, change).status_code == code
    assert not AuditEntry.objects.filter(actor="system:node:lab").exists()
    assert lab.patch(f"{CORE}/pods/other/status", STATUS).status_code == 403
    entry = AuditEntry.objects.get(actor="system:node:lab")
    assert (entry.outcome, entry.name) == ("denied", "other")


def test_a_node_learns_which_claims_are_left_whose_files_it_keeps(lab, api):
    uid = store.write(Create(CLAIMS, of(CLAIMS, "others", {"spec": {}})))[0].uid
    for asked, existing in (([uid, "another"], [uid]), (["another", 7, None], []), ("nonsense", [])):
        assert lab.post("/node/claims", {"uids": asked}).json() == {"existing": existing}
    somebody = api.as_(access.Actor("somebody", ("system:authenticated",)))
    assert somebody.post("/node/claims", {"uids": []}).status_code == 403
