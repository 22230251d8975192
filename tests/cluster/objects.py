"""Objects in words: `pod spec.nodeName=n; !spec.containers` is a plain pod, what is otherwise in it, and what it lacks.

And functions whose answers stand in golden files: a line is what one is given, behind the arrow is what it says.
"""

import copy

import yaml

from kube import resources
from kube.errors import ApiError
from kube.resources import BATCH_JOBS, PODS
from tests import builders
from tests.kube import samples


def changed(obj, path, value):
    """Return a copy of obj with one field changed; `DROP` takes it away."""
    copied = copy.deepcopy(obj)
    *above, last = path.split(".")
    parent = copied
    for name in above:
        parent = parent[int(name)] if isinstance(parent, list) else parent.setdefault(name, {})
    if isinstance(parent, list):
        parent[int(last)] = value
    elif value is DROP:
        parent.pop(last, None)
    else:
        parent[last] = value
    return copied


DROP = object()


def pod(name="p", **spec):
    """A pod of one container; a field of its spec may replace that."""
    return builders.of(PODS, name, **{"containers": [builders.container()], **spec})


def job(name="pi", **spec):
    return builders.of(BATCH_JOBS, name, **{"template": builders.template(), **spec})


def indexed(**spec):
    return job(completionMode="Indexed", **{"completions": 4, "parallelism": 2, **spec})


def of(kind, **fields):
    return builders.of(kind, "x", fields)


PLAIN = {
    "pod": pod("x"), "job": job("x"), "counted": job("x", parallelism=2, completions=4),
    "indexed": changed(indexed(), "metadata.name", "x"),
    "class": of(resources.PRIORITY_CLASSES, value=1), "secret": of(resources.SECRETS), "map": of(resources.CONFIGMAPS),
    "service": of(resources.SERVICES, spec={"ports": [{"port": 80}]}), "endpoints": of(resources.ENDPOINTS),
    "claim": of(resources.CLAIMS, spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
    "policy": of(resources.NETWORK_POLICIES, spec={}), "budget": of(resources.DISRUPTION_BUDGETS, spec={}),
    "quota": of(resources.RESOURCE_QUOTAS, spec={"hard": {}}), "limits": of(resources.LIMIT_RANGES, spec={"limits": []}),
    "event": of(resources.EVENTS, involvedObject={"kind": "Pod", "name": "p", "namespace": "default"}),
    "report": of(
        resources.EVENTS_VIEW, regarding={"kind": "Pod", "name": "p", "namespace": "default"}, note="It was looked at.",
        eventTime="2026-01-01T00:00:00.000001Z", reportingController="example.com/agent", reportingInstance="agent-1",
        action="Look", reason="New", type="Normal",
    ),
    "node": of(resources.NODES, spec={}), "lease": of(resources.LEASES, spec={}), "account": of(resources.SERVICE_ACCOUNTS),
    "hypernode": of(resources.HYPER_NODES, spec={"tier": 1, "members": []}), "group": builders.pod_group("x"),
    "vcjob": builders.job("x", builders.task("work"), queue="default", minAvailable=1),
    "cronjob": builders.of(resources.CRON_JOBS, "x", schedule="0 2 * * *", jobTemplate={"spec": builders.job()["spec"]}),
    "flow": builders.of(resources.JOB_FLOWS, "x", flows=[{"name": "a"}]), "template": of(resources.JOB_TEMPLATES, spec={}),
    "command": of(resources.COMMANDS), "crontab": samples.cron_tab("x"), "definition": samples.CRON_TAB,
    "queue": builders.queue("x", parent="root"), "namespace": builders.namespace(),
}  # fmt: skip


def parsed(text):
    """Return the kind and the object that a text describes."""
    word, _, rest = text.partition(" ")
    plain = PLAIN[word]
    return resources.by_kind(plain["apiVersion"], plain["kind"]), otherwise(copy.deepcopy(plain), rest)


def otherwise(obj, text):
    for each in filter(None, text.split("; ")):
        path, _, value = each.partition("=")
        obj = changed(obj, path[1:], DROP) if path[0] == "!" else changed(obj, path, yaml.safe_load(value))
    return obj


def at(obj, path):
    for name in path.split("."):
        obj = obj[int(name)] if isinstance(obj, list) else (obj or {}).get(name)
    return obj


def as_yaml(value):
    """Return a value as YAML has it in one line; what YAML does not know as Python says it."""
    if not isinstance(value, dict | list | str | int | float | None):
        return str(value)
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True)
    return value if value and isinstance(value, str) else text.removesuffix("...\n").strip()


def of_values(function, errors=ApiError):
    """Give a function the items of a line as YAML reads them; an error of this kind is an answer, too."""

    def says(line):
        try:
            return [as_yaml(function(*yaml.safe_load(f"[{line}]")))]
        except errors as error:
            return [f"{type(error).__name__}: {error}"]

    return says


def of_objects(function):
    """Give a function the objects of a line, as tests/cluster/objects.py has them, each with its kind, with `|` between them."""
    return lambda line: [as_yaml(function(*map(parsed, line.split(" | "))))]
