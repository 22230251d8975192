"""The buttons for what a reader may do with a job, and the result of the last action."""

from __future__ import annotations

from django.template.loader import render_to_string

from cluster.access import Actor
from dashboard import reserved_room
from jobs.operations import allowed_actions, single
from jobs.pages.job.detail import Detail
from jobs.rules import actions


def html(detail: Detail, actor: Actor) -> str:
    """Return the buttons for what the actor may do with the job now, each with its effect."""
    allowed = allowed_actions.allowed(actor, detail.job)
    if detail.deleted:
        allowed = [action for action in allowed if action is actions.CLONE]
    room = reserved_room.of_group(actor, detail.stored_group)
    about = actions.extent([detail.job])
    context = {
        "job": detail.job,
        "stored": detail.stored,
        "deleted": detail.deleted,
        "room": room if room is not None and room.may_release else None,
        "names": [action.name for action in allowed],
        "confirmed": [
            (action, actions.effect(action, about, single.retention()))
            for action in allowed
            if action in actions.CONFIRMED
        ],
    }
    return render_to_string("jobs/_actions.html", context)


def outcome(detail: Detail, now: int) -> tuple[str, int | None]:
    """Return the result of the last action that was requested of the job, and when (epoch ms) its text changes."""
    item = single.latest(detail.stored.uid, now)
    living = None if detail.deleted else detail.job
    verdict = None if item is None else single.verdict(item, living, now)
    html = render_to_string("jobs/_asked.html", {"item": item, "verdict": verdict, "stored": detail.stored})
    return html, None if item is None else single.again(item, verdict, now)
