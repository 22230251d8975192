"""Which webhooks there are, and the two configurations by which an API server knows them.

Names, paths, operations, failure policy and timeout are Volcano's (reference: volcano-job §7,
volcano-queue-podgroup-cli §1.6), so that clients meet what they know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from cluster.remote.http.request import MANAGER
from kube.meta import Object
from kube.resources import (
    COMMANDS,
    CRON_JOBS,
    HYPER_NODES,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    POD_GROUPS,
    QUEUES,
    Resource,
)

Verb = Literal["mutate", "validate"]
NAME = "volcano-ui"  # of both configurations
GROUP_VERSION = "admissionregistration.k8s.io/v1"
KINDS: Mapping[Verb, tuple[str, str]] = MappingProxyType(
    {
        "mutate": ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        "validate": ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    }
)
TIMEOUT_S = 10
HIGHEST_PORT = 65535
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Webhook(NamedTuple):
    """A question that the API server asks before it stores objects of a kind, or deletes them."""

    verb: Verb
    resource: Resource
    operations: tuple[str, ...]
    failure_policy: Literal["Fail", "Ignore"] = "Fail"  # what becomes of a request when nobody answers

    @property
    def path(self) -> str:
        """The path of its requests."""
        return f"/{self.resource.plural}/{self.verb}"

    @property
    def name(self) -> str:
        """Its name in a refusal."""
        return f"{self.verb}{self.resource.singular}.volcano.sh"


_FILLED_IN = (JOBS, QUEUES, POD_GROUPS, CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES)
_JUDGED = (JOBS, POD_GROUPS, CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES, HYPER_NODES)
WEBHOOKS = (
    *(Webhook("mutate", kind, ("CREATE",)) for kind in _FILLED_IN),
    *(Webhook("validate", kind, ("CREATE", "UPDATE")) for kind in _JUDGED),
    Webhook("validate", QUEUES, ("CREATE", "UPDATE", "DELETE")),
    # Commands only get warnings, so an absent webhook must not hold them up.
    Webhook("validate", COMMANDS, ("CREATE",), "Ignore"),
)
BY_PATH = MappingProxyType({each.path: each for each in WEBHOOKS})


class Address(NamedTuple):
    """Where the API server finds the webhooks."""

    host: str
    port: int

    @property
    def service(self) -> tuple[str, str] | None:
        """Name and namespace of the Service that the host is, None for any other host."""
        name, _, rest = self.host.partition(".")
        namespace, _, suffix = rest.partition(".")
        return (name, namespace) if suffix == "svc" else None


def address(text: str) -> Address:
    """Read `host:port`; ValueError says what is wrong with it."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) <= HIGHEST_PORT:
        raise ValueError("it is not a host and a port")
    return Address(host, int(port))


def interface(at: Address, usual: str) -> str:
    """Return on which address to listen: where other servers do, unless that is one which the API server does not reach."""
    if usual not in LOOPBACK or at.host in LOOPBACK:
        return usual
    return "::" if ":" in at.host else "0.0.0.0"  # noqa: S104  who asks is another machine


def configurations(at: Address, bundle: str, user: str) -> dict[Verb, Object]:
    """Return both configurations: where the webhooks are, which authorities the API server trusts (in PEM, base64).

    What the user, in whose name we write, creates from here is not asked about: people's objects are judged before they are sent, and
    what controllers make is part of what was accepted before.
    """
    # In CEL: requests that are no creations by these pages or their controllers.
    by_others = (
        f'!(request.operation == "CREATE" && request.userInfo.username == {json.dumps(user)}'
        " && has(request.options.fieldManager)"
        f' && request.options.fieldManager == "{MANAGER}")'
    )
    return {
        verb: {
            "apiVersion": GROUP_VERSION,
            "kind": kind,
            "metadata": {"name": NAME},
            "webhooks": [_entry(each, at, bundle, by_others) for each in WEBHOOKS if each.verb == verb],
        }
        for verb, (kind, _) in KINDS.items()
    }


def _entry(webhook: Webhook, at: Address, bundle: str, condition: str) -> Object:
    """Return a webhook as a configuration has it, with all that the API server would fill in."""
    resource = webhook.resource
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": [*webhook.operations],
        "resources": [resource.plural],
        "scope": "*",
    }
    entry = {
        "name": webhook.name,
        "clientConfig": {**_reach(webhook, at), "caBundle": bundle},
        "rules": [rule],
        "failurePolicy": webhook.failure_policy,
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "not-sent-from-here", "expression": condition}],
    }
    return entry if webhook.verb == "validate" else {**entry, "reinvocationPolicy": "Never"}


def _reach(webhook: Webhook, at: Address) -> Object:
    if at.service is None:
        host = f"[{at.host}]" if ":" in at.host else at.host
        return {"url": f"https://{host}:{at.port}{webhook.path}"}
    name, namespace = at.service
    return {"service": {"name": name, "namespace": namespace, "path": webhook.path, "port": at.port}}


def changed(current: Object, wanted: Object) -> Object | None:
    """Return a stored configuration with the wanted webhooks, None where it has them already."""
    if current.get("webhooks") == wanted["webhooks"]:
        return None
    return {**current, "webhooks": wanted["webhooks"]}


def trusts(current: Object, bundle: str) -> bool:
    """Whether the API server trusts these authorities by a stored configuration."""
    entries = current.get("webhooks") or ()
    return bool(entries) and all((each.get("clientConfig") or {}).get("caBundle") == bundle for each in entries)
