"""The addresses by which the pods of a job find each other (reference: volcano-job §5.1).

A pod's address is `<hostname>.<subdomain>`. If its template does not set these, the plugin svc sets them to the pod's
name and the job's name.
"""

from __future__ import annotations

from typing import NamedTuple

from kube import lenient
from kube.meta import Object


class Host(NamedTuple):
    """A pod by the two parts of its address."""

    hostname: str
    subdomain: str

    @property
    def address(self) -> str:
        """The name by which every pod of the job finds it."""
        return f"{self.hostname}.{self.subdomain}"


def of_pod(job: str, task: Object, index: int) -> Host:
    """Return the host of a task's pod with this index, whether or not the pod exists."""
    spec = lenient.mapping(task, "template", "spec")
    hostname = lenient.text(spec, "hostname") or f"{job}-{lenient.text(task, 'name')}-{index}"
    return Host(hostname, lenient.text(spec, "subdomain") or job)


def of_task(job: str, task: Object) -> list[Host]:
    """Return the hosts of a task's pods; only one if the template sets the hostname, since all pods share it."""
    replicas = lenient.whole(task, "replicas") or 0
    if lenient.text(task, "template", "spec", "hostname"):
        replicas = min(replicas, 1)
    return [of_pod(job, task, index) for index in range(replicas)]
