"""Who wrote what: the log does not say it, and of deletions it matters."""

from __future__ import annotations

from cluster.store import Change
from kube.kinds.pod import ENDED
from kube.meta import Object, parse_time
from kube.resources import BATCH_JOBS, CLAIMS, CONFIGMAPS, CRON_JOBS, JOB_FLOWS, JOBS, NAMESPACES, PODS, SECRETS
from proof.invariants import Broken
from proof.invariants.jobs import FINISHED
from proof.simulation.parts.faults import Steps
from proof.simulation.parts.machine import Processes
from proof.simulation.people.picture import LogPicture

# Where the collector runs, those who empty namespaces, cron jobs and flows; the last two elsewhere in a remote world.
COLLECTORS = ("controllers", "manager")
# Kinds that no controller of this queue deletes for a reason of its own.
OWNED = frozenset(kind.id for kind in (CONFIGMAPS, CLAIMS, SECRETS, JOBS, BATCH_JOBS))
ENDS_JOBS = "jobs"  # the queue of the job controller
NAME = "nothing goes with somebody else"
IN_TIME = "jobs go when their time is over"
AGENT = "agent"
OUTLIVED = "nothing outlives its pod"


class Doers:
    """Judges who ends what.

    The collector deletes only what is in a namespace that goes, or whose owners
    all go; cron jobs and flows, which work beside it, jobs of their own that
    have ended or are replaced. The job controller: only jobs that are finished, for as long as
    their `ttlSecondsAfterFinished` says (reference: volcano-job §6.2). Of what
    the agent calls ended nothing runs. `picture` is the cluster before the change.
    """

    def __init__(self, steps: Steps, picture: LogPicture, machine: Processes) -> None:
        self.steps = steps
        self.picture = picture
        self.machine = machine
        self.last: tuple[int, str] = (0, "")
        self.of: dict[int, str] = {}  # the last revision of each commit → who made it
        self.meta: dict[str, Object] = {}  # uid → metadata
        self.namespaces: dict[str, str] = {}  # name → uid

    def committed(self, touched: frozenset[str], revision: int) -> None:
        """Note who has written up to a revision: a listener of the store."""
        move = self.steps.taken[-1].move if self.steps.taken else None
        self.of[revision] = getattr(move, "process", "")

    def take(self, change: Change) -> None:
        """Judge a change."""
        doer, before = self._doer(change.revision), self.meta.get(change.uid, {})
        if change.resource == NAMESPACES.id:
            self.namespaces[change.name] = change.uid
        metadata = _metadata(change)
        is_end = change.verb == "DELETED" or "deletionTimestamp" in metadata
        if is_end and "deletionTimestamp" not in before and change.resource in OWNED:
            if doer in COLLECTORS:
                self._judge(change, before)
            elif doer == ENDS_JOBS and change.resource == JOBS.id:
                _judge_end_of_job(change)
        if change.resource == PODS.id and doer == AGENT:
            self._judge_end(change)
        if change.verb == "DELETED":
            self.meta.pop(change.uid, None)
        else:
            self.meta[change.uid] = metadata

    def _doer(self, revision: int) -> str:
        """Return which kind of process wrote a revision; they come in order."""
        while self.last[0] < revision:
            later = min((r for r in self.of if r >= revision), default=None)
            if later is None:
                return ""
            self.last = later, self.of.pop(later)
        return self.last[1].partition("+")[0]

    def _judge(self, change: Change, before: Object) -> None:
        namespace = self.meta.get(self.namespaces.get(change.namespace, ""))
        if namespace is None or "deletionTimestamp" in namespace:
            return
        owners = [owner["uid"] for owner in before.get("ownerReferences") or ()]
        keeping = [uid for uid in owners if uid in self.meta and "deletionTimestamp" not in self.meta[uid]]
        if keeping and self._is_done_with(change, before):
            return
        if not owners or keeping:
            why = "an owner of it lives" if keeping else "it belongs to nobody"
            raise Broken(NAME, change.revision, f"{change.resource}/{change.key}", f"was deleted, and {why}")

    def _is_done_with(self, change: Change, before: Object) -> bool:
        """Whether a cron job or a flow deletes a job of its own: one that has ended, or that another one replaces."""
        owner: Object = next((each for each in before["ownerReferences"] if each.get("controller")), {})
        kind = {each.kind: each for each in (CRON_JOBS, JOB_FLOWS)}.get(owner.get("kind", ""))
        job = self.picture.objects(change.resource).get((change.namespace, change.name))
        if change.resource != JOBS.id or kind is None or job is None:
            return False
        maker = self.picture.objects(kind.id).get((change.namespace, owner["name"])) or {"spec": {}}
        has_ended = ((job.get("status") or {}).get("state") or {}).get("phase") in FINISHED
        return has_ended or maker["spec"].get("concurrencyPolicy") == "Replace"

    def _judge_end(self, change: Change) -> None:
        """Raise Broken when the agent ends a pod of which something runs.

        Source: docs/design/node.md: its status is what the attempts on disk add up to. A pod that somebody
        else has given up has ended before that is done.
        """
        before = self.picture.objects(PODS.id).get((change.namespace, change.name))
        has_ended = change.verb == "DELETED" or _phase(change.object) in ENDED
        if has_ended and _phase(before) not in ENDED:
            self._expect_nothing_of(change.uid, change.key, change.revision)

    def settle(self) -> None:
        """At rest: raise Broken when something runs whose pod has ended or is gone."""
        phases = {pod["metadata"]["uid"]: _phase(pod) for pod in self.picture.objects(PODS.id).values()}
        for uid, _ in self.machine.running:
            if phases.get(uid, ENDED[0]) in ENDED:
                self._expect_nothing_of(uid, uid, self.last[0])

    def _expect_nothing_of(self, uid: str, key: str, revision: int) -> None:
        living = self.machine.living(uid)
        if living:
            text = f"has ended, and {', '.join(living)} of it runs"
            raise Broken(OUTLIVED, revision, f"{PODS.id}/{key}", text)


def _phase(pod: Object | None) -> str:
    """Return the phase of a pod; of one that is not there, Succeeded."""
    return str(((pod or {"status": {"phase": "Succeeded"}}).get("status") or {}).get("phase") or "")


def _judge_end_of_job(change: Change) -> None:
    """Judge the end of a job by its own TTL."""
    lasts = change.object["spec"].get("ttlSecondsAfterFinished")
    state = (change.object.get("status") or {}).get("state") or {}
    if state.get("phase") not in FINISHED or lasts is None:
        why = f"it is {state.get('phase') or 'new'}" if lasts is not None else "it has no TTL"
    elif parse_time(state["lastTransitionTime"]) + lasts * 1000 > change.at:
        why = f"its TTL of {lasts} s is not over"
    else:
        return
    raise Broken(IN_TIME, change.revision, f"{change.resource}/{change.key}", f"was deleted, and {why}")


def _metadata(change: Change) -> Object:
    """Return as much of an object's metadata as matters: of what is only an owner, whether it goes."""
    if change.resource in OWNED:
        metadata: Object = change.object["metadata"]
        return metadata
    return {"deletionTimestamp": ""} if b'"deletionTimestamp"' in change.body else {}
