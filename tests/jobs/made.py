"""Consumers run by hand against the real store, how they die, and what makes jobs."""

from cluster.runtime import registry
from cluster.store import Create, Delete, Patch, store
from jobs.flows import admission as flows
from kube import meta
from kube.resources import JOB_FLOWS, JOB_TEMPLATES, JOBS, QUEUES
from proof.modes.mode import Runner
from tests.builders import of, queue
from tests.jobs.builders import CLUSTER, defaulted, task
from tests.jobs.story import Script

NAMESPACE = "default"


class Killed(BaseException):
    """Ends a process where it stands."""


class Doom:
    """Has a process die before a statement: the one of that number that it executes."""

    def __init__(self, at):
        self.left = at

    def __call__(self, execute, sql, params, many, context):
        if sql.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")):
            self.left -= 1
            if self.left < 0:
                raise Killed
        return execute(sql, params, many, context)


def runner(name):
    registration = registry.get(name)
    return Runner(registration, 0, registration.make())


def settle(*runners):
    """Let consumers work until none of them has anything to do."""
    while sum(each.step() for each in runners):
        pass


def end(name, phase, **status):
    """Let the job controller say how far a job has come."""
    state = {"phase": phase, "lastTransitionTime": meta.now_text(0)}
    store.write(Patch(JOBS, NAMESPACE, name, {"status": {"state": state, **status}}, "status"))


class Story(Script):
    """An object that makes jobs: `restart` puts another controller in place, and `queue` the queue `night` in a state."""

    consumer = kind = name = prefix = ""

    def __init__(self, controller, clock):
        self.controller, self.clock = controller, clock

    def ends(self):
        settle(self.controller)

    def called(self, job):
        """The whole name of a job, of which a story has the rest."""
        return f"{self.prefix}{job}"

    def restart(self):
        self.controller = runner(self.consumer)

    def delete(self, job):
        store.write(Delete(JOBS, NAMESPACE, self.called(job)))

    def foreign(self, job):
        store.write(Create(JOBS, of(JOBS, self.called(job))))

    def going(self):
        store.write(Delete(self.kind, NAMESPACE, self.name, propagation="Foreground"))

    def queue(self, state):
        there = any(each.name == "night" for each in store.find(QUEUES))
        change = Patch(QUEUES, "", "night", {"status": {"state": state}}, "status")
        store.write(change if there else Create(QUEUES, queue("night", state)))


def job_names():
    return [job.name for job in store.find(JOBS)]


def spec(*tasks, **fields):
    return {"tasks": list(tasks) or [task()], **fields}


def template(name="a", *tasks, **fields):
    obj = of(JOB_TEMPLATES, name, {"spec": spec(*tasks, **fields)})
    flows.default_template(obj, None, CLUSTER)
    return obj


def step(name, *targets, probe=None, **fields):
    """A job of a flow; with a probe of (task, phase) pairs."""
    after = {"targets": list(targets)} if targets else {}
    if probe is not None:
        after["probe"] = {"taskStatusList": [{"taskName": task, "phase": phase} for task, phase in probe]}
    return {"name": name, **({"dependsOn": after} if after else {}), **fields}


def flow(*steps, name="f", **fields):
    return defaulted(of(JOB_FLOWS, name, flows=[*steps], **fields), rules=flows)
