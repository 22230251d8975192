"""A cluster as Kubernetes itself makes it: etcd, kube-apiserver, its controllers and scheduler, and nodes played by kwok.

All of it is of one folder, on ports nobody else uses, and on this machine only.
`make test-kubernetes` builds the programs from the modules that `programs/` names.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import httpx

from cluster import bootstrap
from cluster.remote.http import paths
from kube.meta import Object
from kube.resources import Resource
from proof.harness.kubectl import Kubectl
from proof.harness.ports import free_port
from proof.harness.waiting import HANG_S, until
from proof.kubernetes.identities import Identities
from proof.kubernetes.program import Program
from proof.systems.system import PROJECT

BUILT = PROJECT / ".cache" / "kubernetes"
PROGRAMS = {
    "etcd": BUILT / "etcd" / "server",
    "kube-apiserver": BUILT / "kubernetes" / "kube-apiserver",
    "kube-controller-manager": BUILT / "kubernetes" / "kube-controller-manager",
    "kube-scheduler": BUILT / "kubernetes" / "kube-scheduler",
    "kubectl": BUILT / "kubernetes" / "kubectl",
    "kwok": BUILT / "kwok" / "kwok",
}
DEPLOY = PROJECT / "deploy" / "kubernetes"
NAMESPACE = ACCOUNT = "volcano-ui"  # of what deploy/kubernetes puts into a cluster
CRDS = DEPLOY / "crds"
STAGES = Path(__file__).parent / "stages.yaml"
CONTEXT = "test-cluster"
ADMINISTRATORS = "system:masters"
# What a cluster does by itself as far as it is seen here: accounts that pods need, nodes that become ready, the end of
# what is owned or used, quotas, what makes pods of workloads, how many of them may go, and the end of those on no node.
CONTROLLERS = (
    "serviceaccount-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "resourcequota-controller",
    "persistentvolumeclaim-protection-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "deployment-controller",
    "statefulset-controller",
    "disruption-controller",
    "job-controller",
    "pod-garbage-collector-controller",
)


# Who asked for what is noted of each request when it is answered, of a watch also when that begins.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "Metadata"}],
    "omitStages": ["RequestReceived"],
}


def missing() -> list[str]:
    """Return the programs that have not been built."""
    return [name for name, path in PROGRAMS.items() if not path.exists()]


class Kubernetes:
    """One cluster; use it as a context manager. `kubectl` is an administrator's.

    `amounts` is what each node has, otherwise than usual; `stages` says how kwok plays nodes and pods. With
    is_at_rest=True nothing but the API server runs, so that only who asks it changes anything; there are no nodes.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        nodes: int = 3,
        volcano: bool = True,
        amounts: Mapping[str, str] | None = None,
        stages: Path = STAGES,
        is_at_rest: bool = False,
    ) -> None:
        self.folder = Path(folder).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.nodes, self.volcano, self.amounts, self.stages = nodes, volcano, amounts or {}, stages
        self.is_at_rest = is_at_rest
        self.port, self.etcd_port, self.peer_port = free_port(), free_port(), free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self.identities = Identities(self.folder / "pki")
        self.config = self.kubeconfig("admin", ADMINISTRATORS)
        self.kubectl = self.kubectl_as(self.config)
        self.audit_log = self.folder / "audit.log"
        self._audit_policy = self.folder / "audit-policy.json"
        self._audit_policy.write_text(json.dumps(AUDIT_POLICY))
        self.etcd = Program("etcd", self._etcd(), self.folder)
        self.apiserver = Program("kube-apiserver", self._apiserver(), self.folder)
        others = {} if is_at_rest else self._others()
        self.others = [Program(name, command, self.folder) for name, command in others.items()]
        self.programs = [self.etcd, self.apiserver, *self.others]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Start everything; return when nodes are ready and Volcano's kinds are served."""
        try:
            self.etcd.start()
            self.apiserver.start()
            self._until_ready()
            for program in self.others:
                program.start()
            self._fill()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End everything, the API server's clients first."""
        for program in reversed(self.programs):
            program.stop(signal.SIGKILL if program is not self.apiserver else signal.SIGTERM)

    def assert_gone(self) -> None:
        """Fail unless nothing that was started here runs."""
        mark = os.fsencode(self.folder)
        for process in Path("/proc").glob("[0-9]*"):
            try:
                line = (process / "cmdline").read_bytes()
            except OSError:
                continue
            assert int(process.name) == os.getpid() or mark not in line, line

    def restart_apiserver(self, *, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Kill the API server, do something, and start it again."""
        self.apiserver.stop(signal.SIGKILL)
        meanwhile()
        self.apiserver.start()
        self._until_ready()

    def compact(self) -> None:
        """Have etcd forget all but the present, as it does every five minutes."""
        with self._client(self.identities.certificate("etcd-client")) as client:
            etcd = f"https://127.0.0.1:{self.etcd_port}/v3/kv"
            key = base64.b64encode(b"/registry/").decode()
            now = client.post(f"{etcd}/range", json={"key": key, "limit": 1}).raise_for_status().json()
            wanted = {"revision": now["header"]["revision"], "physical": True}
            client.post(f"{etcd}/compaction", json=wanted).raise_for_status()

    def kubeconfig(self, name: str, *groups: str) -> Path:
        """Return a kubeconfig's file of a person with a certificate."""
        certificate, key = self.identities.certificate(name, *groups)
        return self._written(name, {"client-certificate": str(certificate), "client-key": str(key)})

    def account_kubeconfig(self, namespace: str, name: str, file: str = "") -> Path:
        """Return a kubeconfig's file of a service account with a token of its own."""
        token = self.kubectl("create", "token", name, "-n", namespace).strip()
        return self._written(file or f"{namespace}-{name}", {"token": token})

    def _written(self, name: str, user: Mapping[str, str]) -> Path:
        file = self.folder / f"{name}.kubeconfig"
        file.touch(0o600)
        file.write_text(self.identities.kubeconfig(self.server, user, context=CONTEXT))
        return file

    def kubectl_as(self, config: Path) -> Kubectl:
        """Return kubectl with a kubeconfig's file."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "KUBECONFIG": str(config)}
        return Kubectl(str(PROGRAMS["kubectl"]), environment)

    def apply(self, *objects: Object) -> None:
        """Make objects so, as an administrator."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(listed))

    def serves(self, kind: Resource) -> bool:
        """Whether the cluster has the kind."""
        return self.volcano or not kind.group.endswith("volcano.sh")

    def make(self, kind: Resource, objects: Iterable[Object]) -> None:
        """Create many objects of a kind, faster than kubectl would."""
        with self.administrator() as client:
            for obj in objects:
                path = paths.collection(kind, obj["metadata"].get("namespace", ""))
                client.post(f"{self.server}{path}", json=obj).raise_for_status()

    def clear(self, kind: Resource, namespace: str = "default") -> None:
        """Delete all objects of a kind in a namespace."""
        self.kubectl("delete", "--raw", paths.collection(kind, namespace))

    def get(self, *arguments: object) -> Object:
        """Return what `kubectl get` says, as an object."""
        found: Object = json.loads(self.kubectl("get", *arguments, "-o", "json"))
        return found

    def set_status(self, resource: str, name: str, status: Mapping[str, Any], *, namespace: str = "default") -> None:
        """Write the status of an object, as its controller does."""
        patch = json.dumps({"status": status})
        self.kubectl("patch", resource, name, "-n", namespace, "--subresource=status", "--type=merge", "-p", patch)

    def install_volcano(self) -> None:
        """Make what every cluster with Volcano has: its kinds, and its first queues."""
        self.volcano = True
        self.kubectl("apply", "--server-side", "-f", CRDS)
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", f"--timeout={HANG_S:.0f}s")
        self.apply(*(_whole(kind, obj) for kind, obj in bootstrap.queues()))

    def requests_by(self, user: str) -> list[Mapping[str, Any]]:
        """Return what a user has asked for so far: the audit's entries."""
        whole = self.audit_log.read_text().rpartition("\n")[0]  # a line may be just being written
        entries = map(json.loads, whole.splitlines())
        return [each for each in entries if each["user"].get("username") == user]  # nobody was let in without one

    def _until_ready(self) -> None:
        def is_ready() -> bool:
            self.etcd.check()
            self.apiserver.check()
            try:
                return client.get(f"{self.server}/readyz").status_code == httpx.codes.OK
            except httpx.TransportError:
                return False

        with self.administrator() as client:
            until(is_ready, every_s=0.1, what="an API server that is ready")

    def administrator(self) -> httpx.Client:
        """Return an HTTP client with every right."""
        return self._client(self.identities.certificate("admin", ADMINISTRATORS))

    def _client(self, pair: tuple[Path, Path]) -> httpx.Client:
        context = ssl.create_default_context(cafile=self.identities.ca)
        context.load_cert_chain(*pair)
        return httpx.Client(verify=context, timeout=HANG_S)

    def _fill(self) -> None:
        """Make nodes, and what every cluster with Volcano has."""
        if self.volcano:
            self.install_volcano()
        if self.is_at_rest:
            return
        self.apply(*(node(f"node-{number}", **self.amounts) for number in range(self.nodes)))
        until(self._is_whole, every_s=0.2, what="nodes that are ready, and the account of pods")

    def _is_whole(self) -> bool:
        for program in self.programs:
            program.check()
        conditions = (each for node in self.get("nodes")["items"] for each in node["status"].get("conditions", ()))
        ready = [each for each in conditions if (each["type"], each["status"]) == ("Ready", "True")]
        return len(ready) == self.nodes and "default" in self.kubectl("get", "serviceaccounts")

    def _etcd(self) -> list[str | Path]:
        client, peers = f"https://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{self.peer_port}"
        certificate, key = self.identities.certificate("etcd-client")
        return [
            PROGRAMS["etcd"],
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            f"--cert-file={self.identities.server.certificate}",
            f"--key-file={self.identities.server.key}",
            f"--trusted-ca-file={self.identities.ca}",
            "--client-cert-auth",
            f"--client-cert-file={certificate}",
            f"--client-key-file={key}",
            "--watch-progress-notify-interval=5s",  # as kubeadm sets it; kinds that stay the same keep up by it
            "--unsafe-no-fsync",
        ]

    def _apiserver(self) -> list[str | Path]:
        certificate, key = self.identities.certificate("etcd-client")
        return [
            PROGRAMS["kube-apiserver"],
            f"--etcd-servers=https://127.0.0.1:{self.etcd_port}",
            f"--etcd-cafile={self.identities.ca}",
            f"--etcd-certfile={certificate}",
            f"--etcd-keyfile={key}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            # Nobody asks by way of the service `kubernetes`, and a machine may have no other address.
            "--advertise-address=192.0.2.1",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={self.identities.server.certificate}",
            f"--tls-private-key-file={self.identities.server.key}",
            f"--client-ca-file={self.identities.ca}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--service-account-issuer={self.server}",
            f"--service-account-key-file={self.identities.signing_key}",
            f"--service-account-signing-key-file={self.identities.signing_key}",
            f"--audit-policy-file={self._audit_policy}",
            f"--audit-log-path={self.audit_log}",
        ]

    def _others(self) -> dict[str, list[str | Path]]:
        alone = ["--leader-elect=false", f"--kubeconfig={self.config}", "--bind-address=127.0.0.1"]
        return {
            "kube-controller-manager": [
                PROGRAMS["kube-controller-manager"],
                *alone,
                "--secure-port=0",
                f"--controllers={','.join(CONTROLLERS)}",
            ],
            "kube-scheduler": [PROGRAMS["kube-scheduler"], *alone, "--secure-port=0"],
            "kwok": [
                PROGRAMS["kwok"],
                f"--kubeconfig={self.config}",
                f"--config={self.stages}",
                "--manage-all-nodes=true",
                "--node-lease-duration-seconds=40",
                "--node-ip=127.0.0.1",
            ],
        }


def _whole(kind: Resource, obj: Object) -> Object:
    """Return an object as people write it: with its kind, and without the status that controllers write."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        **{key: value for key, value in obj.items() if key != "status"},
    }


def node(name: str, *, cpu: str = "32", memory: str = "256Gi", pods: str = "110") -> Object:
    """Return a node that kwok plays."""
    amounts = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "type": "kwok"}},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
