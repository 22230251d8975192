"""Decisions of the scheduler as rows, for the page of a job and the page of all decisions."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from django.template.loader import render_to_string

from cluster.store.decisions import StoredDecision
from kube.volcano.pod_groups import job_of

# The words for people of each kind (`scheduler.decided.Kind`), in the order in which a job meets them.
WORDS = MappingProxyType(
    {"refuse": "Waits", "enter": "Let in", "bind": "Bound", "return": "Taken back", "evict": "Evicted"}
)
KINDS = MappingProxyType({word: kind for kind, word in WORDS.items()})
MAX_NODES = 6  # that a row names; the others are a number with a hint


def rows(decisions: Iterable[StoredDecision], *, names_group: bool) -> dict[str, str]:
    """Return the row of each decision by its id, in order; with `names_group` also the job or pod group, and its queue."""
    html: dict[str, str] = {}
    for row in decisions:
        decision = row.decision
        other_namespace, _, other_name = decision.other.partition("/")
        context = {
            "id": f"decision-{row.id}",
            "decision": decision,
            "word": WORDS.get(decision.kind, decision.kind),
            "names_group": names_group,
            "job": job_of(decision.name),
            "other_namespace": other_namespace,
            "other_job": job_of(other_name),
            "nodes": decision.nodes[:MAX_NODES],
            "more": decision.nodes[MAX_NODES:],
        }
        html[f"decision-{row.id}"] = render_to_string("dashboard/_decision_row.html", context)
    return html
