"""What protects pods from eviction in one cycle beyond their own settings: budgets, and that they have just started, or started again.

Rules: reference/volcano-scheduler §3.11 (pdb, cdp), kubernetes-api §4.7.

* A budget counts, of the pods that it selects and that have not ended, those that run and are ready. As many as exceed its need
  may be evicted in one cycle, for whatever groups. All budgets of a pod must allow it.
* The annotations of a pod group are a budget for its pods, which counts those that run.
* Only running pods count: a pod that has not started, or is terminating, may always go. So may one that is not ready, where the
  budget says so or has enough others.
* A pod that asks for time to cool down (`volcano.sh/cooldown-time`) stays for as long after it got its node.
* Reclaim spares what was evicted before and has started again, for a while (`scheduler.gangs.min_runtime`).

Nothing is computed where there is no budget, no time to cool down and no earlier eviction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property

from cluster.rules.disruption import says_ready
from kube.meta import duration_words, parse_time
from kube.usage import value_of
from scheduler.gangs.evictable import could_go
from scheduler.gangs.fruitless import Protected
from scheduler.gangs.min_runtime import stays_until, whole_until
from scheduler.reasons.sentence import clock
from scheduler.records.budgets import Budget, allowed_by_group
from scheduler.records.demands import labels_of
from scheduler.records.records import Group, Pod, TaskStatus
from scheduler.snapshot.snapshot import Snapshot
from scheduler.victims.units import Allowance

Uses = tuple[tuple[Allowance, int], ...]
"""Budgets, each with how many of some pods it counts."""

Nodes = Callable[[], Collection[str] | None]

COOLING = "the time to cool down that they ask for"
STARTED_AGAIN = "the minimum run time after an eviction (minRuntime {}), until {}"
_ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


class Protection:
    """Which pods may not be evicted in one cycle, and how many each budget allows."""

    def __init__(self, snapshot: Snapshot, now: int) -> None:
        self._snapshot, self._now = snapshot, now
        self._allowances: dict[str, Allowance] = {}
        self._of_labels: dict[tuple[str, bytes], tuple[Budget, ...]] = {}
        self._by_namespace: dict[str, list[Pod]] | None = None
        self._started_again: dict[str, dict[str, int]] = {}
        self._cooling: dict[str, dict[str, int]] = {}
        for key, pod in snapshot.cooling.items() if snapshot.policy.cooldown else ():
            until = _got_its_node(pod) + pod.cooldown
            if until > now:
                self._cooling.setdefault(pod.group, {})[key] = until

    def concerns(self, group: Group) -> bool:
        """Tell, at little cost, whether any budget or any time to cool down may concern pods of a group."""
        return group.namespace in self._snapshot.budgets or group.key in self._cooling or _has_annotations(group)

    def may_concern(self, group: Group, pods: Iterable[Pod]) -> bool:
        """Tell whether budgets, or time to cool down, may protect pods of a group once these run."""
        policy = self._snapshot.policy
        if policy.budgets and _has_annotations(group):
            return True
        return any((policy.cooldown and pod.cooldown) or (policy.budgets and self._budgets_of(pod)) for pod in pods)

    def cooling(self, group: Group) -> Mapping[str, int]:
        """Return by key the pods of a group that have just started, with until when each stays (ms)."""
        return self._cooling.get(group.key, {})

    def started_again(self, group: Group) -> Mapping[str, int]:
        """Return by pod key until when (ms) reclaim spares pods of a group that was evicted before; empty for any other."""
        found = self._started_again.get(group.key)
        if found is None:
            first, least = group.first_evicted, self.min_runtime_ms
            pods = group.holders.values() if first is not None and least else ()
            found = {pod.key: stays_until(_got_its_node(pod), first or 0, least) for pod in pods}
            self._started_again[group.key] = found
        return found

    @property
    def min_runtime_ms(self) -> int:
        """How long pods run at least after an earlier eviction."""
        return self._snapshot.policy.min_runtime_ms

    @property
    def now(self) -> int:
        """The time of the cycle, in ms."""
        return self._now

    def uses(self, group: Group, pods: Iterable[Pod]) -> Uses:
        """Return the budgets that count pods of a group, each with how many of them."""
        if not self._snapshot.budgets and not _has_annotations(group):
            return ()
        found: Counter[Allowance] = Counter()
        own = self._of_group(group)
        for pod in pods:
            if pod.status is not TaskStatus.RUNNING:
                continue
            if own is not None:
                found[own] += 1
            for budget in self._budgets_of(pod):
                allowance = self._allowance(budget)
                if says_ready(value_of(pod.conditions)) or not (budget.unhealthy_go or allowance.enough):
                    found[allowance] += 1
        return tuple(found.items())

    def let_go(self, group: Group, pods: Iterable[Pod], most: int) -> list[Pod]:
        """Return the first pods, `most` at most, that all their budgets allow to evict, and charge the budgets with them."""
        found: list[Pod] = []
        for pod in pods:
            uses = self.uses(group, (pod,))
            if len(found) < most and all(budget.left >= count for budget, count in uses):
                found.append(pod)
                for budget, count in uses:
                    budget.left -= count
        return found

    def _of_group(self, group: Group) -> Allowance | None:
        name = f"the budget of pod group {group.key}"
        if name not in self._allowances:
            allowed = allowed_by_group(group)
            if allowed is None:
                return None
            self._allowances[name] = Allowance(name, allowed)
        return self._allowances[name]

    def _budgets_of(self, pod: Pod) -> tuple[Budget, ...]:
        budgets = self._snapshot.budgets.get(pod.namespace)
        if not budgets:
            return ()
        likeness = pod.namespace, bytes(pod.labels)
        found = self._of_labels.get(likeness)
        if found is None:
            labels = labels_of(pod.labels)
            found = tuple(each for each in budgets.values() if each.selects.matches(labels))
            self._of_labels[likeness] = found
        return found

    def _allowance(self, budget: Budget) -> Allowance:
        name = f"disruption budget {budget.key}"
        if name not in self._allowances:
            if self._by_namespace is None:  # pods that have not ended, of namespaces with budgets
                self._by_namespace = {each: [] for each in self._snapshot.budgets}
                for pod in self._snapshot.pods.values():
                    if pod.namespace in self._by_namespace and pod.status not in _ENDED:
                        self._by_namespace[pod.namespace].append(pod)
            pods = self._by_namespace[budget.key.partition("/")[0]]
            concerned = [pod for pod in pods if budget in self._budgets_of(pod)]
            healthy = sum(not pod.deleting and says_ready(value_of(pod.conditions)) for pod in concerned)
            needed = budget.needed(len(concerned))
            enough = needed > 0 and healthy >= needed
            self._allowances[name] = Allowance(name, max(healthy - needed, 0), enough)
        return self._allowances[name]


class ProtectedPods:
    """What one search finds protected, of pods that could be evicted otherwise.

    Where budgets are not heeded, they protect no pod and are not noted. Counted are only pods whose eviction could help.
    """

    def __init__(self, protection: Protection, nodes: Nodes, *, heeds_budgets: bool, heeds_runtime: bool) -> None:
        """nodes returns those where evictions could help, None for all."""
        self._protection, self._find_nodes = protection, nodes
        self._heeds_budgets, self._heeds_runtime = heeds_budgets, heeds_runtime
        self._counted: dict[Allowance, set[str]] = {}
        self._cooling: dict[str, int] = {}
        self._started_again: dict[str, int] = {}
        self._helpful: set[str] = set()

    @cached_property
    def _nodes(self) -> Collection[str] | None:
        return self._find_nodes()

    def concerns(self, group: Group) -> bool:
        """Tell whether anything may protect pods of a group from this search."""
        is_again = self._heeds_runtime and group.first_evicted is not None
        return is_again or self._protection.concerns(group)

    def heeded(self, uses: Uses) -> Uses:
        """Return those of these uses that this search heeds."""
        return uses if self._heeds_budgets else ()

    def protected(self, group: Group, pods: Iterable[Pod], *, together: bool, whole: bool) -> set[str]:
        """Return the keys of those pods of a group that may not be evicted now. together: all of them go, or none does.

        whole: all are to go at once, even where some could go alone.
        """
        found: set[str] = set()
        cooling = self._protection.cooling(group)
        going = [pod for pod in pods if could_go(pod, group)]
        helping = [pod.key for pod in going if self._nodes is None or pod.node in self._nodes]
        self._helpful.update((pod.key for pod in going) if together and helping else helping)
        for pod in going:
            if pod.key in cooling:
                self._cooling[pod.key] = cooling[pod.key]
                found.add(pod.key)
            for budget, count in self.heeded(self._protection.uses(group, (pod,))):
                self._counted.setdefault(budget, set()).add(pod.key)
                if budget.left < count:
                    found.add(pod.key)
        return found | self._run_too_short(group, going, whole=whole)

    def _run_too_short(self, group: Group, going: Iterable[Pod], *, whole: bool) -> set[str]:
        """Return the keys of those pods that were evicted before and have not run long enough since they started again."""
        restarts = self._protection.started_again(group) if self._heeds_runtime else {}
        stays = {pod.key: until for pod in going if (until := restarts.get(pod.key, 0))}
        if whole:
            stays = dict.fromkeys(stays, whole_until(stays.values()))
        found = {key: until for key, until in stays.items() if until > self._protection.now}
        for key, until in found.items():
            self._started_again[key] = min(until, self._started_again.get(key, until))
        return set(found)

    def counts(self) -> Protected:
        """Return how many pods each budget protects, and how many have just started, or started again; most first."""
        counts = [
            (budget.name, len(keys & self._helpful) - max(budget.left, 0)) for budget, keys in self._counted.items()
        ]
        counts.append((COOLING, len(self._cooling.keys() & self._helpful)))
        if again := self._started_again.keys() & self._helpful:
            least, until = self._protection.min_runtime_ms, max(self._started_again[key] for key in again)
            counts.append((STARTED_AGAIN.format(duration_words(least), clock(until)), len(again)))
        return tuple(sorted((each for each in counts if each[1] > 0), key=lambda each: (-each[1], each[0])))

    def has_budgets(self) -> bool:
        """Tell whether any of the pods that were looked at has a budget."""
        return bool(self._counted)

    def note_gone(self, victims: Iterable[tuple[Group, Iterable[Pod]]]) -> None:
        """Charge victims to their budgets, where this search did not heed these."""
        if not self._heeds_budgets:
            for group, pods in victims:
                for budget, count in self._protection.uses(group, pods):
                    budget.left -= count

    def until(self) -> int | None:
        """Return when the first pod that has just started, or started again, may be evicted, in ms; None where there is none."""
        return min((*self._cooling.values(), *self._started_again.values()), default=None)


def _has_annotations(group: Group) -> bool:
    notes = group.view.metadata.annotations if group.view else None
    return notes is not None and bool(notes.least_available or notes.most_unavailable)


def _got_its_node(pod: Pod) -> int:
    """Return when a pod got its node, in epoch ms; 0 where its conditions do not say."""
    for each in value_of(pod.conditions) or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "True":
            try:
                return parse_time(each.get("lastTransitionTime") or "")
            except ValueError:
                return 0
    return 0
