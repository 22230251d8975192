"""Tasks that a job's annotations want on one node, or not, and of which that cannot be (`kube.volcano.task_topology`).

Where the scheduler's plugin task-topology is listed, what is named here counts for nothing; the rest of the annotations holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from kube import lenient
from kube.meta import Object
from kube.volcano import task_topology
from kube.volcano.task_topology import AFFINITY, ANTI_AFFINITY, TASK_ORDER


def of_job(job: Object) -> Iterator[str]:
    """Yield what is odd about these annotations, each as `path: sentence`."""
    notes = lenient.mapping(job, "metadata", "annotations")
    texts = {name: lenient.text(notes, name) for name in (AFFINITY, ANTI_AFFINITY, TASK_ORDER)}
    if not any(texts.values()):
        return
    tasks = [lenient.text(task, "name") for task in lenient.sequence(job, "spec", "tasks")]
    for name, text in texts.items():
        named = dict.fromkeys(task for clause in task_topology.clauses(text) for task in clause)
        unknown = [task for task in named if task not in tasks]
        if unknown:
            yield (
                f"metadata.annotations[{name}]: there is no task {' or '.join(unknown)}, so this has no effect; "
                f"name tasks of the job ({', '.join(filter(None, tasks))}), as in ps,worker;worker."
            )
    for pair in task_topology.both(texts[AFFINITY], texts[ANTI_AFFINITY]):
        wanted = f"{' and '.join(sorted(pair))} are wanted" if len(pair) > 1 else f"pods of {min(pair)} are wanted"
        yield (
            f"metadata.annotations[{ANTI_AFFINITY}]: {wanted} on one node and apart, so neither has an effect; "
            "remove them from one of the two annotations."
        )
