from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from cluster import access
from cluster.models import RoleBinding
from cluster.store import Create, store
from kube import resources


def namespace(name, **status):
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name},
        "status": status or {"phase": "Active"},
    }


def queue(name, state="Open", **spec):
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
        "status": {"state": state},
    }


def config_map(name, namespace="default", **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def job(name, namespace="default", **spec):
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "queue": "default",
            "minAvailable": 1,
            "tasks": [
                {
                    "name": "work",
                    "replicas": 1,
                    "template": {"spec": {"containers": [{"name": "main", "image": "busybox", "command": ["true"]}]}},
                }
            ],
            **spec,
        },
    }


@pytest.fixture
def cluster(db):
    """The namespaces default and other, and an open queue."""
    kind = resources.NAMESPACES
    store.write(Create(kind, namespace("default")), Create(kind, namespace("other")))
    store.write(Create(resources.QUEUES, queue("default")))


def make_user(name, password="", group="", **options):
    user = User(username=name, **options)
    user.set_password(password) if password else user.set_unusable_password()
    user.save()
    if group:
        user.groups.add(Group.objects.get_or_create(name=group)[0])
    return user


@pytest.fixture
def person(db):
    """Make an account with roles: person("alice", default="viewer", everywhere="operator")."""

    def make(name, *, everywhere="", **roles):
        user = make_user(name)
        if everywhere:
            roles["*"] = everywhere
        for place, role in roles.items():
            RoleBinding.objects.create(user=user, namespace=place, role=role)
        return access.for_user(user)

    return make


@pytest.fixture
def admin(person):
    return person("root", everywhere="administrator")
