"""Which jobs a bulk operation is about: the ticked ones, or all that match the filters of a list."""

from __future__ import annotations

from django.http import QueryDict

from cluster import access, clock
from cluster.access import Actor
from cluster.store import store
from dashboard.parts.table import TableView
from jobs.operations.drafts import Selection
from jobs.pages.job_list import listing
from kube.errors import BadRequest
from kube.resources import JOBS

MOST = 50_000  # jobs of one operation: its items are stored before it is confirmed
TICKED, ALL = "ticked", "all"


def read(actor: Actor, form: QueryDict) -> Selection:
    """Return the jobs that a form selects and the actor may list; raise BadRequest if there are none or too many."""
    if form.get("which") == ALL:
        view = listing.SPEC.read(form)
        if view.notes:
            # Ignoring a filter would select more jobs than were meant.
            raise BadRequest(f"The filters could not be read, so nothing was chosen. {' '.join(view.notes)}")
        keys = _matching(actor, view)
        filters = view.filters_text()
        about = f"all that match {filters}" if filters else "all jobs in sight"
        lacking = "No job matches these filters any more. Nothing was done."
    else:
        uids = form.getlist("uid")
        if not uids:
            raise BadRequest("No job is ticked. Tick some in the list, or choose all that match.")
        keys = _matching(actor, listing.SPEC.read({}), uid=uids)
        about, lacking = "ticked in the list", "The jobs that were ticked are gone. Nothing was done."
    if not keys:
        raise BadRequest(lacking)
    if len(keys) > MOST:
        raise BadRequest(f"{len(keys):,} jobs match; one operation takes {MOST:,} at most. Narrow the filters.")
    return Selection(keys, about)


def _matching(actor: Actor, view: TableView, **more: list[str]) -> dict[str, str]:
    chosen = listing.filters(view, access.namespaces(actor, JOBS), clock.milliseconds())
    keys = store.names(JOBS, **chosen, **more)
    return dict(sorted(keys.items(), key=lambda pair: pair[1]))
