"""Tables: how objects are shown in rows, as `kubectl get` prints them (reference: kubernetes-api §3.3).

Columns come from the resource table. A built-in kind prints what Kubernetes'
own printers print; a custom resource, and Volcano's kinds are custom
resources, prints the values at its columns' paths. Every value is a text or
number that needs no further formatting; wide columns are always there, and it
is the client that leaves them out.
"""

from __future__ import annotations

from kube.printing.ages import human_duration
from kube.printing.paths import PathError
from kube.printing.table import check, columns, completed, row

__all__ = ["PathError", "check", "columns", "completed", "human_duration", "row"]
