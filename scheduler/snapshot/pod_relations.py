"""Which pods the demands of other pods are about, kept up to date from the log.

Labels of pods are read only when a demand needs them: a demand
(`scheduler.records.demands`) names selectors, and a pod has a *profile*, which
says which of the selectors in use select it, and what it demands itself. Pods
of different profiles have different shapes; nearly all pods have no profile.
Selectors in use are looked up by one of their labels, and so are the pods of a
new selector, so neither needs a scan of everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

from scheduler.records.demands import Demands, labels_of
from scheduler.records.profiles import Profile, Subject, subjects_of
from scheduler.records.records import Pod, TaskStatus

T = TypeVar("T")
MAX_UNUSED_KEYS = 16
"""From so many labels for looking up pods on, those that no selector in use needs are dropped."""

Anchor = tuple[str, str | None]
"""A label that selected pods have, with its value; None for any value."""


class PodRelations:
    """The demands of all pods that run or wait, and the pods that they are about.

    pods and namespaces (their labels) are only read here; the owner keeps them up to date.
    """

    def __init__(self, pods: Mapping[str, Pod], namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._pods, self._namespaces = pods, namespaces
        self._demands: Counter[Demands] = Counter()
        self._subjects: dict[Subject, int] = {}
        self._by_anchor: dict[Anchor, set[Subject]] = {}
        self._elsewhere: set[Subject] = set()
        self._pods_by_label: dict[str, dict[str, set[str]]] = {}
        self.repelled: dict[Subject, Counter[str]] = {}
        """Subjects to which some pod has an anti-affinity, by topology."""
        self.leaned: dict[Subject, Counter[tuple[str, int]]] = {}
        """Subjects that some pod prefers to be near or, with a negative weight, away from, by topology and weight."""

    def __bool__(self) -> bool:
        """Whether any pod has demands about other pods."""
        return bool(self._demands)

    def profile(self, pod: Pod) -> Profile | None:
        """Return the profile of a pod; None if it has no demands and no selector in use selects it."""
        if not self._demands or not counts(pod):
            return None
        demands, selected = demands_in_force(pod), self._selecting(pod)
        return Profile(demands, selected) if demands is not None or selected else None

    def add(self, demands: Demands | None) -> list[str]:
        """Count the demands of one more pod; return the pods whose profile may change by that."""
        affected: list[str] = []
        if demands is None:
            return affected
        self._demands[demands] += 1
        if self._demands[demands] > 1:
            return affected
        self._mind(demands, 1)
        for subject in subjects_of(demands):
            self._subjects[subject] = self._subjects.get(subject, 0) + 1
            if self._subjects[subject] == 1:
                self._enter(subject)
                affected += self._members(subject)
        return affected

    def remove(self, demands: Demands | None) -> list[str]:
        """Count the demands of one pod less; return the pods whose profile may change by that."""
        affected: list[str] = []
        if demands is None:
            return affected
        self._demands[demands] -= 1
        if self._demands[demands]:
            return affected
        del self._demands[demands]
        self._mind(demands, -1)
        for subject in subjects_of(demands):
            self._subjects[subject] -= 1
            if not self._subjects[subject]:
                del self._subjects[subject]
                affected += self._members(subject)
                self._leave(subject)
        return affected

    def _mind(self, demands: Demands, sign: int) -> None:
        """Count the subjects of anti-affinities and of leanings; sign is -1 to remove them."""
        for term in demands.anti_affinity:
            _count(self.repelled, (term.pods,), term.topology, sign)
        for each in demands.leanings:
            _count(self.leaned, (each.term.pods,), (each.term.topology, each.weight), sign)

    def index(self, key: str, pod: Pod, *, present: bool) -> None:
        """Add a pod to the look-up of pods by labels, or remove it if it is not present."""
        if not self._pods_by_label or not counts(pod):
            return
        labels = labels_of(pod.labels)
        for name, by_value in self._pods_by_label.items():
            if name in labels:
                _note(by_value, labels[name], key, present=present)

    def of_namespace(self, namespace: str) -> list[str]:
        """Return the pods whose profile may change when the labels of their namespace change."""
        if not any(each.of_namespaces.requirements for subject in self._subjects for each in subject):
            return []
        return [key for key, pod in self._pods.items() if pod.namespace == namespace]

    def _selecting(self, pod: Pod) -> frozenset[Subject]:
        """Return the subjects in use that a pod belongs to."""
        if not self._subjects:
            return frozenset()
        labels = labels_of(pod.labels)
        candidates = set(self._elsewhere)
        for name, value in labels.items():
            candidates |= self._by_anchor.get((name, value), _NOBODY)
            candidates |= self._by_anchor.get((name, None), _NOBODY)
        return frozenset(subject for subject in candidates if self._is_member(subject, pod, labels))

    def _is_member(self, subject: Subject, pod: Pod, labels: Mapping[str, str]) -> bool:
        return all(
            each.labels.matches(labels)
            and (each.leaving or not pod.deleting)
            and (pod.namespace in each.namespaces or each.of_namespaces.matches(self._namespaces.get(pod.namespace)))
            for each in subject
        )

    def _members(self, subject: Subject) -> Iterable[str]:
        """Return the pods that may belong to a subject."""
        if any(each.labels.nothing for each in subject):
            return ()
        anchors = _anchors(subject)
        if not anchors:
            return list(self._pods)
        by_value = self._labelled(anchors[0][0])
        return [
            key
            for _, wanted in anchors
            for value in (list(by_value) if wanted is None else [wanted])
            for key in by_value.get(value, ())
        ]

    def _labelled(self, name: str) -> dict[str, set[str]]:
        """Return the pods that have a label, by its value; the look-up by this label is kept from now on."""
        by_value = self._pods_by_label.get(name)
        if by_value is None:
            if len(self._pods_by_label) >= MAX_UNUSED_KEYS:
                used = {name for name, _ in self._by_anchor}
                self._pods_by_label = {name: pods for name, pods in self._pods_by_label.items() if name in used}
            by_value = self._pods_by_label[name] = {}
            for key, pod in self._pods.items():
                value = labels_of(pod.labels).get(name) if counts(pod) else None
                if value is not None:
                    _note(by_value, value, key, present=True)
        return by_value

    def _enter(self, subject: Subject) -> None:
        anchors = _anchors(subject)
        for anchor in anchors:
            self._by_anchor.setdefault(anchor, set()).add(subject)
        if not anchors:
            self._elsewhere.add(subject)

    def _leave(self, subject: Subject) -> None:
        self._elsewhere.discard(subject)
        for anchor in _anchors(subject):
            self._by_anchor[anchor].discard(subject)
            if not self._by_anchor[anchor]:
                del self._by_anchor[anchor]


_NOBODY: frozenset[Subject] = frozenset()


def counts(pod: Pod) -> bool:
    """Tell whether a pod counts for rules about other pods: it holds a node, or waits for this scheduler."""
    return pod.holds or (pod.ours and pod.status is TaskStatus.PENDING)


def demands_in_force(pod: Pod) -> Demands | None:
    """Return the demands of a pod that count now: once it has a node, only those that other pods must heed."""
    if pod.demands is None or not counts(pod):
        return None
    return pod.demands.lasting() if pod.holds else pod.demands


def _anchors(subject: Subject) -> tuple[Anchor, ...]:
    """Return labels of which every member of a subject has at least one; empty where none is certain."""
    conditions = [each for selector in subject for each in selector.labels.requirements]
    for condition in conditions:
        if condition.operator == "In":
            return tuple((condition.key, value) for value in sorted(condition.values))
    for condition in conditions:
        if condition.operator == "Exists":
            return ((condition.key, None),)
    return ()


def _count(counters: dict[Subject, Counter[T]], subject: Subject, key: T, by: int) -> None:
    """Add to a counter of a subject, dropping zeros and empty counters."""
    counter = counters.setdefault(subject, Counter())
    counter[key] += by
    if not counter[key]:
        del counter[key]
    if not counter:
        del counters[subject]


def _note(by_value: dict[str, set[str]], value: str, key: str, *, present: bool) -> None:
    if present:
        by_value.setdefault(value, set()).add(key)
        return
    keys = by_value[value]
    keys.discard(key)
    if not keys:
        del by_value[value]
