"""What Volcano's end-to-end suites find: nodes as on the machines where Volcano runs them, its kinds, and a system of ours at work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cluster.remote.webhooks import hooks
from kube.meta import Object
from kube.volcano import scheduler_configuration
from proof.harness.ports import free_port
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.kubernetes.cluster import ACCOUNT, DEPLOY, NAMESPACE, Kubernetes
from proof.kubernetes.volcano import Volcano
from proof.kubernetes.webhooks import CONFIGURATIONS
from proof.systems.system import System

STAGES = Path(__file__).parent / "stages.yaml"
NODES, AMOUNTS = 4, {"cpu": "4", "memory": "16Gi"}


@contextlib.contextmanager
def ready(folder: Path, configuration: str) -> Iterator[tuple[Kubernetes, System]]:
    """Have a cluster on which a system of ours works, configured so, and is asked as webhook, with the rights that deploy/kubernetes gives it."""
    with Kubernetes(folder / "kubernetes", nodes=NODES, amounts=AMOUNTS, stages=STAGES) as cluster:
        Volcano(cluster).install()
        cluster.apply(_configuration(configuration))
        cluster.kubectl("apply", "-k", DEPLOY / "in-place")
        cluster.kubectl("delete", "deployment", ACCOUNT, "-n", NAMESPACE)
        config = cluster.account_kubeconfig(NAMESPACE, ACCOUNT)
        port = str(free_port())
        settings = {
            "VOLCANO_UI_WAY": "in-place",
            "VOLCANO_UI_WEBHOOKS": f"127.0.0.1:{port}",
            "VOLCANO_UI_WEBHOOK_PORT": port,
        }
        with world.showing(folder, config, **settings) as system:
            world.live(system)
            until(lambda: _has_webhooks(cluster), every_s=0.2, what="that the API server asks the webhooks")
            yield cluster, system
    cluster.assert_gone()


def _configuration(text: str) -> Object:
    """Return the configuration with which Volcano's suites run, under the name that the scheduler reads; the suites are built to change that one."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": scheduler_configuration.NAME, "namespace": scheduler_configuration.NAMESPACE},
        "data": {scheduler_configuration.KEY: text},
    }


def _has_webhooks(cluster: Kubernetes) -> bool:
    return all(cluster.get(plural, hooks.NAME).get("webhooks") for plural in CONFIGURATIONS)
