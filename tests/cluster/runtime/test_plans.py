"""What a consumer plans is data: it can be written down, and read by whoever carries it out."""

from __future__ import annotations

import msgspec
import pytest

from cluster import clock
from cluster.bootstrap import bootstrap
from cluster.runtime import registry
from cluster.runtime.consumer import Plan, Runner
from cluster.store import Create, Delete, Group, Patch, Update, store
from cluster.writes import Decision, Record, Timer
from jobs.rules import admission
from kube import resources
from kube.resources import (
    COMMANDS,
    CRON_JOBS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DISRUPTION_BUDGETS,
    HYPER_NODES,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    QUEUES,
    RESOURCE_QUOTAS,
    Resource,
)

pytestmark = pytest.mark.django_db
HERE = {"namespace": "default"}


TYPES = {each.__name__: each for each in (Plan, Record, Decision, Timer, Group, Create, Update, Patch, Delete)}


class Writer(Runner):
    """Writes down as JSON what its consumer plans, and carries out what it reads there."""

    def __init__(self, registration):
        super().__init__(registration, 0, registration.make())
        self.has_planned = False

    def _commit(self, cursor, plan, timers, now):
        self.has_planned |= bool(plan.groups or plan.records)
        text = msgspec.json.encode(_written(plan))
        super()._commit(cursor, _read(msgspec.json.decode(text)), timers, now)


def _written(value):
    if isinstance(value, Resource):
        return {"resource": value.id}
    if type(value) in TYPES.values():
        names = value.__struct_fields__
        return {"type": type(value).__name__, "fields": {name: _written(getattr(value, name)) for name in names}}
    if isinstance(value, list | tuple):
        return [_written(each) for each in value]
    if isinstance(value, bytes):
        return {"text": value.decode()}
    return value


def _read(data):
    match data:
        case {"resource": id, **others} if not others:
            return resources.of_stored(id, {})
        case {"type": name, "fields": fields, **others} if not others:
            return TYPES[name](**{key: _read(value) for key, value in fields.items()})
        case {"text": text, **others} if not others:
            return text.encode()
        case list():
            return [_read(each) for each in data]
    return data


@pytest.fixture
def runners():
    bootstrap()
    return {each.name: Writer(each) for each in registry.every()}


def settle(runners):
    for _ in range(5):
        for runner in runners.values():
            while runner.step():
                pass


def create(kind, name, **fields):
    metadata = {"name": name, **(HERE if kind.namespaced else {}), **fields.pop("metadata", {})}
    return store.write(Create(kind, {"metadata": metadata, **fields}))[0]


def make_world():
    create(RESOURCE_QUOTAS, "bounds", spec={"hard": {"pods": "10"}})
    create(DISRUPTION_BUDGETS, "budget", spec={"minAvailable": 1, "selector": {}})
    room = {"cpu": "8", "memory": "8Gi", "pods": "99"}
    ready = [{"type": "Ready", "status": "True"}]
    create(NODES, "node", status={"allocatable": room, "conditions": ready})
    members = [{"type": "Node", "selector": {"exactMatch": {"name": "node"}}}]
    create(HYPER_NODES, "rack", spec={"tier": 1, "members": members})
    create(NAMESPACES, "other")
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    version = {"name": "v1", "served": True, "storage": True}
    versions = [{**version, "schema": {"openAPIV3Schema": {"type": "object"}}}]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    create(CUSTOM_RESOURCE_DEFINITIONS, "things.example.com", spec=spec)
    containers = [{"name": "main", "image": "img", "command": ["true"]}]
    task = {"name": "main", "replicas": 2, "template": {"spec": {"containers": containers}}}
    job = {"metadata": {"name": "demo", **HERE}, "spec": {"tasks": [task], "ttlSecondsAfterFinished": 0}}
    admission.default(job, None, None)
    store.write(Create(JOBS, job))
    template = {"spec": {"tasks": [{**task, "replicas": 0, "minAvailable": 0}]}}  # a job without pods
    create(JOB_TEMPLATES, "none", **template)
    create(JOB_FLOWS, "flow", spec={"flows": [{"name": "none"}]})
    cron = {"metadata": {"name": "cron", **HERE}, "spec": {"schedule": "@every 1m", "jobTemplate": template}}
    store.write(Create(CRON_JOBS, cron), now=clock.milliseconds() - 90_000)


def command(action, kind, stored):
    target = {"apiVersion": kind.api_version, "kind": kind.kind, "name": stored.name, "uid": stored.uid}
    create(COMMANDS, f"{action}-{stored.name}".lower(), action=action, target=target)


def test_every_consumer_plans_data(runners, settings):
    settings.NODE_LOST_S = 0
    settle(runners)
    make_world()
    settle(runners)
    assert [job.name.partition("-")[0] for job in store.find(JOBS)] == ["cron", "demo", "flow"]
    assert [pod.object["spec"]["nodeName"] for pod in store.find(PODS)] == ["node", "node"]
    command("CloseQueue", QUEUES, store.get(QUEUES, "", "default"))
    command("AbortJob", JOBS, store.get(JOBS, "default", "demo"))
    silent = dict.fromkeys(runners["nodes"].state.known, -1e9)
    runners["nodes"].state.known.update(silent)
    store.write(Patch(NODES, "", "node", {"metadata": {"labels": {"a": "b"}}}))
    settle(runners)
    store.write(Delete(NAMESPACES, "", "other"))
    store.write(Delete(CUSTOM_RESOURCE_DEFINITIONS, "", "things.example.com"))
    store.write(Delete(JOBS, "default", "demo", propagation="Foreground"))
    settle(runners)
    assert {name for name, runner in runners.items() if not runner.has_planned} == set()
