"""Questions as API servers ask them."""

from __future__ import annotations

import base64
import json

from cluster.remote.webhooks import hooks


def question(path, obj=None, old=None, operation=None):
    """Return the AdmissionReview that asks about creating, changing or deleting an object."""
    kind = hooks.BY_PATH[path].resource
    operation = operation or ("DELETE" if obj is None else "CREATE" if old is None else "UPDATE")
    resource = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    request = {"uid": "705ab4f5", "resource": resource, "operation": operation, "object": obj, "oldObject": old}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def patch_of(answer):
    """Return the JSON patch of an answer."""
    response = answer["response"]
    assert response["allowed"], response["status"]
    assert response.get("patchType") == ("JSONPatch" if "patch" in response else None)
    return json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
