"""OpenAPI: what the API serves, for tools; and which fields of an object nothing knows.

definitions  schemas: those of  kube.definitions,  lists of each kind, and custom resources' own
operations   paths and verbs, from the resource table
documents    both put together: version 3 for each group and version, version 2 by  swagger  and  gnostic
answers      them over HTTP
fields       which fields of an object its schema does not know
"""

from __future__ import annotations

from apiserver.openapi.documents import warm
from apiserver.openapi.fields import MOST, unknown_fields, written

__all__ = ["MOST", "unknown_fields", "warm", "written"]
