"""Objects of the Kubernetes API for tests: what matters to a test stands in its call, everything else is the builder's.

    pod("p", container(requests={"cpu": "1"}), labels={"app": "x"}, nodeName="n", status={"phase": "Running"})

A keyword that is a field of `metadata` goes there, `status` is the status, and any other keyword is a field of `spec`;
all have the names that the API gives them. What is None is left out.
"""

from kube import resources

METADATA = frozenset(
    {
        "annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName",
        "generation", "labels", "managedFields", "namespace", "ownerReferences", "resourceVersion", "uid",
    }
)  # fmt: skip


def of(kind, name, body=None, /, **fields):
    """An object of any kind. `body` is what it has beside metadata, spec and status, such as the data of a ConfigMap."""
    fields = {key: value for key, value in fields.items() if value is not None}
    metadata = {"name": name, **({"namespace": "default"} if kind.namespaced else {})}
    metadata |= {key: fields.pop(key) for key in METADATA & fields.keys()}
    status = {"status": fields.pop("status")} if "status" in fields else {}
    spec = {"spec": fields} if fields else {}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **spec, **status, **(body or {})}


def owner(obj, **fields):
    """The reference to an object as the controller of another."""
    metadata = obj["metadata"]
    reference = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
    }
    return {**reference, "controller": True, **fields}


def container(name="main", *, requests=None, limits=None, **fields):
    amounts = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    needed = {"resources": amounts} if amounts else {}
    return {"name": name, "image": "busybox:1", "command": ["true"], **needed, **fields}


def pod(name="p", *containers, **fields):
    return of(resources.PODS, name, containers=list(containers) or [container()], **fields)


def template(*containers, labels=None, annotations=None, **spec):
    """The template of a pod, in a task or a Job."""
    metadata = {key: value for key, value in (("labels", labels), ("annotations", annotations)) if value}
    spec = {"restartPolicy": "Never", "containers": list(containers) or [container()], **spec}
    return {"metadata": metadata, "spec": spec} if metadata else {"spec": spec}


def task(name="main", replicas=1, *containers, pod=None, **fields):
    """A task of a job; `pod` has fields of its pods' spec."""
    return {"name": name, "replicas": replicas, "template": template(*containers, **(pod or {})), **fields}


def job(name="demo", *tasks, **fields):
    """A Volcano job as a person writes it, without its defaults."""
    return of(resources.JOBS, name, tasks=list(tasks) or [task()], **fields)


def pod_group(name="g", minimum=1, **fields):
    return of(resources.POD_GROUPS, name, minMember=minimum, **fields)


def queue(name="team", state="Open", **fields):
    """A queue in a state; "" is one that nobody has seen yet."""
    return of(resources.QUEUES, name, **({"status": {"state": state}} if state else {}), **fields)


def node(name="n", *, ready="True", allocatable=None, **fields):
    """A node; `ready` is the status of its condition Ready, `allocatable` what it has beside 4 CPUs, 8Gi and 110 pods."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110", **(allocatable or {})}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": ready}]}
    return of(resources.NODES, name, **{"status": status, **fields})


def namespace(name="default", **fields):
    return of(resources.NAMESPACES, name, **{"status": {"phase": "Active"}, **fields})


def config_map(name, namespace="default", **data):
    return of(resources.CONFIGMAPS, name, {"data": data}, namespace=namespace)
