"""The plugin tensorflow: describes the cluster to each process in TF_CONFIG (reference: volcano-job §5.6)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from jobs.plugins import addresses, containers
from jobs.plugins.arguments import Flags
from jobs.plugins.contract import Context, Draft, Plugin, PodHook, PodIdentity, unchanged, wrong_ports

ROLES = ("ps", "worker", "chief", "evaluator")
FLAGS: Flags = {**{role: role for role in ROLES}, "port": 2222}


def _pods(context: Context) -> PodHook:
    if len(context.tasks) == 1 and (context.tasks[0].get("replicas") or 0) == 1:
        return unchanged  # a single pod needs no cluster
    cluster = {role: found for role in ROLES if (found := _addresses(context, role))}
    roles = {context.text(role): role for role in reversed(ROLES)}

    def hook(draft: Draft, identity: PodIdentity) -> Draft:
        task = {"type": roles.get(identity.task, identity.task), "index": identity.index}
        text = json.dumps({"cluster": cluster, "task": task}, separators=(",", ":"))
        variables = [{"name": "TF_CONFIG", "value": text}]
        return draft._replace(spec=containers.with_variables(draft.spec, variables, containers.MAIN))

    return hook


def _addresses(context: Context, role: str) -> list[str]:
    """Return one address for each pod of a role, even if the template gives all of them the same hostname."""
    task, port = context.task(context.text(role)), context.number("port")
    if task is None:
        return []
    pods = range(task.get("replicas") or 0)
    return [f"{addresses.of_pod(context.job, task, index).address}:{port}" for index in pods]


def _warnings(context: Context) -> Iterator[str]:
    if not any(context.task(context.text(role)) for role in ROLES):
        flags = ", ".join(f"--{role}" for role in ROLES)
        yield f"no task is named as {flags} say, so TF_CONFIG describes an empty cluster; rename one or give its flag."


PLUGIN = Plugin("tensorflow", FLAGS, _pods, refusals=lambda context: wrong_ports(context, "port"), warnings=_warnings)
