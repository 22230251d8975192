"""The claims that pods name: until all of them are bound, a pod gets no node.

A storage class may wait for the first pod that uses a claim, and create the volume where that pod is to run
(WaitForFirstConsumer). To choose where, the scheduler would have to know which volumes each node can have, and it does
not. So such a pod waits as with any unbound claim, and its reason names the claim.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from kube.kinds.fields import View

BOUND = "Bound"
UNREADABLE = "volumes that cannot be read"
"""Stands for the claims of volumes that cannot be read; no claim has this name."""


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
    """Return the names of the claims of a pod's volumes, including those created for its ephemeral volumes."""
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
    """Tell whether a claim is bound; raise msgspec.ValidationError when it cannot be read."""
    return _claim(body).status.phase == BOUND
