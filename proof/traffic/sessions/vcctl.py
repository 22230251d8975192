"""vcctl: jobs, queues, pod groups, flows and templates."""

from __future__ import annotations

from proof.traffic.sessions.kubectl_volcano import ALL_QUEUES, JOBS
from proof.traffic.sessions.objects import CORE, QUEUES, job, object_, pod, pod_spec
from proof.traffic.stage import Stage


def play(stage: Stage) -> None:
    """Do all of it."""
    stage.play("POST", "/api/v1/namespaces/default/serviceaccounts", object_(CORE, "ServiceAccount", "default"))
    queues(stage)
    jobs(stage)
    groups_and_flows(stage)
    stage.vcctl("version")


def queues(stage: Stage) -> None:
    """Make, read, close, open and delete queues."""
    stage.vcctl("queue create -n research -w 3")
    stage.vcctl("queue create -n research -w 3")
    stage.set_status(f"{ALL_QUEUES}/research", {"state": "Open"})
    for line in ("queue list", "queue get -n research", "queue get -n none", "queue operate -n research -w 5", "queue operate -n research -a close", "queue operate -n research -a open"):  # fmt: skip
        stage.vcctl(line)
    stage.set_status(f"{ALL_QUEUES}/research", {"state": "Closed"})
    stage.vcctl("queue delete -n research")
    stage.vcctl("queue delete -n none")


def jobs(stage: Stage) -> None:
    """Run, read, suspend, resume and delete jobs."""
    file = stage.folder / "job.yaml"
    file.write_text(stage.written(job("train")))
    for line in (f"job run -f {file}", f"job run -f {file}", "job run -N small -i busybox:1 -r 2 -m 1", "job list", "job list -n kube-system", "job list --all-namespaces", "job view -N train"):  # fmt: skip
        stage.vcctl(line)
    made = stage.play("GET", f"{JOBS}/train")
    owner = {
        "apiVersion": made["apiVersion"],
        "kind": "Job",
        "name": "train",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    of_job = pod("train-master-0", schedulerName="volcano", restartPolicy="OnFailure")
    of_job["metadata"] |= {"labels": {"volcano.sh/job-name": "train", "volcano.sh/queue-name": "default", "volcano.sh/job-namespace": "default"}, "annotations": {"volcano.sh/job-name": "train", "volcano.sh/queue-name": "default"}, "ownerReferences": [owner]}  # fmt: skip
    stage.play("POST", "/api/v1/namespaces/default/pods", of_job)
    stage.set_status(f"{JOBS}/train", {"state": {"phase": "Running", "lastTransitionTime": "2026-11-27T12:00:00Z"}, "minAvailable": 3, "running": 3})  # fmt: skip
    for line in ("job view -N train", "job view -N none", "job list", "pod list", "pod list -j train", "pod list -q default", "job suspend -N train", "job resume -N train", "job suspend -N none", "job delete -N train", "job delete -N train"):  # fmt: skip
        stage.vcctl(line)


def groups_and_flows(stage: Stage) -> None:
    """Read pod groups; create, read and delete flows and templates."""
    group = object_(QUEUES, "PodGroup", "gang", spec={"minMember": 2, "queue": "default"})
    stage.play("POST", f"/apis/{QUEUES}/namespaces/default/podgroups", group)
    task = [{"name": "main", "replicas": 1, "template": {"spec": pod_spec(restartPolicy="Never")}}]
    template = object_("flow.volcano.sh/v1alpha1", "JobTemplate", "step", spec={"minAvailable": 1, "tasks": task})
    flow = object_("flow.volcano.sh/v1alpha1", "JobFlow", "flow", spec={"jobRetainPolicy": "delete", "flows": [{"name": "step"}]})  # fmt: skip
    stage.vcctl("podgroup list")
    for kind, obj in (("jobtemplate", template), ("jobflow", flow)):
        file = stage.folder / f"{kind}.yaml"
        file.write_text(stage.written({**obj, "metadata": {**obj["metadata"], "namespace": "default"}}))
        name = obj["metadata"]["name"]
        for line in (f"create -f {file}", "list", f"get -N {name}", f"describe -N {name}", f"delete -N {name}"):
            stage.vcctl(f"{kind} {line}")
