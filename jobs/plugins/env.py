"""The plugin env: gives every container the index of its pod in variables (reference: volcano-job §5.2)."""

from __future__ import annotations

from jobs.plugins import containers
from jobs.plugins.contract import Draft, Plugin, PodIdentity


def _with_index(draft: Draft, identity: PodIdentity) -> Draft:
    index = str(identity.index)
    variables = [{"name": "VK_TASK_INDEX", "value": index}, {"name": "VC_TASK_INDEX", "value": index}]
    return draft._replace(spec=containers.with_variables(draft.spec, variables))


PLUGIN = Plugin("env", {}, lambda _: _with_index)
