"""A cluster as far as rules ask about it, and the way of an object through its rules."""

from __future__ import annotations

import copy
from itertools import count

from cluster.api import admission
from kube import resources

UID = "6f1b0d34-0000-4000-8000-000000000001"


class Known:
    """The objects that exist."""

    def __init__(self, *objects):
        self.objects = {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in objects}
        self.accounts = {}
        self.numbers = count(1)

    def namespace(self, name):
        found = self.objects.get(("Namespace", "", name), {})
        return {"metadata": {"name": name}, "status": {"phase": "Active"}} | found

    def priority_class(self, name):
        return self.objects.get(("PriorityClass", "", name))

    def priority_classes(self):
        return [found for (kind, _, _), found in self.objects.items() if kind == "PriorityClass"]

    def service_account(self, namespace, name):
        return self.objects.get(("ServiceAccount", namespace, name))

    def queue(self, name):
        return self.objects.get(("Queue", "", name))

    def queue_children(self, name):
        queues = [found for (kind, _, _), found in self.objects.items() if kind == "Queue"]
        return [found for found in queues if found["spec"].get("parent") == name]

    def keeps_wishes(self):
        return True

    def listed(self, resource, namespace):
        return [o for (kind, place, _), o in self.objects.items() if (kind, place) == (resource.kind, namespace)]

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


def pod_spec(**fields):
    return {"containers": [{"name": "main", "image": "busybox:1", "command": ["true"]}], **fields}


def pod(name="p", **fields):
    return {"metadata": {"name": name, "namespace": "default"}, "spec": pod_spec(**fields)}


def priority_class(name, value, **fields):
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **fields}


def queue(name, state="Open", parent="root"):
    return {"kind": "Queue", "metadata": {"name": name}, "spec": {"parent": parent}, "status": {"state": state}}


def job(name="pi", **spec):
    template = {"spec": pod_spec(restartPolicy="Never")}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": template, **spec}}


def indexed(**spec):
    return job(completionMode="Indexed", **{"completions": 4, "parallelism": 2, **spec})


def of(kind, **fields):
    """Return a small object of a kind."""
    metadata = {"name": "x", **({"namespace": "default"} if kind.namespaced else {})}
    return {"metadata": metadata, **fields}


JOBS, PODS = resources.BATCH_JOBS, resources.PODS
