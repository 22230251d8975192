"""The first commands for each client of the API, to be copied."""

from __future__ import annotations

from typing import NamedTuple


class Snippet(NamedTuple):
    """A client and its first commands; `name` is part of an element's id."""

    name: str
    title: str
    text: str


KUBECTL = """\
export KUBECONFIG=~/Downloads/{file}
kubectl auth whoami
kubectl get vcjob --all-namespaces
kubectl get queues"""
VCCTL = """\
export KUBECONFIG=~/Downloads/{file}
vcctl job list --all-namespaces
vcctl queue list"""
PYTHON = """\
# pip install kubernetes
from kubernetes import client, config

config.load_kube_config("{file}")
jobs = client.CustomObjectsApi().list_cluster_custom_object("batch.volcano.sh", "v1alpha1", "jobs")
for job in jobs["items"]:
    print(job["metadata"]["name"], job.get("status", {{}}).get("state", {{}}).get("phase"))"""
KR8S = """\
# pip install kr8s
import kr8s

api = kr8s.api(kubeconfig="{file}")
for pod in api.get("pods", namespace=kr8s.ALL):
    print(pod.namespace, pod.name, pod.status.phase)"""
LIGHTKUBE = """\
# pip install lightkube
from lightkube import Client, KubeConfig
from lightkube.resources.core_v1 import Pod

client = Client(config=KubeConfig.from_file("{file}"))
for pod in client.list(Pod, namespace="*"):
    print(pod.metadata.namespace, pod.metadata.name, pod.status.phase)"""
CURL = """\
export KUBECONFIG=~/Downloads/{file}
TOKEN=$(kubectl config view --raw -o jsonpath='{{.users[0].user.token}}')
kubectl config view --raw -o jsonpath='{{.clusters[0].cluster.certificate-authority-data}}' | base64 -d > volcano-ui-ca.crt
curl --cacert volcano-ui-ca.crt -H "Authorization: Bearer $TOKEN" {server}/version"""


def snippets(server: str, file: str) -> list[Snippet]:
    """Return the snippets, those of the most used clients first."""
    texts = (
        ("kubectl", "kubectl", KUBECTL),
        ("vcctl", "vcctl", VCCTL),
        ("python", "Python: kubernetes", PYTHON),
        ("kr8s", "Python: kr8s", KR8S),
        ("lightkube", "Python: lightkube", LIGHTKUBE),
        ("curl", "curl", CURL),
    )
    return [Snippet(name, title, text.format(server=server, file=file)) for name, title, text in texts]
