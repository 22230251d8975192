"""What a pod takes from its queue while it is on a node."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kube import amounts
from kube.kinds.fields import View
from kube.kinds.pod import ENDED

if TYPE_CHECKING:
    from kube.amounts import Amounts

QUEUE_NAME = "volcano.sh/queue-name"
GROUP_NAME = "scheduling.k8s.io/group-name"


class Usage(NamedTuple):
    """A bound pod: the queue or else the pod group that it names, and what it asks for. The amounts are shared."""

    queue: str
    group: str
    amounts: Amounts


def of(body: bytes) -> Usage | None:
    """Return what a pod takes, or None if it is on no node or has ended."""
    pod = _decode(body)
    if not pod.spec.node_name or pod.status.phase in ENDED:
        return None
    notes = pod.metadata.annotations
    request = _request(
        tuple(bytes(container.resources) for container in pod.spec.containers),
        tuple(
            (container.restart_policy, bytes(container.resources)) for container in pod.spec.init_containers
        ),
        bytes(pod.spec.overhead),
        bytes(pod.spec.resources),
    )
    group = notes.get(GROUP_NAME, "")
    return Usage(notes.get(QUEUE_NAME, ""), f"{pod.metadata.namespace}/{group}" if group else "", request)


class _Metadata(View):
    namespace: str = ""
    annotations: dict[str, str] = {}


class _Container(View):
    restart_policy: str = ""
    resources: msgspec.Raw = msgspec.Raw(b"{}")


class _Spec(View):
    node_name: str = ""
    containers: list[_Container] = []
    init_containers: list[_Container] = []
    overhead: msgspec.Raw = msgspec.Raw(b"{}")
    resources: msgspec.Raw = msgspec.Raw(b"null")


class _Status(View):
    phase: str = ""


class _Pod(View):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


_decode = msgspec.json.Decoder(_Pod).decode


# Pods of one task ask for the same: their amounts are worked out once.
@lru_cache(maxsize=4096)
def _request(
    containers: tuple[bytes, ...],
    init_containers: tuple[tuple[str, bytes], ...],
    overhead: bytes,
    resources: bytes,
) -> Amounts:
    spec: dict[str, Any] = {
        "containers": [{"resources": _json(each) or {}} for each in containers],
        "initContainers": [
            {"restartPolicy": policy, "resources": _json(each) or {}} for policy, each in init_containers
        ],
        "overhead": _json(overhead) or {},
    }
    if _json(resources):
        spec["resources"] = _json(resources)
    return amounts.pod_request(spec)


def _json(text: bytes) -> Any:
    return msgspec.json.decode(text)
