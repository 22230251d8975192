"""The claims that pods name: until all of them are bound, no node is right for the pod.

A class of storage may wait for the first pod that uses a claim, and make the volume where that pod is to run
(WaitForFirstConsumer): to say where, the scheduler would have to know the volumes that each node can have, which it does
not. So such a pod waits as the one of any unbound claim does, and says for which.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from kube.kinds.fields import View

BOUND = "Bound"
UNREADABLE = "volumes that cannot be read"
"""Stands for the claims of volumes that cannot be read: none has this name."""


class _Claim(View):
    claim_name: str = ""


class _Volume(View):
    name: str = ""
    persistent_volume_claim: _Claim | None = None
    ephemeral: dict[str, object] | None = None


class _Status(View):
    phase: str = ""


class _ClaimView(View):
    status: _Status = _Status()


_volumes = msgspec.json.Decoder(list[_Volume] | None).decode
_claim = msgspec.json.Decoder(_ClaimView).decode


def named(pod: str, volumes: Raw) -> tuple[str, ...]:
    """Return the claims that a pod's volumes name, and those that are made for it."""
    raw = bytes(volumes)
    if b'"persistentVolumeClaim"' not in raw and b'"ephemeral"' not in raw:
        return ()
    try:
        found = _volumes(raw) or ()
    except msgspec.ValidationError:
        return (UNREADABLE,)
    claims = [each.persistent_volume_claim.claim_name for each in found if each.persistent_volume_claim]
    return (*claims, *(f"{pod}-{each.name}" for each in found if each.ephemeral is not None))


def is_bound(body: bytes) -> bool:
    """Say whether a claim has its volume; ValidationError when it cannot be read."""
    return _claim(body).status.phase == BOUND
