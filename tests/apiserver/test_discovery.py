from __future__ import annotations

import json

from apiserver import discovery
from kube import resources
from kube.errors import NotAcceptable
from tests.tables import parts


def document(path, form="", served=None):
    found = discovery.Discovery(served or resources.served()).of(path, form)
    return found and json.loads(found.body)


@parts("apiserver/discovery", "forms by the Accept header")
def test_form_follows_the_accept_header(part):
    def wanted(text):
        try:
            return discovery.wanted("" if text == "''" else text)
        except NotAcceptable:
            return "NotAcceptable"

    part.check(wanted)


@parts(
    "apiserver/discovery",
    "groups and their versions",
    "short names of Volcano's kinds",
    "aggregated discovery splits the core group from the others, and is sent once",
)
def test_documents(story, part):
    story.goes(part)


def test_groups_keep_kubernetes_order_so_that_short_names_mean_what_they_do_elsewhere():
    names = [group["name"] for group in document("/apis")["groups"]]
    assert names.index("batch") < names.index("batch.volcano.sh")
    assert "" not in names
    given = ["v1alpha1", "foo", "v2", "v1beta2", "v1", "v1beta10", "v2alpha1"]
    assert sorted(given, key=discovery.rank) == ["v2", "v1", "v1beta10", "v1beta2", "v2alpha1", "v1alpha1", "foo"]
    assert all(group["metadata"]["name"] for group in document("/apis", "v2")["items"])


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
