"""The views of what all kinds share: metadata, owner references and conditions."""

from __future__ import annotations

from kube.kinds.fields import AnyObject, View


class OwnerReference(View):
    """Says which object an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(View):
    """An object's `metadata` (reference: kubernetes-api §4.5)."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []
    managed_fields: list[AnyObject] = []
    self_link: str = ""


class Condition(View):
    """One entry of a `status.conditions` list, of whichever kind."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    last_update_time: str = ""
    last_probe_time: str = ""
    last_heartbeat_time: str = ""
    transition_id: str = ""
    observed_generation: int = 0
