from __future__ import annotations

import pytest

from kube import resources
from kube.apply import shape
from tests.tables import cases

from .things import THINGS


def at(resource, *keys):
    found = shape.of(resource)
    for key in keys:
        found = found.item if key == "[]" else found.of(key)
    return found


# Of a kind and a path: how it is divided, and by which keys.
DIVIDED = """
    PODS metadata.ownerReferences map uid | PODS metadata.ownerReferences.[] atomic | PODS metadata.finalizers set |
    CONFIGMAPS metadata.finalizers set | JOBS metadata.ownerReferences map uid | PODS spec.containers map name |
    PODS spec.initContainers.[].env map name | PODS spec.ephemeralContainers.[].env map name |
    PODS spec.containers.[].ports map containerPort protocol | PODS spec.containers.[].volumeMounts map mountPath |
    PODS spec.containers.[].volumeDevices map devicePath | PODS spec.containers.[].resources.claims map name |
    PODS spec.containers.[].env.[].valueFrom.secretKeyRef atomic | PODS spec.containers.[].args whole |
    PODS spec.volumes map name | PODS spec.imagePullSecrets.[] atomic | PODS spec.hostAliases map ip |
    PODS spec.topologySpreadConstraints map topologyKey whenUnsatisfiable |
    PODS spec.topologySpreadConstraints.[].labelSelector atomic | PODS spec.nodeSelector atomic |
    PODS spec.tolerations whole | PODS spec.unknownList whole | PODS status.conditions map type |
    PODS status.podIPs map ip | PODS status.hostIPs atomic | NODES spec.podCIDRs set | NODES status.addresses map type |
    SERVICES spec.ports map port protocol | SERVICES spec.selector atomic | CLAIMS status.conditions map type |
    EVENTS involvedObject atomic | JOBS spec.tasks whole
"""


@pytest.mark.parametrize("row", [row.strip() for row in DIVIDED.split("|")])
def test_kinds_of_kubernetes_are_divided_as_in_kubernetes(row):
    kind, path, how, *keys = row.split()
    found = at(getattr(resources, kind), *path.split("."))
    assert (found.type or "whole", list(found.keys)) == (how, keys)


def test_the_schema_of_a_custom_resource_says_how_it_is_divided():
    assert (at(THINGS, "ports").keys, at(THINGS, "ports").defaults) == (("port", "protocol"), {"protocol": "TCP"})
    assert at(THINGS, "metadata", "ownerReferences").keys == ("uid",)
    paths = ("set", "atomicMap", "template.metadata.finalizers", "mapOfSets.x")
    assert [at(THINGS, *path.split(".")).type for path in paths] == ["set", "atomic", "set", "set"]
    assert not shape.of(THINGS).names("strange")
    schema = at(resources.CUSTOM_RESOURCE_DEFINITIONS, "spec", "versions", "schema", "openAPIV3Schema")
    assert schema.of("not").of("x-kubernetes-validations").keys == ("rule",), "a definition that refers to itself"


@cases("schema", {
    "empty": {},
    "no object": {"properties": {"a": True}},
    "no keys": {"properties": {"a": {"x-kubernetes-list-type": "map"}}},
    "no items": {"properties": {"a": {"x-kubernetes-list-type": "set", "items": None}}},
    "anything": {"additionalProperties": True},
})  # fmt: skip
def test_a_poor_schema_is_no_error(schema):
    assert shape._from_schema(schema, 0).of("a")
