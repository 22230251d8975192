"""Definitions as people write them: the one of Kubernetes' handbook, and others after well-known projects."""

from __future__ import annotations

from copy import deepcopy

from kube import resources
from tests.builders import of

TEXT, INTEGER, TIME = {"type": "string"}, {"type": "integer"}, {"type": "string", "format": "date-time"}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXTS = {"type": "array", "items": TEXT}
AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def objects(*required, **properties):
    return {"type": "object", **({"required": list(required)} if required else {}), "properties": properties}


def keyed(*keys, items):
    words = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {"type": "array", **words, "items": items}


def column(name, path, kind="string", **more):
    return {"name": name, "type": kind, "jsonPath": path, **more}


def version(name="v1", *, schema=None, served=True, storage=True, **more):
    schema = deepcopy(schema or objects(spec=ANYTHING))
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(
    plural="crontabs", group="stable.example.com", kind="CronTab", *, versions=None, scope="Namespaced", **names
):
    names = {"plural": plural, "kind": kind, **names}
    spec = {"group": group, "scope": scope, "names": names, "versions": versions or [version()]}
    return of(resources.CUSTOM_RESOURCE_DEFINITIONS, f"{plural}.{group}", **spec)


CRON = r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$"
REPLICAS = {**INTEGER, "minimum": 1, "maximum": 10, "default": 1}
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.labelSelector",
}
CRON_TAB = definition(
    singular="crontab", shortNames=["ct"], categories=["all"],
    versions=[version(
        schema=objects(
            spec=objects("cronSpec", cronSpec={**TEXT, "pattern": CRON}, image={**TEXT, "default": "busybox"}, replicas=REPLICAS),
            status=objects(replicas=INTEGER, labelSelector=TEXT),
        ),
        subresources={"status": {}, "scale": SCALE}, selectableFields=[{"jsonPath": ".spec.image"}],
        additionalPrinterColumns=[
            column("Spec", ".spec.cronSpec", description="When it runs"), column("Replicas", ".spec.replicas", "integer"), AGE,
        ],
    )],
)  # fmt: skip


def cron_tab(name="my-cron", namespace="default", **spec):
    metadata, spec = {"name": name, "namespace": namespace}, {"cronSpec": "* * * * */5", **spec}
    return {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": metadata, "spec": spec}


# After Volcano's JobFlow and JobTemplate, which are built in (reference: volcano-queue-podgroup-cli §6, §7.1).
STEP = objects("name", name={**TEXT, "minLength": 1}, dependsOn=objects(targets=TEXTS))
TASK_FLOW = definition(
    "taskflows", "flow.example.com", "TaskFlow", singular="taskflow", shortNames=["tf"],
    versions=[version(
        "v1alpha1", subresources={"status": {}}, additionalPrinterColumns=[column("Status", ".status.state.phase"), AGE],
        schema=objects(
            apiVersion=TEXT, kind=TEXT, metadata={"type": "object"},
            spec=objects(jobRetainPolicy={**TEXT, "enum": ["retain", "delete"]}, flows={"type": "array", "items": STEP}),
            status=objects(state=objects(phase=TEXT), pendingJobs=TEXTS),
        ),
    )],
)  # fmt: skip
TASK_TEMPLATE = definition(
    "tasktemplates", "flow.example.com", "TaskTemplate", singular="tasktemplate", shortNames=["tt"],
    versions=[version("v1alpha1", subresources={"status": {}})],
)  # fmt: skip
# After cert-manager's Certificate: conditions as a map, columns that look for one, deep secrets and selectors.
CONDITION = objects(
    "type", "status", type=TEXT, status={**TEXT, "enum": ["True", "False", "Unknown"]}, lastTransitionTime=TIME
)
CERTIFICATE = definition(
    "certificates", "cert-manager.io", "Certificate", shortNames=["cert", "certs"], categories=["cert-manager"],
    versions=[version(
        subresources={"status": {}},
        additionalPrinterColumns=[
            column("Ready", '.status.conditions[?(@.type == "Ready")].status'), column("Secret", ".spec.secretName"),
            column("Issuer", ".spec.issuerRef.name", priority=1), AGE,
        ],
        schema=objects(
            spec=objects(
                "issuerRef", "secretName", secretName=TEXT, duration={**TEXT, "format": "duration"},
                dnsNames={**TEXTS, "x-kubernetes-list-type": "set"},
                issuerRef=objects("name", group=TEXT, kind={**TEXT, "default": "Issuer"}, name=TEXT),
                privateKey=objects(algorithm={**TEXT, "enum": ["RSA", "ECDSA", "Ed25519"]}, size=INTEGER),
            ),
            status=objects(conditions=keyed("type", items=CONDITION), notAfter=TIME),
        ),
    )],
)  # fmt: skip
# After Kueue's Workload: pod templates embedded, quantities, rules in CEL.
NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
AMOUNT = {
    "anyOf": [INTEGER, TEXT], "x-kubernetes-int-or-string": True,
    "pattern": rf"^(\+|-)?{NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{NUMBER}))?$",
}  # fmt: skip
POD_SET = objects(
    "count", "template", name={**TEXT, "default": "main"}, count={**INTEGER, "format": "int32", "minimum": 0},
    template=objects(metadata={"type": "object"}, spec=ANYTHING), requests={"type": "object", "additionalProperties": AMOUNT},
)  # fmt: skip
QUEUE_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
WORKLOAD_SPEC = objects(
    queueName={**TEXT, "maxLength": 253, "pattern": QUEUE_NAME}, priority={**INTEGER, "format": "int32"},
    podSets={**keyed("name", items=POD_SET), "maxItems": 8},
)  # fmt: skip
RULES = [{"rule": "self.spec.podSets.size() > 0", "message": "there must be a pod set"}]
WORKLOAD = definition(
    "workloads", "kueue.x-k8s.io", "Workload", shortNames=["wl"],
    versions=[version(
        "v1beta1", subresources={"status": {}},
        schema={**objects(spec=WORKLOAD_SPEC, status=ANYTHING), "x-kubernetes-validations": RULES},
    )],
)  # fmt: skip
ALL = {
    "crontab": CRON_TAB,
    "taskflow": TASK_FLOW,
    "tasktemplate": TASK_TEMPLATE,
    "certificate": CERTIFICATE,
    "workload": WORKLOAD,
}
