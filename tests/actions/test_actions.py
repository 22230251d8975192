"""Every action of the product, a row a line: what is done, which kinds change at once, and how many queries that takes at most.

Each is checked twice by `verify_action`: when it is done, and when controllers, scheduler and nodes have done what follows from it.
"""

from __future__ import annotations

import json
from typing import NamedTuple
from urllib.parse import urlsplit

import lxml.html
import pytest

from cluster.models import Token
from cluster.store import store
from jobs.tasks import advance
from kube import resources
from proof.simulation.people import request as requests
from tests.actions.world import APART, NAMESPACE, container, cron, job, named, task
from tests.verify import verify_action

HERE = f"/jobs/{NAMESPACE}"
POD = "vault-long-main-0"
TEXT = json.dumps(job("vault-made", task(seconds="2")))


ANY = "*"


class Row(NamedTuple):
    """What is done, the kinds that it changes by their plurals, and the most queries that it may take, if that is bounded."""

    do: object
    kinds: str
    queries: int | None = 22


def post(path, status=302, **fields):
    """A form that is sent."""

    def do(cluster):
        answer = cluster.world.reader.browser.post(path, fields)
        assert answer.status_code == status, words(answer)
        return answer

    return do


def fill(path, **fields):
    """A form that is opened, changed and sent, and sent once more where it first shows what it would do."""

    def do(cluster):
        browser = cluster.world.reader.browser
        answer = browser.post(path, of_form(browser.get(path)) | fields)
        answer = answer if answer.status_code == 302 else browser.post(path, of_form(answer))
        assert answer.status_code == 302, words(answer)

    return do


def of_form(answer):
    page = lxml.html.document_fromstring(answer.content.decode())
    return {name: value or "" for form in page.forms if form.get("id") != "post" for name, value in form.form_values()}


def words(answer):
    page = lxml.html.document_fromstring(answer.content.decode())
    return answer.status_code, " ".join(" ".join(page.itertext()).split())[:2000]


def bulk(action, *names, then=("confirm",)):
    """A bulk operation of jobs, prepared and confirmed, and carried on as beat has it done."""

    def do(cluster):
        uids = [store.get(resources.JOBS, NAMESPACE, name).uid for name in names]
        answer = cluster.world.reader.browser.post(
            "/jobs/-/operations/", {"action": action, "which": "ticked", "uid": uids}
        )
        assert answer.status_code == 302, words(answer)
        for each in then:
            post(f"{urlsplit(answer['Location']).path}{each}/")(cluster)
            advance.run()

    return do


def revoke(cluster):
    post(f"/connect/tokens/{Token.objects.latest('pk').pk}/revoke/")(cluster)


def create(resource, obj, **query):
    return api_request(requests.create("", resource, obj, "", **query))


def patch(resource, name, change, namespace=NAMESPACE):
    where = named(name, namespace if resource.namespaced else "")
    return api_request(requests.patch("", resource, where, change, ""))


def delete(resource, name, namespace=NAMESPACE, **options):
    return api_request(
        requests.delete("", resource, named(name, namespace if resource.namespaced else ""), "", **options)
    )


def api_request(request):
    """A request to the Kubernetes API."""

    def do(cluster):
        answer = cluster.send(cluster.world.reader.actor, request)
        assert answer.status < 300, answer.body

    return do


def evict(name):
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
    return api_request(
        requests.Request(
            actor="", method="POST", path=requests.path(resources.PODS, NAMESPACE, name, "eviction"), body=body
        )
    )


def command(action, name="vault-long", kind=resources.JOBS):
    target = {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}
    obj = {"metadata": {"name": f"{name}-command", "namespace": NAMESPACE}, "target": target, "action": action}

    def do(cluster):
        uid = store.get(kind, NAMESPACE if kind.namespaced else "", name).uid
        owner = {**target, "uid": uid, "controller": True}
        metadata = {**obj["metadata"], "ownerReferences": [owner]}
        create(resources.COMMANDS, {**obj, "target": {**target, "uid": uid}, "metadata": metadata})(cluster)

    return do


def later(seconds):
    """Time that passes."""

    def do(cluster):
        cluster.clock.move(seconds)
        cluster.settle()

    return do


def after(*steps):
    def do(cluster):
        for step in steps:
            step(cluster)

    return do


TASKS = {"spec": {"minAvailable": 1, "tasks": [{**task(), "replicas": 1}, task("extra", 1)]}}
BY_POLICY = job(
    "vault-made",
    {**task(code="3", seconds="1", replicas=1), "policies": [{"event": "PodFailed", "action": "RestartTask"}]},
    task("other", 1),
    maxRetry=1,
)
DEVICE = named("vault-made", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}}]})
CONFIGURATION = 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n'
BATCH = named("vault-made", spec={"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}})
BARE = named("vault-made", spec={**task()["template"]["spec"], "schedulerName": "volcano"})
ACCOUNT = post("/access/users/", name="ann", password="correct horse 7", role="viewer", namespace=NAMESPACE)
TOKEN = post("/connect/", 200, name="laptop", days="30")
VERSION = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
NAMES = {"plural": "models", "singular": "model", "kind": "Model", "listKind": "ModelList"}
KIND = named(
    "models.example.com",
    "",
    spec={"group": "example.com", "scope": "Namespaced", "names": NAMES, "versions": [VERSION]},
)
ACTIONS = {
    # jobs
    "job: by YAML": Row(post("/jobs/new/", text=TEXT), "jobs"),
    "job: by the API": Row(create(resources.JOBS, job("vault-made", queue="spare")), "jobs"),
    "job: in a child queue": Row(create(resources.JOBS, job("vault-made", queue="child", priorityClassName="urgent")), "jobs"),
    "job: that never fits": Row(create(resources.JOBS, job("vault-made", task(cpu="9"))), "jobs"),
    "job: whose task restarts": Row(create(resources.JOBS, BY_POLICY), "jobs"),
    "job: a sample": Row(post("/jobs/samples/primes/run/", namespace=NAMESPACE), "jobs"),
    "job: scale": Row(fill(f"{HERE}/vault-long/scale/", **{"tasks.0.replicas": "4"}), "jobs", 31),
    "job: edit": Row(fill(f"{HERE}/vault-long/edit/", labels="team: vision"), "jobs", 27),
    "job: restart": Row(post(f"{HERE}/vault-long/restart/"), "commands", 24),
    "job: suspend": Row(post(f"{HERE}/vault-long/suspend/"), "commands", 24),
    "job: resume": Row(post(f"{HERE}/vault-paused/resume/"), "commands", 24),
    "job: complete": Row(post(f"{HERE}/vault-long/complete/"), "commands", 24),
    "job: terminate": Row(post(f"{HERE}/vault-long/terminate/"), "commands", 24),
    "job: delete": Row(post(f"{HERE}/vault-long/delete/"), "jobs"),
    "job: delete one that ended": Row(post(f"{HERE}/vault-ended/delete/"), "jobs"),
    "job: patch by the API": Row(patch(resources.JOBS, "vault-long", TASKS), "jobs"),
    "job: label by the API": Row(patch(resources.JOBS, "vault-ended", {"metadata": {"labels": {"team": "vision"}}}), "jobs"),
    "job: another minimum": Row(patch(resources.JOBS, "vault-waiting", {"spec": {"minAvailable": 0}}), "jobs"),
    "job: delete by the API": Row(delete(resources.JOBS, "vault-long", propagationPolicy="Foreground"), "jobs"),
    "job: orphan its pods": Row(delete(resources.JOBS, "vault-long", propagationPolicy="Orphan"), "jobs"),
    "job: delete all": Row(api_request(requests.Request(actor="", method="DELETE", path=requests.path(resources.JOBS, NAMESPACE))), "jobs"),
    "job: where another one looks": Row(delete(resources.JOBS, "apart-long", namespace=APART), "jobs"),
    "job: a Command": Row(command("RestartJob"), "commands"),
    "job: of batch/v1": Row(create(resources.BATCH_JOBS, BATCH), "jobs.batch"),
    "job: of batch/v1 deleted": Row(delete(resources.BATCH_JOBS, "vault-kubernetes"), "jobs.batch"),
    # many jobs
    "bulk: draft": Row(bulk("delete", "vault-ended", "vault-long", then=()), ""),
    "bulk: suspend": Row(bulk("suspend", "vault-long", "vault-waiting"), "commands", 58),
    "bulk: restart": Row(bulk("restart", "vault-long"), "commands", 57),
    "bulk: delete": Row(bulk("delete", "vault-ended", "vault-long"), "jobs", 58),
    "bulk: stop": Row(bulk("suspend", "vault-long", "vault-waiting", then=("confirm", "stop")), "commands", 80),
    "sweep: make": Row(post("/sweeps/-/new/", text=json.dumps(job("vault-young", task(replicas=1, seconds="{{number}}"))), do="submit", **{"grid-number": "1, 2"}), "configmaps jobs", 34),
    "sweep: delete": Row(post(f"/sweeps/{NAMESPACE}/vault-old/delete/"), "configmaps"),
    # pods
    "pod: delete": Row(delete(resources.PODS, POD), "pods"),
    "pod: delete at once": Row(delete(resources.PODS, POD, gracePeriodSeconds=0), "pods"),
    "pod: evict": Row(evict(POD), "pods"),
    "pod: by the API": Row(create(resources.PODS, BARE), "pods"),
    "pod group: by the API": Row(create(resources.POD_GROUPS, named("vault-made", spec={"minMember": 1, "queue": "default"})), "podgroups"),
    # templates, flows, cron jobs
    "template: keep": Row(fill("/jobs/-/templates/", do="save"), "jobtemplates", 23),
    "template: by the API": Row(create(resources.JOB_TEMPLATES, named("vault-made", spec=job("made")["spec"])), "jobtemplates"),
    "template: run": Row(post(f"/flows/-/templates/{NAMESPACE}/vault-steps/run/"), "jobs"),
    "template: delete": Row(post(f"/flows/-/templates/{NAMESPACE}/vault-steps/delete/"), "jobtemplates"),
    "flow: by the API": Row(create(resources.JOB_FLOWS, named("vault-made", spec={"flows": [{"name": "vault-steps"}], "jobRetainPolicy": "delete"})), "jobflows"),
    "flow: delete": Row(post(f"/flows/{NAMESPACE}/vault-flow/delete/"), "jobflows"),
    "flow: of a template that is not there": Row(create(resources.JOB_FLOWS, named("vault-made", spec={"flows": [{"name": "none"}]})), "jobflows"),
    "cron job: by the API": Row(create(resources.CRON_JOBS, cron("vault-made", schedule="* * * * *")), "cronjobs"),
    "cron job: suspend": Row(post(f"/cronjobs/{NAMESPACE}/vault-nightly/suspend/"), "cronjobs"),
    "cron job: resume": Row(post(f"/cronjobs/{NAMESPACE}/vault-resting/resume/"), "cronjobs"),
    "cron job: run": Row(post(f"/cronjobs/{NAMESPACE}/vault-nightly/run/"), "jobs"),
    "cron job: delete": Row(post(f"/cronjobs/{NAMESPACE}/vault-nightly/delete/"), "cronjobs"),
    # queues
    "queue: make": Row(fill("/queues/-/new/", name="fresh", weight="2", parent="parent"), "queues", 23),
    "queue: edit": Row(fill("/queues/spare/edit/", weight="3", capability="cpu: 2"), "queues", 25),
    "queue: bound": Row(patch(resources.QUEUES, "default", {"spec": {"capability": {"cpu": "1"}}}), "queues"),
    "queue: close": Row(post("/queues/spare/close/"), "queues"),
    "queue: close one in use": Row(post("/queues/default/close/"), "queues"),
    "queue: close a parent": Row(post("/queues/parent/close/"), "queues"),
    "queue: open": Row(post("/queues/closed/open/"), "queues"),
    "queue: delete": Row(post("/queues/closed/delete/"), "queues"),
    # nodes
    "node: cordon": Row(patch(resources.NODES, "sim-0001", {"spec": {"unschedulable": True}}), "nodes"),
    "node: taint": Row(patch(resources.NODES, "sim-0001", {"spec": {"taints": [{"key": "gone", "effect": "NoExecute"}]}}), "nodes"),
    "node: label": Row(patch(resources.NODES, "sim-0002", {"metadata": {"labels": {"rack": "b"}}}), "nodes"),
    "node: delete": Row(delete(resources.NODES, "sim-0001"), "nodes"),
    "node: another": Row(create(resources.NODES, named("real-1", "")), "nodes"),
    "hyper node: make": Row(create(resources.HYPER_NODES, named("row", "", spec={"tier": 2, "members": [{"type": "HyperNode", "selector": {"exactMatch": {"name": "rack"}}}]})), "hypernodes"),
    "hyper node: delete": Row(delete(resources.HYPER_NODES, "rack"), "hypernodes"),
    # namespaces and bounds
    "namespace: make": Row(post("/access/namespaces/", name="fresh"), "namespaces"),
    "namespace: delete": Row(delete(resources.NAMESPACES, NAMESPACE), "namespaces"),
    "quota: make": Row(create(resources.RESOURCE_QUOTAS, named("vault-made", spec={"hard": {"pods": "5", "count/jobs.batch.volcano.sh": "3"}})), "resourcequotas"),
    "quota: delete": Row(delete(resources.RESOURCE_QUOTAS, "vault-quota"), "resourcequotas"),
    "limits: make": Row(create(resources.LIMIT_RANGES, DEVICE), "limitranges"),
    "priority class: make": Row(create(resources.PRIORITY_CLASSES, named("usual", "", value=7, globalDefault=True)), "priorityclasses"),
    "priority class: delete": Row(delete(resources.PRIORITY_CLASSES, "urgent"), "priorityclasses"),
    "configuration: a ConfigMap": Row(create(resources.CONFIGMAPS, named("vault-made", data={"a": "1"})), "configmaps"),
    "secret: make": Row(create(resources.SECRETS, named("vault-made", stringData={"a": "1"})), "secrets"),
    "claim: make": Row(create(resources.CLAIMS, named("vault-made", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})), "persistentvolumeclaims"),
    "service: make": Row(create(resources.SERVICES, named("vault-made", spec={"ports": [{"port": 80}]})), "services"),
    "endpoints: make": Row(create(resources.ENDPOINTS, named("vault-made")), "endpoints"),
    "service account: make": Row(create(resources.SERVICE_ACCOUNTS, named("vault-made")), "serviceaccounts"),
    "lease: make": Row(create(resources.LEASES, named("vault-made", spec={"holderIdentity": "me"})), "leases"),
    "network policy: make": Row(create(resources.NETWORK_POLICIES, named("vault-made", spec={"podSelector": {}})), "networkpolicies"),
    "disruption budget: make": Row(create(resources.DISRUPTION_BUDGETS, named("vault-made", spec={"minAvailable": 1})), "poddisruptionbudgets"),
    # settings of the scheduler
    "scheduler: change": Row(fill("/queues/-/scheduler/", text=CONFIGURATION, do="save"), "namespaces configmaps", 60),
    "scheduler: reset": Row(after(fill("/queues/-/scheduler/", text=CONFIGURATION, do="save"), post("/queues/-/scheduler/reset/")), "namespaces configmaps", 53),
    # people
    "people: an account": Row(ACCOUNT, "", 26),
    "people: a link": Row(post("/access/users/olive/link/"), ""),
    "people: out": Row(after(ACCOUNT, post("/access/users/ann/active/", active="0")), "", 41),
    "people: a role": Row(post("/access/roles/", kind="user", subject="rita", role="operator", namespace=NAMESPACE), ""),
    "people: a token": Row(TOKEN, ""),
    "people: a token revoked": Row(after(TOKEN, revoke), "", 40),
    "people: a password": Row(after(ACCOUNT, post("/access/users/ann/password/", password="another horse 8")), "", 39),
    "people: a role taken away": Row(after(ACCOUNT, post("/access/roles/remove/", user="ann", namespace=NAMESPACE)), "", 41),
    # kinds of one's own
    "kind: define": Row(create(resources.CUSTOM_RESOURCE_DEFINITIONS, KIND), "customresourcedefinitions"),
    "kind: and delete": Row(after(create(resources.CUSTOM_RESOURCE_DEFINITIONS, KIND), delete(resources.CUSTOM_RESOURCE_DEFINITIONS, "models.example.com")), "customresourcedefinitions", 44),
    # what time brings
    "time: a minute": Row(later(60), ANY, None),
    "time: an hour": Row(later(3605), ANY, None),
    "time: cron jobs": Row(after(create(resources.CRON_JOBS, cron("vault-made", schedule="* * * * *")), later(60)), ANY, None),
}  # fmt: skip
SHORT = {"jobs": resources.JOBS.id, "jobs.batch": resources.BATCH_JOBS.id}


def kinds(text):
    by_plural = {each.plural: each.id for each in resources.ALL}
    return {SHORT.get(each) or by_plural[each] for each in text.split()}


@pytest.mark.parametrize("name", ACTIONS)
def test_all_agree_after_an_action_and_after_what_follows_from_it(cluster, name):
    row = ACTIONS[name]
    with verify_action(cluster, row.queries, whole=False) as action:
        row.do(cluster)
    if row.kinds != ANY:
        assert action.kinds == kinds(row.kinds)
    with verify_action(cluster):
        cluster.settle()
