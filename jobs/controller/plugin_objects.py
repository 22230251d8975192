"""What plugins made for a job: what is known of it, and which writes bring it in line.

A product is the job's when the job controls it. One of the same name that is somebody else's is known as well: it is
never written over, and deleted by whoever it belongs to.
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
MOUNTED = (CONFIGMAPS.id, SECRETS.id)  # without which no container starts

Id = tuple[str, str]  # the id of a resource, and a name


class PluginObjectFact(Struct, frozen=True, kw_only=True):
    """A stored version of an object that has the name of a product."""

    uid: str
    owner: str  # the uid of what controls it
    digests: dict[str, str]  # key of its data that is kept in step → digest of the value


def ids(job: JobFact) -> dict[Id, PluginObject]:
    """Return which objects the plugins of a job make, whatever their arguments."""
    return {
        (product.resource.id, f"{job.name}{product.suffix}"): product
        for name in job.plugins
        for product in PLUGINS[name].objects
    }


def jobs_named(resource: str, name: str) -> Iterator[str]:
    """Yield the names of the jobs for which an object with a name may be a product."""
    for product in EVERY:
        if product.resource.id == resource and name.endswith(product.suffix):
            yield name.removesuffix(product.suffix)


def read(product: PluginObject, body: bytes) -> PluginObjectFact:
    """Read what matters of a product; msgspec.ValidationError if it is not one."""
    decoded = _decode(body)
    owner = next((each.uid for each in decoded.metadata.owner_references if each.controller), "")
    digests = {key: _digest(value) for key, value in decoded.data.items() if product.keeps(key)}
    return PluginObjectFact(uid=decoded.metadata.uid, owner=owner, digests=digests)


def lacks_keys(job: JobFact, observed: Mapping[Id, PluginObjectFact]) -> bool:
    """Say whether a key pair has to be made for a job before its products are planned."""
    if ssh.PLUGIN.name not in job.plugins or job.deleting or job.phase not in RUNS:
        return False
    if (SECRETS.id, f"{job.name}{ssh.SUFFIX}") in observed:
        return False
    return any(plugin is ssh.PLUGIN and ssh.makes_keys(context) for plugin, context in of_job(job.whole()))


def blocking(job: JobFact, observed: Mapping[Id, PluginObjectFact]) -> tuple[str, ...]:
    """Describe the objects of somebody else without whose names no container of the job starts."""
    return tuple(
        _described(id_) for id_ in ids(job) if id_[0] in MOUNTED and id_ in observed and observed[id_].owner != job.uid
    )


def left_alone(job: JobFact, whole: Object, observed: Mapping[Id, PluginObjectFact]) -> list[str]:
    """Describe the objects of somebody else that stand in the place of products, and let the job's pods start."""
    wanted = (id_ for id_, product, _ in _wanted(job, whole, None) if product.resource.id not in MOUNTED)
    return [_described(id_) for id_ in wanted if id_ in observed and observed[id_].owner != job.uid]


def in_step(
    job: JobFact, whole: Object, observed: Mapping[Id, PluginObjectFact], keys: KeyPair | None
) -> Iterator[Write]:
    """Yield the writes that make what is missing, and keep what exists as the plugins say.

    `keys` is a new pair for a job that lacks one (`lacks_keys`); ValueError if it is not given.
    """
    if keys is None and lacks_keys(job, observed):
        raise ValueError(f"Job {job.key} lacks a key pair, which has to be made before it is planned.")
    for (kind, name), product, content in _wanted(job, whole, keys):
        fact = observed.get((kind, name))
        if fact is None:
            yield Create(product.resource, owned(job, whole, product.resource, name, content))
        elif fact.owner == job.uid:
            # A merge patch of the part of `data` that is kept in step.
            data = {key: value for key, value in (content.get("data") or {}).items() if product.keeps(key)}
            changes: dict[str, Any] = dict.fromkeys(fact.digests.keys() - data.keys())
            changes |= {key: value for key, value in data.items() if fact.digests.get(key) != _digest(value)}
            if changes:
                yield Patch(product.resource, job.namespace, name, {"data": changes}, uid=fact.uid)


def end(job: JobFact, observed: Mapping[Id, PluginObjectFact]) -> Iterator[Write]:
    """Yield the writes that delete what the plugins made for a job."""
    for id_, product in ids(job).items():
        fact = observed.get(id_)
        if fact is not None and fact.owner == job.uid:
            yield Delete(product.resource, job.namespace, id_[1], uid=fact.uid)


def owned(job: JobFact, whole: Object, resource: Resource, name: str, content: Object) -> Object:
    """Return an object that belongs to a job, and that says whose the job is."""
    metadata: Object = {"namespace": job.namespace, "name": name, "ownerReferences": [owner_of(job)]}
    if creator := noted_creator(whole["metadata"]):
        metadata["annotations"] = creator
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


def _wanted(job: JobFact, whole: Object, keys: KeyPair | None) -> Iterator[tuple[Id, PluginObject, Object]]:
    """Yield what the plugins want to exist, with their arguments, and what is to be in it."""
    for plugin, context in of_job(whole, keys):
        for product in plugin.objects:
            content = product.content(context)
            if content is not None:
                yield (product.resource.id, f"{job.name}{product.suffix}"), product, content


def _described(id_: Id) -> str:
    """Write the name of an object: `ConfigMap demo-svc`."""
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
