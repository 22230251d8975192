"""A cluster as far as rules ask about it, and the way of an object through its rules."""

from __future__ import annotations

import copy
from itertools import count

from cluster.api import admission
from kube import resources
from tests import builders

UID = "6f1b0d34-0000-4000-8000-000000000001"


class Known:
    """The objects that exist."""

    def __init__(self, *objects):
        self.objects = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in objects}
        self.accounts, self.numbers = {}, count(1)

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

    def groups_in(self, queue):
        return {}

    def keeps_wishes(self):
        return True

    def listed(self, resource, namespace):
        return [found for found in self._all(resource.kind) if found["metadata"]["namespace"] == namespace]

    def claim(self, namespace, name):
        return self.objects.get(("PersistentVolumeClaim", namespace, name))

    def needs_commands(self):
        return True

    def runs_images(self):
        return False

    def free_name(self, resource, namespace, base):
        return f"{base}{next(self.numbers):05}"


def admit(resource, obj, old=None, *known, warnings=False):
    """Take an object through the whole chain, as the door does."""
    shaped = admission.shape(resource, obj, old)
    if not shaped.causes:
        shaped.object["metadata"].setdefault("uid", UID)
    return admission.judge(shaped, old, Known(*known), warnings=warnings)


def admitted(resource, obj, *known):
    """Return a new object as it is stored."""
    return admit(resource, obj, None, *known).checked()


def causes(resource, obj, old=None, *known):
    """Return what is wrong, as (field, reason)."""
    return [(cause.field, cause.reason) for cause in admit(resource, obj, old, *known).causes]


def messages(resource, obj, old=None, *known):
    """Return what is wrong, as texts."""
    return [str(cause) for cause in admit(resource, obj, old, *known).causes]


def changed(obj, path, value):
    """Return a copy of obj with one field changed; `DROP` takes it away."""
    copied = copy.deepcopy(obj)
    *above, last = path.split(".")
    place = copied
    for name in above:
        place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
    if isinstance(place, list):
        place[int(last)] = value
    elif value is DROP:
        place.pop(last, None)
    else:
        place[last] = value
    return copied


DROP = object()


def pod(name="p", **spec):
    """A pod of one container; a field of its spec may replace that."""
    return builders.of(PODS, name, **{"containers": [builders.container()], **spec})


def priority_class(name, value, **fields):
    return builders.of(resources.PRIORITY_CLASSES, name, {"value": value, **fields})


def queue(name, state="Open", parent="root"):
    return builders.queue(name, state, parent=parent)


def job(name="pi", **spec):
    return builders.of(JOBS, name, **{"template": builders.template(), **spec})


def indexed(**spec):
    return job(completionMode="Indexed", **{"completions": 4, "parallelism": 2, **spec})


def of(kind, **fields):
    """Return a small object of a kind, with its fields beside the metadata."""
    return builders.of(kind, "x", fields)


JOBS, PODS = resources.BATCH_JOBS, resources.PODS
