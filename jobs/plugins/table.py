"""The plugins that a job may name, in the order in which they are applied (reference: volcano-job §10, Q-21).

svc comes before the plugins whose pods use its host names, and pytorch before hcclrank, which reads the rank it sets.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobs.plugins import arguments, env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow
from jobs.plugins.contract import Context, KeyPair, Plugin
from kube import lenient
from kube.meta import Object

_ORDERED = (
    env.PLUGIN,
    svc.PLUGIN,
    ssh.PLUGIN,
    pytorch.PLUGIN,
    tensorflow.PLUGIN,
    mpi.PLUGIN,
    ray.PLUGIN,
    hcclrank.PLUGIN,
)
PLUGINS: dict[str, Plugin] = {plugin.name: plugin for plugin in _ORDERED}


def of_job(job: Object, keys: KeyPair | None = None) -> Iterator[tuple[Plugin, Context]]:
    """Yield the plugins that a job names, each with its context; unknown names are skipped."""
    spec, metadata = lenient.mapping(job, "spec"), lenient.mapping(job, "metadata")
    wanted = lenient.mapping(spec, "plugins")
    tasks = [task for task in lenient.sequence(spec, "tasks") if isinstance(task, dict)]
    for name, plugin in PLUGINS.items():
        if name in wanted:
            values = arguments.parse(lenient.texts(wanted, name), plugin.flags).values
            key = lenient.text(metadata, "name"), lenient.text(metadata, "namespace")
            yield plugin, Context(*key, tasks, values, keys)
