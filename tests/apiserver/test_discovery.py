from __future__ import annotations

import json

import pytest

from apiserver import discovery
from kube import resources
from kube.errors import NotAcceptable
from tests.tables import cases

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


def document(path, form="", served=None):
    found = discovery.Discovery(served or resources.served()).of(path, form)
    return found and json.loads(found.body)


@cases("accept, expected", {
    "no header": ("", ""),
    "curl": ("*/*", ""),
    "Python client": ("application/json", ""),
    "kubectl 1.30 to 1.36": (f"{V2},{V2BETA1},application/json", "v2"),
    "kubectl 1.26 to 1.29": (f"{V2BETA1},application/json", "v2beta1"),
    "unknown parameters are ignored": (f"{V2};profile=nopeer,application/json", "v2"),
    "a version of the future": (f"{V2.replace('v2', 'v3')},application/json", ""),
    "protobuf first": ("application/vnd.kubernetes.protobuf,application/json", ""),
    "weights": (f"{V2};q=0.5,application/json;q=0.9", ""),
    "a weight that is no number comes last": (f"application/json;q=x,{V2}", "v2"),
})  # fmt: skip
def test_form_follows_the_accept_header(accept, expected):
    assert discovery.wanted(accept) == expected
    for other in ("text/html", "application/vnd.kubernetes.protobuf"):
        with pytest.raises(NotAcceptable):
            discovery.wanted(other)


VERSION = {"groupVersion": "batch.volcano.sh/v1alpha1", "version": "v1alpha1"}
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


@cases("path, name, expected", {
    "the core group has one version": ("/api", "", {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
    "a group names its preferred version": ("/apis/batch.volcano.sh", "",
        {"kind": "APIGroup", "apiVersion": "v1", "name": "batch.volcano.sh", "versions": [VERSION], "preferredVersion": VERSION}),
    "pods as Kubernetes lists them": ("/api/v1", "pods",
        {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": VERBS, "shortNames": ["po"],
         "categories": ["all"], "storageVersionHash": "xPOwRZ+Yhw8="}),
    "a part of a resource": ("/apis/batch.volcano.sh/v1alpha1", "jobs/status",
        {"name": "jobs/status", "singularName": "", "namespaced": True, "kind": "Job", "verbs": ["get", "patch", "update"]}),
})  # fmt: skip
def test_documents(path, name, expected):
    found = document(path)
    assert found == expected if not name else expected in found["resources"]


@cases("group, plural, names", {
    "jobs | 0/Job": ("batch.volcano.sh/v1alpha1", "jobs", ["vcjob", "vcjobs", "vj"]),
    "queues | queues 1.1/short names": ("scheduling.volcano.sh/v1beta1", "queues", ["q", "queue-v1beta1"]),
})  # fmt: skip
def test_volcanos_kinds_have_their_short_names(group, plural, names):
    assert {each["name"]: each.get("shortNames") for each in document(f"/apis/{group}")["resources"]}[plural] == names


def test_groups_keep_kubernetes_order_so_that_short_names_mean_what_they_do_elsewhere():
    names = [group["name"] for group in document("/apis")["groups"]]
    assert names.index("batch") < names.index("batch.volcano.sh")
    assert "" not in names
    given = ["v1alpha1", "foo", "v2", "v1beta2", "v1", "v1beta10", "v2alpha1"]
    assert sorted(given, key=discovery.rank) == ["v2", "v1", "v1beta10", "v1beta2", "v2alpha1", "v1alpha1", "foo"]
    for path in ("/api/v2", "/apis/nobody.example", "/apis/batch/v9", "/apis/batch/v1/x"):
        assert document(path) is None


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_documents_split_the_core_group_from_the_others(version):
    core, others = document("/api", version), document("/apis", version)
    assert core["kind"] == others["kind"] == "APIGroupDiscoveryList"
    assert core["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    assert [group["metadata"] for group in core["items"]] == [{}]
    assert all(group["metadata"]["name"] for group in others["items"])


def of_groups():
    """Return (path, name, kind, verbs) of what the documents of groups list."""
    groups = discovery.Discovery(resources.served()).groups
    for name, version in ((name, version) for name, group in groups.items() for version in group.versions):
        path = f"/apis/{name}/{version}" if name else f"/api/{version}"
        yield from ((path, each["name"], each["kind"], tuple(each["verbs"])) for each in document(path)["resources"])


def of_aggregated():
    """Return the same of the aggregated documents."""
    for root in ("/api", "/apis"):
        for group in document(root, "v2")["items"]:
            for version in group["versions"]:
                path = "/".join(filter(None, (root, group["metadata"].get("name"), version["version"])))
                for item in version["resources"]:
                    parts = [(f"/{part['subresource']}", part) for part in item.get("subresources", ())]
                    for end, part in (("", item), *parts):
                        yield path, item["resource"] + end, part["responseKind"]["kind"], tuple(part["verbs"])


def test_both_forms_tell_the_same():
    assert set(of_aggregated()) == set(of_groups())


def test_a_group_goes_with_its_last_resource():
    without = tuple(resource for resource in resources.served() if resource.group != "batch.volcano.sh")
    assert document("/apis/batch.volcano.sh/v1alpha1", served=without) is None
    assert "batch.volcano.sh" not in [group["name"] for group in document("/apis", served=without)["groups"]]
    assert discovery.current() is discovery.current()


@pytest.mark.parametrize("accept", [V2, V2BETA1])
def test_aggregated_discovery_is_sent_once(api, accept):
    answer = api.get("/apis", headers={"accept": accept})
    found = [answer.headers[name] for name in ("content-type", "vary", "cache-control")]
    assert found == [accept, "Accept", "public"]
    again = api.get("/apis", headers={"accept": accept, "if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_discovery_of_groups_over_http(api):
    kinds = {"/api": "APIVersions", "/apis": "APIGroupList", "/api/v1": "APIResourceList", "/apis/batch": "APIGroup"}
    for path, kind in kinds.items():
        assert api.get(path).json()["kind"] == api.get(f"{path}/").json()["kind"] == kind
