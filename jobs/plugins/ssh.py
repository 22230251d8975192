"""The plugin ssh: lets every pod of a job log in to the others without a password (reference: volcano-job §5.4)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

from jobs.plugins import addresses, containers
from jobs.plugins.arguments import Flags
from jobs.plugins.contract import MAX_PORT, Context, Draft, KeyPair, Plugin, PluginObject, PodHook, PodIdentity
from kube import lenient
from kube.meta import Object
from kube.resources import SECRETS
from node.rules.programs import Program

SUFFIX = "-ssh"
HOME = "/root/.ssh"
DEFAULT_PORT = 22
CONFIG = "config"
FILES = ("id_rsa", "id_rsa.pub", "authorized_keys", CONFIG)
FOLDER = ".ssh"
FLAGS: Flags = {"ssh-key-file-path": HOME, "ssh-private-key": "", "ssh-public-key": "", "ssh-port": DEFAULT_PORT}


def makes_keys(context: Context) -> bool:
    """Tell whether keys have to be made, because the job's arguments contain none."""
    return not context.text("ssh-private-key")


def _pods(context: Context) -> PodHook:
    name, path = f"{context.job}{SUFFIX}", context.text("ssh-key-file-path")
    items = [{"key": key, "path": f"{FOLDER}/{key}"} for key in FILES]
    # The files are private to root only in root's own directory.
    mode = 0o600 if path == HOME else 0o644
    source = {"secretName": name, "items": items, "defaultMode": mode}
    volume = {"name": containers.volume_name(name), "secret": source}
    mount = {"mountPath": path, "subPath": FOLDER}

    def hook(draft: Draft, _: PodIdentity) -> Draft:
        return draft._replace(spec=containers.with_volume(draft.spec, volume, mount))

    return hook


def _secret(context: Context) -> Object:
    # The settings apply to a pod's name and its address, and host keys are not checked. In Volcano the port applies to
    # the name only, which mpirun does not use.
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for task in context.tasks:
        for host in addresses.of_task(context.job, task):
            lines += [f"Host {host.hostname} {host.address}", f"  HostName {host.address}", f"  Port {_port(context)}"]
    files = {CONFIG: "\n".join(lines) + "\n"}
    # Without keys when the Secret exists: then only its configuration is compared.
    pair = context.keys
    if not makes_keys(context):
        pair = KeyPair(context.text("ssh-private-key"), context.text("ssh-public-key"))
    if pair is not None:
        files |= {"id_rsa": pair.private, "id_rsa.pub": pair.public, "authorized_keys": pair.public}
    return {"type": "Opaque", "data": {name: b64encode(text.encode()).decode() for name, text in files.items()}}


def _port(context: Context) -> int:
    port = context.number("ssh-port")
    return port if 1 <= port <= MAX_PORT else DEFAULT_PORT


def _warnings(context: Context) -> Iterator[str]:
    if _port(context) != context.number("ssh-port"):
        yield f"--ssh-port must be a port from 1 to {MAX_PORT}, and is {context.number('ssh-port')}; {DEFAULT_PORT} is used."
    private, public = context.text("ssh-private-key"), context.text("ssh-public-key")
    if private and not public:
        yield "--ssh-private-key without --ssh-public-key lets nobody in; give both, or neither to have a pair made."
    if public and not private:
        yield "--ssh-public-key is used only with --ssh-private-key; a new pair is made for the job."
    if private:
        yield "--ssh-private-key can be read by everybody who may read the job; leave it out to have a pair made."


def _programs(context: Context) -> dict[Program, list[str]]:
    every = [lenient.text(task, "name") for task in context.tasks]
    return {Program.SSH: every, Program.SSHD: every}


PLUGIN = Plugin(
    "ssh",
    FLAGS,
    _pods,
    objects=(PluginObject(SECRETS, SUFFIX, _secret, keeps=lambda key: key == CONFIG),),
    warnings=_warnings,
    programs=_programs,
)
