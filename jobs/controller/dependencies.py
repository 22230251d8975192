"""Which tasks wait for which (reference: volcano-job §4.2, §7.3 rule 20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kube.kinds.core import PodPhase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jobs.controller.facts import Dependency, PodFact
    from jobs.lifecycle.situation import Task


def cycle(waits_for: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the tasks of a circle in the order they wait for each other, or an empty list."""
    done: set[str] = set()
    for start in waits_for:
        # Names on `path` are being visited; meeting one again closes a circle.
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
    """Say whether a task's pods may be made; `ready` counts the pods of each task that are ready or succeeded."""
    wanted = dependencies.get(task)
    if wanted is None:
        return True
    answers = (name in tasks and ready.get(name, 0) >= tasks[name].needed for name in wanted.names)
    return any(answers) if wanted.any else all(answers)


def held_back(
    dependencies: Mapping[str, Dependency],
    tasks: Mapping[str, Task],
    named: Mapping[str, int],
    ready: Mapping[str, int],
) -> Iterator[str]:
    """Yield `task b waits for a and c` for each task that lacks pods because of others; `named` counts the pods it has."""
    for name, wanted in dependencies.items():
        lacks_pods = name in tasks and named.get(name, 0) < tasks[name].replicas
        if lacks_pods and not may_start(name, dependencies, tasks, ready):
            yield f"task {name} waits for {(' or ' if wanted.any else ' and ').join(wanted.names)}"


def is_ready(pod: PodFact) -> bool:
    """Say whether a pod counts as ready for the tasks that wait for its own."""
    return pod.phase == PodPhase.SUCCEEDED or (pod.phase == PodPhase.RUNNING and pod.ready)
