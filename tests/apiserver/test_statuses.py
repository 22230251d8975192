"""Every refusal is the whole Status that a kube-apiserver makes of it, and so is what is said of a deletion.

A message may go on behind Kubernetes' own, with what helps.
"""

from __future__ import annotations

import json

from cluster import access
from proof.systems.system import PROJECT
from tests.apiserver import asked

GOLDEN = json.loads((PROJECT / "tests/golden/kubernetes/statuses.json").read_text())
SOMEBODY = access.Actor(asked.SOMEBODY, ("system:authenticated",))
MESSAGE = ("said.message",)
A_TEXT = ("type", "said")  # a text there, a Status here
# What is otherwise here: of what cannot be read, other libraries say other things.
OTHERWISE = {
    "400 a field selector": MESSAGE,
    "400 a label selector": MESSAGE,
    "400 a limit": MESSAGE,
    "400 a list": MESSAGE,
    "400 a patch": MESSAGE,
    "400 a patch of no operations": MESSAGE,
    "400 a token to go on with": MESSAGE,
    "400 a version on creation": ("code", "said.code", "said.reason"),  # 500 there, and no reason
    "400 a value of another type": MESSAGE,
    "400 a value of another type in a replacement": MESSAGE,
    "400 another kind": MESSAGE,
    "400 no JSON": MESSAGE,
    "400 options of another kind": MESSAGE,
    "404 a check": A_TEXT,
    "404 a group": A_TEXT,
    "404 a namespace": ("said.details.causes",),  # here it says which field
    "404 a path": A_TEXT,
    "404 a resource of no group": A_TEXT,
    "406 a form": MESSAGE,
    "406 discovery": MESSAGE,
    "409 a uid": ("said.message", "said.details.kind"),  # there ConfigMap and not configmaps
    "409 a version to delete": ("said.message", "said.details.kind"),
    "415 a patch": ("said.message", "said.details"),  # here with what is accepted
    "415 a patch of a custom kind": MESSAGE,  # a strategic patch is, here
    "422 a value of another type in a Volcano job": ("said.message", "said.details.causes"),  # here of all fields
}


def test_statuses_are_those_of_kubernetes(api):
    clients = {"": api, asked.SOMEBODY: api.as_(SOMEBODY)}

    def send(each):
        options = {"headers": each.headers}
        return clients[each.user].request(each.method, each.path, each.content(), each.content_type, **options)

    for each in asked.THERE:
        assert send(each).status_code == 201
    found = {case: asked.seen(send(each)) for case, each in asked.CASES.items()}
    assert {case: _comparable(case, each, GOLDEN[case]) for case, each in found.items()} == {
        case: _comparable(case, each, each) for case, each in GOLDEN.items()
    }
    assert [each["said"]["kind"] for each in found.values()] == ["Status"] * len(found)


def _comparable(case, found, golden):
    """Return an answer without what is otherwise here, and its message as far as Kubernetes' own goes."""
    found = json.loads(json.dumps(found))
    message = golden["said"].get("message", "") if isinstance(golden["said"], dict) else ""
    for path in OTHERWISE.get(case, ()):
        *above, last = path.split(".")
        place = found
        for name in above:
            place = place[name]
        place.pop(last, None)
    said = found.get("said", {})
    if "message" in said:
        said["message"] = said["message"][: len(message)]
    return found
