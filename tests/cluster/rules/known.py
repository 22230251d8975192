"""A cluster as far as rules ask about it, and the judgement of objects in the notation of tests/golden/rules.

pod spec.nodeName=n; !spec.containers           a plain object (`PLAIN`), what is otherwise in it, and what it lacks
job + spec.suspend=true | spec.completions=5    an object that is stored, what came to it since, and an update of it
status job | status.active=-1                   the update as a write to the status
pod > spec.priority status.qosClass             what is stored of it
with queue metadata.name=team                   what there is beside it, for the rest of the block
warn service                                    what people are warned of, if it is taken
"""

from itertools import count

from cluster.api import admission
from tests.cluster.objects import as_yaml, at, otherwise, parsed

UID = "6f1b0d34-0000-4000-8000-000000000001"


class ClusterStub:
    def __init__(self, *objects):
        self.objects = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in objects}
        self.accounts, self.numbers = {}, count(1)
        self.keeps_wishes = self.needs_commands = lambda: True
        self.runs_images, self.groups_in = lambda: False, lambda queue: {}

    def _all(self, kind):
        return [found for (name, _, _), found in self.objects.items() if name == kind]

    def namespace(self, name):
        found = self.objects.get(("Namespace", "", name), {})
        return {"metadata": {"name": name}, "status": {"phase": "Active"}} | found

    def priority_class(self, name):
        return self.objects.get(("PriorityClass", "", name))

    def priority_classes(self):
        return self._all("PriorityClass")

    def service_account(self, namespace, name):
        return self.objects.get(("ServiceAccount", namespace, name))

    def queue(self, name):
        return self.objects.get(("Queue", "", name))

    def queue_children(self, name):
        return [found for found in self._all("Queue") if found.get("spec", {}).get("parent") == name]

    def listed(self, resource, namespace):
        return [found for found in self._all(resource.kind) if found["metadata"]["namespace"] == namespace]

    def claim(self, namespace, name):
        return self.objects.get(("PersistentVolumeClaim", namespace, name))

    def free_name(self, resource, namespace, base):
        return f"{base}{next(self.numbers):05}"


def admit(resource, obj, old=None, *existing, warnings=False):
    """Take an object through the whole chain, as the door does."""
    shaped = admission.shape(resource, obj, old)
    if not shaped.causes:
        shaped.object["metadata"].setdefault("uid", UID)
    return admission.judge(shaped, old, ClusterStub(*existing), warnings=warnings)


class Judge:
    def __init__(self):
        self.beside = []

    def says(self, line):
        verb, _, rest = line.partition(" ")
        verb, rest = (verb, rest) if verb in ("with", "status", "warn") else ("", line)
        rest, _, paths = rest.partition(" > ")
        written, *changes = rest.split(" | ")
        first, _, since = written.partition(" + ")
        kind, obj = parsed(first)
        if verb == "with":
            self.beside.append(obj)
            return []
        old = otherwise(admit(kind, obj, None, *self.beside).checked(), since) if changes else None
        for change in changes:
            obj = otherwise(old, change)
        if verb == "status":
            found = admission.judge_status(admission.shape(kind, obj, old), old, ClusterStub())
        else:
            found = admit(kind, obj, old, *self.beside, warnings=verb == "warn")
        if found.error or found.causes:
            return str(found.error or "\n".join(map(str, found.causes))).splitlines()
        if verb != "status":
            again = admit(kind, found.object, found.object, *self.beside)
            assert (again.causes, again.object) == ((), found.object), "what is stored is taken again as it is"
        values = [f"{path}: {as_yaml(at(found.object, path))}" for path in paths.split()]
        return values or list(found.warnings) or ["taken"]
