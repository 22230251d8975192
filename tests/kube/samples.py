"""JSON of any shape, and definitions as people write them: that of Kubernetes' handbook, and others after well-known projects."""

from copy import deepcopy

import yaml
from hypothesis import strategies as st

from kube import resources
from tests.builders import of
from tests.tables import GOLDEN

TEXT, INTEGER = {"type": "string"}, {"type": "integer"}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXTS = {"type": "array", "items": TEXT}


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=3)


def json_values(keys, scalars=SCALARS, leaves=10):
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=leaves
    )


def deep(levels, value=(), key="a"):
    value = value or {}
    for _ in range(levels):
        value = {key: value}
    return value


def objects(*required, **properties):
    return {"type": "object", **({"required": list(required)} if required else {}), "properties": properties}


def keyed(*keys, items):
    words = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {"type": "array", **words, "items": items}


def version(name="v1", *, schema=None, served=True, storage=True, **more):
    schema = deepcopy(schema or objects(spec=ANYTHING))
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(
    plural="crontabs", group="stable.example.com", kind="CronTab", *, versions=None, scope="Namespaced", **names
):
    names = {"plural": plural, "kind": kind, **names}
    spec = {"group": group, "scope": scope, "names": names, "versions": versions or [version()]}
    return of(resources.CUSTOM_RESOURCE_DEFINITIONS, f"{plural}.{group}", **spec)


def cron_tab(name="my-cron", namespace="default", **spec):
    metadata, spec = {"name": name, "namespace": namespace}, {"cronSpec": "* * * * */5", **spec}
    return {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": metadata, "spec": spec}


# Of the handbook; after Volcano's JobFlow and JobTemplate; cert-manager's Certificate, whose columns look for a condition;
# Kueue's Workload, with embedded pod templates, quantities and rules in CEL.
ALL = {
    each["spec"]["names"]["kind"]: each for each in yaml.safe_load_all((GOLDEN / "kube/definitions.yaml").read_text())
}
CRON_TAB, TASK_FLOW, TASK_TEMPLATE, CERTIFICATE, WORKLOAD = ALL.values()
