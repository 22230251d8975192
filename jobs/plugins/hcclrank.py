"""The plugin hcclrank: annotates each pod with its rank for HCCL (reference: volcano-job §5.9)."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.plugins.arguments import Flags
from jobs.plugins.contract import Context, Draft, Plugin, PodHook, PodIdentity, unknown_tasks

RANK = "hccl/rankIndex"
FLAGS: Flags = {"master": "master", "worker": "worker"}


def _pods(context: Context) -> PodHook:
    master, worker = context.text("master"), context.text("worker")
    masters = context.replicas(master)

    def hook(draft: Draft, identity: PodIdentity) -> Draft:
        if draft.annotations.get(RANK):
            return draft
        # The first variable RANK of any container counts.
        variables = (each for container in draft.spec.get("containers") or () for each in container.get("env") or ())
        rank = next((each.get("value") or "" for each in variables if each.get("name") == "RANK"), "")
        if not rank and identity.task in (master, worker):
            rank = str(identity.index if identity.task == master else masters + identity.index)
        return draft._replace(annotations={**draft.annotations, RANK: rank}) if rank else draft

    return hook


def _warnings(context: Context) -> Iterator[str]:
    if not any(context.task(context.text(flag)) for flag in FLAGS):
        yield from unknown_tasks(context, list(FLAGS), "its pods get a rank only from a variable RANK")


# It makes nothing for the job as a whole, so Volcano does not list it in status.controlledResources.
PLUGIN = Plugin("hcclrank", FLAGS, _pods, warnings=_warnings, is_registered=False)
