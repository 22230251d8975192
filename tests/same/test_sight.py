"""Whose jobs, pods and events somebody sees is the same wherever they are shown: pages, topics, search, counts, the API, logs, metrics.

Two namespaces have one of everything each, called by the namespace's name. A place tells which of the two names it shows.
"""

import json

import pytest
from django.contrib.auth.models import User
from django.test import Client

from cluster import access, exposition
from cluster.bootstrap import bootstrap
from cluster.models import RoleBinding
from cluster.runtime import nudge
from cluster.store import decisions
from cluster.writes import Decision
from dashboard.live import topics
from kube import resources
from kube.errors import ApiError
from tests.apiserver.client import Api, serving
from tests.dashboard.pages import conftest as builders
from tests.same import differing

NOT_PLACED = {
    "phase": "Pending",
    "conditions": [{"type": "Unschedulable", "status": "True", "lastTransitionTime": "2026-05-28T20:26:41Z"}],
}
HERE = ("quartz", "basalt")
SITUATIONS = [
    # who asks                                   roles before          roles now                       what he sees
    ("an administrator of all namespaces",       {},                   {"*": "administrator"},         "quartz basalt"),
    ("a viewer of one namespace",                {},                   {"quartz": "viewer"},            "quartz"),
    ("an operator of one namespace",             {},                   {"basalt": "operator"},         "basalt"),
    ("an administrator of one namespace",        {},                   {"basalt": "administrator"},    "basalt"),
    ("a viewer of both",                         {},                   {"quartz": "viewer", "basalt": "submitter"}, "quartz basalt"),
    ("one who is something elsewhere",           {},                   {"elsewhere": "administrator"}, ""),
    ("one who has lost a role",                  {"*": "viewer"},      {"quartz": "viewer"},            "quartz"),
    ("one who has lost his only role",           {"basalt": "viewer"}, {},                             ""),
]  # fmt: skip


def furnish():
    """One of everything in each namespace."""
    bootstrap()
    builders.put(
        builders.node("n"), *((resources.NAMESPACES, {"metadata": {"name": each}}) for each in (*HERE, "elsewhere"))
    )
    for name in HERE:
        builders.put(
            builders.job(name, namespace=name, phase="Failed", message=f"{name} failed"),
            builders.job(f"{name}-waits", namespace=name, phase="Pending"),
            builders.pod(f"{name}-0", namespace=name, node="n", job=name),
            builders.event(name, about=name, namespace=name),
            _in(name, resources.POD_GROUPS, spec={"minMember": 1, "queue": "default"}, status=NOT_PLACED),
            _in(name, resources.JOB_FLOWS, spec={"flows": []}),
            _in(name, resources.JOB_TEMPLATES, spec={"tasks": []}),
            _in(name, resources.CRON_JOBS, spec={"schedule": "0 0 * * *", "jobTemplate": {"spec": {}}}),
            _in(name, resources.BATCH_JOBS, spec={"template": {}}),
            _in(name, resources.CONFIGMAPS, data={}),
        )  # fmt: skip
    decisions.put([Decision(1, "refuse", "QueueLimit", name, name, "default", 1, "No room.") for name in HERE])


def _in(namespace, resource, **fields):
    return resource, {"metadata": {"name": namespace, "namespace": namespace}, **fields}


class Reader:
    """Somebody with a browser that stays open and a client of the API."""

    def __init__(self, url, roles):
        self.user = User.objects.create_user("reader", password="x")
        self.browser = Client()
        self.browser.force_login(self.user)
        self.url = url
        self.have(roles)

    def have(self, roles):
        RoleBinding.objects.filter(user=self.user).delete()
        for namespace, role in roles.items():
            RoleBinding.objects.create(user=self.user, namespace=namespace, role=role)

    @property
    def actor(self):
        return access.for_user(User.objects.get(pk=self.user.pk))

    @property
    def api(self):
        return Api(self.url, self.actor)


def named(text):
    """Return which of the namespaces a text names."""
    return " ".join(name for name in HERE if name in text)


def page(address):
    def tell(reader):
        return named(reader.browser.get(address).content.decode())

    return tell


def pages(address):
    """The pages of one object in each namespace, by an address with the place of its name."""

    def tell(reader):
        responses = {name: reader.browser.get(address.format(name)) for name in HERE}
        return " ".join(name for name, answer in responses.items() if answer.status_code == 200)

    return tell


def topic(text):
    def tell(reader):
        name, params = topics.parse(text)
        try:
            return named(json.dumps(dict(topics.find(name)(topics.TopicRequest(reader.actor, params)).parts)))
        except ApiError:
            return ""

    return tell


def topics_of(text):
    """The topics about one object in each namespace."""

    def tell(reader):
        return " ".join(name for name in HERE if topic(text.format(name))(reader))

    return tell


def api(path):
    """What the API answers in each namespace, where it answers."""

    def tell(reader):
        responses = [reader.api.get(path.format(name)) for name in HERE]
        return named(" ".join(answer.text for answer in responses if answer.status_code == 200))

    return tell


def api_of_all(path):
    """What the API answers about all namespaces: it does so only to who may see all of them."""

    def tell(reader):
        answer = reader.api.get(path)
        return named(answer.text) if answer.status_code == 200 else None

    return tell


def watched(path):
    def tell(reader):
        return " ".join(name for name in HERE if _first_line(reader, path.format(name), name))

    return tell


def _first_line(reader, path, name):
    with reader.api.stream(f"{path}?watch=1&timeoutSeconds=1") as answer:
        return answer.status_code == 200 and any(name in line for line in answer.iter_lines())


def metrics(reader):
    return named("\n".join(exposition.lines(reader.actor)))


VCJOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{0}/jobs"
PLACES = {
    "overview": page("/"),
    "jobs": page("/jobs/"),
    "jobs, search": page("/jobs/?q=-waits"),
    "jobs, by phase": page("/jobs/?phase=Failed"),
    "page of a job": pages("/jobs/{0}/{0}/"),
    "YAML of a job": pages("/jobs/{0}/{0}/yaml/"),
    "Jobs of batch/v1": page("/jobs/-/kubernetes/"),
    "events": page("/events/"),
    "page of a node": page("/nodes/n/"),
    "page of a queue": page("/queues/default/"),
    "decisions": page("/queues/-/scheduler/decisions/"),
    "flows": page("/flows/"),
    "page of a flow": pages("/flows/{0}/{0}/"),
    "templates": page("/flows/-/templates/"),
    "page of a template": pages("/flows/-/templates/{0}/{0}/"),
    "cron jobs": page("/cronjobs/"),
    "page of a cron job": pages("/cronjobs/{0}/{0}/"),
    "topic of the overview": topic("dashboard:overview"),
    "topic of the jobs": topic("jobs:list"),
    "topic of a job": topics_of("jobs:detail?namespace={0}&name={0}"),
    "topic of the events": topic("dashboard:events"),
    "topic of the pods of a node": topic("dashboard:node-pods?name=n"),
    "topic of the jobs of a queue": topic("queues:jobs?name=default"),
    "topic of a queue": topic("queues:detail?name=default"),
    "topic of the decisions": topic("queues:decisions"),
    "topic of the flows": topic("flows:list"),
    "topic of the cron jobs": topic("cronjobs:list"),
    "API, list of jobs": api(VCJOBS),
    "API, a job": api(VCJOBS + "/{0}"),
    "API, list of pods": api("/api/v1/namespaces/{0}/pods"),
    "API, all pods": api_of_all("/api/v1/pods"),
    "API, all events": api_of_all("/api/v1/events"),
    "API, list of events": api("/api/v1/namespaces/{0}/events"),
    "API, watch of pods": watched("/api/v1/namespaces/{0}/pods"),
    "metrics": metrics,
}


@pytest.fixture
def server(transactional_db, redis_url, settings):
    settings.REDIS_URL = redis_url
    nudge.client.cache_clear()
    furnish()
    with serving() as url:
        yield url


@pytest.mark.parametrize(("before", "now", "seen"), [pytest.param(*row, id=who) for who, *row in SITUATIONS])
def test_everybody_shows_a_reader_the_same_namespaces(server, before, now, seen):
    reader = Reader(server, before)
    if before != now:
        for tell in PLACES.values():
            tell(reader)
    reader.have(now)
    assert differing(PLACES, seen, reader) == {}
