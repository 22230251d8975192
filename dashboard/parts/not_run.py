"""Jobs of `batch/v1`, which are stored and not run here: their number, wherever jobs are counted.

Lists and figures of jobs are about Volcano's; without this line a user who applied another one would look for it in vain.
"""

from __future__ import annotations

from urllib.parse import urlencode

from django.template.loader import render_to_string

from cluster import access
from cluster.access import Actor
from cluster.api import backend
from cluster.store import store
from dashboard.live import Watch
from dashboard.parts import scope
from kube.resources import BATCH_JOBS


def line(actor: Actor, part: str, **values: str) -> str:
    """Return the part of a page that says how many match the filters, with a link to them; empty if none does.

    `values` are the filters of the list of jobs, by their names there. A mirrored cluster runs such jobs itself.
    """
    chosen = {name: value for name, value in values.items() if value}
    number = 0
    # These jobs have no queue, phase or cause of Volcano's, so that a filter by one matches none.
    if chosen.keys() <= {"q", "namespace", "owner"} and not backend.is_mirror:
        namespaces = scope.namespaces_of(chosen.get("namespace", ""), access.namespaces(actor, BATCH_JOBS))
        counts = store.count(BATCH_JOBS, namespace=namespaces, text=chosen.get("q"), creator=chosen.get("owner"))
        number = sum(counts.values())
    context = {"part": part, "number": number, "query": urlencode(chosen), **chosen}
    return render_to_string("partials/_not_run.html", context)


def watches(actor: Actor, namespace: str) -> list[Watch]:
    """Return the changes that make the line stale."""
    if backend.is_mirror:
        return []
    return scope.watches(BATCH_JOBS.id, namespace, access.namespaces(actor, BATCH_JOBS))
