"""Definitions as people write them: the one of Kubernetes' handbook, and others after well-known projects."""

from __future__ import annotations

from copy import deepcopy


def version(name="v1", *, schema=None, served=True, storage=True, **more):
    properties = {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    schema = schema or {"type": "object", "properties": properties}
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": deepcopy(schema)}, **more}


def definition(
    plural="crontabs", group="stable.example.com", kind="CronTab", *, versions=None, scope="Namespaced", **names
):
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **names},
            "versions": versions or [version()],
        },
    }


CRON_TAB_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["cronSpec"],
            "properties": {
                "cronSpec": {"type": "string", "pattern": r"^(\d+|\*)(/\d+)?(\s+(\d+|\*)(/\d+)?){4}$"},
                "image": {"type": "string", "default": "busybox"},
                "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
            },
        },
        "status": {
            "type": "object",
            "properties": {"replicas": {"type": "integer"}, "labelSelector": {"type": "string"}},
        },
    },
}
CRON_TAB = definition(
    singular="crontab",
    shortNames=["ct"],
    categories=["all"],
    versions=[
        version(
            schema=CRON_TAB_SCHEMA,
            subresources={
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.labelSelector",
                },
            },
            additionalPrinterColumns=[
                {"name": "Spec", "type": "string", "description": "When it runs", "jsonPath": ".spec.cronSpec"},
                {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            ],
            selectableFields=[{"jsonPath": ".spec.image"}],
        )
    ],
)


def cron_tab(name="my-cron", namespace="default", **spec):
    return {
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"cronSpec": "* * * * */5", **spec},
    }


# After Volcano's JobFlow and JobTemplate, which are built in (reference: volcano-queue-podgroup-cli §6, §7.1).
TASK_FLOW = definition(
    "taskflows",
    "flow.example.com",
    "TaskFlow",
    singular="taskflow",
    shortNames=["tf"],
    versions=[
        version(
            "v1alpha1",
            subresources={"status": {}},
            additionalPrinterColumns=[
                {"name": "Status", "type": "string", "jsonPath": ".status.state.phase"},
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            ],
            schema={
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object"},
                    "spec": {
                        "type": "object",
                        "properties": {
                            "jobRetainPolicy": {"type": "string", "enum": ["retain", "delete"]},
                            "flows": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "required": ["name"],
                                    "properties": {
                                        "name": {"type": "string", "minLength": 1},
                                        "dependsOn": {
                                            "type": "object",
                                            "properties": {"targets": {"type": "array", "items": {"type": "string"}}},
                                        },
                                    },
                                },
                            },
                        },
                    },
                    "status": {
                        "type": "object",
                        "properties": {
                            "state": {"type": "object", "properties": {"phase": {"type": "string"}}},
                            "pendingJobs": {"type": "array", "items": {"type": "string"}},
                        },
                    },
                },
            },
        )
    ],
)
TASK_TEMPLATE = definition(
    "tasktemplates",
    "flow.example.com",
    "TaskTemplate",
    singular="tasktemplate",
    shortNames=["tt"],
    versions=[version("v1alpha1", subresources={"status": {}})],
)
# After cert-manager's Certificate: conditions as a map, columns that look for one, deep secrets and selectors.
CERTIFICATE = definition(
    "certificates",
    "cert-manager.io",
    "Certificate",
    shortNames=["cert", "certs"],
    categories=["cert-manager"],
    versions=[
        version(
            subresources={"status": {}},
            additionalPrinterColumns=[
                {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type == "Ready")].status'},
                {"name": "Secret", "type": "string", "jsonPath": ".spec.secretName"},
                {"name": "Issuer", "type": "string", "jsonPath": ".spec.issuerRef.name", "priority": 1},
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            ],
            schema={
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "required": ["issuerRef", "secretName"],
                        "properties": {
                            "secretName": {"type": "string"},
                            "duration": {"type": "string", "format": "duration"},
                            "dnsNames": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                            "issuerRef": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "group": {"type": "string"},
                                    "kind": {"type": "string", "default": "Issuer"},
                                    "name": {"type": "string"},
                                },
                            },
                            "privateKey": {
                                "type": "object",
                                "properties": {
                                    "algorithm": {"type": "string", "enum": ["RSA", "ECDSA", "Ed25519"]},
                                    "size": {"type": "integer"},
                                },
                            },
                        },
                    },
                    "status": {
                        "type": "object",
                        "properties": {
                            "conditions": {
                                "type": "array",
                                "x-kubernetes-list-type": "map",
                                "x-kubernetes-list-map-keys": ["type"],
                                "items": {
                                    "type": "object",
                                    "required": ["type", "status"],
                                    "properties": {
                                        "type": {"type": "string"},
                                        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                                        "lastTransitionTime": {"type": "string", "format": "date-time"},
                                    },
                                },
                            },
                            "notAfter": {"type": "string", "format": "date-time"},
                        },
                    },
                },
            },
        )
    ],
)
# After Kueue's Workload: pod templates embedded, quantities, rules in CEL.
WORKLOAD = definition(
    "workloads",
    "kueue.x-k8s.io",
    "Workload",
    shortNames=["wl"],
    versions=[
        version(
            "v1beta1",
            subresources={"status": {}},
            schema={
                "type": "object",
                "x-kubernetes-validations": [
                    {"rule": "self.spec.podSets.size() > 0", "message": "there must be a pod set"}
                ],
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {
                            "queueName": {
                                "type": "string",
                                "maxLength": 253,
                                "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
                            },
                            "priority": {"type": "integer", "format": "int32"},
                            "podSets": {
                                "type": "array",
                                "maxItems": 8,
                                "x-kubernetes-list-type": "map",
                                "x-kubernetes-list-map-keys": ["name"],
                                "items": {
                                    "type": "object",
                                    "required": ["count", "template"],
                                    "properties": {
                                        "name": {"type": "string", "default": "main"},
                                        "count": {"type": "integer", "format": "int32", "minimum": 0},
                                        "template": {
                                            "type": "object",
                                            "properties": {
                                                "metadata": {"type": "object"},
                                                "spec": {
                                                    "type": "object",
                                                    "x-kubernetes-preserve-unknown-fields": True,
                                                },
                                            },
                                        },
                                        "requests": {
                                            "type": "object",
                                            "additionalProperties": {
                                                "anyOf": [{"type": "integer"}, {"type": "string"}],
                                                "x-kubernetes-int-or-string": True,
                                                "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
                                                r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
                                            },
                                        },
                                    },
                                },
                            },
                        },
                    },
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            },
        )
    ],
)
ALL = {
    "crontab": CRON_TAB,
    "taskflow": TASK_FLOW,
    "tasktemplate": TASK_TEMPLATE,
    "certificate": CERTIFICATE,
    "workload": WORKLOAD,
}
