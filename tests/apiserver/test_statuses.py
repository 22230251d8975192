"""Every refusal is the whole Status that a kube-apiserver makes of it, and so is what is said of a deletion.

A message may go on behind Kubernetes' own, with what helps.
"""

from __future__ import annotations

import functools
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
    "400 a version on creation": ("code", "said.code", "said.reason"),  # 500 there, and no reason
    "404 a namespace": ("said.details.causes",),  # here it says which field
    "409 a uid": ("said.message", "said.details.kind"),  # there ConfigMap and not configmaps
    "409 a version to delete": ("said.message", "said.details.kind"),
    "415 a patch": ("said.message", "said.details"),  # here with what is accepted
    "415 a patch of a custom kind": MESSAGE,  # a strategic patch is, here
    "422 a value of another type in a Volcano job": ("said.message", "said.details.causes"),  # here of all fields
    **dict.fromkeys(("404 a check", "404 a group", "404 a path", "404 a resource of no group"), A_TEXT),
    **dict.fromkeys(
        ("400 a field selector", "400 a label selector", "400 a limit", "400 a list", "400 a patch",
         "400 a patch of no operations", "400 a token to go on with", "400 a value of another type",
         "400 a value of another type in a replacement", "400 another kind", "400 no JSON", "400 options of another kind",
         "406 a form", "406 discovery"), MESSAGE,
    ),
}  # fmt: skip


def test_statuses_are_those_of_kubernetes(api):
    clients = {"": api, asked.SOMEBODY: api.as_(SOMEBODY)}

    def send(each):
        client = clients[each.user]
        return client.request(each.method, each.path, each.content(), each.content_type, headers=each.headers)

    for each in asked.THERE:
        assert send(each).status_code == 201
    found = {case: asked.seen(send(each)) for case, each in asked.CASES.items()}
    compared = {case: comparable(case, each, GOLDEN[case]) for case, each in found.items()}
    assert compared == {case: comparable(case, each, each) for case, each in GOLDEN.items()}
    assert {each["said"]["kind"] for each in found.values()} == {"Status"}


def comparable(case, found, golden):
    """Return an answer without what is otherwise here, and its message as far as Kubernetes' own goes."""
    found, said = json.loads(json.dumps(found)), golden["said"]
    for path in OTHERWISE.get(case, ()):
        *above, last = path.split(".")
        functools.reduce(dict.__getitem__, above, found).pop(last, None)
    if "message" in found.get("said", {}):
        found["said"]["message"] = found["said"]["message"][
            : len(said.get("message", "") if isinstance(said, dict) else "")
        ]
    return found
