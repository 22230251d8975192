"""The tree of queues, and the older annotations that repeat it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cluster.rules.intake import QueuesView
from kube import amounts, lenient
from kube.amounts import Amounts
from kube.errors import Cause, invalid
from kube.meta import Object
from kube.quantity import QuantityError
from kube.usage import ROOT_QUEUE

PATH = "volcano.sh/hierarchy"
WEIGHTS = "volcano.sh/hierarchy-weights"


def ancestors(name: str, view: QueuesView) -> list[str]:
    """Return `name` and the queues above it, nearest first, without root; a circle of parents ends where it began."""
    line: list[str] = []
    while name and name != ROOT_QUEUE and name not in line:
        line.append(name)
        name = lenient.text(view.queue(name), "spec", "parent")
    return line


def descendants(name: str, view: QueuesView) -> Iterator[Object]:
    """Yield the queues below name, each once."""
    seen = {name}
    pending = list(view.queue_children(name))
    while pending:
        queue = pending.pop()
        below = lenient.text(queue, "metadata", "name")
        if below not in seen:
            seen.add(below)
            yield queue
            pending += view.queue_children(below)


def subtree(name: str, children: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a queue and all below it, by the children of each; a circle of parents ends where it began."""
    names = {name: None}
    pending = [name]
    while pending:
        below = [each for each in children.get(pending.pop(), ()) if each not in names]
        names.update(dict.fromkeys(below))
        pending += below
    return list(names)


def height(name: str, view: QueuesView) -> int:
    """Return how many levels `name` and the queues below it have."""
    deepest = 1
    for queue in descendants(name, view):
        line = ancestors(lenient.text(queue, "metadata", "name"), view)
        if name in line:
            deepest = max(deepest, line.index(name) + 1)
    return deepest


def amounts_at(queue: Object, path: tuple[str, ...]) -> Amounts:
    """Return the resources at a path of a queue's spec; what cannot be read counts as nothing."""
    readable: Amounts = {}
    for name, written in lenient.mapping(queue, "spec", *path).items():
        try:
            readable |= amounts.of({name: written})
        except QuantityError:
            continue
    return readable


def total(queues: Sequence[Object], path: tuple[str, ...]) -> Amounts:
    """Add up the resources at a path of many queues."""
    summed: Amounts = {}
    for queue in queues:
        summed = amounts.add(summed, amounts_at(queue, path))
    return summed


def highest_capability(name: str, view: QueuesView) -> Amounts:
    """Return for each resource the largest capability of the queues below name."""
    highest: Amounts = {}
    for queue in descendants(name, view):
        for resource, amount in amounts_at(queue, ("capability",)).items():
            highest[resource] = max(amount, highest.get(resource, 0))
    return highest


def add_root(queue: Object) -> None:
    """Make the path of the annotations begin at root (reference: volcano-queue-podgroup-cli §1.7)."""
    notes = lenient.mapping(queue, "metadata", "annotations")
    path, weights = lenient.text(notes, PATH), lenient.text(notes, WEIGHTS)
    if path and weights and path.split("/")[0] != ROOT_QUEUE:
        notes[PATH], notes[WEIGHTS] = f"{ROOT_QUEUE}/{path}", f"1/{weights}"


def check(queue: Object, view: QueuesView) -> Iterator[Cause]:
    """Check the annotations that name a queue's path and the weights along it."""
    notes = lenient.mapping(queue, "metadata", "annotations")
    path, weights = lenient.text(notes, PATH), lenient.text(notes, WEIGHTS)
    if not path and not weights:
        return
    field = "metadata.annotations"
    if len(path.split("/")) != len(weights.split("/")):
        yield invalid(field, path, f"{PATH} and {WEIGHTS} must have the same length; give each step a weight.")
    for weight in weights.split("/"):
        yield from _check_weight(weight, field)
    for other in descendants(ROOT_QUEUE, view):
        longer = lenient.text(other, "metadata", "annotations", PATH)
        name = lenient.text(other, "metadata", "name")
        if longer.startswith(f"{path}/") and name != lenient.text(queue, "metadata", "name"):
            yield invalid(field, path, f"{path} is not allowed to be in the sub path of {longer} of queue {name}.")


def _check_weight(weight: str, field: str) -> Iterator[Cause]:
    try:
        number = float(weight)
    except ValueError:
        yield invalid(field, weight, f"{weight} in the {WEIGHTS} is invalid number; write numbers such as 1/2/8.")
        return
    if not 0 < number < float("inf"):
        yield invalid(field, weight, f"{weight} in the {WEIGHTS} must be larger than 0.")
