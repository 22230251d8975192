"""Stories: what happens, in words, and what is then seen; of a job here, of flows and cron jobs beside their tests."""

from cluster import access, api, clock
from cluster.consumers import consumer
from cluster.store import Create, Delete, Patch, store
from jobs.controller import facts, plan, plugin_objects
from jobs.controller.expectations import PendingWrites
from jobs.lifecycle import causes
from kube.resources import COMMANDS, EVENTS, JOBS, LIMIT_RANGES, POD_GROUPS, PODS, RESOURCE_QUOTAS
from proof.modes.mode import others
from tests import statuses
from tests.builders import of, pod
from tests.jobs import control
from tests.jobs.control import Controller, job, messages, pods, remove, report, state, uids


class Script:
    """What happens, a line a step, and what is seen then: `fail main-1 3, sweep → phase Restarting; says Exit 3`.

    Before the arrow stands what happens, each a method with its words. Behind it stands what is seen (`seen`); `says` ends a
    line and is a part of the object's message (`message`), `tells` of that of an event since the line began.
    """

    def goes(self, text):
        for line in filter(None, map(str.strip, text.splitlines())):
            steps, _, expected = line.partition("→")
            self.revision, self.events = store.revision(), len(messages())
            self.begins()
            for step in filter(None, map(str.strip, steps.split(","))):
                self.does(step)
            self.ends()
            assert (statuses.dropped(self.revision), line) == ([], line)
            expected, _, tells = expected.partition("tells ")
            expected, _, says = expected.partition("says ")
            wanted = dict((*each.strip().split(" ", 1), "")[:2] for each in expected.split(";") if each.strip())
            found = self.seen() if wanted else {}
            found = {key: found[key] for key in wanted}
            assert found == wanted, f"{line}: {found}"
            assert not says or says in self.message(), f"{line}: {self.message()}"
            new = messages()[self.events :]
            assert not tells or any(tells in each for each in new), f"{line}: {new}"

    def begins(self):
        pass

    ends = begins

    def does(self, step):
        """What is no word of the story is one of its controller."""
        verb, *words = step.split()
        getattr(self if hasattr(self, verb) else self.controller, verb)(*words)

    def reasons(self):
        """The reasons of the events since the line began, and how many of these are warnings."""
        events = [event.object for event in store.find(EVENTS, order="created")][self.events :]
        warnings = [each for each in events if each["type"] == "Warning"]
        return {"reasons": " ".join(each["reason"] for each in events), "warnings": str(len(warnings))}


class Story(Script):
    """One job under a controller.

        Story(controller, patch, clock, policies=[…]).goes('''
            run, fail main-1 3      → phase Restarting; retries 1
            sweep, run              → phase Running; pods main-0 main-1
            !evict main-1, next     → anew main-1
        ''')

    A pod goes by its name without the job's, and where none is named all are meant. The controller takes in at once what
    happens, but for what has a `!`.
    """

    is_watched = True

    def __init__(self, controller, patch, clock=None, **spec):
        self.controller, self.patch, self.clock, self.spec = controller, patch, clock, spec
        controller.submit(job(**spec))

    def begins(self):
        self.pods = {*uids().values()}

    def does(self, step):
        self.is_watched = not step.startswith("!")
        super().does(step.removeprefix("!"))

    def message(self):
        """What the job says of itself, and what is to happen next."""
        found = state()["state"]
        return f"{found['message']} {found.get('next', '')}".rstrip()

    def seen(self):
        """All that a line may name: what is new in it is so since the line began."""
        stored = store.get(JOBS, "default", "demo").object
        metadata, status = stored["metadata"], stored["status"]
        commands, kinds = messages("CommandIssued"), plugin_objects.RESOURCES.values()
        numbers = ["pending", "running", "succeeded", "failed", "unknown", "terminating", "minAvailable"]
        return {
            **{name: str(status.get(name, 0)) for name in numbers},
            "phase": status["state"]["phase"],
            "reason": status["state"].get("reason", ""),
            "retries": str(status.get("retryCount", 0)),
            "version": str(status.get("version", 0)),
            "duration": status.get("runningDuration", ""),
            "conditions": " ".join(each["status"] for each in status["conditions"]),
            "exitCodes": " ".join(map(str, status.get("exitCodes", ()))),
            "tasks": " ".join(
                f"{name} {_listed(of['phase'])}" for name, of in status.get("taskStatusCount", {}).items()
            ),
            "controlled": " ".join(status.get("controlledResources", ())),
            "causes": causes.in_status(status).sentence,
            "passed": " ".join(self.passed()),
            "pods": " ".join(name.removeprefix("demo-") for name in pods()),
            "anew": " ".join(name.removeprefix("demo-") for name, uid in uids().items() if uid not in self.pods),
            "marked": " ".join(self.marked()),
            "groups": str(len(store.find(POD_GROUPS))),
            "group": " ".join(_group(each.object["spec"]) for each in store.find(POD_GROUPS)),
            "products": " ".join(
                sorted(kind.kind for kind in kinds for each in store.find(kind, owner=metadata["uid"]))
            ),
            "commands": str(len(store.find(COMMANDS))),
            "issued": commands[-1] if commands else "",
            "executed": str(len(messages("ExecuteAction"))),
            "reported": " ".join(messages("PodFailed", "PodEvicted")),
            **self.reasons(),
            "going": "yes" if "deletionTimestamp" in metadata else "no",
            "finalizers": " ".join(metadata.get("finalizers", ())),
            "kept": str(len(self.controller.state.entries)) if self.controller.state else "",
        }

    def passed(self):
        found = []
        for each in store.changes(self.revision, [JOBS]):
            reached = each.object.get("status", {}).get("state", {}).get("phase")
            if reached and reached not in found[-1:]:
                found.append(reached)
        return found

    def marked(self):
        """The pods that went with the mark of the controller."""
        gone = [each for each in store.changes(self.revision, [PODS]) if each.verb == "DELETED"]
        marks = [each.object["metadata"].get("annotations", {}).get(facts.OUT_OF_SYNC) for each in gone]
        return sorted(each.name.removeprefix("demo-") for each, mark in zip(gone, marks, strict=True) if mark == "true")

    # ---- everybody

    def rest(self):
        """Everybody does what is to be done, until nothing is."""
        before = None
        while store.revision() != before:
            before = store.revision()
            self.controller.settle()
            self.controller.sweep()
            self.controller.admit()
            control.bind()
            if waiting := [pod.name for pod in store.find(PODS) if pod.object["status"]["phase"] == "Pending"]:
                report("Running", *waiting)
            self.controller.settle()

    # ---- the controller

    def settle(self):
        if self.is_watched:
            self.controller.settle()

    def next(self):
        self.controller = Controller()
        self.controller.settle()

    def crash(self):
        """The controller fails within the transaction of its next step."""

        def killed(keys):
            raise ConnectionError("killed within the transaction")

        with self.patch.context() as patch:
            patch.setattr(self.controller, "_drop_timers", killed)
            try:
                self.controller.step()
            except ConnectionError:
                return
        raise AssertionError("it did not come to that")

    def meanwhile(self, *words):
        """Something happens between the next plan that touches pods and its commit."""
        plan, happens = self.controller.consumer.plan, [" ".join(words)]

        def planned(*args):
            found = plan(*args)
            if happens and any(write.resource is PODS for group in found.groups for write in group.writes):
                with others():
                    self.does(f"!{happens.pop()}")
            return found

        self.patch.setattr(self.controller.consumer, "plan", planned)

    def owe(self):
        """The controller waits for a write of its own to come back."""
        self.controller.state.sent["default/demo"] = PendingWrites(
            clock.milliseconds(), frozenset({store.revision() + 1000})
        )

    def batch(self, size):
        self.patch.setattr(consumer, "BATCH", int(size))

    def room(self, size):
        """So many writes fit in a round."""
        self.patch.setattr(plan, "ROOM", int(size))
        self.patch.setattr(plan.reconcile, "__kwdefaults__", {"requests": (), "room": int(size)})

    def wait(self, seconds):
        self.clock.move(float(seconds))
        self.settle()

    # ---- people

    def command(self, *actions):
        for action in actions:
            control.command(action.strip("-"))
        self.settle()

    def recall(self):
        store.write(*(Delete(COMMANDS, "default", each.name) for each in store.find(COMMANDS)))

    def remove(self):
        """The job is deleted, and something holds it."""
        store.write(Patch(JOBS, "default", "demo", {"metadata": {"finalizers": ["example.com/kept"]}}))
        store.write(Delete(JOBS, "default", "demo"))

    def again(self):
        """The job is deleted with its pods, and another of its name is made."""
        store.write(Delete(JOBS, "default", "demo"))
        remove(*pods())
        self.settle()
        self.controller.submit(job(**self.spec))

    def other(self):
        store.write(Create(JOBS, job("other")))
        self.settle()

    def alone(self):
        store.write(Delete(JOBS, "default", "other"))
        self.settle()

    def need(self, successes):
        self.change(minSuccess=int(successes))

    def least(self, minimum):
        self.change(minAvailable=int(minimum))

    def change(self, **spec):
        store.write(Patch(JOBS, "default", "demo", {"spec": spec}))
        self.settle()

    def scale(self, replicas, minimum=None):
        control.resize(int(replicas), **({"minAvailable": int(minimum)} if minimum else {}))
        self.settle()

    def hold(self, name):
        store.write(Create(PODS, pod(f"demo-{name}", nodeName="n")))
        self.settle()

    def rival(self):
        api.create(access.SYSTEM, PODS, pod("rival"))

    def quota(self, hard=""):
        """Only so much of something is allowed, or as much as anybody likes."""
        name, _, amount = hard.partition("=")
        wanted, found = of(RESOURCE_QUOTAS, "q", hard={name: amount}), store.find(RESOURCE_QUOTAS)
        made = Patch(RESOURCE_QUOTAS, "default", "q", wanted) if found else Create(RESOURCE_QUOTAS, wanted)
        store.write(made if hard else Delete(RESOURCE_QUOTAS, "default", "q"))
        self.settle()

    def limit(self, bound=""):
        """What a container asks for of CPU is bounded so, or no more."""
        name, _, amount = bound.partition("=")
        limits = [{"type": "Container", name: {"cpu": amount}}]
        made = Create(LIMIT_RANGES, of(LIMIT_RANGES, "l", limits=limits))
        store.write(made if bound else Delete(LIMIT_RANGES, "default", "l"))
        self.settle()

    # ---- the scheduler

    def run(self):
        """The job is let in and its pods run."""
        self.controller.admit()
        self.starts()

    def bind(self):
        control.bind()

    def group(self, phase, reason="", *words):
        """The group is in a phase, and why its pods wait, if they do."""
        waits = {"type": "Unschedulable", "status": "True", "reason": reason, "message": " ".join(words)}
        control.group_is(phase, *[waits] * bool(reason))
        self.settle()

    def ungroup(self):
        store.write(Delete(POD_GROUPS, "default", store.find(POD_GROUPS)[0].name))
        self.settle()

    # ---- pods and their nodes

    def fail(self, *words):
        """Pods fail, with an exit code if the last word is one."""
        code, names = (int(words[-1]), words[:-1]) if words and words[-1].isdigit() else (1, words)
        self.report("Failed", *names, code=code)

    def succeed(self, *names):
        self.report("Succeeded", *names, code=0)

    def starts(self, *names):
        self.report("Running", *names)

    def lack(self):
        """A ConfigMap that all pods need is not there."""
        waiting = {"reason": "CreateContainerConfigError", "message": 'configmap "c" not found'}
        self.report("Pending", containerStatuses=[{"name": "main", "state": {"waiting": waiting}}])

    def restarts(self, name, number):
        """The container of a pod was started again so often."""
        self.report("Running", name, containerStatuses=[{"name": "main", "restartCount": int(number)}])

    def report(self, phase, *names, **status):
        report(phase, *(f"demo-{name}" for name in names), **status)
        self.settle()

    def delete(self, *names):
        store.write(*(Delete(PODS, "default", name) for name in self.named(names)))
        self.settle()

    def evict(self, *names):
        remove(*self.named(names))
        self.settle()

    def named(self, names):
        return [name if name == "rival" else f"demo-{name}" for name in names] or pods()

    def lose(self):
        """The nodes are lost: what was going there has gone, and the other pods that had not ended have failed."""
        for each in store.find(PODS):
            if each.object["metadata"].get("deletionTimestamp"):
                remove(each.name)
            elif each.object["status"]["phase"] in ("Pending", "Running"):
                report("Failed", each.name, reason="NodeLost")
        self.settle()

    def drop(self, plural):
        (kind,) = (each for each in plugin_objects.RESOURCES.values() if each.plural == plural)
        found = [each.name for each in store.find(kind, namespace="default") if each.name.startswith("demo")]
        store.write(*(Delete(kind, "default", name) for name in found))
        self.settle()


def _listed(counts):
    return ",".join(f"{name}={number}" for name, number in sorted(counts.items()))


def _group(spec):
    return f"{spec['minMember']} {_listed(spec['minTaskMember'])} pods={spec['minResources'].get('pods', '0')}"
