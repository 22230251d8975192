"""kubectl over Volcano's kinds; of Volcano nothing runs but its webhooks."""

from __future__ import annotations

from proof.traffic.sessions.objects import QUEUES, VOLCANO, job, object_, pod_spec, queue
from proof.traffic.stage import Stage

MERGE = "application/merge-patch+json"

JOBS = f"/apis/{VOLCANO}/namespaces/default/jobs"
ALL_QUEUES = f"/apis/{QUEUES}/queues"


def play(stage: Stage) -> None:
    """Do all of it."""
    queues(stage)
    jobs(stage)
    others(stage)
    delete(stage)


def queues(stage: Stage) -> None:
    """Make queues and change them."""
    stage.kubectl("create -f -", queue("research", capability={"cpu": "8"}))
    stage.set_status(f"{ALL_QUEUES}/research", {"state": "Open"})
    stage.kubectl("apply -f -", queue("teaching", weight=3))
    stage.kubectl("apply -f -", queue("teaching", weight=4))
    stage.kubectl("apply --server-side -f -", queue("service", weight=1))
    stage.kubectl("create -f -", queue("wrong", weight=-1))
    for line in (
        "get queues",
        "get q research -o yaml",
        "describe queue research",
        """patch queue research --type=merge -p '{"spec":{"weight":5}}'""",
        """patch queue research -p '{"spec":{"weight":5}}'""",
        """patch queue research --type=json -p '[{"op":"replace","path":"/spec/weight","value":6}]'""",
        "label queue research of=us",
        "annotate queue research note=first",
        "explain queue.spec",
        "delete queue default",
    ):
        stage.kubectl(line)


def jobs(stage: Stage) -> None:
    """Make jobs, have them run, read and change them."""
    stage.kubectl("create -f -", job("train", queue="research"))
    stage.kubectl("create -f - --dry-run=server -o yaml", job("tried"))
    stage.kubectl("create -f -", {**job("many"), "metadata": {"generateName": "many-"}})
    stage.kubectl("apply -f -", job("tune", maxRetry=5))
    stage.kubectl("apply -f -", job("tune", maxRetry=5, priorityClassName="high"))
    stage.kubectl("apply -f -", job("tune", maxRetry=5, minAvailable=2))
    stage.kubectl("apply --server-side -f -", job("serve", plugins={"svc": [], "env": []}))
    stage.kubectl("create -f -", job("wrong", minAvailable=9))
    stage.kubectl("create -f -", job("homeless", queue="none"))
    stage.kubectl("create -f -", job("odd", minAvailable="3"))
    stage.kubectl("create -f - --validate=strict", job("odd", colour="red"))
    stage.kubectl("create -f -", job("empty", tasks=[]))
    stage.kubectl("create -f -", job("policies", policies=[{"event": "PodFailed", "action": "RestartJob"}, {"event": "PodEvicted", "action": "AbortJob"}]))  # fmt: skip
    with stage.beside("get vcjob -w") as lines:
        while "train" not in next(lines):
            pass
        stage.set_status(f"{JOBS}/train", {"state": {"phase": "Running", "lastTransitionTime": "2026-11-27T12:00:00Z"}, "minAvailable": 3, "running": 3})  # fmt: skip
        while "Running" not in next(lines):
            pass
    for line in (
        "get vcjob",
        "get vcjob train -o wide",
        "get jobs.batch.volcano.sh train -o yaml",
        "describe vcjob train",
        "wait --for=jsonpath={.status.state.phase}=Running vcjob/train --timeout=60s",
        "explain vcjob.spec.tasks",
        """patch vcjob train --type=merge -p '{"spec":{"minAvailable":2}}'""",
        """patch vcjob train --type=merge -p '{"spec":{"queue":"default"}}'""",
        """patch vcjob train --type=json -p '[{"op":"replace","path":"/spec/tasks/1/replicas","value":4}]'""",
        """patch vcjob train --subresource=status --type=merge -p '{"status":{"pending":1}}'""",
        "scale vcjob train --replicas=3",
        "label vcjob train of=us",
        "annotate vcjob train note=first",
        "get vcjob -l of=us -o name",
        "get vcjob --field-selector=metadata.name=train -o name",
        "get vcjob none",
        "get --raw /apis/batch.volcano.sh/v1alpha1",
        "get --raw /apis/scheduling.volcano.sh/v1beta1",
        "get --raw /apis/batch.volcano.sh",
    ):
        stage.kubectl(line)
    command = {**object_("bus.volcano.sh/v1alpha1", "Command", "stop"), "action": "AbortJob", "target": {"apiVersion": VOLCANO, "kind": "Job", "name": "train", "uid": "none"}}  # fmt: skip
    stage.kubectl("create -f -", command)
    stage.environment["EDITOR"] = "sed -i s/maxRetry:.5/maxRetry:.6/"
    stage.kubectl("edit vcjob tune")


def others(stage: Stage) -> None:
    """Make one of each other kind, and read them."""
    group = object_(QUEUES, "PodGroup", "gang", spec={"minMember": 2, "queue": "default"})
    task = [{"name": "main", "replicas": 1, "template": {"spec": pod_spec(restartPolicy="Never")}}]
    cron = object_(VOLCANO, "CronJob", "nightly", spec={"schedule": "0 3 * * *", "jobTemplate": {"spec": {"minAvailable": 1, "schedulerName": "volcano", "tasks": task}}})  # fmt: skip
    template = object_("flow.volcano.sh/v1alpha1", "JobTemplate", "step", spec={"minAvailable": 1, "tasks": task})
    flow = object_("flow.volcano.sh/v1alpha1", "JobFlow", "flow", spec={"jobRetainPolicy": "delete", "flows": [{"name": "step"}]})  # fmt: skip
    hyper = object_("topology.volcano.sh/v1alpha1", "HyperNode", "rack", spec={"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "node-0"}}}]})  # fmt: skip
    for each in (group, cron, template, flow, hyper):
        stage.kubectl("apply -f -", each)
    gang = f"/apis/{QUEUES}/namespaces/default/podgroups/gang"
    stage.play("PATCH", gang, {"status": {"phase": "Running", "running": 2}}, MERGE)  # it has no part for its status
    for kind in ("podgroup", "cronvcjob", "jobtemplate", "jobflow", "hypernode", "command", "queue"):
        for line in (f"get {kind}", f"get {kind} -o wide", f"describe {kind}"):
            stage.kubectl(line)


def delete(stage: Stage) -> None:
    """Delete all of it."""
    for line in (
        "delete vcjob train --wait=false",
        "delete vcjob tune --cascade=orphan --wait=false",
        "delete vcjob serve --cascade=foreground --wait=false",
        "delete vcjob none",
        "delete vcjob --all --wait=false",
        "delete podgroup gang",
        "delete cronvcjob nightly --wait=false",
        "delete jobflow,jobtemplate,hypernode,command --all",
        """patch queue research --subresource=status --type=merge -p '{"status":{"state":"Closed"}}'""",
        "delete queue research",
    ):
        stage.kubectl(line)
