"""Stories of queues: what happens to them under their controller, in words, and what is then seen of them."""

from cluster.runtime import registry
from cluster.store import Create, Delete, Patch, store
from kube.resources import COMMANDS, EVENTS, POD_GROUPS, PODS, QUEUES
from kube.volcano.intake_times import SHUT_SINCE
from proof.modes.mode import Runner
from queues.controller import PAUSE_MS, QueueConsumer
from queues.rules import states
from queues.rules.states import CLOSED_BY_PARENT_ANNOTATION
from tests import builders
from tests.jobs.control import command
from tests.jobs.story import Script


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
    found = states.next_state(state, "", {})
    status = {"state": found.state.value, "reason": found.reason, "message": found.message}
    store.write(Create(QUEUES, builders.of(QUEUES, name, weight=1, parent=parent, state=state, status=status)))


def group(name, queue="default", phase="Pending", **fields):
    store.write(Create(POD_GROUPS, builders.pod_group(name, queue=queue, status={"phase": phase}, **fields)))


def order(action, name="default", **fields):
    return command(action, name, kind=QUEUES, by="olga", **fields)


def status(name="default"):
    return store.get(QUEUES, "", name).object["status"]


def wished(name="default"):
    return store.get(QUEUES, "", name).object["spec"].get("state", "")


def shut_since(name="default"):
    return store.get(QUEUES, "", name).object["metadata"].get("annotations", {}).get(SHUT_SINCE)


class Story(Script):
    """Queues under a controller.

        Story(controller).goes('''
            queue team, queue sub team, group a sub Running, later → team Open; sub Open
            wish team Closed, later → team Closing; sub Closing; says 1 unfinished pod group is left
        ''')

    Seen are the states of queues by their names, a wish, a note of Volcano or a number of a status as `team.wish`, and
    by `told` what events said of the queue default; `says` ends a line and is a part of what the statuses say.
    """

    def __init__(self, controller):
        self.controller = controller

    def goes(self, text):
        super().goes(text)
        return self

    def message(self):
        return " ".join(each.object.get("status", {}).get("message", "") for each in store.find(QUEUES))

    def seen(self):
        events = [each.object for each in store.find(EVENTS, order="created")]
        found = {"told": " ".join(each["reason"] for each in events if each["involvedObject"]["name"] == "default")}
        for each in store.find(QUEUES):
            status, notes = each.object.get("status", {}), each.object["metadata"].get("annotations", {})
            found[each.name] = status.get("state", "")
            counts = dict.fromkeys(("pending", "inqueue", "running", "unknown"), 0)
            intent = {"wish": each.object["spec"].get("state", ""), "note": notes.get(CLOSED_BY_PARENT_ANNOTATION)}
            about = counts | status | intent
            found |= {f"{each.name}.{key}": str(value) for key, value in about.items()}
        return found

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
