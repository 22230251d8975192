"""Which queues are accepted, changed and deleted (reference: volcano-queue-podgroup-cli §1.7 to §1.10; seed: queue state).

`spec.state` is the wish, Open or Closed. Unlike in Volcano updates of a closing
queue are allowed, and circles of parents are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Protocol

from cluster.rules import intake
from kube import amounts, definitions, lenient, names, quantity, resources, schema
from kube.amounts import Amounts
from kube.errors import Cause, forbidden, invalid, not_supported
from kube.kinds.scheduling import DequeueStrategy, QueueState
from kube.meta import Object
from kube.usage import ROOT_QUEUE
from queues.rules import hierarchy, states
from queues.rules.states import closing_problem

DEFAULT = "default"
LEVELS = 5  # queues on a path below root
WISHES = (QueueState.OPEN, QueueState.CLOSED)
_DIVISIBLE = ("cpu", "memory", "ephemeral-storage")
_SHARES = (("capability",), ("deserved",), ("guarantee", "resource"))


class QueueRulesView(Protocol):
    """The queries of admission to the cluster."""

    def queue(self, name: str) -> Object | None: ...
    def queue_children(self, name: str) -> list[Object]: ...
    def groups_in(self, queue: str) -> Mapping[str, int]: ...
    def keeps_wishes(self) -> bool: ...


def default(queue: Object, old: Object | None, view: QueueRulesView) -> None:
    """Fill in defaults; a new queue gets its status as well, and a wish if the definition of queues has `spec.state`."""
    spec = queue.setdefault("spec", {})
    if not isinstance(spec, dict):
        return
    spec["dequeueStrategy"] = spec.get("dequeueStrategy") or DequeueStrategy.TRAVERSE.value
    if old is not None:
        return
    hierarchy.add_root(queue)
    if spec.get("reclaimable") is None:
        spec["reclaimable"] = True
    spec["weight"] = spec.get("weight") or 1
    # `vcctl queue create --state Closed` writes the wish into the status.
    is_closed = lenient.text(queue, "status", "state") == QueueState.CLOSED
    if is_closed or view.keeps_wishes():
        spec["state"] = spec.get("state") or (QueueState.CLOSED if is_closed else QueueState.OPEN).value
    if _name(queue) != ROOT_QUEUE:
        spec["parent"] = spec.get("parent") or ROOT_QUEUE
    first = states.next_state(spec.get("state") or "", "", {})
    queue["status"] = {"state": first.state.value, "reason": first.reason, "message": first.message}


def validate(queue: Object, old: Object | None, view: QueueRulesView) -> list[Cause]:
    """Return all causes against a queue that is created, or updated from `old`."""
    schema_causes = schema.check(queue, definitions.of(resources.QUEUES))
    rules = [
        *_check_amounts(queue),
        *_check_order(queue),
        *_check_state(queue),
        *hierarchy.check(queue, view),
        *_check_root(queue, old),
    ]
    moved = old is None or _parent(queue) != _parent(old)
    if moved:
        rules += _check_parent(queue, old, view)
    if _name(queue) != ROOT_QUEUE and (moved or _shares(queue) != _shares(old or {})):
        rules += _check_above(queue, view)
        rules += _check_below(queue, view)
    fields = {cause.field for cause in schema_causes}
    return [*schema_causes, *(cause for cause in rules if cause.field not in fields)]


def deletion(queue: Object, view: QueueRulesView) -> list[Cause]:
    """Return the causes against deleting a stored queue, each with a remedy."""
    name = _name(queue)
    if name in (DEFAULT, ROOT_QUEUE):
        return [forbidden("metadata.name", f"`{name}` queue can not be deleted: the cluster needs it.")]
    causes = []
    state = intake.queue_state(queue)
    if state == QueueState.CLOSED:
        # A job may have come in since its controller wrote the status, or a client may have written it.
        state = states.next_state(QueueState.CLOSED, "", view.groups_in(name)).state
    if state != QueueState.CLOSED:
        remedy = (
            "wait until what is left in it has ended"
            if state == QueueState.CLOSING
            else "close it first and wait until it is empty"
        )
        detail = f"only queue with state `Closed` can be deleted, queue `{name}` state is `{state}`; {remedy}."
        causes.append(forbidden("status.state", detail))
    children = sorted(_name(child) for child in view.queue_children(name))
    if children:
        detail = (
            f"queue {name} can not be deleted because it has {len(children)} child queues: "
            f"{', '.join(children)}; delete or move them first."
        )
        causes.append(forbidden("spec.parent", detail))
    return causes


def _check_amounts(queue: Object) -> Iterator[Cause]:
    for path in _SHARES:
        field = ".".join(("spec", *path))
        for name, written in lenient.mapping(queue, "spec", *path).items():
            if problem := names.qualified_name(name):
                yield invalid(f"{field}[{name}]", name, problem)
            value = _value(written)
            if value is None:
                continue  # the schema's check returns the cause for the text
            if value < 0:
                yield invalid(f"{field}[{name}]", written, "must be greater than or equal to 0; remove the minus sign.")
            elif value.denominator != 1 and name not in _DIVISIBLE:
                yield invalid(f"{field}[{name}]", written, f"must be an integer: {name} cannot be divided.")


def _check_order(queue: Object) -> Iterator[Cause]:
    """Yield causes for a guarantee above what is deserved, and for deserving more than the capability."""
    spec = lenient.mapping(queue, "spec")
    deserved, capability = lenient.mapping(spec, "deserved"), lenient.mapping(spec, "capability")
    for name, written in lenient.mapping(spec, "guarantee", "resource").items():
        least, given = _value(written), _value(deserved.get(name))
        if least is None or (given is None and name in deserved):
            continue
        if given is None:
            detail = f"deserved[{name}] must be >= guarantee[{name}]={written}; add it to deserved."
            yield invalid(f"spec.deserved[{name}]", "<nil>", detail)
        elif given < least:
            detail = f"deserved[{name}]={deserved[name]} must be >= guarantee[{name}]={written}; raise it or lower the guarantee."
            yield invalid(f"spec.deserved[{name}]", deserved[name], detail)
    for name, written in deserved.items():
        given, most = _value(written), _value(capability.get(name))
        if given is not None and most is not None and given > most:
            detail = f"deserved[{name}]={written} must be <= capability[{name}]={capability[name]}; lower it or raise the capability."
            yield invalid(f"spec.deserved[{name}]", written, detail)


def _check_state(queue: Object) -> Iterator[Cause]:
    wish = lenient.text(queue, "spec", "state")
    if wish and wish not in WISHES:
        cause = not_supported("spec.state", wish, WISHES)
        yield cause._replace(message=f"{cause.message}: queue state must be in [Open Closed]")
    if wish == QueueState.CLOSED and (problem := closing_problem(_name(queue))):
        yield forbidden("spec.state", problem)


def _check_root(queue: Object, old: Object | None) -> Iterator[Cause]:
    if _name(queue) != ROOT_QUEUE:
        return
    if _parent(queue):
        yield forbidden("spec.parent", "root is above all queues and has no parent; remove it.")
    if old is None:
        return
    for path in _SHARES:
        if lenient.mapping(queue, "spec", *path) != lenient.mapping(old, "spec", *path):
            detail = "root queue's resource attributes cannot be modified; set them on the queues below it."
            yield forbidden(".".join(("spec", *path)), detail)


def _check_parent(queue: Object, old: Object | None, view: QueueRulesView) -> Iterator[Cause]:
    name, parent = _name(queue), _parent(queue)
    if not parent or parent == ROOT_QUEUE:
        return
    if parent == name:
        yield invalid("spec.parent", parent, f"queue {name} cannot use itself as parent; choose another.")
        return
    above = view.queue(parent)
    if above is None:
        yield invalid(
            "spec.parent",
            parent,
            f"failed to get parent queue of queue {name}: queue {parent} not found; choose one that exists.",
        )
        return
    line = hierarchy.ancestors(parent, view)
    if name in line:
        detail = f"queue {parent} is below queue {name}; move it elsewhere first."
        yield invalid("spec.parent", parent, detail)
    depth = len(line) + hierarchy.height(name, view) if old is not None else len(line) + 1
    if depth > LEVELS:
        yield invalid("spec.parent", parent, f"queue {name} exceeds the maximum allowed depth of {LEVELS}.")
    pods = _value(lenient.mapping(above, "status", "allocated").get("pods")) or 0
    if pods > 0 and not view.queue_children(parent):
        detail = (
            f"queue {parent} cannot be the parent queue of queue {name} because it has allocated Pods: {pods}; "
            "wait until they have ended, or choose another parent."
        )
        yield invalid("spec.parent", parent, detail)


def _check_above(queue: Object, view: QueueRulesView) -> Iterator[Cause]:
    """Compare with the queues above: the capability with the nearest one that sets it, sums with the parent's."""
    name, parent = _name(queue), _parent(queue)
    line = [view.queue(above) or {} for above in hierarchy.ancestors(parent, view)]
    for resource, own in _amounts(queue, "capability").items():
        limits = (_amounts(above, "capability").get(resource, 0) for above in line)
        limit = next((amount for amount in limits if amount > 0), None)
        if limit is not None and own > limit:
            detail = (
                f"queue {name} capability[{resource}]={amounts.show(resource, own)} exceeds its ancestor's "
                f"capability={amounts.show(resource, limit)}; lower it or raise the queue above."
            )
            yield invalid(f"spec.capability[{resource}]", _written(queue, resource), detail)
    if not parent or parent == ROOT_QUEUE:
        return
    siblings = [child for child in view.queue_children(parent) if _name(child) != name]
    for path in (("guarantee", "resource"), ("deserved",)):
        total = hierarchy.total([queue, *siblings], path)
        yield from _compare_sum(total, line[0] if line else {}, path, f"parent queue {parent}")


def _check_below(queue: Object, view: QueueRulesView) -> Iterator[Cause]:
    """Compare with the queues below: with their highest capability, and with their sums."""
    name = _name(queue)
    children = view.queue_children(name)
    if not children:
        return
    highest = hierarchy.highest_capability(name, view)
    for resource, own in _amounts(queue, "capability").items():
        if resource in highest and highest[resource] > own:
            detail = (
                f"queue {name} capability[{resource}]={amounts.show(resource, own)} is smaller than its descendants' "
                f"max capability={amounts.show(resource, highest[resource])}; lower the queues below first."
            )
            yield invalid(f"spec.capability[{resource}]", _written(queue, resource), detail)
    for path in (("guarantee", "resource"), ("deserved",)):
        yield from _compare_sum(hierarchy.total(children, path), queue, path, f"queue {name}")


def _compare_sum(total: Amounts, limit_of: Object, path: tuple[str, ...], who: str) -> Iterator[Cause]:
    limits = hierarchy.amounts_at(limit_of, path)
    for resource, amount in total.items():
        limit = limits.get(resource, 0)
        if amount > limit:
            detail = (
                f"{who} validation failed: sum of children's {path[0]} ({amounts.show(resource, amount)}) exceeds "
                f"its {path[0]} limit ({amounts.show(resource, limit)}); lower the children's or raise the parent's."
            )
            yield invalid(".".join(("spec", *path)) + f"[{resource}]", amounts.show(resource, amount), detail)


def _name(queue: Object) -> str:
    return lenient.text(queue, "metadata", "name")


def _parent(queue: Object) -> str:
    return lenient.text(queue, "spec", "parent")


def _shares(queue: Object) -> list[dict[str, Any]]:
    return [lenient.mapping(queue, "spec", *path) for path in _SHARES]


def _amounts(queue: Object, field: str) -> Amounts:
    return hierarchy.amounts_at(queue, (field,))


def _written(queue: Object, resource: str) -> Any:
    return lenient.mapping(queue, "spec", "capability").get(resource)


def _value(written: Any) -> Fraction | None:
    try:
        return quantity.parse(written)
    except quantity.QuantityError:
        return None
