"""Questions as API servers ask them."""

from __future__ import annotations

import base64
import json

from cluster.remote.webhooks import hooks


def question(path, obj=None, old=None, operation=None):
    """Return the AdmissionReview that asks about creating, changing or deleting an object."""
    kind = hooks.BY_PATH[path].resource
    operation = operation or ("DELETE" if obj is None else "CREATE" if old is None else "UPDATE")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5",
            "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
            "operation": operation,
            "object": obj,
            "oldObject": old,
        },
    }


def patch_of(answer):
    """Return the JSON patch of an answer."""
    response = answer["response"]
    assert response["allowed"], response["status"]
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    return json.loads(base64.b64decode(response["patch"]))
