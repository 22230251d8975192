"""The job controller and the collector over a real store, and stand-ins for people, scheduler and nodes.

Nothing happens by itself: each method is something that may happen. Processes
may die before any statement, and before their commit.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager, suppress

from django.db import connection

from cluster import clock
from cluster.bootstrap import bootstrap
from cluster.runtime import consumer, registry
from cluster.runtime.consumer import Runner
from cluster.store import Create, Delete, Patch, store
from jobs.controller.job_controller import JobConsumer
from kube.errors import ApiError
from kube.resources import COMMANDS, JOBS, POD_GROUPS, PODS
from tests.cluster.store.conftest import empty
from tests.jobs.made import runner

PLACE = "default"
STEPS = 400  # of a controller that has nothing more to do long before
READS, WRITES = ("SELECT",), ("INSERT", "UPDATE", "DELETE")


class Killed(BaseException):
    """The process is dead: nothing that it would have done is done."""


class Restless(AssertionError):
    """Somebody goes on and on, and nothing happens to make him."""


class Mortal(Runner):
    """The job controller in a process that may die."""

    def __init__(self):
        super().__init__(registry.get("jobs"), 0, JobConsumer())
        self.dies_uncommitted = False
        self.interrupted_by = None  # what somebody does between the plan and its commit

    def _commit(self, cursor, plan, timers, now):
        interrupted_by, self.interrupted_by = self.interrupted_by, None
        if interrupted_by is not None:
            interrupted_by()
        super()._commit(cursor, plan, timers, now)

    def _set_timers(self, timers):
        """Die with the last word of the transaction, if that is to be."""
        super()._set_timers(timers)
        self.last_words += 1
        if self.dies_uncommitted and self.last_words % 2 == 0:
            raise Killed

    last_words = 0


class Doom:
    """Has a process die before a statement: the one of that number that it executes."""

    def __init__(self, at):
        self.left = at

    def __call__(self, execute, sql, params, many, context):
        if sql.startswith((*READS, *WRITES)):
            self.left -= 1
            if self.left < 0:
                raise Killed
        return execute(sql, params, many, context)


class World:
    """A cluster in which only what is asked for happens; a witness sees each step."""

    def __init__(self, manual, witness):
        empty("default")
        bootstrap()
        self.clock = manual
        self.latest_us = manual.us
        self.witness = witness
        self.controller = Mortal()
        self.collector = runner("garbage")
        self.numbers = itertools.count()
        self.settle()  # what happens from here on is told to them

    # ---- the processes

    def step(self):
        """Let the controller take a step; tell whether there may be more."""
        with self._stepping():
            return self.controller.step()

    def step_dying(self, at):
        """Let the controller die before a statement of its step, and another take its place."""
        with self._stepping(), suppress(Killed), connection.execute_wrapper(Doom(at)):
            self.controller.step()
        self.start_anew()

    def settle_dying(self, at):
        """Let the controller work on, die before a statement of all that it executes, and another take its place; tell whether it did."""
        doom = Doom(at)
        more = True
        while more:
            more = False
            with self._stepping(), suppress(Killed), connection.execute_wrapper(doom):
                more = self.controller.step()
        self.start_anew()
        return doom.left < 0

    def step_uncommitted(self):
        """Let the controller die when all is written and nothing is committed, and another take its place."""
        self.controller.dies_uncommitted = True
        with self._stepping(), suppress(Killed):
            self.controller.step()
        self.start_anew()

    def step_interrupted(self, by):
        """Let somebody do something between what the controller plans in a step and its commit."""

        def interrupt():
            by()
            self.witness.others()

        self.controller.interrupted_by = interrupt
        self.step()
        self.controller.interrupted_by = None

    def settle(self):
        """Let controller and collector work until neither has anything to do."""
        for _ in range(STEPS):
            more = self.step()
            more |= self.collector.step()
            self.witness.others()
            if not more:
                return
        last = [f"{each.verb} {each.resource}/{each.key}" for each in store.changes(store.revision() - 5)]
        raise Restless(f"controller and collector are at work after {STEPS} steps; the log ends with {last}")

    def start_anew(self):
        """Put another process in the controller's place."""
        self.controller = Mortal()

    @contextmanager
    def _stepping(self):
        self.clock.move(0.001)
        self.witness.others()
        self.witness.hears(clock.milliseconds())
        yield
        self.witness.controller(self.controller.position)

    def read_at_once(self, batch):
        """Have consumers read so many changes in one step from now on."""
        consumer.BATCH = batch

    def move(self, seconds):
        """Set the clock forward or back."""
        self.clock.move(seconds)
        self.latest_us = max(self.latest_us, self.clock.us)

    def catch_up(self):
        """Let the clock show again the latest time that it has shown."""
        self.move(max(self.latest_us - self.clock.us, 0) / 1e6)

    # ---- people

    def submit(self, job):
        return self._write(Create(JOBS, job))

    def command(self, name, action):
        """Ask something of the job that has a name now."""
        stored = self.job(name)
        if stored is None:
            return
        target = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": name, "uid": stored.uid}
        metadata = {"name": f"{name}-{next(self.numbers)}", "namespace": PLACE}
        owned = metadata | {"ownerReferences": [{**target, "controller": True}]}
        self._write(Create(COMMANDS, {"metadata": owned, "action": action, "target": target}))

    def scale(self, name, number, replicas):
        """Give a task other replicas, and bring the minimums in line as admission asks."""
        stored = self.job(name)
        if stored is None:
            return
        tasks = [dict(task) for task in stored.object["spec"]["tasks"]]
        task = tasks[number % len(tasks)]
        if task.get("partitionPolicy"):
            return
        task |= {"replicas": replicas, "minAvailable": min(task["minAvailable"], replicas)}
        least = min(stored.object["spec"]["minAvailable"], sum(each["replicas"] for each in tasks))
        self._write(Patch(JOBS, PLACE, name, {"spec": {"tasks": tasks, "minAvailable": least}}))

    def delete_job(self, name, propagation):
        self._write(Delete(JOBS, PLACE, name, propagation=propagation))

    def delete_pod(self, pod, grace=None):
        self._write(Delete(PODS, PLACE, pod.name, uid=pod.uid, grace=grace))

    # ---- scheduler and nodes

    def tell_group(self, group, phase):
        self._write(Patch(POD_GROUPS, PLACE, group.name, {"status": {"phase": phase}}, "status"))

    def admit(self):
        for group in self.groups():
            if group.object.get("status", {}).get("phase", "") in ("", "Pending"):
                self.tell_group(group, "Inqueue")

    def bind(self):
        for pod in self.pods(lambda pod: not node_of(pod) and not is_going(pod)):
            binding = {"spec": {"nodeName": f"n{index_of(pod) % 2}"}}
            self._write(Patch(PODS, PLACE, pod.name, binding, "binding"))

    def begin(self, pod):
        self._tell_pod(pod, "Running", {"running": {}}, ready=True)

    def end(self, pod, code):
        phase = "Failed" if code else "Succeeded"
        self._tell_pod(pod, phase, {"terminated": {"exitCode": code}})

    def restart_container(self, pod):
        told = pod.object["status"].get("containerStatuses", [{}])[0]
        number = told.get("restartCount", 0) + 1
        self._tell_pod(pod, phase_of(pod), {"running": {}}, ready=True, restarts=number)

    def lose(self, node):
        """Give up a node: what was going on it has gone, and the other pods have failed (docs/design/node.md)."""
        for pod in self.pods(lambda pod: node_of(pod) == node and phase_of(pod) in ("Pending", "Running")):
            if is_going(pod):
                self.delete_pod(pod, grace=0)
            else:
                lost = {"status": {"phase": "Failed", "reason": "NodeLost"}}
                self._write(Patch(PODS, PLACE, pod.name, lost, "status"))

    def sweep(self):
        """Let the pods go that are to end."""
        for pod in self.pods(is_going):
            self.delete_pod(pod, grace=0)

    def _tell_pod(self, pod, phase, state, *, ready=False, restarts=None):
        told = (pod.object["status"].get("containerStatuses") or [{"name": "main"}])[0]
        said = {**told, "state": state, "ready": ready}
        if restarts is not None:
            said["restartCount"] = restarts
        status = {"phase": phase, "containerStatuses": [said]}
        self._write(Patch(PODS, PLACE, pod.name, {"status": status}, "status"))

    # ---- what there is

    def job(self, name):
        found = store.by_keys(JOBS, [f"{PLACE}/{name}"])
        return next(iter(found.values()), None)

    def jobs(self):
        return store.find(JOBS)

    def groups(self):
        return store.find(POD_GROUPS)

    def pods(self, wanted=lambda pod: True):
        return [pod for pod in store.find(PODS) if wanted(pod)]

    def _write(self, write):
        """Write as people and nodes do: what is refused has not happened."""
        try:
            return store.write(write)
        except ApiError:
            return None


def node_of(pod):
    return pod.object["spec"].get("nodeName", "")


def phase_of(pod):
    return pod.object["status"].get("phase", "Pending")


def is_going(pod):
    return "deletionTimestamp" in pod.object["metadata"]


def index_of(pod):
    return int(pod.name.rpartition("-")[2])
