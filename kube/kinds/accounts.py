"""ServiceAccount, and the TokenRequest by which it gets a bearer token (reference: kubernetes-api §4.7)."""

from __future__ import annotations

from kube.kinds.fields import View
from kube.kinds.meta import ObjectMeta


class BoundObjectReference(View):
    """The object with which a token ends."""

    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class TokenRequestSpec(View):
    """For whom a token is, and for how long."""

    audiences: list[str] = []
    expiration_seconds: int | None = None
    bound_object_ref: BoundObjectReference | None = None


class TokenRequestStatus(View):
    """The token, which is shown this once."""

    token: str = ""


class TokenRequest(View):
    """A request for a token of a service account."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: TokenRequestSpec = TokenRequestSpec()
    status: TokenRequestStatus = TokenRequestStatus()
