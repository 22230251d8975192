from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User

from cluster import access
from cluster.models import RoleBinding
from cluster.store import Create, store
from kube import resources
from tests import builders
from tests.builders import config_map

__all__ = ["config_map"]


def namespace(name, **status):
    return builders.namespace(name, **({"status": status} if status else {}))


def queue(name, state="Open", **spec):
    return builders.queue(name, state, weight=1, **spec)


def job(name, namespace="default", *, tasks=None, **spec):
    tasks = tasks or [builders.task("work")]
    return builders.job(name, *tasks, namespace=namespace, **{"queue": "default", "minAvailable": 1, **spec})


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


@pytest.fixture
def alice(person):
    return person("alice", default="submitter")


@pytest.fixture
def olga(person):
    return person("olga", default="operator")
