"""Many changes in one transaction, each with an outcome of its own: one that fails does not undo the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from cluster.store import Group, Stored, Write, store
from kube import resources
from kube.errors import ApiError
from kube.resources import Resource

BATCH = 500  # objects per transaction of a bulk change: some 100 ms in which others cannot write
# Rules look at these; each is stored before the next one is judged.
LOOKED_AT = frozenset(
    kind.id
    for kind in (
        resources.QUEUES,
        resources.NAMESPACES,
        resources.PRIORITY_CLASSES,
        resources.CLAIMS,
        resources.CUSTOM_RESOURCE_DEFINITIONS,
    )
)
P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=Exception)


def batch_size(resource: Resource) -> int:
    """Return how many objects of a kind may be changed in one transaction."""
    return 1 if resource.id in LOOKED_AT else BATCH


def attempt(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R | ApiError:
    """Return what the function returns, or the ApiError that it raises."""
    try:
        return function(*args, **kwargs)
    except ApiError as error:
        return error


def commit(writes: Sequence[Write | E]) -> list[Stored | ApiError | E]:
    """Store what can be stored and put each outcome into its place; what is an error already stays."""
    groups = [Group([write]) for write in writes if not isinstance(write, Exception)]
    stored = iter(store.commit(groups))
    outcomes: list[Stored | ApiError | E] = []
    for write in writes:
        if isinstance(write, Exception):
            outcomes.append(write)
            continue
        outcome = next(stored)
        outcomes.append(outcome if isinstance(outcome, ApiError) else outcome[0])
    return outcomes
