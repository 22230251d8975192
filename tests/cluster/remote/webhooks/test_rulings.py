"""What our rules say to an API server: each refusal with its causes, each default as a patch, over the mirror."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.api import admission
from cluster.api.cluster_view import ClusterView
from cluster.models import MirroredKind
from cluster.remote import paths, recorder
from cluster.remote.reflection import News, Step
from cluster.remote.target import Target
from cluster.remote.webhooks import hooks, rulings
from cluster.remote.webhooks.review import review
from cluster.store import store
from cluster.writes import Mirror
from kube import patch, resources
from kube.errors import InternalError
from tests.blocks import blocks
from tests.builders import container, job, namespace, pod_group, queue
from tests.cluster.objects import otherwise, parsed, shown
from tests.cluster.remote.servers import ObjectServer, connected, patch_of, question
from tests.tables import cases

pytestmark = pytest.mark.django_db
KUBERNETES = Target("dev", "https://dev", "")
TREE = {"root": ("Open", ""), "default": ("Open", "root"), "shut": ("Closed", "root"), "up": ("Open", "root"), "below": ("Open", "up")}  # fmt: skip


def mirror(kind, obj, version="5"):
    """Let the mirror have an object."""
    metadata = {"uid": f"{kind.plural}-{obj['metadata']['name']}", "resourceVersion": version, **obj["metadata"]}
    store.write(Mirror(kind, {**obj, "metadata": metadata}))


@pytest.fixture(autouse=True)
def cluster(tmp_path, settings):
    """A cluster that is mirrored: open queues, one that is closed, one with queues below it. What it has beyond is in `objects`."""
    settings.WAY, settings.IMPERSONATE, settings.LEASE_NAMESPACE = "in-place", False, "volcano-system"
    with connected(ObjectServer(), tmp_path, settings) as running:
        recorder.claim("https://one")
        recorder.record([News(resources.QUEUES, Step.LISTED, version="1")])
        mirror(resources.NAMESPACES, namespace())
        for name, (state, parent) in TREE.items():
            mirror(resources.QUEUES, queue(name, state, weight=1, parent=parent))
        yield running


def reviewed(path, obj=None, old=None):
    body = question(path, copy.deepcopy(obj), copy.deepcopy(old))
    return review(hooks.BY_PATH[path], body, rulings.rule)


class Rulings:
    """What is said of objects, a line a question, as tests/cluster/objects.py has them.

    `validate job …` asks about a new one, with `| …` behind it about an update; also `delete` and `mutate`. Meanwhile
    `mirror` lets the mirror have an object and `put` the cluster, `gone` and `deny 403` take or refuse that; pods run `here` or `elsewhere`.
    """

    def __init__(self, cluster, settings):
        self.cluster, self.settings = cluster, settings

    def tell(self, line):
        verb, _, rest = line.partition(" ")
        return getattr(self, verb)(rest) or []

    def response(self, verb, kind, new, old=None):
        path = next(path for path, hook in hooks.BY_PATH.items() if (hook.resource, hook.verb) == (kind, verb))
        response = reviewed(path, new, old)["response"]
        if response["allowed"]:
            return response.get("warnings") or ["allowed"]
        status = response["status"]
        causes = [f"{each['field']}: {each['message']}" for each in status.get("details", {}).get("causes", ())]
        return [f"{status['code']} {each}" for each in causes or [status["message"]]]

    def validate(self, text):
        written, _, change = text.partition(" | ")
        kind, obj = parsed(written)
        return self.response("validate", kind, otherwise(obj, change), obj if change else None)

    def delete(self, text):
        kind, obj = parsed(text)
        return self.response("validate", kind, None, obj)

    def mutate(self, text):
        kind, obj = parsed(text)
        path = next(path for path, hook in hooks.BY_PATH.items() if (hook.resource, hook.verb) == (kind, "mutate"))
        ops = patch_of(reviewed(path, obj))
        assert patch_of(reviewed(path, patch.json_patch(obj, ops))) == [], "nothing is left to fill in"
        return list(map(shown, ops))

    def mirror(self, text):
        mirror(*parsed(text), version="6")

    def put(self, text):
        kind, obj = parsed(text)
        self.path = paths.one(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        self.cluster.put(self.path, obj)

    def gone(self, _):
        del self.cluster.objects[self.path]

    def deny(self, code):
        self.cluster.denied["GET", self.path] = int(code)

    def unread(self, _):
        MirroredKind.objects.filter(resource=resources.QUEUES.id).update(version="")

    def here(self, _):
        self.settings.TARGET = None

    def elsewhere(self, _):
        self.settings.TARGET = KUBERNETES


@blocks("rulings", folder="cluster")
def test_what_the_webhooks_say(block, golden, cluster, settings):
    golden(block, Rulings(cluster, settings).tell)


@cases("number, looked_up", {
    "as many as are": (rulings.MOST_LOOKED_UP, True),
    "more": (rulings.MOST_LOOKED_UP + 1, False),
})  # fmt: skip
def test_many_groups_of_a_queue_are_not_looked_up(cluster, number, looked_up):
    for each in range(number):
        mirror(resources.POD_GROUPS, pod_group(f"g{each}", queue="shut", status={"phase": "Running"}))
    cluster.heard.clear()
    reviewed("/queues/validate", None, queue("shut", "Closed", weight=1))
    assert bool(cluster.heard) is looked_up


numbers = st.none() | st.integers(0, 3)
tasks = st.fixed_dictionaries(
    {"template": st.just({"spec": {"containers": [container()], "hostNetwork": True}})},
    optional={"name": st.sampled_from(["", "main", "other"]), "replicas": numbers, "minAvailable": numbers, "maxRetry": numbers},
)  # fmt: skip
specs = st.fixed_dictionaries(
    {},
    optional={
        "queue": st.sampled_from(["", "default", "none"]),
        "schedulerName": st.sampled_from(["", "volcano"]),
        "maxRetry": numbers,
        "minAvailable": numbers,
        "networkTopology": st.sampled_from([{}, {"highestTierAllowed": 1}, None]),
        "plugins": st.dictionaries(st.sampled_from(["mpi", "ray", "svc", "env"]), st.just([]), max_size=2),
        "tasks": st.lists(tasks, max_size=3),
    },
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(specs)
def test_patch_makes_of_a_job_what_our_own_defaults_do(spec):
    obj = {**job(), "spec": spec}
    before = copy.deepcopy(obj)
    assert patch.json_patch(obj, patch_of(reviewed("/jobs/mutate", obj))) == admission.completed(
        resources.JOBS, obj, None, ClusterView()
    )
    assert obj == before


def test_error_of_a_rule_is_not_swallowed():
    def broken(*_):
        raise InternalError("defect")

    admission.register(resources.JOBS, validate=broken)
    try:
        assert reviewed("/jobs/validate", job())["response"]["status"]["code"] == 500
    finally:
        admission._rules[resources.JOBS.id].pop()
