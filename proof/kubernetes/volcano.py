"""Volcano's own programs beside a cluster of the tests: controllers, scheduler, admission webhooks, and vcctl.

`make volcano-programs` builds them of a checkout. They run as they do where Volcano is installed: as their own accounts,
with the rights, the configuration and the webhooks of Volcano's installer, but for where their files are.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Self

import yaml

from kube.meta import Object
from kube.resources import LEASES
from proof.harness.kubectl import Kubectl
from proof.harness.ports import free_port
from proof.harness.waiting import HANG_S, until
from proof.kubernetes.cluster import Kubernetes
from proof.kubernetes.program import Program
from proof.systems.system import PROJECT

BUILT = PROJECT / ".cache" / "volcano"
PROGRAMS = {name: BUILT / name for name in ("vc-controller-manager", "vc-scheduler", "vc-webhook-manager", "vcctl")}
INSTALLER = BUILT / "install.yaml"
NAMESPACE = "volcano-system"
CONTROLLERS = f"system:serviceaccount:{NAMESPACE}:volcano-controllers"
SCHEDULER = f"system:serviceaccount:{NAMESPACE}:volcano-scheduler"
LEADERS = ("vc-controller-manager", "volcano")  # their Leases
# What of the installer runs in pods runs here beside the cluster.
_RUNS = ("Deployment", "Service", "Job")
_HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def missing() -> list[str]:
    """Return the programs that have not been built."""
    return [path.name for path in (*PROGRAMS.values(), INSTALLER) if not path.exists()]


def installed() -> list[Object]:
    """Return the objects of Volcano's installer."""
    return [each for each in yaml.safe_load_all(INSTALLER.read_text()) if each]


class Volcano:
    """Volcano on a cluster; use it as a context manager.

    With definitions="ours" the kinds that deploy/kubernetes/crds has are defined by it, with "theirs" all are
    Volcano's own. requests_per_s is what its programs allow themselves, None for what they do by themselves.
    """

    def __init__(
        self, cluster: Kubernetes, *, definitions: Literal["ours", "theirs"] = "ours", requests_per_s: int | None = None
    ) -> None:
        self.cluster, self.definitions = cluster, definitions
        self.folder = cluster.folder / "volcano"
        self.folder.mkdir(exist_ok=True)
        self.pace = (
            [] if requests_per_s is None else [f"--kube-api-{each}={requests_per_s}" for each in ("qps", "burst")]
        )
        self.hooks_port = free_port()
        self.programs: list[Program] = []

    def __enter__(self) -> Self:
        self.install()
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def install(self) -> None:
        """Make what the installer makes, but for what runs; kinds that the cluster has already stay unless theirs are wanted."""
        objects = installed()
        existing = (
            set()
            if self.definitions == "theirs"
            else {each["metadata"]["name"] for each in self.cluster.get("crd")["items"]}
        )
        self._apply("Namespace", objects)
        self.cluster.apply(
            *(
                each
                for each in objects
                if each["kind"] not in (*_RUNS, *_HOOKS, "Namespace") and each["metadata"]["name"] not in existing
            )
        )
        self.cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", f"--timeout={HANG_S:.0f}s")
        configuration = next(each for each in objects if each["metadata"]["name"] == "volcano-scheduler-configmap")
        self._scheduler_conf.write_text(configuration["data"]["volcano-scheduler.conf"])

    def _apply(self, kind: str, objects: Iterable[Object]) -> None:
        self.cluster.apply(*(each for each in objects if each["kind"] == kind))

    def start(self) -> Self:
        """Start controllers and scheduler; return when both lead."""
        self.programs = [Program(name, command, self.folder) for name, command in self._commands().items()]
        try:
            for program in self.programs:
                program.start()
            until(self._leads, every_s=0.2, what="that Volcano's programs lead")
        except BaseException:
            self.stop()
            raise
        return self

    def start_webhooks(self) -> None:
        """Start its admission and have the API server ask it; return when it answers."""
        configurations = [each for each in installed() if each["kind"] in _HOOKS]
        paths = []
        for configuration in configurations:
            for hook in configuration["webhooks"]:
                path = hook["clientConfig"].pop("service")["path"]
                hook["clientConfig"]["url"] = f"https://127.0.0.1:{self.hooks_port}{path}"
                paths.append(path)
        self.cluster.apply(*configurations)
        hooks = Program("vc-webhook-manager", self._webhooks(paths), self.folder)
        self.programs.append(hooks)
        hooks.start()
        until(lambda: self._is_ready(hooks), every_s=0.1, what="Volcano's webhooks")

    def stop(self) -> None:
        """End its programs at once, as a node does that fails; its webhooks are asked no more."""
        if any(program.name == "vc-webhook-manager" for program in self.programs):
            for kind in _HOOKS:
                names = [each["metadata"]["name"] for each in installed() if each["kind"] == kind]
                self.cluster.kubectl("delete", kind, *names)
        for program in reversed(self.programs):
            program.stop(signal.SIGKILL)

    def vcctl(self, *arguments: object, config: Path | None = None) -> str:
        """Return what vcctl prints, as an administrator or as somebody with a kubeconfig."""
        environment = {"HOME": str(self.folder), "KUBECONFIG": str(config or self.cluster.config)}
        return Kubectl(str(PROGRAMS["vcctl"]), environment)(*arguments)

    @property
    def _scheduler_conf(self) -> Path:
        return self.folder / "volcano-scheduler.conf"

    def _leads(self) -> bool:
        for program in self.programs:
            program.check()
        leases = self.cluster.get(LEASES.id, "-n", NAMESPACE)["items"]
        held = {
            each["metadata"]["name"]: each["spec"].get("renewTime", "")
            for each in leases
            if each["spec"].get("holderIdentity")
        }
        return all(held.get(each) for each in LEADERS)

    def _is_ready(self, hooks: Program) -> bool:
        hooks.check()
        with socket.socket() as trial:
            return trial.connect_ex(("127.0.0.1", self.hooks_port)) == 0

    def _commands(self) -> dict[str, list[str | Path]]:
        controllers = self.cluster.account_kubeconfig(NAMESPACE, "volcano-controllers")
        scheduler = self.cluster.account_kubeconfig(NAMESPACE, "volcano-scheduler")
        sockets = f"DEBUG_SOCKET_DIR={self.folder / 'sockets'}"
        return {
            "vc-controller-manager": [
                "env",
                sockets,
                PROGRAMS["vc-controller-manager"],
                f"--kubeconfig={controllers}",
                "--leader-elect=true",
                *self.pace,
            ],
            "vc-scheduler": [
                "env",
                sockets,
                PROGRAMS["vc-scheduler"],
                f"--kubeconfig={scheduler}",
                f"--scheduler-conf={self._scheduler_conf}",
                "--leader-elect=true",
                *self.pace,
            ],
        }

    def _webhooks(self, paths: Iterable[str]) -> list[str | Path]:
        identity = self.cluster.identities
        return [
            PROGRAMS["vc-webhook-manager"],
            f"--kubeconfig={self.cluster.account_kubeconfig(NAMESPACE, 'volcano-admission')}",
            "--listen-address=127.0.0.1",
            f"--port={self.hooks_port}",
            f"--enabled-admission={','.join(paths)}",
            f"--ca-cert-file={identity.ca}",
            f"--tls-cert-file={identity.server.certificate}",
            f"--tls-private-key-file={identity.server.key}",
            f"--webhook-url=https://127.0.0.1:{self.hooks_port}",
        ]
