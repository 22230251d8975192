"""Jobs whose pods are played on a cluster with Volcano's kinds, and what the cluster has of them."""

from __future__ import annotations

import json

from kube.resources import JOBS
from proof.harness.waiting import until
from proof.systems.work import job, shell

STAYS = {"stays": "until this is taken away"}  # pods of jobs that are played until then


def staying(name, **fields):
    """A job whose pods run until they are released."""
    return job(name, shell("sleep 3600", annotations=STAYS, **fields), queue="default")


def release(cluster, name):
    """Let the pods of a job end."""
    cluster.kubectl("annotate", "pods", "-l", f"volcano.sh/job-name={name}", "stays-")


def there(cluster, kind, name):
    """An object as the cluster has it, None when it has none."""
    found = cluster.kubectl("get", kind.id, name, "--ignore-not-found", "-o", "json")
    return json.loads(found) if found else None


def phase(cluster, name):
    return (((there(cluster, JOBS, name) or {}).get("status") or {}).get("state") or {}).get("phase")


def comes_to(cluster, name, wanted):
    until(lambda: phase(cluster, name) == wanted, every_s=0.2, what=f"that {name} is {wanted}")


def pods(cluster, name):
    """The uids of a job's pods by their names."""
    found = cluster.get("pods", "-l", f"volcano.sh/job-name={name}")["items"]
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}
