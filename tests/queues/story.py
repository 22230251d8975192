"""Stories of queues: what happens to them under their controller, in words, and what is then seen of them."""

from __future__ import annotations

from cluster.runtime import registry
from cluster.store import Create, Delete, Patch, store
from kube.intake_times import SHUT_SINCE
from kube.resources import COMMANDS, EVENTS, POD_GROUPS, PODS, QUEUES
from proof.modes.mode import Runner
from queues import states
from queues.controller import PAUSE_MS, QueueConsumer
from queues.states import CLOSED_BY_PARENT_ANNOTATION
from tests import builders


class Controller(Runner):
    """The queue controller, run by hand on the store's clock."""

    def __init__(self, clock):
        super().__init__(registry.get("queues"), 0, QueueConsumer())
        self.clock = clock

    def settle(self):
        while self.step():
            pass

    def later(self):
        """Let things settle, with time for every pause."""
        self.settle()
        self.clock.move(PAUSE_MS / 1000)
        self.settle()


def queue(name, parent="root", state="Open"):
    found = states.standing(state, "", {})
    status = {"state": found.state.value, "reason": found.reason, "message": found.message}
    store.write(Create(QUEUES, builders.of(QUEUES, name, weight=1, parent=parent, state=state, status=status)))


def group(name, queue="default", phase="Pending", **fields):
    store.write(Create(POD_GROUPS, builders.pod_group(name, queue=queue, status={"phase": phase}, **fields)))


def order(action, name="default", *, uid=None, **metadata):
    """Store a Command as vcctl does: in the namespace `default`, for the queue that has the name now."""
    uid = store.get(QUEUES, "", name).uid if uid is None else uid
    target = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "name": name, "uid": uid}
    notes = {"ui.volcano.sh/created-by": "olga"}
    about = {"generateName": f"{name}-", "namespace": "default", "annotations": notes, **metadata}
    return store.write(Create(COMMANDS, {"metadata": about, "action": action, "target": target}))[0]


def status(name="default"):
    return store.get(QUEUES, "", name).object["status"]


def wished(name="default"):
    return store.get(QUEUES, "", name).object["spec"].get("state", "")


def shut_since(name="default"):
    return store.get(QUEUES, "", name).object["metadata"].get("annotations", {}).get(SHUT_SINCE)


class Story:
    """Queues under a controller.

        Story(controller).goes('''
            queue team, queue sub team, group a sub Running, later → team Open; sub Open
            wish team Closed, later → team Closing says 1 unfinished pod group is left; sub Closing
        ''')

    Before the arrow stands what happens, each a method with its words, behind it what is seen of queues: the state and
    what the message says; a wish, a note of Volcano, a number of the status; and of `told` the events of default.
    """

    def __init__(self, controller):
        self.controller = controller

    def goes(self, text):
        for line in filter(None, map(str.strip, text.splitlines())):
            steps, _, seen = line.partition("→")
            for step in filter(None, map(str.strip, steps.split(","))):
                verb, *words = step.split()
                getattr(self.controller if verb in ("settle", "later") else self, verb)(*words)
            for each in filter(None, map(str.strip, seen.split(";"))):
                about, _, said = each.partition(" says ")
                name, *wanted = about.split(" ", 1)
                found = self.seen(name, *wanted)
                assert [found] == (wanted or [""]), f"{line}: {each}: {found}"
                assert not said or said in status(name)["message"], f"{line}: {each}: {status(name)}"
        return self

    def seen(self, name, wanted=""):
        """What a queue is, or in the terms of what is wanted of it: its wish, its note or a number."""
        if name == "told":
            found = [each.object for each in store.find(EVENTS, order="created")]
            return " ".join(each["reason"] for each in found if each["involvedObject"]["name"] == "default")
        key, _, _ = wanted.partition("=")
        if "=" not in wanted:
            return status(name)["state"]
        stored = store.get(QUEUES, "", name).object
        notes = stored["metadata"].get("annotations", {})
        values = {"wish": wished(name), "note": notes.get(CLOSED_BY_PARENT_ANNOTATION), **status(name)}
        return f"{key}={values.get(key, 0)}"

    # ---- what happens

    def next(self):
        self.controller = Controller(self.controller.clock)
        self.controller.settle()

    def wait(self, seconds):
        self.controller.clock.move(float(seconds))

    def queue(self, *about):
        queue(*about)

    def wishless(self, name, parent="root", state="", by_parent=None):
        """A queue that keeps no wish, as Volcano's."""
        notes = {CLOSED_BY_PARENT_ANNOTATION: by_parent} if by_parent else None
        state = "" if state == "new" else state
        store.write(Create(QUEUES, builders.queue(name, state, weight=1, parent=parent, annotations=notes)))

    def group(self, name, queue="default", phase="Pending"):
        group(name, queue, phase)

    def phase(self, name, phase):
        store.write(Patch(POD_GROUPS, "default", name, {"status": {"phase": phase}}))

    def ungroup(self, name):
        store.write(Delete(POD_GROUPS, "default", name))

    def wish(self, name, state):
        store.write(Patch(QUEUES, "", name, {"spec": {"state": state}}))

    def command(self, action, name="default"):
        order(f"{action}Queue", name)
        self.controller.settle()
        assert store.find(COMMANDS) == []

    def pod(self, name, queue, cpu="1", node="n", phase="Running"):
        main = builders.container(requests={"cpu": cpu, "memory": "1Gi"})
        notes = {"volcano.sh/queue-name": queue}
        node = None if node == "nowhere" else node
        made = builders.pod(name, main, annotations=notes, nodeName=node, status={"phase": phase})
        store.write(Create(PODS, made))
