"""Controllers that make jobs, run by hand against the real store, and what they are run on."""

from __future__ import annotations

from cluster.runtime import registry
from cluster.store import Patch, store
from kube import meta
from kube.resources import EVENTS, JOBS
from proof.modes.mode import Runner
from tests.jobs.builders import task

PLACE = "default"


def runner(name):
    """The consumer of a name, as a new process runs it."""
    registration = registry.get(name)
    return Runner(registration, 0, registration.make())


def settle(*runners):
    """Let consumers work until none of them has anything to do."""
    while sum(each.step() for each in runners):
        pass


def end(name, phase, **status):
    """Let the job controller say how far a job has come."""
    state = {"phase": phase, "lastTransitionTime": meta.now_text(0)}
    store.write(Patch(JOBS, PLACE, name, {"status": {"state": state, **status}}, "status"))


def job_names():
    return [job.name for job in store.find(JOBS)]


def told(*, since=()):
    """The reasons of all events, in the order in which they were told."""
    return [event.object["reason"] for event in store.find(EVENTS, order="created") if event.name not in since]


def spec(*tasks, **fields):
    return {"tasks": list(tasks) or [task()], **fields}
