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
from kube import patch
from kube.errors import InternalError
from kube.resources import (
    CRON_JOBS,
    HYPER_NODES,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    NAMESPACES,
    POD_GROUPS,
    QUEUES,
    RESOURCE_QUOTAS,
)
from tests.cluster.remote.log_server import connected
from tests.cluster.remote.webhooks.object_server import ObjectServer
from tests.cluster.remote.webhooks.questions import patch_of, question
from tests.jobs.builders import container, job, task
from tests.jobs.test_admission import REFUSED

pytestmark = pytest.mark.django_db


def mirrored(kind, name, namespace="", **fields):
    """Let the mirror have an object."""
    place = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, "uid": f"{kind.plural}-{name}", "resourceVersion": "5", **place}
    store.write(Mirror(kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}))


def queue(name="team", state="Open", annotations=None, **spec):
    return {
        "apiVersion": QUEUES.api_version,
        "kind": "Queue",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"weight": 1, **spec},
        "status": {"state": state},
    }


def of(kind, name="a", namespace="default", **spec):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def flow(*steps):
    return of(JOB_FLOWS, flows=list(steps))


def cron(schedule="0 2 * * *", **spec):
    return of(CRON_JOBS, schedule=schedule, jobTemplate={"spec": job()["spec"]}, **spec)


@pytest.fixture(autouse=True)
def cluster(tmp_path, settings):
    """A cluster that is mirrored: open queues, one that is closed, one with queues below it. What it has beyond is in `objects`."""
    settings.WAY, settings.IMPERSONATE, settings.LEASE_NAMESPACE = "in-place", False, "volcano-system"
    with connected(ObjectServer(), tmp_path, settings) as running:
        recorder.claim("https://one")
        recorder.record([News(QUEUES, Step.LISTED, version="1")])
        mirrored(NAMESPACES, "default")
        for name, state, parent in (
            ("root", "Open", ""),
            ("default", "Open", "root"),
            ("shut", "Closed", "root"),
            ("up", "Open", "root"),
            ("below", "Open", "up"),
        ):
            mirrored(QUEUES, name, spec={"weight": 1, "parent": parent}, status={"state": state})
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


@pytest.mark.parametrize(("wrong", "field", "text"), [pytest.param(*each.values, id=each.id) for each in REFUSED])
def test_every_rule_of_jobs_refuses_with_its_cause(wrong, field, text):
    whole = patch.json_patch(wrong, patch_of(answer("/jobs/mutate", wrong)))
    code, causes = refusal("/jobs/validate", whole)
    assert code == 422
    assert text in causes[field]


@pytest.mark.parametrize(
    ("path", "wrong", "field", "text"),
    [
        ("/jobs/validate", job(queue="none"), "spec.queue", "not found; choose one that exists"),
        ("/jobs/validate", job(queue="shut"), "spec.queue", "status is `Closed`; open it or choose another"),
        ("/jobs/validate", job(queue="root"), "spec.queue", "can not submit job to root queue"),
        ("/jobs/validate", job(queue="up"), "spec.queue", "has 1 child queues; choose one of them"),
        ("/podgroups/validate", of(POD_GROUPS, queue="shut", minMember=1), "spec.queue", "can only submit PodGroup"),
        ("/queues/validate", queue(weight=-1), "spec.weight", "greater than or equal to 1"),
        ("/queues/validate", queue(parent="none"), "spec.parent", "queue none not found"),
        ("/queues/validate", queue("root", parent="up"), "spec.parent", "has no parent; remove it"),
        ("/jobflows/validate", flow({"name": "A b"}), "spec.flows[0].name", "must be the name of a job template"),
        ("/jobtemplates/validate", of(JOB_TEMPLATES), "spec", "describe the jobs"),
        ("/hypernodes/validate", of(HYPER_NODES, namespace="", tier=1), "spec.members", "at least one member"),
        ("/cronjobs/validate", cron("often"), "spec.schedule", ""),
        ("/cronjobs/validate", cron(timeZone="Moon/Base"), "spec.timeZone", ""),
    ],
)  # fmt: skip
def test_new_object_that_breaks_a_rule_is_refused(path, wrong, field, text):
    code, causes = refusal(path, wrong)
    assert code == 422
    assert text in causes[field]


def test_rules_of_changes_refuse_what_may_not_change():
    old = job(maxRetry=3)
    code, causes = refusal("/jobs/validate", job(maxRetry=4), old)
    assert (code, list(causes)) == (422, ["spec.maxRetry"])
    assert allowed("/jobs/validate", job(task(replicas=2), maxRetry=3), old) == []
    group = of(POD_GROUPS, queue="default", minMember=1)
    assert refusal("/podgroups/validate", of(POD_GROUPS, queue="shut", minMember=1), group)[0] == 422


def test_what_was_wrong_before_may_stay_and_nothing_may_be_added_to_it():
    """Such an object came in while nobody judged it; its finalizers must come off, and it may become better."""
    old = job(task(minAvailable=5), queue="none", plugins={"nope": []})
    ending = copy.deepcopy(old)
    ending["metadata"]["deletionTimestamp"] = "2026-11-23T12:00:00Z"
    assert allowed("/jobs/validate", ending, old) == []
    assert allowed("/jobs/validate", job(task(minAvailable=1), queue="none", plugins={"nope": []}), old) == []
    worse = job(task(minAvailable=5), queue="none", plugins={"nope": []}, minAvailable=9)
    assert list(refusal("/jobs/validate", worse, old)[1]) == ["spec.minAvailable"]


@pytest.mark.parametrize(
    ("old", "text"),
    [
        pytest.param(queue("default", "Closed"), "can not be deleted: the cluster needs it", id="the first one"),
        pytest.param(queue("team", "Open"), "close it first and wait until it is empty", id="open"),
        pytest.param(queue("team", "Closing"), "wait until what is left in it has ended", id="closing"),
        pytest.param(queue("up", "Closed"), "it has 1 child queues: below; delete or move them first", id="above others"),
    ],
)  # fmt: skip
def test_queue_that_is_needed_is_not_deleted(old, text):
    code, causes = refusal("/queues/validate", None, old)
    assert code == 403
    assert any(text in message for message in causes.values())


@pytest.mark.parametrize(
    "old",
    [
        pytest.param(queue("shut", "Closed"), id="closed"),
        pytest.param({**queue("shut"), "spec": {"state": "Closed"}, "status": {}}, id="made closed and not seen by its controller"),
    ],
)  # fmt: skip
def test_closed_queue_may_be_deleted(old):
    assert allowed("/queues/validate", None, old) == []


def test_queue_may_be_deleted_right_after_the_groups_in_it(cluster):
    """The mirror has not heard yet that they are gone."""
    mirrored(POD_GROUPS, "last", "default", spec={"queue": "shut"}, status={"phase": "Running"})
    path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/last"
    cluster.put(path, of(POD_GROUPS, "last", queue="shut"))
    code, causes = refusal("/queues/validate", None, queue("shut", "Closed"))
    assert (code, "state is `Closing`" in causes["status.state"]) == (403, True)
    del cluster.objects[path]
    assert allowed("/queues/validate", None, queue("shut", "Closed")) == []
    cluster.denied["GET", "/podgroups/last"] = 403
    assert refusal("/queues/validate", None, queue("shut", "Closed"))[0] == 403
    cluster.denied["GET", "/podgroups/last"] = 500
    assert refusal("/queues/validate", None, queue("shut", "Closed"))[0] == 503


def test_many_groups_of_a_queue_are_not_looked_up(cluster):
    for number in range(rulings.MOST_LOOKED_UP + 1):
        mirrored(POD_GROUPS, f"g{number}", "default", spec={"queue": "shut"}, status={"phase": "Running"})
    cluster.heard.clear()
    assert refusal("/queues/validate", None, queue("shut", "Closed"))[0] == 403
    assert cluster.heard == []


def test_warnings_are_told_with_a_yes():
    [warning] = allowed("/jobflows/validate", flow({"name": "step"}))
    assert "there is no job template step" in warning


def test_queue_that_the_mirror_has_not_heard_of_is_asked_for(cluster):
    """People write a queue and a job for it at once."""
    path = "/apis/scheduling.volcano.sh/v1beta1/queues/late"
    assert "not found" in refusal("/jobs/validate", job(queue="late"))[1]["spec.queue"]
    cluster.put(path, queue("late"))
    assert allowed("/jobs/validate", job(queue="late")) == []
    cluster.denied["GET", "/queues/late"] = 403
    assert "not found" in refusal("/jobs/validate", job(queue="late"))[1]["spec.queue"]
    cluster.denied["GET", "/queues/late"] = 500
    response = answer("/jobs/validate", job(queue="late"))["response"]
    assert response["status"]["code"] == 503
    assert "queue late could not be looked up: not you. Try again" in response["status"]["message"]


def test_namespace_and_quotas_are_the_api_servers_business():
    elsewhere = job()
    elsewhere["metadata"]["namespace"] = "just-made"
    assert allowed("/jobs/validate", elsewhere) == []
    mirrored(RESOURCE_QUOTAS, "none", "default", spec={"hard": {f"count/{JOBS.id}": "0"}})
    assert allowed("/jobs/validate", job()) == []


def test_nobody_is_refused_by_a_list_that_is_still_read():
    MirroredKind.objects.filter(resource=QUEUES.id).update(version="")
    response = answer("/jobs/validate", job(queue="none"))["response"]
    assert response["status"]["code"] == 503
    assert "still being read. Try again" in response["status"]["message"]


SEEN = [
    pytest.param("/jobs/mutate", job(), {"queue": "default", "maxRetry": 3, "minAvailable": 1}, id="job"),
    pytest.param("/jobs/mutate", job(task(name="", replicas=2)), {"minAvailable": 2}, id="job without names"),
    pytest.param("/jobs/mutate", job(plugins={"mpi": []}), {"plugins": {"mpi": [], "svc": [], "ssh": []}}, id="plugins"),
    pytest.param("/queues/mutate", queue(), {"reclaimable": True, "parent": "root"}, id="queue"),
    pytest.param("/jobflows/mutate", flow({"name": "a"}), {"jobRetainPolicy": "retain"}, id="flow"),
    pytest.param("/cronjobs/mutate", cron(), {"concurrencyPolicy": "Allow", "suspend": False}, id="cron job"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "obj", "filled"), SEEN)
def test_what_is_left_open_is_filled_in(path, obj, filled):
    made = patch.json_patch(obj, patch_of(answer(path, obj)))
    assert {field: made["spec"].get(field) for field in filled} == filled
    assert patch_of(answer(path, made)) == [], "nothing is left to fill in"


def test_group_comes_into_the_queue_that_its_namespace_names():
    named = {"scheduling.volcano.sh/queue-name": "team"}
    metadata = {"name": "default", "uid": "namespace", "resourceVersion": "6", "annotations": named}
    store.write(Mirror(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
    obj = of(POD_GROUPS, minMember=1, queue="default")
    assert patch.json_patch(obj, patch_of(answer("/podgroups/mutate", obj)))["spec"]["queue"] == "team"


def test_patch_of_a_queue_leaves_its_status_alone():
    ops = patch_of(answer("/queues/mutate", queue(state="Closed")))
    assert [op for op in ops if op["path"].startswith("/status")] == []


names = st.sampled_from(["", "main", "other"])
numbers = st.none() | st.integers(0, 3)
specs = st.fixed_dictionaries(
    {},
    optional={
        "queue": st.sampled_from(["", "default", "none"]),
        "schedulerName": st.sampled_from(["", "volcano"]),
        "maxRetry": numbers,
        "minAvailable": numbers,
        "networkTopology": st.sampled_from([{}, {"highestTierAllowed": 1}, None]),
        "plugins": st.dictionaries(st.sampled_from(["mpi", "ray", "svc", "env"]), st.just([]), max_size=2),
        "tasks": st.lists(
            st.fixed_dictionaries(
                {"template": st.just({"spec": {"containers": [container()], "hostNetwork": True}})},
                optional={"name": names, "replicas": numbers, "minAvailable": numbers, "maxRetry": numbers},
            ),
            max_size=3,
        ),
    },
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(specs)
def test_patch_makes_of_a_job_what_our_own_defaults_do(spec):
    obj = {**job(), "spec": spec}
    before = copy.deepcopy(obj)
    made = patch.json_patch(obj, patch_of(answer("/jobs/mutate", obj)))
    assert made == admission.completed(JOBS, obj, None, ClusterView())
    assert obj == before


def test_job_that_is_no_job_is_left_as_it_is_for_the_schema_to_refuse():
    assert patch_of(answer("/jobs/mutate", {**job(), "spec": {"tasks": "three"}})) == []


def test_error_of_a_rule_is_not_swallowed(monkeypatch):
    def broken(*_):
        raise InternalError("defect")

    admission.register(JOBS, validate=broken)
    try:
        assert refusal("/jobs/validate", job())[0] == 500
    finally:
        admission._rules[JOBS.id].pop()


KUBERNETES = Target("dev", "https://dev", "")


@pytest.mark.parametrize(("target", "is_told"), [(None, True), (KUBERNETES, False)])
def test_container_without_a_command_is_told_of_only_where_images_do_not_run(settings, target, is_told):
    settings.TARGET = target
    bare = job(task(pod={"containers": [{"name": "main", "image": "nginx"}]}))
    told = "".join(allowed("/jobs/validate", bare))
    assert ("containers[0].command: this machine runs commands and uses no image" in told) is is_told


@pytest.mark.parametrize(("target", "is_told"), [(None, True), (KUBERNETES, False)])
def test_token_of_an_account_is_told_of_only_where_pods_are_given_none(settings, target, is_told):
    settings.TARGET = target
    volume = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    told = "".join(allowed("/jobs/validate", job(task(pod={"volumes": [volume]}))))
    assert ("volumes[0].projected.sources[0].serviceAccountToken: pods are given no tokens" in told) is is_told


@pytest.mark.parametrize("target", [None, KUBERNETES], ids=["here", "there"])
def test_what_follows_of_a_missing_claim_is_told(settings, target):
    settings.TARGET = target
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "none"}}]
    (told,) = allowed("/jobs/validate", job(task(pod={"volumes": volumes})))
    assert (
        "there is no claim none in namespace default, so the pods wait until there is one. Create the claim first."
        in told
    )


@pytest.mark.parametrize(
    ("target", "spec", "kept"),
    [
        pytest.param(None, {}, "Open", id="here"),
        pytest.param(KUBERNETES, {}, None, id="where Volcano's clients write the state"),
        pytest.param(KUBERNETES, {"state": "Closed"}, "Closed", id="there, as somebody wrote it"),
    ],
)
def test_wish_of_a_queue_is_filled_in_only_where_nobody_else_writes_its_state(settings, target, spec, kept):
    settings.TARGET = target
    obj = {**queue(), "spec": spec, "status": {}}
    made = patch.json_patch(obj, patch_of(answer("/queues/mutate", obj)))
    assert made["spec"].get("state") == kept
