"""Which tasks wait for which (reference: volcano-job §4.2, §7.3 rule 20)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from jobs.lifecycle.situation import Task


class Dependency(Struct, frozen=True):
    """The tasks that a task waits for, and whether one of them is enough."""

    names: tuple[str, ...]
    any: bool = False


class Deadlock(NamedTuple):
    """Why a gang can never start: a task that it needs and that waits for it, why, and a minAvailable that would work."""

    task: str
    why: str
    enough: int


def cycle(waits_for: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the tasks of a circle in the order in which they wait, with the first again at the end; [] if there is none."""
    done: set[str] = set()
    for start in waits_for:
        # `path` holds the names being visited; meeting one of them again closes a circle.
        path = {} if start in done else {start: iter(waits_for[start])}
        while path:
            current = next(reversed(path))
            following = next(path[current], None)
            if following is None:
                done.add(current)
                del path[current]
            elif following in path:
                visited = list(path)
                return [*visited[visited.index(following) :], following]
            elif following in waits_for and following not in done:
                path[following] = iter(waits_for[following])
    return []


def may_start(
    task: str, dependencies: Mapping[str, Dependency], tasks: Mapping[str, Task], ready: Mapping[str, int]
) -> bool:
    """Tell whether a task's pods may be made; `ready` counts the pods of each task that are ready or succeeded."""
    wanted = dependencies.get(task)
    if wanted is None:
        return True
    answers = (name in tasks and ready.get(name, 0) >= tasks[name].needed for name in wanted.names)
    return any(answers) if wanted.any else all(answers)


def waiting_tasks(
    dependencies: Mapping[str, Dependency],
    tasks: Mapping[str, Task],
    named: Mapping[str, int],
    ready: Mapping[str, int],
) -> Iterator[str]:
    """Yield `task b waits for a and c` for each task that lacks pods because of others; `named` counts each task's pods."""
    for name, wanted in dependencies.items():
        lacks_pods = name in tasks and named.get(name, 0) < tasks[name].replicas
        if lacks_pods and not may_start(name, dependencies, tasks, ready):
            yield f"task {_waits(name, wanted)}"


def _waits(task: str, wanted: Dependency) -> str:
    return f"{task} waits for {(' or ' if wanted.any else ' and ').join(wanted.names)}"


def first_tasks(tasks: Sequence[Task], dependencies: Mapping[str, Dependency]) -> list[Task]:
    """Return the tasks whose pods are made before any pod runs."""
    by_name = {task.name: task for task in tasks}
    return [task for task in tasks if may_start(task.name, dependencies, by_name, {})]


def never_starts(tasks: Sequence[Task], dependencies: Mapping[str, Dependency], min_available: int) -> bool:
    """Tell whether the gang needs pods that are made only once the gang runs.

    The gang's minimum is minAvailable pods of any tasks; each task's own minimum counts too, unless together they exceed
    minAvailable (design §4; `scheduler.gangs.gang_layout`).
    """
    first = first_tasks(tasks, dependencies)
    if sum(task.replicas for task in first) < min_available:
        return True
    counted = sum(task.needed for task in tasks) <= min_available
    return counted and any(task.needed for task in tasks if task not in first)


def deadlock(tasks: Sequence[Task], dependencies: Mapping[str, Dependency], min_available: int) -> Deadlock | None:
    """Return why a gang can never start because of task dependencies; None if it can, or if another rule refuses it."""
    if not dependencies or not never_starts(tasks, dependencies, min_available):
        return None
    first = first_tasks(tasks, dependencies)
    late = next((task.name for task in tasks if task not in first), None)
    if late is None:
        return None  # the tasks have fewer pods than minAvailable, which admission refuses
    why = (
        f"{_waits(late, dependencies[late])}, and nothing starts "
        f"without {late}, as minAvailable {min_available} needs them at the same time"
    )
    return Deadlock(late, why, sum(task.needed for task in first))
