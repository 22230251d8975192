"""The plugin svc: lets the pods of a job find each other by name (reference: volcano-job §5.3).

A headless Service has the job's name, which is the pods' subdomain; a ConfigMap lists the hosts of each task, as files
in /etc/volcano and as variables; a NetworkPolicy allows traffic only from pods of the job.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobs.plugins import addresses, containers
from jobs.plugins.arguments import Flags
from jobs.plugins.contract import Context, Draft, Plugin, PluginObject, PodHook, PodIdentity
from kube import lenient, names
from kube.meta import Object
from kube.resources import CONFIGMAPS, NETWORK_POLICIES, SERVICES

SUFFIX = "-svc"
DIRECTORY = "/etc/volcano"
LONGEST_VARIABLE = 131_072 - 1  # bytes of NAME=value that Linux accepts for a new program
FLAGS: Flags = {"publish-not-ready-addresses": False, "disable-network-policy": False, "inject-hosts-env": True}


def selector(context: Context) -> dict[str, str]:
    """Return the labels that all pods of the job have."""
    return {"volcano.sh/job-name": context.job, "volcano.sh/job-namespace": context.namespace}


def _pods(context: Context) -> PodHook:
    name = f"{context.job}{SUFFIX}"
    volume = {"name": containers.volume_name(name), "configMap": {"name": name}}
    keys = [key for task in context.tasks for key in _variable_names(task)]
    variables = [{"name": key, "valueFrom": {"configMapKeyRef": {"name": name, "key": key}}} for key in keys]
    if not context.arguments["inject-hosts-env"]:
        variables = []

    def hook(draft: Draft, identity: PodIdentity) -> Draft:
        spec = containers.with_variables(draft.spec, variables) if variables else draft.spec
        spec = containers.with_volume(spec, volume, {"mountPath": DIRECTORY})
        spec["hostname"] = spec.get("hostname") or identity.name
        spec["subdomain"] = spec.get("subdomain") or context.job
        return draft._replace(spec=spec)

    return hook


def _variable_names(task: Object) -> tuple[str, str]:
    upper = _key(task).upper()
    return f"VC_{upper}_HOSTS", f"VC_{upper}_NUM"


def _key(task: Object) -> str:
    return lenient.text(task, "name").replace("-", "_")


def _hosts(context: Context) -> Object:
    data: dict[str, str] = {}
    for task in context.tasks:
        hosts = [host.address for host in addresses.of_task(context.job, task)]
        listed, number = _variable_names(task)
        data |= {f"{_key(task)}.host": "\n".join(hosts), listed: ",".join(hosts), number: str(len(hosts))}
    return {"data": data}


def _service(context: Context) -> Object:
    spec: Object = {"clusterIP": "None", "clusterIPs": ["None"], "type": "ClusterIP", "selector": selector(context)}
    if context.arguments["publish-not-ready-addresses"]:
        spec["publishNotReadyAddresses"] = True
    return {"spec": spec}


def _policy(context: Context) -> Object | None:
    if context.arguments["disable-network-policy"]:
        return None
    pods = {"matchLabels": selector(context)}
    ingress = [{"from": [{"podSelector": pods}]}]
    return {"spec": {"podSelector": pods, "ingress": ingress, "policyTypes": ["Ingress"]}}


def _refusals(context: Context) -> Iterator[str]:
    # Any cluster would refuse the Service, and pods with that subdomain.
    if names.dns_subdomain(context.job) is None and (problem := names.dns1035_label(context.job)):
        yield f"the plugin makes a Service of the job's name, {context.job}, which cannot be one: {problem}."


def _warnings(context: Context) -> Iterator[str]:
    if not context.arguments["inject-hosts-env"]:
        return
    for task in context.tasks:
        name, replicas = _variable_names(task)[0], lenient.whole(task, "replicas") or 0
        last = addresses.of_pod(context.job, task, replicas - 1)
        length = replicas * (len(last.address) + 1)
        if length > LONGEST_VARIABLE and not lenient.text(task, "template", "spec", "hostname"):
            yield (
                f"{name} gets about {length:,} bytes long, and no program starts with a variable of more than "
                f"{LONGEST_VARIABLE:,}; give --inject-hosts-env=false and read {DIRECTORY}/{_key(task)}.host."
            )


PLUGIN = Plugin(
    "svc",
    FLAGS,
    _pods,
    objects=(
        PluginObject(CONFIGMAPS, SUFFIX, _hosts, keeps=lambda _: True),
        PluginObject(SERVICES, "", _service),
        PluginObject(NETWORK_POLICIES, "", _policy),
    ),
    refusals=_refusals,
    warnings=_warnings,
)
