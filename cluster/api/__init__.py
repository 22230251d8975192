"""The one door: every change that a person asks for, whichever way it comes (`cluster.api.verbs`).

    from cluster import api
    api.create(actor, resource, obj)

A change passes, in this order: the right (`rights`), the admission chain
(`admission`), the store, the audit (`audit_trail`), in one `transaction`.
"""

from __future__ import annotations

from cluster.api.verbs import (
    Deletion,
    apply,
    bind,
    create,
    create_many,
    delete,
    delete_many,
    evict,
    patch,
    review,
    scale,
    update,
)

__all__ = [
    "Deletion",
    "apply",
    "bind",
    "create",
    "create_many",
    "delete",
    "delete_many",
    "evict",
    "patch",
    "review",
    "scale",
    "update",
]
