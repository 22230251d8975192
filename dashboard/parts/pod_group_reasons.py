"""Why jobs wait whose own status does not say it: Volcano's controllers leave that to the pod group."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.remote import freshness
from cluster.store import Stored, store
from kube.kinds.batch import JobState
from kube.kinds.fields import View
from kube.kinds.meta import Condition
from kube.kinds.scheduling import PodGroupStatus
from kube.resources import POD_GROUPS
from kube.volcano.waiting import holding

_WAITING = ("", "Pending", "Restarting")


class _Status(View):
    state: JobState = JobState()


class _Job(View):
    status: _Status = _Status()


class _Group(View):
    status: PodGroupStatus = PodGroupStatus()


def of(jobs: Sequence[Stored]) -> dict[str, Condition]:
    """Return by uid the conditions that say why jobs wait; only of jobs whose status has no message.

    They are those of the pod groups, and of a job whose group says nothing that a program of Volcano does not work, if that is so.
    """
    silent = {f"{each.key}-{each.uid}": each.uid for each in jobs if _is_silent(each.read(_Job).status.state)}
    if not silent:
        return {}
    groups, absence = store.by_keys(POD_GROUPS, list(silent)), freshness.absence()
    conditions = {silent[key]: holding(group.read(_Group).status.conditions) for key, group in groups.items()}
    reasons = {uid: condition for uid, condition in conditions.items() if condition.message}
    return ({uid: Condition(message=absence) for uid in silent.values()} if absence else {}) | reasons


def _is_silent(state: JobState) -> bool:
    return state.phase in _WAITING and not state.message
