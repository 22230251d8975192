"""The record of evictions that outlives the pods: when a pod of a group was evicted for others for the first time.

The scheduler writes it on the pod group. A Volcano Job that begins again gets another group, so the job has it by then, and
hands it on with its other annotations.
"""

from __future__ import annotations

FIRST_EVICTED = "ui.volcano.sh/first-evicted"
"""On a pod group, and on a job whose group is gone: since when pods of it have been evicted for others."""
