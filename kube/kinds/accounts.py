"""ServiceAccount, and the TokenRequest by which it gets a bearer token (reference: kubernetes-api §4.7)."""

from __future__ import annotations

from typing import Annotated

from kube.kinds.core import NameRef, ObjectReference
from kube.kinds.fields import REQUIRED, Int64, Time, View
from kube.meta import ObjectMeta


class ServiceAccount(View):
    """An account of programs, in a namespace."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    secrets: list[ObjectReference] = []
    image_pull_secrets: list[NameRef] = []
    automount_service_account_token: bool | None = None


class BoundObjectReference(View):
    """The object with which a token ends."""

    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(View):
    """For whom a token is, and for how long."""

    audiences: list[str] = []
    expiration_seconds: Int64 | None = None
    bound_object_ref: BoundObjectReference | None = None


class TokenRequestStatus(View):
    """The token, which is shown this once."""

    token: str = ""
    expiration_timestamp: Time = ""


class TokenRequest(View):
    """The wish for a token of a service account."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[TokenRequestSpec, REQUIRED] = TokenRequestSpec()
    status: TokenRequestStatus = TokenRequestStatus()
