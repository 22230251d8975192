"""What somebody who waits is told in numbers is so: a naive count over the objects finds the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from kube.amounts import show
from proof.invariants import idle
from proof.invariants.invariant import Invariant
from proof.invariants.views import GROUPS, Group, Seen
from scheduler.idle import facts, placing, waiting_pod
from scheduler.idle.facts import ROOT_QUEUE, World
from scheduler.idle.room import Room
from scheduler.reasons import message

# What a sentence names, and what should stand there; None where nothing can be said.
Found = Iterator[tuple[str, str | None]]

BEYOND = 1 << 50  # more than anybody has
FIT = r"(?P<fit>\d+) of (?P<all>\d+) pods fit; "
WHERE = r"(?:[Tt]he cluster|[Qq]ueue (?P<queue>\S+?)(?:, which is above its own)?,?)"


class NamesAmounts(Invariant):
    """Source: design §1, "see why it waits": who reads that 2 CPU more are needed goes by it.

    Only of groups whose waiting pods are all alike, without rules about other pods, or that are outside; and while no room is kept for
    anybody. Of what "can still be given out" it is only asked that it is not more than there is: what others were promised counts as taken.
    """

    name = "waiting names true amounts"
    meaning = "At rest the amounts, nodes and numbers of pods by which a pod group is told why it waits are those that the log shows."
    kinds = ()

    def settle(self, now: int) -> None:
        world = idle.world_of(self.picture)
        if any(
            group.reservation or group.reason in ("WaitingForVictims", "RoomKept") for group in world.groups.values()
        ):
            return
        for key, group in world.groups.items():
            if group.reason and not group.is_arranged:
                sentence = _Sentence(world, group, _sentence(self.picture.groups[key]))
                if not sentence.can_be_counted:
                    continue
                for text in sentence.untrue():
                    raise self.broken(f"{GROUPS}/{key}", f"is told {sentence.text!r}, and {text}")


class _Sentence:
    """One sentence, and the counts that it is compared with."""

    def __init__(self, world: World, group: facts.Group, text: str) -> None:
        self._world, self._group, self._room = world, group, Room(world, ())
        self.text = text
        self._request, self._waiting = group.pods[0] if group.pods else ({}, waiting_pod.WaitingPod())
        self._used = world.used

    @property
    def can_be_counted(self) -> bool:
        group = self._group
        is_alike = len({placing.likeness(*pod) for pod in group.pods}) <= 1
        return is_alike and not self._waiting.has_rules

    def untrue(self) -> Iterator[str]:
        """Yield what is found in place of what the sentence says."""
        for pattern, judge in RULES:
            if (found := re.search(pattern, self.text)) is None:
                continue
            try:
                for name, expected in judge(self, **found.groupdict()):
                    if expected is not None and found[name] != expected:
                        yield f"not {found[name]!r} but {expected!r} is found"
            except _Other as other:
                yield str(other)

    def free_on_one_node(self, need: str, then: str | None, free: str, node: str) -> Found:
        """One pod, and the emptiest of the nodes that it may use; where those that fit were there, some of them are on it."""
        resource = self._named(need)
        each = self._each(resource, lambda name, some: some.offers.get(resource, 0) - self._taken(name, resource))
        if then:
            one = self._request[resource]
            left = {show(resource, amount) for amount in range(each[node] % one, min(each[node] + 1, one), one)}
            yield "free", free if free in left else f"one of {left}"
        else:
            yield from self._most(resource, each, node, "free")

    def whole_of_one_node(self, need: str, whole: str, node: str) -> Found:
        """One pod, and the largest of the nodes that it may use."""
        resource = self._named(need)
        yield from self._most(
            resource, self._each(resource, lambda _, some: some.offers.get(resource, 0)), node, "whole"
        )

    def pods_that_fit(self, fit: str, all: str) -> Found:  # noqa: A002
        """How many of the pods that must start would find room."""
        yield "fit", str(self._fitting())
        yield "all", str(self._group.needed)

    def pods_that_exist(self, fit: str, all: str) -> Found:  # noqa: A002
        """How many of the pods that must start are there."""
        yield "fit", str(len(self._group.ready) + len(self._group.pods))
        yield "all", str(len(self._group.ready) + self._group.needed)

    def part_of_gang(self, queue: str | None, fit: str, all: str, need: str, free: str, whole: str) -> Found:  # noqa: A002
        """How many pods fit under a ceiling, what the next one needs, and what is left for it."""
        yield from self.pods_that_fit(fit, all)
        resource = self._named(need)
        yield from self._under(queue, resource, int(fit) * self._request.get(resource, 0))

    def whole_gang(self, queue: str | None, need: str, free: str, whole: str) -> Found:
        """What is needed more under a ceiling, and what is left."""
        missing = self._group.needed if len(self._group.ready) < self._group.minimum else 1
        requests = {name: amount * missing for name, amount in self._request.items()}
        resource = self._named(need, requests)
        yield from self._under(queue, resource, 0)

    def at_the_door(self, queue: str | None, need: str, free: str, whole: str | None = None) -> Found:
        """What the minimum needs, and what can still be given out."""
        resource = self._named(need, self._group.min_resources)
        name = queue or ROOT_QUEUE
        if whole is not None:
            yield "whole", show(resource, self._room._limits(name)[resource])
        most = show(resource, self._left(name, resource, 0) or 0)
        if queue and _number(free) > _number(most):
            yield "free", f"at most {most}"

    def reserved_for(self, keepers: str) -> Found:
        """For whom guarantees keep what is not used."""
        reservations = re.findall(r"([\d.]+ \S+) for queue (\S+?)(?=,| and |$)", keepers)
        for amount, queue in reservations:
            bounds = []
            for name in self._request or self._group.min_resources:
                unused = self._unused(queue, name)
                # At the door what those of lower priority use counts as unused; priorities are not known here.
                more = 0 if self._group.pods else self._use(queue, name)
                bounds.append((show(name, unused), show(name, unused + more)))
            if not any(_is_between(amount, *each) for each in bounds):
                yield "keepers", f"within one of {bounds} for {queue}"

    def limit_of_queue(self, queue: str, whole: str) -> Found:
        """The ceiling under which it is never."""
        limits = self._room._limits(queue)
        yield "whole", whole if whole in {show(*pair) for pair in limits.items()} else f"one of {limits}"

    def never_in_cluster(self, need: str, whole: str) -> Found:
        """What the minimum needs, and all that nodes have."""
        resource = self._named(need, self._group.min_resources)
        yield (
            "whole",
            show(resource, sum(node.offers.get(resource, 0) for node in self._world.nodes.values() if node.is_ready)),
        )

    def never_beside_guarantees(self, queue: str | None, need: str, whole: str, free: str) -> Found:
        """What is needed, and what the guarantees of others leave of all."""
        resource = self._named(need, self._whole_minimum())
        name = queue or ROOT_QUEUE
        yield "whole", show(resource, self._room._limits(name)[resource])
        yield "free", show(resource, self._at_best(name, resource))

    def never_together(self, all: str, fit: str) -> Found:  # noqa: A002
        """How many would find room on empty nodes."""
        yield "fit", str(placing.room(self._request, self._waiting, self._world.nodes, {}))
        yield "all", str(self._group.needed)

    # Counting

    def _whole_minimum(self) -> Mapping[str, int]:
        if not self._request:
            return self._group.min_resources
        return {name: amount * self._group.minimum for name, amount in self._request.items()}

    def _at_best(self, above: str, resource: str) -> int:
        """Return what the queue of the group could have if nobody used any."""
        queues, line = self._world.queues, self._room._line(self._group.queue)
        inside = line[: line.index(above) + 1]
        reserved = 0
        for name in inside:
            beside = [each for each in queues if queues[each].parent == name and each not in inside and each != name]
            reserved += sum(self._guaranteed(each, resource) for each in beside)
        limit = self._room._limits(above)[resource]
        return max(limit - reserved, min(queues[self._group.queue].guarantee.get(resource, 0), limit))

    def _guaranteed(self, queue: str, resource: str) -> int:
        below = [each for each, child in self._world.queues.items() if child.parent == queue and each != queue]
        return max(
            self._world.queues[queue].guarantee.get(resource, 0),
            sum(self._guaranteed(each, resource) for each in below),
        )

    def _named(self, text: str, requests: Mapping[str, int] | None = None) -> str:
        """Return the resource of which so much is asked for."""
        requests = self._request if requests is None else requests
        for name, amount in requests.items():
            if show(name, amount) == text:
                return name
        raise _Other(f"not {text!r} but {requests} is asked for")

    def _each(self, resource: str, count: Callable[[str, facts.Node], int]) -> dict[str, int]:
        nodes = self._world.nodes.items()
        return {name: count(name, some) for name, some in nodes if placing.may_use(self._waiting.spec, name, some)}

    def _most(self, resource: str, each: Mapping[str, int], node: str, what: str) -> Found:
        yield what, show(resource, max(0, *each.values(), 0))
        yield "node", node if max(each[node], 0) == max(0, *each.values(), 0) else "another node"

    def _taken(self, node: str, resource: str) -> int:
        return self._used.get(node, {}).get(resource, 0)

    def _fitting(self) -> int:
        fits = (
            number
            for number in range(self._group.needed, 0, -1)
            if self._room.holds(self._group.queue, self._request, number, self._waiting)
        )
        return next(fits, 0)

    def _under(self, queue: str | None, resource: str, taken: int) -> Found:
        name = queue or ROOT_QUEUE
        left = self._left(name, resource, taken)
        yield "free", None if left is None else show(resource, left)
        yield "whole", show(resource, self._room._limits(name)[resource])

    def _left(self, above: str, resource: str, taken: int) -> int | None:
        """Return how much more the queue of the group may take; None where guarantees alone are more than there is."""
        limit = self._room._limits(above)[resource]
        if self._held(above, resource) > limit:
            return None
        more = self._room._held(above, resource, self._group.queue, taken + BEYOND) - BEYOND
        return max(limit - more, 0)

    def _held(self, queue: str, resource: str) -> int:
        return self._room._held(queue, resource, self._group.queue, 0)

    def _unused(self, queue: str, resource: str) -> int:
        guarantee = self._world.queues[queue].guarantee.get(resource, 0)
        return max(self._held(queue, resource), guarantee) - self._use(queue, resource)

    def _use(self, queue: str, resource: str) -> int:
        return sum(self._room._own(each, resource) for each in self._room._below[queue])


def _sentence(group: Seen) -> str:
    """Return what people are told of why a group waits, without what Volcano's scheduler would say."""
    conditions = group.status.conditions if type(group) is Group else ()
    words = next((each.message for each in conditions if (each.type, each.status) == ("Unschedulable", "True")), "")
    return message.parted(words, message.cause_of(conditions))[0]


class _Other(Exception):
    """Somebody is told of an amount that he does not ask for."""


def _is_between(amount: str, least: str, most: str) -> bool:
    """Say whether an amount is one of two, or one in the same unit between them."""
    units = {each.partition(" ")[2] for each in (amount, least, most)}
    return amount in (least, most) or (len(units) == 1 and _number(least) <= _number(amount) <= _number(most))


def _number(amount: str) -> float:
    return float(amount.partition(" ")[0])


RULES = (
    (r"each (?:of the others )?needs (?P<need>[^,;]+), the most free on one node(?P<then> then)? is (?P<free>.+?) \((?P<node>[^)]+)\)\.", _Sentence.free_on_one_node),
    (r"does not fit yet: it needs (?P<need>[^,;]+), the most free on one node(?P<then> then)? is (?P<free>.+?) \((?P<node>[^)]+)\)\.", _Sentence.free_on_one_node),
    (r"a pod needs (?P<need>[^,;]+), the largest node that it may use has (?P<whole>.+?) \((?P<node>[^)]+)\)\.", _Sentence.whole_of_one_node),
    (r"^(?P<fit>\d+) of (?P<all>\d+) pods fit;", _Sentence.pods_that_fit),
    (r"^(?P<fit>\d+) of (?P<all>\d+) pods exist;", _Sentence.pods_that_exist),
    (
        rf"^{WHERE} has room for (?P<fit>\d+) of the (?P<all>\d+) pods that must start together: "
        r"the next one needs (?P<need>.+?), and (?P<free>.+?) of (?P<whole>.+?) is left then",
        _Sentence.part_of_gang,
    ),
    (rf"^{WHERE} is at its limit: this needs (?P<need>.+?) more, (?P<free>.+?) of (?P<whole>.+?) left", _Sentence.whole_gang),
    (rf"^Waits for room in {WHERE}: this needs (?P<need>.+?) more, (?P<free>.+?) of (?P<whole>.+?) can be given out", _Sentence.whole_gang),
    (rf"^Waits for room in {WHERE}: its minimum needs (?P<need>.+?), (?P<free>.+?) of (?P<whole>.+?) can", _Sentence.at_the_door),
    (rf"^Waits for room in {WHERE}: its minimum needs (?P<need>.+?), (?P<free>\S+ \S+) can", _Sentence.at_the_door),
    (r"as guarantees keep (?P<keepers>.+?)\.(?: |$)", _Sentence.reserved_for),
    (r"^This can never start: its minimum needs (?P<need>.+?), the whole cluster has (?P<whole>.+?)\.", _Sentence.never_in_cluster),
    (
        rf"^This can never start: it needs (?P<need>.+?), and of (?P<whole>.+?) in {WHERE} all but (?P<free>.+?) are kept for",
        _Sentence.never_beside_guarantees,
    ),
    (r"of the (?P<all>\d+) pods that must start together only (?P<fit>\d+) fit, even on empty nodes", _Sentence.never_together),
    (r"queue (?P<queue>\S+): it needs more than (?:the queue's|that queue's) limit of (?P<whole>.+?)\.$", _Sentence.limit_of_queue),
)  # fmt: skip

INVARIANTS = (NamesAmounts,)
