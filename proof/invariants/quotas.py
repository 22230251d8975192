"""ResourceQuotas (reference: kubernetes-api-and-batch-job §6.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from kube.amounts import Amounts
from proof.invariants.invariant import Invariant
from proof.invariants.picture import Picture, Step
from proof.invariants.views import ENDED, EVENTS, JOBS, PODS, QUOTAS, Pod, Quota, ScopeTerm, key_of, readable

# Quotas count these by their plain names, too.
ALIASED = ("services", "secrets", "configmaps", "resourcequotas", "persistentvolumeclaims")
UNCOUNTED = (EVENTS, "leases.coordination.k8s.io")
SCOPES: dict[str, Callable[[Pod], bool]] = {
    "Terminating": lambda pod: pod.deadline is not None,
    "NotTerminating": lambda pod: pod.deadline is None,
    "BestEffort": lambda pod: pod.ask.is_best_effort,
    "NotBestEffort": lambda pod: not pod.ask.is_best_effort,
}


class Bounds:
    """What one quota bounds and what its pods use of it."""

    def __init__(self, quota: Quota, pods: Iterable[Pod]) -> None:
        self.hard = readable(quota.spec.hard)
        self._scopes = [ScopeTerm(scope_name=name) for name in quota.spec.scopes]
        self._scopes += quota.spec.scope_selector.match_expressions
        # Whether a pod looks at other namespaces is not read here.
        self.is_known = all(term.scope_name in SCOPES or term.scope_name == "PriorityClass" for term in self._scopes)
        self.is_for_pods_only = bool(self._scopes)
        self.used: Counter[str] = Counter()
        for pod in pods:
            self.count(pod, 1)

    def count(self, pod: Pod, sign: int) -> None:
        """Count a pod in, or out."""
        if self.is_about(pod):
            for name, amount in _use(pod).items():
                self.used[name] += sign * amount

    def is_about(self, pod: Pod) -> bool:
        """Say whether a pod is one of those that the quota counts."""
        return all(_in_scope(term, pod) for term in self._scopes)


def _use(pod: Pod) -> Amounts:
    """Return what a pod uses; one that has ended counts only as an object."""
    return {"count/pods": 1} if pod.phase in ENDED else {"count/pods": 1, **pod.ask.quota}


def _in_scope(term: ScopeTerm, pod: Pod) -> bool:
    if term.scope_name != "PriorityClass":
        is_in = SCOPES.get(term.scope_name)
        return is_in is not None and is_in(pod)
    match term.operator:
        case "In":
            return pod.priority_class in term.values
        case "NotIn":
            return pod.priority_class not in term.values
        case "DoesNotExist":
            return not pod.priority_class
    return bool(pod.priority_class)


class Account:
    """The quotas of all namespaces, what pods use of them, and how many objects there are of each kind."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self.bounds: dict[str, dict[str, Bounds]] = {}  # namespace → name → Bounds
        self.objects: Counter[tuple[str, str]] = Counter()  # (namespace, kind)

    def take(self, step: Step) -> None:
        """Take over one step of whatever kind."""
        change = step.change
        if change.verb != "MODIFIED":
            self.objects[change.namespace, change.resource] += 1 if change.verb == "ADDED" else -1
        if change.resource == QUOTAS:
            self._quota(step)
        elif change.resource == PODS and change.namespace in self.bounds:
            self._pod(step)

    def _quota(self, step: Step) -> None:
        namespace, name = step.change.namespace, step.change.name
        if type(step.after) is not Quota:
            self.bounds.get(namespace, {}).pop(name, None)
            if not self.bounds.get(namespace):
                self.bounds.pop(namespace, None)
        elif type(step.before) is not Quota or step.before.spec != step.after.spec:
            # Rare enough to walk all pods.
            pods = [
                pod for key, pod in self._picture.pods.items() if key.startswith(f"{namespace}/") and type(pod) is Pod
            ]
            self.bounds.setdefault(namespace, {})[name] = Bounds(step.after, pods)

    def _pod(self, step: Step) -> None:
        before = step.before if type(step.before) is Pod else None
        after = step.after if type(step.after) is Pod else None
        if before is not None and after is not None and _weight(before) == _weight(after):
            return
        for bounds in self.bounds[step.change.namespace].values():
            if before is not None:
                bounds.count(before, -1)
            if after is not None:
                bounds.count(after, 1)


def _weight(pod: Pod) -> tuple[object, ...]:
    return id(pod.ask), pod.phase in ENDED, pod.deadline, pod.priority_class


class Respected(Invariant):
    """Source: reference kubernetes-api-and-batch-job §6.3: asked when something is made, for what that uses.

    Judged for pods, whoever makes them, and for jobs. What controllers make
    beside pods (pod groups, config maps …) they make without asking.
    """

    name = "quota is respected"
    meaning = "No pod or job is made for which a ResourceQuota of its namespace has no room."
    kinds = None

    def __init__(self, picture: Picture) -> None:
        super().__init__(picture)
        self._account = Account(picture)

    def take(self, step: Step) -> None:
        self._account.take(step)
        change = step.change
        if change.verb == "ADDED" and change.resource in (PODS, JOBS) and change.namespace in self._account.bounds:
            for name, bounds in self._account.bounds[change.namespace].items():
                if change.resource == JOBS:
                    self._judge_count(step, name, bounds)
                elif type(step.after) is Pod and bounds.is_known and bounds.is_about(step.after):
                    self._judge_pod(step, step.after, name, bounds)

    def _judge_pod(self, step: Step, pod: Pod, quota: str, bounds: Bounds) -> None:
        for name, amount in _use(pod).items():
            limit = bounds.hard.get(name)
            if limit is not None and amount > 0 and bounds.used[name] > limit:
                text = f"with it {bounds.used[name]} {name} of {limit} of quota {quota} are used"
                raise self.broken(key_of(step.change), text)

    def _judge_count(self, step: Step, quota: str, bounds: Bounds) -> None:
        limit = bounds.hard.get(f"count/{JOBS}")
        number = self._account.objects[step.change.namespace, JOBS]
        if limit is not None and not bounds.is_for_pods_only and number > limit:
            raise self.broken(key_of(step.change), f"is job {number} of {limit} of quota {quota}")

    def settle(self, now: int) -> None:
        for key, quota in self.picture.quotas.items():
            if type(quota) is Quota and not quota.metadata.deletion_timestamp:
                self._judge_status(key, quota)

    def _judge_status(self, key: str, quota: Quota) -> None:
        namespace, _, name = key.partition("/")
        bounds = self._account.bounds[namespace][name]
        reported = readable(quota.status.used)
        for resource, used in self._used(namespace, bounds):
            if reported.get(resource) != used:
                text = f"status.used says {reported.get(resource)} {resource}, there are {used}"
                raise self.broken(f"{QUOTAS}/{key}", text)

    def _used(self, namespace: str, bounds: Bounds) -> Iterator[tuple[str, int]]:
        """Yield what is used of all that is counted here: storage, ports of services and unknown scopes are not."""
        for name in bounds.hard:
            kind = name.removeprefix("count/")
            if kind == PODS or _is_of_pods(name):
                if bounds.is_known:
                    yield name, bounds.used[name]
            elif (name != kind or name in ALIASED) and kind not in UNCOUNTED and not bounds.is_for_pods_only:
                yield name, self._account.objects[namespace, kind]


def _is_of_pods(name: str) -> bool:
    plain = name.removeprefix("requests.").removeprefix("limits.")
    return plain in ("cpu", "memory", "ephemeral-storage") or (name.startswith("requests.") and plain != "storage")


INVARIANTS = (Respected,)
