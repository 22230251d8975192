"""What the pages read from jobs' records: the runs of a living job, a deleted job, what containers ran."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cluster.store import Stored, log, records, store
from cluster.writes import Record
from jobs.consumers import gather
from jobs.consumers.gather import Ref
from jobs.history import fold, record
from jobs.history.record import History, PodSpan, Stretch
from jobs.lifecycle.progress import STOPPED
from jobs.lifecycle.reading import Job, Pod, moment
from kube import owners
from kube.kinds.batch import JobPhase
from kube.resources import JOBS, PODS

# A job that was never in one of these has had one run.
_TURNS = (JobPhase.RESTARTING, JobPhase.ABORTING, JobPhase.ABORTED)
SECOND_MS = 1000
MAX_RESTARTED = 500  # pods whose earlier containers the page looks up


def of_living(stored: Stored, job: Job) -> History:
    """Return the record of a living job's runs; an empty one if it has had a single run whose pods all exist.

    What the record lacks is read from the log, so a page never waits for the recorder.
    """
    # When a job ends, its remaining pods are stopped and deleted; those that ended by themselves stay.
    lacks_pods = job.phase in STOPPED and job.status.succeeded + job.status.failed < job.replicas
    if job.since(*_TURNS) is None and not lacks_pods:
        return History()
    recorded = records.by_uid(JOBS, [stored.uid]).get(stored.uid)
    history = record.read(recorded.history) if recorded else History()
    if history.version == job.status.version and history.is_over:
        return history
    with store.reading() as revision:
        gathered = gather.up_to(revision, [Ref(stored.namespace, stored.name, stored.uid)])
    return record.read(gathered[stored.uid].history) if stored.uid in gathered else history


def phases(jobs: Sequence[Stored]) -> dict[str, list[tuple[str, int]]]:
    """Return the phases of jobs with their times (ms), by the jobs' uids."""
    if not jobs:
        return {}
    with store.reading():
        by_uid = gather.phases([Ref(each.namespace, each.name, each.uid) for each in jobs])
    return {uid: [(each.phase, each.at) for each in transitions] for uid, transitions in by_uid.items()}


def of_deleted(namespace: str, name: str, uid: str = "") -> Record | None:
    """Return the record of a deleted job, by its uid or, if "", the last one of the name; None if unknown."""
    if not uid:
        changes = store.history(JOBS, namespace, name, limit=1)
        newest = changes[0] if changes else records.newest(JOBS, namespace, name)
        if newest is None:
            return None
        uid = newest.uid
    with store.reading() as revision:
        gathered = gather.up_to(revision, [Ref(namespace, name, uid)]).get(uid)
    is_ours = gathered is not None and (gathered.namespace, gathered.name) == (namespace, name) and gathered.deleted
    return gathered if is_ours else None


def stored_of(recorded: Record) -> Stored:
    """Return the last version of a deleted job."""
    key = recorded.namespace, recorded.name, recorded.uid
    return Stored(JOBS.id, *key, recorded.revision, recorded.created, recorded.object)


def pod(namespace: str, name: str, uid: str, job_uid: str) -> Pod | None:
    """Return a pod from the record of its job; None if that has none of this name and uid."""
    recorded = records.by_uid(JOBS, [job_uid]).get(job_uid)
    if recorded is None or recorded.namespace != namespace:
        return None
    spans = (run.pods.get(uid) for run in record.read(recorded.history).runs)
    found = next((span.pod for span in spans if span is not None), None)
    return found if found is not None and found.metadata.name == name else None


def stretches(namespace: str, uid: str, pods: Sequence[Pod]) -> dict[str, list[Stretch]]:
    """Return what the containers of a job's living pods ran, by the pods' uids; only for pods with restarts."""
    restarted = {pod.metadata.uid: pod for pod in pods if pod.restarts}
    if not restarted:
        return {}
    recorded = records.by_uid(JOBS, [uid]).get(uid)
    runs = record.read(recorded.history).runs if recorded else []
    spans = {pod: span for run in runs for pod, span in run.pods.items()}
    by_pod = {pod: list(spans[pod].stretches) for pod in restarted if pod in spans}
    names = [pod.metadata.name for pod in restarted.values()][:MAX_RESTARTED]
    for change in log.of_names(PODS, namespace, names):
        if change.uid in restarted:
            by_pod[change.uid] = fold.stretches_after(by_pod.get(change.uid, []), change.read(Pod))
    return by_pod


def replaced(stored: Stored, names: Sequence[str], living: Collection[str], begun: int) -> list[PodSpan]:
    """Return the pods of a job's newest run that are gone while it goes on, in order of creation.

    They are found by `names`. `living` are the uids of existing pods, `begun` is when the run began, in ms. The log
    has their last version, the record those that the log no longer has.
    """
    with store.reading():
        lives = log.lives(PODS, stored.namespace, names)
        changes = log.at(sorted(life.newest for uid, life in lives.items() if uid not in living))
    recorded = records.by_uid(JOBS, [stored.uid]).get(stored.uid)
    runs = record.read(recorded.history).runs if recorded else []
    removed = {uid: span for uid, span in runs[-1].pods.items() if span.removed} if runs else {}
    logged = {}
    for change in changes:
        owner = owners.controller_of(change.object)
        if owner is None or owner.uid != stored.uid:
            continue
        pod = change.read(Pod)
        # Its creation time is in whole seconds: use its first change, unless the log lost that.
        created, first = moment(pod.metadata.creation_timestamp), lives[change.uid].first
        if created is None or created <= first < created + SECOND_MS:
            created = first
        logged[change.uid] = PodSpan(pod=pod, created=created, removed=change.at)
    spans = {uid: span for uid, span in (removed | logged).items() if uid not in living}
    ours = (span for span in spans.values() if span.created >= begun // SECOND_MS * SECOND_MS)
    return sorted(ours, key=lambda span: (span.created, span.pod.metadata.name))
