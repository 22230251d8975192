"""Bodies of requests in Kubernetes' protobuf, read as JSON objects (reference: kubernetes-api §4.4).

Typed clients of Go write what they create and replace in protobuf, and read
JSON answers. The messages are tables (`messages.txt`); a body becomes the
object that the same client would have sent as JSON, without its nulls.
"""

from __future__ import annotations

from kube.protobuf.envelope import decode

__all__ = ["decode"]
