"""What one person may do in a cluster with an API of its own, as that cluster tells; asked anew while he reads.

Most clusters tell all that somebody may do in a namespace at once, as rules. Where an authorizer of theirs cannot, as
webhooks cannot, each question is asked by itself. An answer counts for FRESH_S. In a namespace where somebody may do
nothing beyond what he may do in all, it counts for QUIET_S as far as lists go: what is taken away is gone within
FRESH_S, what is given is there at once for who opens that namespace, and in lists within QUIET_S.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple, TypeVar

from cluster import clock
from cluster.access.roles import ALL, Everywhere
from cluster.remote.door.access_rules import NONE, AccessRules, Question
from cluster.remote.door.reviews import Unanswered
from kube.errors import ApiError
from kube.resources import NAMESPACES

FRESH_S = 5.0
QUIET_S = 60.0
MOMENT_S = 0.5  # an answer may pass FRESH_S between two looks at it
AT_ONCE = 8  # reviews of a process that are under way at a time
MAX_NAMESPACES = 500  # that lists ask about; of more, those that were opened
MAX_ANSWERS = 10_000  # that are remembered of a person
WIDE = ""  # all namespaces, and the cluster's scope
K = TypeVar("K")
A = TypeVar("A")


class RulesAnswer(NamedTuple):
    """The rules of a namespace and when they were read (monotonic, in s); `refusal` is why the cluster tells none."""

    rules: AccessRules
    at: float
    refusal: str = ""


class AccessAnswer(NamedTuple):
    """The answer to a single question, and when it was given (monotonic, in s)."""

    is_allowed: bool
    at: float


class Reviews(NamedTuple):
    """How a cluster is asked about one person: for his rules in a namespace, or for one thing; both raise Unanswered."""

    rules: Callable[[str], AccessRules]
    access: Callable[[Question], bool]


class Viewer:
    """One person as a cluster knows him. Thread-safe."""

    def __init__(self, who: Hashable, reviews: Reviews) -> None:
        self._who = who
        self._reviews = reviews
        self._lock = threading.Lock()
        self._rules: dict[str, RulesAnswer] = {}
        self._answers: dict[Question, AccessAnswer] = {}
        self._turns = 0  # how often the answer to a single question has become another one

    def allows(self, query: Question) -> bool:
        """Say whether he may do it, by the last answer; Unanswered when there never was one."""
        with self._lock:
            return self._allows(query)

    def is_fresh(self, query: Question) -> bool:
        """Say whether the last answer is a fresh one, or was a moment ago: the cluster may be away."""
        with self._lock:
            latest = self._rules.get(query.namespace)
            answer = self._answers.get(query) if latest and not latest.rules.are_complete else latest
            return answer is not None and _is_within(answer.at, FRESH_S + MOMENT_S)

    def refusal(self, query: Question) -> str:
        """Return why the cluster tells nothing about him, "" where it does."""
        with self._lock:
            latest = self._rules.get(query.namespace)
            return latest.refusal if latest else ""

    def namespaces(self, verb: str, resource: str, names: Sequence[str]) -> frozenset[str] | Everywhere:
        """Return in which of the namespaces he may do a verb; Unanswered when the cluster never answered for him."""
        with self._lock:
            if self._allows(question(verb, resource, WIDE)):
                return ALL
            queries = [question(verb, resource, name) for name in self._refreshed(names)]
            self._ask_each([each for each in queries if self._is_open(each)])
            verdicts: dict[AccessRules, bool] = {}
            return frozenset(each.namespace for each in queries if self._verdict(each, verdicts))

    def scope(self, names: Sequence[str]) -> Hashable:
        """Return a value that is the same for people who may do the same, and another one when that changes."""
        with self._lock:
            namespaces = self._refreshed(names)
            wide = self._rules[WIDE].rules if WIDE in self._rules else NONE
            if not wide.are_complete:
                self._ask_each([each for each, reply in self._answers.items() if not _is_within(reply.at, FRESH_S)])
                return self._who, self._turns
            rules = ((namespace, self._rules[namespace].rules) for namespace in namespaces)
            return wide, frozenset((namespace, own) for namespace, own in rules if own != wide)

    # The lock is held by who calls what follows.

    def _allows(self, query: Question) -> bool:
        self._ask_rules([namespace for namespace in (query.namespace,) if not self._holds(namespace, FRESH_S)])
        latest = self._rules[query.namespace]
        if latest.rules.are_complete:
            return latest.rules.allow(query)
        reply = self._answers.get(query)
        if reply is None or not _is_within(reply.at, FRESH_S):
            self._ask_each([query], is_needed=True)
        return self._answers[query].is_allowed

    def _refreshed(self, names: Sequence[str]) -> list[str]:
        """Ask for the rules of namespaces where too little is known for a list; return those of which some are known."""
        chosen = [*names[:MAX_NAMESPACES], *(name for name in names[MAX_NAMESPACES:] if name in self._rules)]
        self._ask_rules([WIDE] if not self._holds(WIDE, FRESH_S) else [], is_needed=False)
        wide = self._rules.get(WIDE)
        stale = []
        for name in chosen:
            latest = self._rules.get(name)
            is_quiet = latest is not None and wide is not None and latest.rules == wide.rules
            if not self._holds(name, QUIET_S if is_quiet else FRESH_S):
                stale.append(name)
        self._ask_rules(stale, is_needed=False)
        return [name for name in chosen if name in self._rules]

    def _holds(self, namespace: str, seconds: float) -> bool:
        """Whether the rules of a namespace are younger than `seconds`; incomplete ones count for QUIET_S."""
        latest = self._rules.get(namespace)
        return latest is not None and _is_within(latest.at, seconds if latest.rules.are_complete else QUIET_S)

    def _is_open(self, query: Question) -> bool:
        """Whether a list needs a review of its own for this question."""
        if self._rules[query.namespace].rules.are_complete:
            return False
        reply = self._answers.get(query)
        return reply is None or not _is_within(reply.at, FRESH_S if reply.is_allowed else QUIET_S)

    def _verdict(self, query: Question, verdicts: dict[AccessRules, bool]) -> bool:
        """Answer by what was read. Most namespaces have the same rules, which are looked through once."""
        rules = self._rules[query.namespace].rules
        if not rules.are_complete:
            return query in self._answers and self._answers[query].is_allowed
        if query.name:
            return rules.allow(query)
        if rules not in verdicts:
            verdicts[rules] = rules.allow(query)
        return verdicts[rules]

    def _ask_rules(self, namespaces: Sequence[str], *, is_needed: bool = True) -> None:
        if len(self._rules) > MAX_ANSWERS:
            self._rules.clear()
        self._rules |= _together(self._rules_of, namespaces, self._rules if is_needed else None)

    def _rules_of(self, namespace: str) -> RulesAnswer:
        try:
            return RulesAnswer(self._reviews.rules(namespace), clock.monotonic())
        except ApiError as error:
            return RulesAnswer(NONE, clock.monotonic(), error.message)

    def _ask_each(self, questions: Sequence[Question], *, is_needed: bool = False) -> None:
        if len(self._answers) > MAX_ANSWERS:
            self._answers.clear()
        for query, reply in _together(self._answer_to, questions, self._answers if is_needed else None).items():
            before = self._answers.get(query)
            self._turns += before is not None and before.is_allowed != reply.is_allowed
            self._answers[query] = reply

    def _answer_to(self, query: Question) -> AccessAnswer:
        try:
            return AccessAnswer(self._reviews.access(query), clock.monotonic())
        except ApiError:
            return AccessAnswer(is_allowed=False, at=clock.monotonic())


def question(verb: str, resource: str, namespace: str, name: str = "") -> Question:
    """Return the question for a right. A Namespace lies in itself once it exists; one that may be read is listed."""
    if resource.partition("/")[0] != NAMESPACES.id or not namespace:
        return Question(verb, resource, namespace, name)
    if verb in ("create", "deletecollection"):
        return Question(verb, resource, WIDE)
    return Question("get" if verb == "list" else verb, resource, namespace, namespace)


def _together(ask: Callable[[K], A], keys: Sequence[K], needed: Mapping[K, A] | None) -> dict[K, A]:
    """Ask for all at once and return what was answered; Unanswered for a key not in `needed`, unless that is None."""

    def attempt(key: K) -> A | Unanswered:
        try:
            return ask(key)
        except Unanswered as error:
            return error

    answers: Iterable[A | Unanswered] = map(attempt, keys) if len(keys) < 2 else _threads().map(attempt, keys)
    answered: dict[K, A] = {}
    for key, answer in zip(keys, answers, strict=True):
        if not isinstance(answer, Unanswered):
            answered[key] = answer
        elif needed is not None and key not in needed:
            raise answer
    return answered


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, thread_name_prefix="reviews")


def _is_within(at: float, seconds: float) -> bool:
    return clock.monotonic() - at <= seconds
