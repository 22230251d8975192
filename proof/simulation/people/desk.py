"""What a wish is made with, and the table of wishes.

A wish draws everything from the desk: chance, what its client knows of the
cluster, and new names. Objects are looked at in the order of their names, so
that the same seed and the same pictures give the same requests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from random import Random
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from kube.meta import Object
from kube.resources import CREATOR_ANNOTATION, JOBS, NAMESPACES, PRIORITY_CLASSES, QUEUES, Resource
from proof.simulation.people.request import SUBMITTERS, Picture, Request, name_of

OVER = ("Completed", "Failed", "Terminated", "Aborted")  # phases in which a job does nothing
PROTECTED = ("default", "team", "research")  # namespaces that stay
SYSTEM_PREFIXES = ("kube-", "system-")
HOME_SHARE = 0.7
T = TypeVar("T")
Meant: TypeAlias = Literal["accepted", "either", "refused"]
Make: TypeAlias = "Callable[[Desk], Request | None]"


class Habits(NamedTuple):
    """How people of a world act; shares of one."""

    faith: float = 0.0  # how often they go on with the object that they thought of last
    fresh: float = 0.0  # how often they take one that has just changed
    long: float = 0.03  # how many of their simulated pods run until somebody deletes them


class Desk:
    """Chance, what is known of the cluster, new names, and what was done before."""

    def __init__(
        self,
        random: Random,
        picture: Picture,
        new_name: Callable[[str], str],
        sent: Collection[Request],
        minds: dict[str, str] | None = None,
        habits: Habits | None = None,
    ) -> None:
        self.random = random
        self.picture = picture
        self.name = new_name  # name("j") is a name that nobody had: j17
        self.sent = sent  # earlier requests that create something
        # Of each kind, the uid of the object that was thought of last.
        self.minds: dict[str, str] = {} if minds is None else minds
        self.habits = habits or Habits()

    def chance(self, share: float) -> bool:
        """Return True in so many cases of one."""
        return self.random.random() < share

    def one(self, items: Sequence[T]) -> T:
        """Return one of the items, of which there are some."""
        return self.random.choice(items)

    def one_or_none(self, items: Sequence[T]) -> T | None:
        """Return one of the items, None when there are none."""
        return self.random.choice(items) if items else None

    def weighed(self, table: Mapping[T, float]) -> T:
        """Return one of a table's keys; its values say how often each comes."""
        return self.random.choices(list(table), list(table.values()))[0]

    def all(self, resource: Resource, test: Callable[[Object], object] | None = None) -> list[Object]:
        """Return the known objects of a resource that pass a test and are not being deleted."""
        return [obj for obj in self._objects(resource) if not is_going(obj) and (test is None or test(obj))]

    def _objects(self, resource: Resource) -> Iterator[Object]:
        objects = self.picture.objects(resource.id)
        return (objects[key] for key in sorted(objects))

    def any(self, resource: Resource, test: Callable[[Object], object] | None = None) -> Object | None:
        """Return one of those objects, None when there are none."""
        objects = self.all(resource, test)
        return self._again(resource, objects) or self._think_of(resource, self.one_or_none(self._lately(objects)))

    def _again(self, resource: Resource, objects: list[Object]) -> Object | None:
        """Return the one of the objects that was thought of last, often; None otherwise."""
        last = self.minds.get(resource.id)
        if last is None or not self.chance(self.habits.faith):
            return None
        return next((each for each in objects if each["metadata"]["uid"] == last), None)

    def _lately(self, objects: list[Object]) -> list[Object]:
        """Return all of the objects, or, as is the habit, the two that changed last."""
        if len(objects) < 3 or not self.chance(self.habits.fresh):
            return objects
        return sorted(objects, key=lambda each: int(each["metadata"].get("resourceVersion", 0)))[-2:]

    def _think_of(self, resource: Resource, obj: Object | None) -> Object | None:
        if obj is not None:
            self.minds[resource.id] = obj["metadata"]["uid"]
        return obj

    def going(self, resource: Resource) -> Object | None:
        """Return an object of a resource that is being deleted, None when there is none."""
        return self.one_or_none([obj for obj in self._objects(resource) if is_going(obj)])

    def submitter(self) -> str:
        """Return somebody who submits work."""
        return self.one(SUBMITTERS)

    def whose(self, obj: Object) -> str:
        """Return who may change an object: often its creator, otherwise the operator."""
        creator = creator_of(obj) or creator_of(self._controller(obj) or {})
        return creator if creator in SUBMITTERS and self.chance(0.7) else "olga"

    def _controller(self, obj: Object) -> Object | None:
        metadata = obj["metadata"]
        for owner in metadata.get("ownerReferences") or ():
            if owner.get("controller"):
                return self.picture.objects(JOBS.id).get((metadata.get("namespace", ""), owner["name"]))
        return None

    def namespace(self) -> str:
        """Return a namespace that takes work."""
        names = [name_of(each) for each in self.all(NAMESPACES, _takes_work)]
        return "default" if not names or self.chance(HOME_SHARE) else self.one(names)

    def side_namespace(self) -> str | None:
        """Return a namespace that takes work and is not the one where most of it is; None when there is none."""
        names = [name_of(each) for each in self.all(NAMESPACES, _takes_work)]
        return self.one_or_none([name for name in names if name != "default"])

    def queue(self) -> str:
        """Return the name of a queue that takes jobs."""
        queues = self.all(QUEUES)
        parents = {(each.get("spec") or {}).get("parent") for each in queues}
        names = [
            name_of(each)
            for each in queues
            if queue_state(each) == "Open" and name_of(each) != "root" and name_of(each) not in parents
        ]
        return self.one_or_none(names) or "default"

    def priority_class(self) -> str | None:
        """Return the name of a class that people made, None when there is none."""
        return self.one_or_none([name_of(each) for each in self.all(PRIORITY_CLASSES, _is_not_of_system)])

    def job(self, *phases: str) -> Object | None:
        """Return a job in one of the phases, in any when none is named; rare phases come as often as common ones."""
        jobs = self.all(JOBS, lambda job: not phases or phase_of(job) in phases)
        by_phase: dict[str, list[Object]] = {}
        for each in self._lately(jobs):
            by_phase.setdefault(phase_of(each), []).append(each)
        phase = self.one_or_none(sorted(by_phase))
        chosen = [] if phase is None else by_phase[phase]
        return self._again(JOBS, jobs) or self._think_of(JOBS, self.one_or_none(chosen))


def _takes_work(namespace: Object) -> bool:
    phase = (namespace.get("status") or {}).get("phase")
    return phase != "Terminating" and _is_not_of_system(namespace)


def _is_not_of_system(obj: Object) -> bool:
    return not name_of(obj).startswith(SYSTEM_PREFIXES)


def is_going(obj: Object) -> bool:
    """Say whether an object is being deleted."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def creator_of(obj: Object) -> str:
    """Return who created an object, as the server noted it."""
    notes = (obj.get("metadata") or {}).get("annotations") or {}
    return str(notes.get(CREATOR_ANNOTATION, ""))


def phase_of(job: Object) -> str:
    """Return a job's phase; one that its controller has not seen is Pending."""
    return ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending"


def pod_phase(pod: Object) -> str:
    """Return a pod's phase."""
    return (pod.get("status") or {}).get("phase") or "Pending"


def queue_state(queue: Object) -> str:
    """Return a queue's state; one that its controller has not seen is what it wishes to be."""
    return (queue.get("status") or {}).get("state") or (queue.get("spec") or {}).get("state") or "Open"


def is_unfinished(job: Object) -> bool:
    """Say whether a job may still do something."""
    return phase_of(job) not in OVER


def has_owner(obj: Object) -> bool:
    """Say whether an object belongs to another one."""
    return bool(obj["metadata"].get("ownerReferences"))


class SoftLimit(NamedTuple):
    """Too many of something: from `limit` on, the wish that ends some of them weighs more."""

    resource: Resource
    limit: int
    test: Callable[[Object], bool] | None = None

    def factor(self, picture: Picture) -> float:
        """Return how many times more the wish weighs now."""
        objects = picture.objects(self.resource.id).values()
        number = len(objects)
        if number > self.limit and self.test is not None:
            number = sum(map(self.test, objects))
        return 1.0 if number <= self.limit else min(5.0 * number / self.limit, 20.0)


class Wish(NamedTuple):
    """A kind of thing that somebody wants."""

    name: str
    weight: float
    make: Make  # it returns None when there is nothing to act on
    meant: Meant  # what the server is to answer
    submits: bool  # whether it brings work
    soft_limit: SoftLimit | None

    def weight_now(self, picture: Picture, usual: float) -> float:
        """Return how much it weighs, given what it weighs usually."""
        return usual * self.soft_limit.factor(picture) if usual and self.soft_limit else usual


KINDS: dict[str, Wish] = {}


def wish(
    weight: float, *, meant: Meant = "accepted", submits: bool = False, soft_limit: SoftLimit | None = None
) -> Callable[[Make], Make]:
    """Make a function a kind of wish, named as the function is."""

    def add(make: Make) -> Make:
        name = make.__name__.replace("_", " ")
        KINDS[name] = Wish(name, weight, make, meant, submits, soft_limit)
        return make

    return add
