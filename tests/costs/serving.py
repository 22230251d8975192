"""Pages and the API as somebody with a role in one namespace asks them, beside many of something."""

from collections import Counter, defaultdict
from contextlib import nullcontext
from itertools import count

from django.contrib.auth.models import User

from cluster import api
from cluster.bootstrap import bootstrap
from cluster.models import AuditEntry, RoleBinding
from cluster.store import Create, Patch, decisions, store
from cluster.writes import Decision
from kube import resources
from proof.harness.clocks import ManualClock
from tests import builders
from tests.actions.world import Cluster, Running, person
from tests.builders import owner
from tests.costs.meter import counted

THEN = 1_700_000_000_000


def running_job(name, namespace, node="node"):
    """Return a job that runs, with its group and its pod."""
    status = {"state": {"phase": "Running"}, "running": 1}
    common = {"namespace": namespace, "schedulerName": "volcano"}
    job = builders.job(name, queue="default", minAvailable=1, uid=f"{namespace}-{name}", status=status, **common)
    notes = {"scheduling.k8s.io/group-name": name, "volcano.sh/job-name": name, "volcano.sh/task-spec": "main"}
    mine = {"namespace": namespace, "ownerReferences": [owner(job)]}
    group = builders.pod_group(name, queue="default", status={"phase": "Running", "running": 1}, **mine)
    common = {**mine, "schedulerName": "volcano", "annotations": notes, "labels": notes}
    return job, group, builders.pod(f"{name}-main-0", nodeName=node, status={"phase": "Running"}, **common)


def deed(number):
    """Note in the audit what somebody did to another object."""
    about = {"resource": resources.JOBS.id, "namespace": "mine", "name": f"deed-{number}", "uid": f"deed-{number}"}
    AuditEntry.objects.create(actor="somebody", verb="patch", revision=1, outcome="done", at=THEN + number, **about)
    return ()


def decision(number):
    """Note what the scheduler decided about another group."""
    decisions.put([Decision(THEN + number, "Bound", "Placed", "mine", f"group-{number}", "other", 1, "")])
    return ()


def event(number):
    about = {"kind": "Job", "namespace": "mine", "name": f"of-{number}", "uid": f"of-{number}"}
    body = {"involvedObject": about, "reason": "Placed", "message": "It runs.", "type": "Normal"}
    return [builders.of(resources.EVENTS, f"event-{number}", body, namespace="mine")]


def change(number):
    """Change another job of the same namespace."""
    store.write(Patch(resources.JOBS, "mine", "beside", {"metadata": {"labels": {"turn": str(number)}}}))
    return ()


def user(number):
    made = User.objects.create(username=f"user-{number}")
    RoleBinding.objects.create(user=made, namespace="mine", role="viewer")
    return ()


class Serving:
    """One job runs in a namespace; a member of it looks at it, and makes and deletes another one."""

    MANY = {
        "queues": lambda number: [builders.queue(f"queue-{number}")],
        "classes": lambda number: [builders.of(resources.PRIORITY_CLASSES, f"class-{number}", {"value": number})],
        "namespaces": lambda number: [builders.namespace(f"ns-{number}")],
        "users": user,
        "nodes": lambda number: [builders.node(f"node-{number}")],
        "jobs": lambda number: running_job(f"job-{number}", "others", "elsewhere"),
        "deeds": deed,
        "decisions": decision,
        "events": event,
        "changes": change,
        "mine": lambda number: running_job(f"job-{number}", "mine"),
    }
    # Shares of more are filled in some more steps, some thirty in all: beside a thousand nodes that is nothing for each.
    MOST = dict.fromkeys(set(MANY) - {"nodes"}, 300)
    PAGES = {
        "the overview": "/",
        "the jobs": "/jobs/?namespace=mine",
        "a job": "/jobs/mine/runs/",
        "a job's decisions": "/jobs/mine/runs/?tab=decisions",
        "a job's events": "/jobs/mine/runs/?tab=events",
        "the decisions": "/queues/-/scheduler/decisions/",
        "the audit": "/audit/",
        "the form of a job": "/jobs/new/?namespace=mine",
        "the queues": "/queues/",
        "a queue": "/queues/default/",
        "the nodes": "/nodes/",
        "a node": "/nodes/node/",
    }

    @staticmethod
    def running():
        return Cluster(ManualClock()).here()

    def __init__(self):
        bootstrap()
        self.numbers = count()
        self._write([builders.namespace("mine"), builders.namespace("others"), builders.node("node")])
        self._write([*running_job("runs", "mine"), *running_job("beside", "mine")])
        self.somebody = person("somebody", User.objects.create_user)
        RoleBinding.objects.create(user_id=self.somebody.actor.user_id, namespace="mine", role="administrator")

    def add(self, kind, numbers):
        self._write([each for number in numbers for each in self.MANY[kind](number)])

    def costs(self):
        found = {}
        for name, address in self.PAGES.items():
            assert self.somebody.browser.get(address).status_code == 200
            with counted() as found[name]:
                self.somebody.browser.get(address)
        runners = Running().runners
        self._let(runners, lambda: nullcontext(Counter()))
        for _ in range(2):
            name = f"new-{next(self.numbers)}"
            with counted() as found["making a job"]:
                api.create(self.somebody.actor, resources.JOBS, builders.job(name, namespace="mine"))
            found |= self._let(runners)
            with counted() as found["deleting a job"]:
                api.delete(self.somebody.actor, resources.JOBS, "mine", name)
            for each, cost in self._let(runners).items():
                found[each] += cost
        return found

    def _let(self, runners, counted=counted):
        """Let all consumers work until nothing happens, and return what each cost."""
        found = defaultdict(Counter)
        before = -1
        while before != store.revision():
            before = store.revision()
            for each in runners:
                with counted() as cost:
                    while each.step():
                        pass
                found[each.registration.name] += cost
        return found

    def _write(self, objects):
        kinds = {(each.api_version, each.kind): each for each in resources.ALL}
        uids = [obj["metadata"].get("uid", "") for obj in objects]
        store.write(
            *[Create(kinds[obj["apiVersion"], obj["kind"]], obj, uid) for obj, uid in zip(objects, uids, strict=True)]
        )
