"""A node behind a wall, and what its pods are made of."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth import get_user_model

from cluster.models import RoleBinding

LOOT = "/loot"


def beginning(node, mode):
    """Begin a node whose containers get their volumes in a mode; what this machine does not allow is skipped."""
    found = node.allowed().mounts
    if mode != "none" and (found == "none" or (mode == "root" and found != "root")):
        pytest.skip(f"this machine does not let this user make mounts the {mode} way")
    node.begin(mode)
    (node.data / "secret-key").write_text("hush")
    return node


def mount(name, path=LOOT, **fields):
    return {"name": name, "mountPath": path, **fields}


def container(script, *mounts, name="main"):
    return {"name": name, "command": ["sh", "-ec", script], "volumeMounts": list(mounts)}


def refused(node, words, name="p"):
    """Wait until a pod does not start, and return what it says."""
    text = node.until(
        lambda: words in json.dumps(node.status(name)) and json.dumps(node.status(name)),
        lambda: f"{words!r} in {node.status(name)}",
    )
    assert node.status(name)["phase"] in ("Pending", "Failed")
    return text


def person(name, role, namespace="*"):
    user = get_user_model().objects.create_user(name)
    RoleBinding.objects.create(user=user, role=role, namespace=namespace)
