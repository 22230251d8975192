"""Stories of a job: what happens to it, in words, and what is then seen of it."""

from __future__ import annotations

from cluster.store import Delete, Patch, store
from kube.resources import COMMANDS, JOBS, POD_GROUPS, PODS
from tests.jobs import control
from tests.jobs.control import Controller, job, messages, pods, remove, report, state, uids


class Story:
    """One job under a controller.

        Story(controller, clock, policies=[…]).goes('''
            run, fail main-1 3  → phase Restarting; retries 1
            sweep, run          → phase Running; pods main-0 main-1
        ''')

    Before the arrow stands what happens, each a method with its words; a pod goes by its name without the job's, and
    where none is named all are meant. Behind it stands what is seen (`seen`); `says` ends a line, and is a part of the message.
    """

    def __init__(self, controller, clock=None, **spec):
        self.controller, self.clock = controller, clock
        controller.submit(job(**spec))

    def goes(self, text):
        for line in filter(None, map(str.strip, text.splitlines())):
            steps, _, expected = line.partition("→")
            self.pods, self.revision = {*uids().values()}, store.revision()
            for step in filter(None, map(str.strip, steps.split(","))):
                verb, *words = step.split()
                getattr(self, verb)(*words)
            expected, _, words = expected.strip().partition("says ")
            wanted = dict((*each.strip().split(" ", 1), "")[:2] for each in expected.split(";") if each.strip())
            found = self.seen()
            assert {key: found[key] for key in wanted} == wanted, f"{line}: {found}"
            assert words in state()["state"]["message"], line

    def seen(self):
        """All that a line may name: what is new in it is so since the line began."""
        stored = store.get(JOBS, "default", "demo").object
        status, asked = stored["status"], messages("CommandIssued")
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
            "passed": " ".join(self.passed()),
            "pods": " ".join(name.removeprefix("demo-") for name in pods()),
            "anew": " ".join(name.removeprefix("demo-") for name, uid in uids().items() if uid not in self.pods),
            "groups": str(len(store.find(POD_GROUPS))),
            "commands": str(len(store.find(COMMANDS))),
            "asked": asked[-1] if asked else "",
            "executed": str(len(messages("ExecuteAction"))),
            "told": " ".join(messages("PodFailed", "PodEvicted")),
            "going": "yes" if "deletionTimestamp" in stored["metadata"] else "no",
            "kept": str(len(self.controller.state.entries)),
        }

    def passed(self):
        """The phases that the job came to."""
        found = []
        for each in store.changes(self.revision, [JOBS]):
            reached = each.object.get("status", {}).get("state", {}).get("phase")
            if reached and reached not in found[-1:]:
                found.append(reached)
        return found

    # ---- what happens

    def admit(self):
        self.controller.admit()

    def run(self):
        self.controller.run()

    def sweep(self):
        self.controller.sweep()

    def bind(self):
        control.bind()

    def next(self):
        """Another controller takes the place of this one."""
        self.controller = Controller()
        self.controller.settle()

    def wait(self, seconds):
        self.clock.move(float(seconds))
        self.controller.settle()

    def command(self, *actions):
        self.controller.issue(*actions)

    def group(self, phase):
        self.controller.group_is(phase)

    def ungroup(self):
        store.write(Delete(POD_GROUPS, "default", store.find(POD_GROUPS)[0].name))
        self.controller.settle()

    def remove(self):
        """The job is deleted, and something holds it."""
        store.write(Patch(JOBS, "default", "demo", {"metadata": {"finalizers": ["example.com/kept"]}}))
        store.write(Delete(JOBS, "default", "demo"))

    def need(self, successes):
        self.controller.change(minSuccess=int(successes))

    def scale(self, replicas, minimum=None):
        control.resize(int(replicas), **({"minAvailable": int(minimum)} if minimum else {}))
        self.controller.settle()

    def fail(self, *words):
        """Pods fail, with an exit code if the last word is one."""
        code, names = (int(words[-1]), words[:-1]) if words and words[-1].isdigit() else (1, words)
        self.report("Failed", *names, code=code)

    def succeed(self, *names):
        self.report("Succeeded", *names, code=0)

    def starts(self, *names):
        self.report("Running", *names)

    def restarts(self, name, number):
        """The container of a pod was started again so often."""
        self.report("Running", name, containerStatuses=[{"name": "main", "restartCount": int(number)}])

    def report(self, phase, *names, **status):
        report(phase, *(f"demo-{name}" for name in names), **status)
        self.controller.settle()

    def delete(self, *names):
        store.write(*(Delete(PODS, "default", f"demo-{name}") for name in names))
        self.controller.settle()

    def evict(self, *names):
        """Pods are gone at once."""
        remove(*(f"demo-{name}" for name in names))
        self.controller.settle()
