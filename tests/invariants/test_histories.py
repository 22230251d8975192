"""Real histories hold: jobs, gangs, failures, deletions, queues and quotas, at random on the real controllers."""

import random

import pytest

from cluster import api
from cluster.store import store
from jobs.controller.commands import to_job
from kube.kinds.batch import Action
from kube.resources import COMMANDS, JOBS, NAMESPACES, NODES, POD_GROUPS, PODS, QUEUES, RESOURCE_QUOTAS
from proof.modes.small_cluster import SmallCluster
from tests.campaign import scaled

STEPS = {"embedded": 120, "in-place": 40}
FAILING = 0.03  # of all requests, where there are some
SIMULATED = {"ui.volcano.sh/simulated": "true"}
ACTIONS = (Action.ABORT_JOB, Action.RESUME_JOB, Action.RESTART_JOB, Action.TERMINATE_JOB, Action.COMPLETE_JOB)
EVENTS = ("PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "PodPending", "*")
POLICY_ACTIONS = (
    *(Action.RESTART_JOB, Action.RESTART_TASK, Action.RESTART_POD),
    *(Action.ABORT_JOB, Action.TERMINATE_JOB, Action.COMPLETE_JOB),
)


@pytest.fixture
def begin(transactional_db, redis, monkeypatch, runner_mode):
    begun = []

    def begin(seed, **options):
        begun.append(SmallCluster(random.Random(seed), monkeypatch, runner_mode, **options))
        return begun[-1]

    yield begin
    for cluster in begun:
        cluster.close()


class People:
    """What people do to a cluster, at random."""

    def __init__(self, cluster):
        self.cluster, self.choices, self.number = cluster, cluster.choices, 0
        for name in ("team-a", "team-b", "parent"):
            capability = {"cpu": "6"} if name == "team-b" else {}
            cluster.make(QUEUES, {"metadata": {"name": name}, "spec": {"capability": capability}})
        cluster.make(QUEUES, {"metadata": {"name": "child"}, "spec": {"parent": "parent"}})
        cluster.make(NAMESPACES, {"metadata": {"name": "bounded"}})
        hard = {"pods": "6", "requests.cpu": "8", "count/jobs.batch.volcano.sh": "5", "count/pods": "20"}
        quota = {"metadata": {"name": "some", "namespace": "bounded"}, "spec": {"hard": hard}}
        cluster.make(RESOURCE_QUOTAS, quota)

    def act(self):
        """Do one thing."""
        deeds = (self.submit, self.submit, self.submit, self.command, self.delete_job, self.delete_pod)
        rare = (self.switch_queue, self.scale, self.queue, self.pod, self.gang, self.cordon)
        self.choices.choice((*deeds, *rare))()

    def submit(self):
        self.number += 1
        pick, count = self.choices.choice, self.choices.choice((1, 1, 2, 3, 5))
        notes = {"ui.volcano.sh/duration-seconds": pick(("0", "0.05", "0.2"))}
        policy = pick(("Never", "Never", "OnFailure"))
        if policy == "Never" and self.choices.random() < 0.4:
            notes |= {"ui.volcano.sh/exit-code": "3"}
        requests = {"cpu": pick(("500m", "1", "3", "9")), "memory": "64Mi"}
        container = {"name": "main", "command": ["true"], "resources": {"requests": requests}}
        spec = {"containers": [container], "restartPolicy": policy, "nodeSelector": SIMULATED}
        task = {"name": "main", "replicas": count, "template": {"metadata": {"annotations": notes}, "spec": spec}}
        namespace = pick(("default", "default", "bounded"))
        job = {
            "metadata": {"name": f"j{self.number}", "namespace": namespace},
            "spec": {
                "tasks": [task],
                "minAvailable": pick((count, count, 1)),
                "queue": pick(("default", "team-a", "team-b", "child")),
                "maxRetry": pick((0, 2, 3)),
            },
        }
        if self.choices.random() < 0.5:
            answer = {"event": pick(EVENTS), "action": str(pick(POLICY_ACTIONS))}
            answer |= {"timeout": "200ms"} if self.choices.random() < 0.3 else {}
            pick((job["spec"], task)).setdefault("policies", []).append(answer)
        if self.choices.random() < 0.2:
            job["spec"]["ttlSecondsAfterFinished"] = pick((0, 1))
        self.cluster.make(JOBS, job)

    def any(self, resource):
        """Return one of the objects of a kind, or None."""
        found = store.find(resource)
        return self.choices.choice(found) if found else None

    def command(self):
        if (job := self.any(JOBS)) is not None:
            is_suspended = job.object.get("status", {}).get("state", {}).get("phase") in ("Aborting", "Aborted")
            action = Action.RESUME_JOB if is_suspended else self.choices.choice(ACTIONS)
            self.cluster.make(COMMANDS, to_job(job.namespace, job.name, job.uid, action))

    def delete_job(self):
        if (job := self.any(JOBS)) is not None and self.choices.random() < 0.4:
            how = self.choices.choice(("Background", "Foreground", "Orphan"))
            self.cluster.try_(api.delete, JOBS, job.namespace, job.name, propagation=how)

    def delete_pod(self):
        if (pod := self.any(PODS)) is not None:
            self.cluster.try_(api.delete, PODS, pod.namespace, pod.name, grace=self.choices.choice((None, 0)))

    def switch_queue(self):
        name, state = (self.choices.choice(("team-a", "team-b", "parent")), self.choices.choice(("Open", "Closed")))
        self.cluster.try_(api.patch, QUEUES, "", name, {"spec": {"state": state}})

    def open_queues(self):
        """Open all queues: an API server lets no pod group into a closed one, also not that of a job that starts again."""
        for queue in store.find(QUEUES):
            self.cluster.try_(api.patch, QUEUES, "", queue.name, {"spec": {"state": "Open"}})

    def queue(self):
        name, pick = f"q{self.choices.randrange(3)}", self.choices.choice
        if self.choices.random() < 0.5:
            shares = {
                "weight": pick((1, 4)),
                "priority": pick((0, 0, 1)),
                "dequeueStrategy": pick(("traverse", "fifo")),
            }
            amounts = {"cpu": pick(("0", "2", "9"))}
            spec = {"state": "Closed", **shares, "deserved": amounts, "guarantee": {"resource": amounts}}
            self.cluster.make(QUEUES, {"metadata": {"name": name}, "spec": spec})
        else:
            self.cluster.try_(api.delete, QUEUES, "", name)

    def scale(self):
        if (job := self.any(JOBS)) is not None:
            count = self.choices.randrange(5)
            tasks = [{**job.object["spec"]["tasks"][0], "replicas": count, "minAvailable": 0}]
            change = {"spec": {"tasks": tasks, "minAvailable": self.choices.randint(0, count)}}
            self.cluster.try_(api.patch, JOBS, job.namespace, job.name, change)

    def pod(self, group=""):
        """Make a pod, without a group or in one, or end all that is in a namespace."""
        self.number += 1
        if not group and self.choices.random() < 0.1:
            self.cluster.try_(api.delete, NAMESPACES, "", "bounded")
            return
        notes = {"ui.volcano.sh/duration-seconds": "0.1"}
        notes |= {"scheduling.k8s.io/group-name": group} if group else {}
        metadata = {"name": f"p{self.number}", "namespace": "default", "annotations": notes}
        container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "1"}}}
        spec = {"containers": [container], "nodeSelector": SIMULATED, "restartPolicy": "Never"}
        self.cluster.make(PODS, {"metadata": metadata, "spec": spec})

    def gang(self):
        """Make a pod group, and pods for it one by one: too few, enough or more."""
        name = f"g{self.number}"
        minimum = self.choices.randint(0, 3)
        spec = {"minMember": minimum, "queue": "default"}
        self.cluster.make(POD_GROUPS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        for _ in range(self.choices.randint(0, minimum + 1)):
            self.pod(name)
            self.cluster.turns(self.choices.randrange(3))

    def cordon(self):
        """Close a node to new pods, or open it."""
        if (node := self.any(NODES)) is not None:
            change = {"spec": {"unschedulable": self.choices.random() < 0.5}}
            self.cluster.try_(api.patch, NODES, "", node.name, change)


@pytest.mark.campaign
@pytest.mark.parametrize("hasty", [False, True], ids=["in turns", "beside each other"])
@pytest.mark.parametrize("seed", range(scaled(1, 40)))
def test_random_history_holds(begin, runner_mode, seed, hasty):
    cluster = begin(seed, hasty=hasty)
    people = People(cluster)
    people.submit()
    people.command()  # few steps may have none that finds a job
    with runner_mode.failing(FAILING, cluster.choices):
        for _ in range(STEPS[runner_mode.name]):
            people.act()
            cluster.between = people.act
            cluster.turns(cluster.choices.randrange(12))
    cluster.between = None
    if runner_mode.name == "in-place":
        people.open_queues()
    cluster.rest(within_s=240)
    kinds = {change.resource for change in cluster.changes}
    assert {PODS.id, JOBS.id, POD_GROUPS.id, QUEUES.id, COMMANDS.id, RESOURCE_QUOTAS.id} <= kinds
