from collections import defaultdict

import pytest
from django.contrib.auth.models import Group, User

from cluster import access
from cluster.api import admission
from cluster.models import RoleBinding
from cluster.store import Create, Stored, store
from kube import resources
from tests import builders
from tests.builders import config_map
from tests.cluster.story import Story

__all__ = ["config_map"]
ROLES = {"vic": "viewer", "bob": "submitter", "ada": "administrator"}


def namespace(name, **status):
    return builders.namespace(name, **({"status": status} if status else {}))


def queue(name, state="Open", **spec):
    return builders.queue(name, state, weight=1, **spec)


def job(name, namespace="default", *, tasks=None, **spec):
    tasks = tasks or [builders.task("work")]
    return builders.job(name, *tasks, namespace=namespace, **{"queue": "default", "minAvailable": 1, **spec})


def kinds(outcomes):
    return [one.name if isinstance(one, Stored) else type(one) for one in outcomes]


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
        for in_namespace, role in roles.items():
            RoleBinding.objects.create(user=user, namespace=in_namespace, role=role)
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


@pytest.fixture
def no_rules(monkeypatch):
    """The door's own tests are about the door: the rules of the applications are left out."""
    monkeypatch.setattr(admission, "_rules", defaultdict(list))


@pytest.fixture
def story(cluster, moved_clock, alice, olga, admin, person):
    """Of default: a viewer, two submitters, an operator and an administrator; of everything: the last two; of other: a viewer."""
    vic, bob, ada = (person(name, default=role) for name, role in ROLES.items())
    boss, stranger = person("boss", everywhere="operator"), person("stranger", other="viewer")
    people = {"alice": alice, "olga": olga, "root": admin, "vic": vic, "bob": bob, "ada": ada, "boss": boss}
    return Story(moved_clock, stranger=stranger, **people)
