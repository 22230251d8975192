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


def listed(path, name):
    return next(item for item in document(path)["resources"] if item["name"] == name)


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


@pytest.mark.parametrize("accept", ["text/html", "application/vnd.kubernetes.protobuf"])
def test_other_forms_are_refused(accept):
    with pytest.raises(NotAcceptable):
        discovery.wanted(accept)


def test_core_group_has_one_version():
    assert document("/api") == {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def test_groups_keep_kubernetes_order_so_that_short_names_mean_what_they_do_elsewhere():
    names = [group["name"] for group in document("/apis")["groups"]]
    assert names.index("batch") < names.index("batch.volcano.sh")
    assert "" not in names


def test_a_group_names_its_preferred_version():
    assert document("/apis/batch.volcano.sh") == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "batch.volcano.sh",
        "versions": [{"groupVersion": "batch.volcano.sh/v1alpha1", "version": "v1alpha1"}],
        "preferredVersion": {"groupVersion": "batch.volcano.sh/v1alpha1", "version": "v1alpha1"},
    }


def test_pods_read_as_kubernetes_lists_them():
    assert listed("/api/v1", "pods") == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["po"],
        "categories": ["all"],
        "storageVersionHash": "xPOwRZ+Yhw8=",
    }


def test_subresources_are_listed_with_the_legacy_resources():
    assert listed("/apis/batch.volcano.sh/v1alpha1", "jobs/status") == {
        "name": "jobs/status",
        "singularName": "",
        "namespaced": True,
        "kind": "Job",
        "verbs": ["get", "patch", "update"],
    }


@pytest.mark.shows("0/Job")
def test_volcano_jobs_have_their_short_names():
    assert listed("/apis/batch.volcano.sh/v1alpha1", "jobs")["shortNames"] == ["vcjob", "vcjobs", "vj"]


@pytest.mark.shows("queues 1.1/short names")
def test_queues_have_their_short_names():
    assert listed("/apis/scheduling.volcano.sh/v1beta1", "queues")["shortNames"] == ["q", "queue-v1beta1"]


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_documents_split_the_core_group_from_the_others(version):
    core, others = document("/api", version), document("/apis", version)
    assert core["kind"] == others["kind"] == "APIGroupDiscoveryList"
    assert core["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    assert [group["metadata"] for group in core["items"]] == [{}]
    assert all(group["metadata"]["name"] for group in others["items"])


def test_both_forms_tell_the_same():
    legacy = {
        (path, item["name"], item["kind"], tuple(item["verbs"]))
        for path in _group_version_paths()
        for item in document(path)["resources"]
    }
    assert _aggregated_rows() == legacy


def _group_version_paths():
    groups = discovery.Discovery(resources.served()).groups
    for name, group in groups.items():
        for version in group.versions:
            yield f"/apis/{name}/{version}" if name else f"/api/{version}"


def _aggregated_rows():
    rows = set()
    for root in ("/api", "/apis"):
        for group in document(root, "v2")["items"]:
            name = group["metadata"].get("name")
            for version in group["versions"]:
                path = "/".join(filter(None, (root, name, version["version"])))
                for item in version["resources"]:
                    rows.add((path, item["resource"], item["responseKind"]["kind"], tuple(item["verbs"])))
                    for part in item.get("subresources", ()):
                        full = f"{item['resource']}/{part['subresource']}"
                        rows.add((path, full, part["responseKind"]["kind"], tuple(part["verbs"])))
    return rows


@pytest.mark.parametrize("path", ["/api/v2", "/apis/nobody.example", "/apis/batch/v9", "/apis/batch/v1/x"])
def test_nothing_is_found_where_nothing_is_served(path):
    assert document(path) is None


def test_versions_are_ordered_by_maturity():
    given = ["v1alpha1", "foo", "v2", "v1beta2", "v1", "v1beta10", "v2alpha1"]
    assert sorted(given, key=discovery.rank) == ["v2", "v1", "v1beta10", "v1beta2", "v2alpha1", "v1alpha1", "foo"]


def test_a_group_goes_with_its_last_resource():
    without = tuple(resource for resource in resources.served() if resource.group != "batch.volcano.sh")
    assert document("/apis/batch.volcano.sh/v1alpha1", served=without) is None
    names = [group["name"] for group in document("/apis", served=without)["groups"]]
    assert "batch.volcano.sh" not in names


def test_documents_are_kept_until_the_table_changes():
    assert discovery.current() is discovery.current()
    assert discovery.current().of("/apis", "v2") is discovery.current().of("/apis", "v2")


@pytest.mark.parametrize("accept", [V2, V2BETA1])
def test_aggregated_discovery_is_sent_once(api, accept):
    answer = api.get("/apis", headers={"accept": accept})
    assert answer.headers["content-type"] == accept
    assert answer.headers["vary"] == "Accept"
    assert answer.headers["cache-control"] == "public"
    again = api.get("/apis", headers={"accept": accept, "if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/api", "APIVersions"), ("/apis", "APIGroupList"), ("/api/v1", "APIResourceList"), ("/apis/batch", "APIGroup")],
)
def test_legacy_discovery_over_http(api, path, kind):
    assert api.get(path).json()["kind"] == kind
    assert api.get(f"{path}/").json()["kind"] == kind


def test_discovery_of_what_is_not_served_is_not_found(api):
    assert api.get("/apis/nobody.example").status_code == 404
    assert api.get("/api", headers={"accept": "text/html"}).status_code == 406
