"""One round of work on a job, as writes: pods to create and delete, the job's other objects, and events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from cluster.rules import ranges as limit_ranges
from cluster.writes import Create, Delete, Patch, Write
from jobs.controller import job_events, namespace_limits, plugin_objects, pod_diff, pod_group
from jobs.controller.facts import JobFact, PodFact
from jobs.controller.namespace_limits import PodPosition
from jobs.controller.observed import Reading
from jobs.controller.pods import Blueprint, claim_name
from jobs.lifecycle import messages
from jobs.lifecycle.policy_firings import PolicyFiring
from jobs.plugins.contract import KeyPair
from kube import events
from kube.kinds.pod import OUT_OF_SYNC
from kube.meta import Object
from kube.resources import CLAIMS, EVENTS, JOBS, POD_GROUPS, PODS
from kube.volcano.evictions import FIRST_EVICTED


class Round:
    """The writes of a round, in order.

    `room` is how many more pods the round may create or delete. The others describe the job after the writes: `counts`
    are its pods; `in_step` says whether pod group and plugin objects are as the job wants them; `again`, whether another
    round is needed. `refusal` says why limit ranges or quotas do not allow pods, "" if they do.
    """

    def __init__(self, reading: Reading, now: int, room: int, keys: KeyPair | None) -> None:
        self.now, self.room = now, room
        self.writes: list[Write] = []
        self.counts = reading.diff.counts
        self.in_step = reading.observed.in_step
        self.again = False
        self.refusal = ""
        self._reading, self._keys = reading, keys
        self._job, self._namespace = reading.job, reading.job.namespace
        self._events: set[tuple[str, str]] = set()

    @cached_property
    def whole(self) -> Object:
        """The job as it is stored, decoded on first use."""
        return self._job.whole()

    def make_pods(self) -> None:
        """Create the missing pods that `room`, limit ranges and quotas allow."""
        reading, world, namespace = self._reading, self._reading.world, self._namespace
        missing = pod_diff.missing(self._job, reading.observed.pods, reading.diff)
        ranges, account = world.ranges.get(namespace, ()), world.accounts.get(namespace)
        bounds = [each for each in ranges if limit_ranges.bounds(each)]
        is_bound = bool(bounds) or account is not None
        wanted = list(missing if is_bound else islice(missing, self.room))
        if not wanted:
            return
        claims = world.claims.get(namespace, ())
        blueprints: dict[int, Blueprint] = {}

        def pod(position: PodPosition) -> Object:
            task, index = position
            if task not in blueprints:
                blueprints[task] = Blueprint(self._job, self.whole, task, world.priorities, claims, ranges)
            return blueprints[task].pod(index)

        if is_bound:
            alive = self.counts.pending + self.counts.started
            wanted, self.refusal = namespace_limits.choose(self._job, wanted, alive, pod, bounds, account)
            wanted = wanted[: self.room]
        self.room -= len(wanted)
        if wanted:
            self.writes.extend(Create(PODS, pod(position)) for position in wanted)
            self._report_created(wanted, claims)

    def _report_created(self, created: Sequence[PodPosition], claims: Collection[str]) -> None:
        for task, number in Counter(task for task, _ in created).items():
            self.counts.add_pending(self._job.tasks[task].name, number)
        for volume in self.whole["spec"].get("volumes") or () if not self._reading.observed.pods else ():
            name = volume.get("volumeClaimName")
            if name and name not in claims:
                text = f"There is no claim {name} in namespace {self._namespace}; the pods get an empty directory at {volume['mountPath']}."
                self.send_event("ClaimMissing", text, events.WARNING)
        if self._job.replicas == 1:
            return  # the pod itself shows it
        total = f" of {self._job.replicas}" if len(created) < self._job.replicas else ""
        self.send_event("SuccessfulCreate", f"Created {len(created)}{total} pods.")

    def delete_pods(self, unwanted: Iterable[PodFact], why: str, *, is_surplus: bool = False) -> None:
        """Delete pods up to `room`, marked first so that it does not count as an eviction (reference: volcano-job §10, Q-3)."""
        deleted = list(islice(unwanted, self.room))
        self.room -= len(deleted)
        for pod in deleted:
            if not pod.out_of_sync:
                mark = {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}}
                self.writes.append(Patch(PODS, self._namespace, pod.name, mark, uid=pod.uid))
            self.writes.append(Delete(PODS, self._namespace, pod.name, uid=pod.uid))
            if pod.name not in self._reading.diff.leftovers:
                self.counts.end("" if is_surplus else pod.task, pod.phase)
        self.counts.sum_up()
        if deleted:
            self.send_event("SuccessfulDelete", f"Deleted {messages.pods(len(deleted))}: {why}.")

    def bring_in_step(self) -> None:
        """Bring the pod group and the plugin objects in line with the job, unless they already are."""
        job, observed = self._job, self._reading.observed
        group = observed.group
        if group is not None and observed.in_step:
            return
        self.in_step = True
        world, whole = self._reading.world, self.whole
        self.writes += plugin_objects.in_step(job, whole, observed.plugin_objects, self._keys)
        if group is None:
            self.writes += _claims(job, whole, world.claims.get(self._namespace, ()))
            for name in plugin_objects.left_alone(job, whole, observed.plugin_objects):
                text = f"{name} was there before and is left as it is; delete it to have the plugin's."
                self.send_event("PluginError", text, events.WARNING)
            self.writes.append(Create(POD_GROUPS, pod_group.pod_group(job, whole, world.priorities)))
            return
        changes = pod_group.spec_changes(job, whole, group.spec, world.priorities)
        if changes:
            self.writes.append(Patch(POD_GROUPS, self._namespace, group.name, {"spec": changes}, uid=group.uid))

    def end_run(self, ending: Sequence[PodFact], why: str) -> dict[str, Any]:
        """Delete these pods, the plugin objects and the pod group; return the status changes (reference: volcano-job §2.2)."""
        job, group = self._job, self._reading.observed.group
        self.again = len(ending) > self.room
        self.delete_pods(ending, why)
        self.writes += plugin_objects.end(job, self._reading.observed.plugin_objects)
        self.in_step = False
        if group is not None:
            self.writes.append(Delete(POD_GROUPS, self._namespace, group.name, uid=group.uid))
            # Only the pod group holds when its pods were first evicted for others: copy that to the job before it goes.
            noted = (self.whole["metadata"].get("annotations") or {}).get(FIRST_EVICTED)
            if group.first_evicted not in ("", noted):
                patch = {"metadata": {"annotations": {FIRST_EVICTED: group.first_evicted}}}
                self.writes.append(Patch(JOBS, self._namespace, job.name, patch, uid=job.uid))
        if not ending and group is None:
            return {}
        return {"version": job.version + 1}

    def send_event(
        self, reason: str, message: str, kind: str = events.NORMAL, firing: PolicyFiring | None = None
    ) -> None:
        """Add an Event; the same reason and message are added once per round."""
        if (reason, message) in self._events:
            return
        self._events.add((reason, message))
        self.writes.append(
            Create(EVENTS, job_events.event(self._job, reason, message, self.now, kind=kind, firing=firing))
        )


def _claims(job: JobFact, whole: Object, existing: Collection[str]) -> Iterator[Write]:
    """Yield writes of the missing claims that volumes describe, and of their names into the job (reference: volcano-job §4.3)."""
    volumes = whole["spec"].get("volumes") or []
    named = []
    for number, volume in enumerate(volumes):
        if not volume.get("volumeClaim"):
            named.append(volume)
            continue
        name = volume.get("volumeClaimName") or claim_name(job, number)
        named.append({**volume, "volumeClaimName": name})
        if name not in existing:
            yield Create(CLAIMS, plugin_objects.owned(job, whole, CLAIMS, name, {"spec": volume["volumeClaim"]}))
    if named != volumes:
        yield Patch(JOBS, job.namespace, job.name, {"spec": {"volumes": named}}, uid=job.uid)
