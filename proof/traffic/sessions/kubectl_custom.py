"""kubectl over definitions of custom kinds, and over objects of such a kind."""

from __future__ import annotations

from typing import Any

from proof.traffic.sessions.objects import object_
from proof.traffic.stage import Stage

GROUP = "example.com"


def play(stage: Stage) -> None:
    """Define a kind, use it, and take it away."""
    stage.kubectl("apply -f -", definition())
    stage.kubectl("wait --for=condition=Established crd/shirts.example.com --timeout=60s")
    stage.kubectl("create -f -", definition())
    for line in ("get crd shirts.example.com", "get crd shirts.example.com -o yaml", "describe crd shirts.example.com", "api-resources --api-group=example.com"):  # fmt: skip
        stage.kubectl(line)
    red = object_(f"{GROUP}/v1", "Shirt", "red", spec={"colour": "red", "size": 3})
    stage.kubectl("create -f -", red)
    stage.kubectl("create -f -", object_(f"{GROUP}/v1", "Shirt", "odd", spec={"colour": 3}))
    stage.kubectl("create -f -", object_(f"{GROUP}/v1", "Shirt", "bare", spec={}))
    stage.kubectl(
        "create -f - --validate=strict", object_(f"{GROUP}/v1", "Shirt", "more", spec={"colour": "a", "b": 1})
    )
    stage.kubectl("create -f - --validate=warn", object_(f"{GROUP}/v1", "Shirt", "more", spec={"colour": "a", "b": 1}))
    stage.kubectl("apply -f -", object_(f"{GROUP}/v1", "Shirt", "blue", spec={"colour": "blue"}))
    stage.kubectl("apply --server-side -f -", object_(f"{GROUP}/v1", "Shirt", "blue", spec={"colour": "blue"}))
    stage.kubectl("apply --server-side --force-conflicts -f -", object_(f"{GROUP}/v1", "Shirt", "blue", spec={"colour": "navy"}))  # fmt: skip
    for line in (
        "get shirts",
        "get shirt red -o yaml",
        "get shirts -o wide",
        "get shirts --field-selector=spec.colour=red",
        "describe shirt red",
        "explain shirt.spec",
        """patch shirt red --type=merge -p '{"spec":{"size":4}}'""",
        """patch shirt red -p '{"spec":{"size":4}}'""",
        """patch shirt red --type=json -p '[{"op":"replace","path":"/spec/size","value":5}]'""",
        """patch shirt red --subresource=status --type=merge -p '{"status":{"worn":true},"spec":{"size":9}}'""",
        "scale shirt red --replicas=7",
        "label shirt red of=us",
        "annotate shirt red note=first",
        "replace -f -",
        "get shirt red -o yaml",
        """patch crd shirts.example.com --type=merge -p '{"spec":{"names":{"shortNames":["sh"]}}}'""",
        "delete shirt red",
        "delete shirts --all",
        "delete crd shirts.example.com --wait=false",
    ):
        stage.kubectl(line, {**red, "spec": {"colour": "pink", "size": 1}} if line == "replace -f -" else None)


def definition() -> dict[str, Any]:
    """Return the definition of a kind with a status, a scale, columns, and a field that can be selected by."""
    spec = {
        "type": "object",
        "required": ["colour"],
        "properties": {"colour": {"type": "string", "description": "As the eye sees it."}, "size": {"type": "integer", "minimum": 0, "default": 1}},
    }  # fmt: skip
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "properties": {"worn": {"type": "boolean"}}}}}  # fmt: skip
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "selectableFields": [{"jsonPath": ".spec.colour"}],
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        "additionalPrinterColumns": [
            {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        ],
    }
    names = {"plural": "shirts", "singular": "shirt", "kind": "Shirt", "categories": ["all"]}
    return object_(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"shirts.{GROUP}",
        spec={"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    )
