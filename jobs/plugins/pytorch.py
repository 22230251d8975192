"""The plugin pytorch: gives each process the master's address and its own rank (reference: volcano-job §5.5)."""

from __future__ import annotations

from jobs.plugins import addresses, containers
from jobs.plugins.arguments import Flags
from jobs.plugins.contract import Context, Draft, Plugin, PodHook, PodIdentity, unchanged, unknown_tasks, wrong_ports
from kube.meta import Object

PORT_NAME = "pytorchjob-port"
WAITER = "wait-for-master"
FLAGS: Flags = {
    "master": "master",
    "worker": "worker",
    "port": 23456,
    "wait-master-enabled": False,
    "wait-master-timeout": 300,
    "wait-master-image": "busybox:1.36.1",
}
# Images whose sh has no /dev/tcp, such as dash, have nc or bash as well.
_WAIT = """\
end=$(( $(date +%s) + {seconds} ))
until nc -z {host} {port} 2>/dev/null || bash -c ': </dev/tcp/{host}/{port}' 2>/dev/null; do
  if [ "$(date +%s)" -ge "$end" ]; then
    echo "{host}:{port} has not answered within {seconds} seconds" >&2
    exit 1
  fi
  sleep 2
done
"""


def _pods(context: Context) -> PodHook:
    master, worker, port = context.text("master"), context.text("worker"), context.number("port")
    first = context.task(master)
    if first is None:
        return unchanged
    host = addresses.of_pod(context.job, first, 0).address
    common = [
        {"name": "MASTER_ADDR", "value": host},
        {"name": "MASTER_PORT", "value": str(port)},
        {"name": "WORLD_SIZE", "value": str(context.replicas(master) + context.replicas(worker))},
    ]
    waiter: Object | None = None
    if context.arguments["wait-master-enabled"]:
        script = _WAIT.format(host=host, port=port, seconds=context.number("wait-master-timeout"))
        waiter = {"name": WAITER, "image": context.text("wait-master-image"), "command": ["sh", "-c", script]}

    def hook(draft: Draft, identity: PodIdentity) -> Draft:
        rank = {master: "0", worker: str(identity.index + 1)}.get(identity.task)
        variables = common if rank is None else [*common, {"name": "RANK", "value": rank}]
        spec = containers.with_port(draft.spec, port, PORT_NAME, containers.MAIN)
        spec = containers.with_variables(spec, variables, containers.MAIN)
        if waiter is not None and identity.task == worker:
            before = spec.get("initContainers") or []
            if all(each.get("name") != WAITER for each in before):
                spec["initContainers"] = [*before, waiter]
        return draft._replace(spec=spec)

    return hook


PLUGIN = Plugin(
    "pytorch",
    FLAGS,
    _pods,
    refusals=lambda context: wrong_ports(context, "port"),
    warnings=lambda context: unknown_tasks(context, ["master"], "the plugin does nothing"),
)
