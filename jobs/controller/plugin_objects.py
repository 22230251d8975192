"""The objects that plugins make for a job: what is known of them, and the writes that bring them in line.

A plugin object belongs to the job if the job controls it. An object of the same name with another owner is known as
well: it is never overwritten, and its owner deletes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from cluster.writes import Create, Delete, Patch, Write
from jobs.controller.facts import JobFact
from jobs.controller.pods import noted_creator, owner_of
from jobs.lifecycle.phases import RUNS
from jobs.plugins import ssh
from jobs.plugins.contract import KeyPair, PluginObject
from jobs.plugins.table import PLUGINS, of_job
from kube.kinds.fields import View
from kube.kinds.meta import OwnerReference
from kube.meta import Object
from kube.resources import CONFIGMAPS, SECRETS, Resource

EVERY = tuple(product for plugin in PLUGINS.values() for product in plugin.objects)
RESOURCES = {product.resource.id: product.resource for product in EVERY}
MOUNTED = (CONFIGMAPS.id, SECRETS.id)  # the pods mount these: no container starts without them

Id = tuple[str, str]  # the id of a resource, and a name


class PluginObjectFact(Struct, frozen=True, kw_only=True):
    """A stored version of an object that has the name of a plugin object."""

    uid: str
    owner: str  # the uid of its controller
    digests: dict[str, str]  # key of its data → digest of the value, for the keys that are kept in step


def ids(job: JobFact) -> dict[Id, PluginObject]:
    """Return the objects that a job's plugins make, whatever their arguments."""
    return {
        (product.resource.id, f"{job.name}{product.suffix}"): product
        for name in job.plugins
        for product in PLUGINS[name].objects
    }


def jobs_named(resource: str, name: str) -> Iterator[str]:
    """Yield the names of the jobs whose plugin object may have this name."""
    for product in EVERY:
        if product.resource.id == resource and name.endswith(product.suffix):
            yield name.removesuffix(product.suffix)


def read(product: PluginObject, body: bytes) -> PluginObjectFact:
    """Read what matters of a plugin object; raise msgspec.ValidationError if it cannot be read as one."""
    decoded = _decode(body)
    owner = next((each.uid for each in decoded.metadata.owner_references if each.controller), "")
    digests = {key: _digest(value) for key, value in decoded.data.items() if product.keeps(key)}
    return PluginObjectFact(uid=decoded.metadata.uid, owner=owner, digests=digests)


def lacks_keys(job: JobFact, observed: Mapping[Id, PluginObjectFact]) -> bool:
    """Tell whether a key pair has to be made for a job before its plugin objects are planned."""
    if ssh.PLUGIN.name not in job.plugins or job.deleting or job.phase not in RUNS:
        return False
    if (SECRETS.id, f"{job.name}{ssh.SUFFIX}") in observed:
        return False
    return any(plugin is ssh.PLUGIN and ssh.makes_keys(context) for plugin, context in of_job(job.whole()))


def blocking(job: JobFact, observed: Mapping[Id, PluginObjectFact]) -> tuple[str, ...]:
    """Describe the objects of other owners whose names the job's mounted objects need, so that no container starts."""
    return tuple(
        _described(id_) for id_ in ids(job) if id_[0] in MOUNTED and id_ in observed and observed[id_].owner != job.uid
    )


def left_alone(job: JobFact, whole: Object, observed: Mapping[Id, PluginObjectFact]) -> list[str]:
    """Describe the objects of other owners that have the names of plugin objects but do not keep pods from starting."""
    wanted = (id_ for id_, product, _ in _wanted(job, whole, None) if product.resource.id not in MOUNTED)
    return [_described(id_) for id_ in wanted if id_ in observed and observed[id_].owner != job.uid]


def in_step(
    job: JobFact, whole: Object, observed: Mapping[Id, PluginObjectFact], keys: KeyPair | None
) -> Iterator[Write]:
    """Yield the writes that create missing plugin objects and update the existing ones.

    `keys` is a new key pair for a job that lacks one (`lacks_keys`); without it, raise ValueError.
    """
    if keys is None and lacks_keys(job, observed):
        raise ValueError(f"Job {job.key} lacks a key pair, which has to be made before it is planned.")
    for (kind, name), product, content in _wanted(job, whole, keys):
        fact = observed.get((kind, name))
        if fact is None:
            yield Create(product.resource, owned(job, whole, product.resource, name, content))
        elif fact.owner == job.uid:
            # A merge patch of those keys of `data` that are kept in step; None removes a key.
            data = {key: value for key, value in (content.get("data") or {}).items() if product.keeps(key)}
            changes: dict[str, Any] = dict.fromkeys(fact.digests.keys() - data.keys())
            changes |= {key: value for key, value in data.items() if fact.digests.get(key) != _digest(value)}
            if changes:
                yield Patch(product.resource, job.namespace, name, {"data": changes}, uid=fact.uid)


def end(job: JobFact, observed: Mapping[Id, PluginObjectFact]) -> Iterator[Write]:
    """Yield the writes that delete a job's plugin objects."""
    for id_, product in ids(job).items():
        fact = observed.get(id_)
        if fact is not None and fact.owner == job.uid:
            yield Delete(product.resource, job.namespace, id_[1], uid=fact.uid)


def owned(job: JobFact, whole: Object, resource: Resource, name: str, content: Object) -> Object:
    """Return an object that is owned by a job and carries the annotation of the job's creator."""
    metadata: Object = {"namespace": job.namespace, "name": name, "ownerReferences": [owner_of(job)]}
    if creator := noted_creator(whole["metadata"]):
        metadata["annotations"] = creator
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


def _wanted(job: JobFact, whole: Object, keys: KeyPair | None) -> Iterator[tuple[Id, PluginObject, Object]]:
    """Yield the id and content of each object that the plugins want, given their arguments."""
    for plugin, context in of_job(whole, keys):
        for product in plugin.objects:
            content = product.content(context)
            if content is not None:
                yield (product.resource.id, f"{job.name}{product.suffix}"), product, content


def _described(id_: Id) -> str:
    """Return the kind and name of an object: `ConfigMap demo-svc`."""
    return f"{RESOURCES[id_[0]].kind} {id_[1]}"


def _digest(value: str) -> str:
    return blake2b(value.encode(), digest_size=16).hexdigest()


class _Metadata(View):
    uid: str = ""
    owner_references: list[OwnerReference] = []


class _Product(View):
    metadata: _Metadata = _Metadata()
    data: dict[str, str] = {}


_decode = msgspec.json.Decoder(_Product).decode
