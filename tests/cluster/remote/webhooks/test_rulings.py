"""What our rules say to an API server: each refusal with its causes, each default as a patch, over the mirror."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.api import admission
from cluster.api.cluster_view import ClusterView
from cluster.models import MirroredKind
from cluster.remote import recorder
from cluster.remote.reflection import News, Step
from cluster.remote.target import Target
from cluster.remote.webhooks import hooks, rulings
from cluster.remote.webhooks.review import review
from cluster.store import store
from cluster.writes import Mirror
from kube import patch, resources
from kube.errors import InternalError
from tests.builders import container, job, namespace, of, pod_group, queue, task
from tests.cluster.remote.servers import ObjectServer, connected
from tests.cluster.remote.webhooks.questions import patch_of, question
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


def answer(path, obj=None, old=None):
    body = question(path, copy.deepcopy(obj), copy.deepcopy(old))
    return review(hooks.BY_PATH[path], body, rulings.rule)


def refusal(path, obj=None, old=None):
    """Return why something is refused: field → message, with the code of the Status."""
    response = answer(path, obj, old)["response"]
    assert not response["allowed"]
    causes = response["status"].get("details", {}).get("causes", ())
    return response["status"]["code"], {each["field"]: each["message"] for each in causes}


def allowed(path, obj=None, old=None):
    """Return the warnings of what is allowed."""
    response = answer(path, obj, old)["response"]
    assert response["allowed"], response["status"]["message"]
    return response.get("warnings", [])


def filled(path, obj):
    return patch.json_patch(obj, patch_of(answer(path, obj)))


def flow(step):
    return of(resources.JOB_FLOWS, "a", flows=[{"name": step}])


def cron(schedule="0 2 * * *", **spec):
    return of(resources.CRON_JOBS, "a", schedule=schedule, jobTemplate={"spec": job()["spec"]}, **spec)


SHUT, TEAM = pod_group("a", queue="shut"), queue(weight=1)
CLOSED = queue("shut", "Closed", weight=1)
IN_VAIN = {"queue": "none", "plugins": {"nope": []}}


@cases("path, new, old, field, text", {
    "job in no queue": ("/jobs/validate", job(queue="none"), None, "spec.queue", "not found; choose one that exists"),
    "job in a closed queue": ("/jobs/validate", job(queue="shut"), None, "spec.queue", "status is `Closed`; open it or choose another"),
    "job in a parent": ("/jobs/validate", job(queue="up"), None, "spec.queue", "has 1 child queues; choose one of them"),
    "job whose retries change": ("/jobs/validate", job(maxRetry=4), job(maxRetry=3), "spec.maxRetry", ""),
    "group in a closed queue": ("/podgroups/validate", SHUT, None, "spec.queue", "can only submit PodGroup"),
    "group that moves there": ("/podgroups/validate", SHUT, pod_group("a", queue="default"), "spec.queue", ""),
    "queue without weight": ("/queues/validate", queue(weight=-1), None, "spec.weight", "greater than or equal to 1"),
    "flow": ("/jobflows/validate", flow("A b"), None, "spec.flows[0].name", "must be the name of a job template"),
    "template": ("/jobtemplates/validate", of(resources.JOB_TEMPLATES, "a", {"spec": {}}), None, "spec", "describe the jobs"),
    "hyper node": ("/hypernodes/validate", of(resources.HYPER_NODES, "a", tier=1), None, "spec.members", "at least one member"),
    "cron job": ("/cronjobs/validate", cron("often"), None, "spec.schedule", ""),
    "what was wrong and becomes worse": ("/jobs/validate", job("demo", task(minAvailable=5), minAvailable=9, **IN_VAIN), job("demo", task(minAvailable=5), **IN_VAIN), "spec.minAvailable", ""),
    "an open queue is deleted": ("/queues/validate", None, TEAM, "status.state", "close it first and wait until it is empty"),
    "a parent is deleted": ("/queues/validate", None, queue("up", "Closed"), "spec.parent", "it has 1 child queues: below; delete or move them first"),
})  # fmt: skip
def test_what_breaks_a_rule_is_refused_with_its_cause(path, new, old, field, text):
    code, causes = refusal(path, new, old)
    assert (code, list(causes)) == (403 if new is None else 422, [field])
    assert text in causes[field]


@cases("path, new, old", {
    "a job that is scaled": ("/jobs/validate", job("demo", task(replicas=2), maxRetry=3), job(maxRetry=3)),
    # It came in while nobody judged it; its finalizers must come off, and it may become better.
    "what was wrong before and ends": ("/jobs/validate", job(**IN_VAIN, deletionTimestamp="2026-11-23T12:00:00Z"), job(**IN_VAIN)),
    "what was wrong before and becomes better": ("/jobs/validate", job("demo", task(minAvailable=1), **IN_VAIN), job("demo", task(minAvailable=5), **IN_VAIN)),
    "a namespace that is the API server's business": ("/jobs/validate", job(namespace="just-made"), None),
    "a closed queue that is deleted": ("/queues/validate", None, CLOSED),
    "one that was made closed and not seen by its controller": ("/queues/validate", None, of(resources.QUEUES, "shut", state="Closed")),
})  # fmt: skip
def test_what_breaks_none_is_allowed_without_a_warning(path, new, old):
    assert allowed(path, new, old) == []


def test_warnings_come_with_a_yes():
    (warning,) = allowed("/jobflows/validate", flow("step"))
    assert "there is no job template step" in warning


def test_quotas_are_the_api_servers_business():
    mirror(resources.RESOURCE_QUOTAS, of(resources.RESOURCE_QUOTAS, "none", hard={f"count/{resources.JOBS.id}": "0"}))
    assert allowed("/jobs/validate", job()) == []


def test_queue_may_be_deleted_right_after_the_groups_in_it(cluster):
    """The mirror has not heard yet that they are gone."""
    mirror(resources.POD_GROUPS, pod_group("last", queue="shut", status={"phase": "Running"}))
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/last"
    cluster.put(path, pod_group("last", queue="shut"))
    code, causes = refusal("/queues/validate", None, CLOSED)
    assert (code, "state is `Closing`" in causes["status.state"]) == (403, True)
    del cluster.objects[path]
    assert allowed("/queues/validate", None, CLOSED) == []
    for denied, code in ((403, 403), (500, 503)):
        cluster.denied["GET", "/podgroups/last"] = denied
        assert refusal("/queues/validate", None, CLOSED)[0] == code


@cases("number, looked_up", {
    "as many as are": (rulings.MOST_LOOKED_UP, True),
    "more": (rulings.MOST_LOOKED_UP + 1, False),
})  # fmt: skip
def test_many_groups_of_a_queue_are_not_looked_up(cluster, number, looked_up):
    for each in range(number):
        mirror(resources.POD_GROUPS, pod_group(f"g{each}", queue="shut", status={"phase": "Running"}))
    cluster.heard.clear()
    answer("/queues/validate", None, CLOSED)
    assert bool(cluster.heard) is looked_up


def test_queue_that_the_mirror_has_not_heard_of_is_asked_for(cluster):
    """People write a queue and a job for it at once."""
    late = job(queue="late")
    assert "not found" in refusal("/jobs/validate", late)[1]["spec.queue"]
    cluster.put("/apis/scheduling.volcano.sh/v1beta1/queues/late", queue("late"))
    assert allowed("/jobs/validate", late) == []
    cluster.denied["GET", "/queues/late"] = 403
    assert "not found" in refusal("/jobs/validate", late)[1]["spec.queue"]
    cluster.denied["GET", "/queues/late"] = 500
    status = answer("/jobs/validate", late)["response"]["status"]
    assert status["code"] == 503
    assert "queue late could not be looked up: not you. Try again" in status["message"]


def test_nobody_is_refused_by_a_list_that_is_still_read():
    MirroredKind.objects.filter(resource=resources.QUEUES.id).update(version="")
    status = answer("/jobs/validate", job(queue="none"))["response"]["status"]
    assert status["code"] == 503
    assert "still being read. Try again" in status["message"]


@cases("path, obj, spec", {
    "job": ("/jobs/mutate", job(), {"queue": "default", "maxRetry": 3, "minAvailable": 1}),
    "job without names": ("/jobs/mutate", job("demo", task("", 2)), {"minAvailable": 2}),
    "plugins": ("/jobs/mutate", job(plugins={"mpi": []}), {"plugins": {"mpi": [], "svc": [], "ssh": []}}),
    "queue": ("/queues/mutate", TEAM, {"reclaimable": True, "parent": "root"}),
    "flow": ("/jobflows/mutate", flow("a"), {"jobRetainPolicy": "retain"}),
    "cron job": ("/cronjobs/mutate", cron(), {"concurrencyPolicy": "Allow", "suspend": False}),
})  # fmt: skip
def test_what_is_left_open_is_filled_in(path, obj, spec):
    made = filled(path, obj)
    assert {field: made["spec"].get(field) for field in spec} == spec
    assert patch_of(answer(path, made)) == [], "nothing is left to fill in"


def test_group_comes_into_the_queue_that_its_namespace_names():
    mirror(resources.NAMESPACES, namespace(annotations={"scheduling.volcano.sh/queue-name": "team"}), version="6")
    assert filled("/podgroups/mutate", pod_group("a", queue="default"))["spec"]["queue"] == "team"


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
    assert filled("/jobs/mutate", obj) == admission.completed(resources.JOBS, obj, None, ClusterView())
    assert obj == before


def test_job_that_is_no_job_is_left_as_it_is_for_the_schema_to_refuse():
    assert patch_of(answer("/jobs/mutate", {**job(), "spec": {"tasks": "three"}})) == []


def test_error_of_a_rule_is_not_swallowed():
    def broken(*_):
        raise InternalError("defect")

    admission.register(resources.JOBS, validate=broken)
    try:
        assert refusal("/jobs/validate", job())[0] == 500
    finally:
        admission._rules[resources.JOBS.id].pop()


NO_COMMAND = job("demo", task("main", 1, {"name": "main", "image": "nginx"}))
TOKEN = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "none"}}


@cases("obj, text, here, there", {
    "no command": (NO_COMMAND, "containers[0].command: this machine runs commands and uses no image", True, False),
    "a token": (job("demo", task(pod={"volumes": [TOKEN]})), "volumes[0].projected.sources[0].serviceAccountToken: pods are given no tokens", True, False),
    "a missing claim": (job("demo", task(pod={"volumes": [CLAIM]})), "there is no claim none in namespace default, so the pods wait until there is one.", True, True),
})  # fmt: skip
def test_people_are_warned_of_what_does_not_work_where_it_does_not(settings, obj, text, here, there):
    for target, is_told in ((None, here), (KUBERNETES, there)):
        settings.TARGET = target
        assert (text in "".join(allowed("/jobs/validate", obj))) is is_told


@cases("target, spec, state", {
    "here": (None, {}, "Open"),
    "where Volcano's clients write the state": (KUBERNETES, {}, None),
    "there, as somebody wrote it": (KUBERNETES, {"state": "Closed"}, "Closed"),
})  # fmt: skip
def test_wish_of_a_queue_is_filled_in_only_where_nobody_else_writes_its_state(settings, target, spec, state):
    settings.TARGET = target
    assert filled("/queues/mutate", of(resources.QUEUES, "a", {"spec": spec}))["spec"].get("state") == state
