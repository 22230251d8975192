"""What deploy/kubernetes puts into a cluster: it is accepted, and the rights that it gives are those that the work takes."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from collections import Counter

import pytest
import yaml

from kube.resources import JOBS, POD_GROUPS, PODS, QUEUES
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.kubernetes.cluster import ACCOUNT, DEPLOY, NAMESPACE, PROGRAMS
from proof.systems import parts
from proof.systems.system import PROJECT
from proof.systems.work import COMPLETED, Person

pytestmark = pytest.mark.system
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  minAvailable: 3
  schedulerName: volcano
  queue: default
  plugins: {svc: [], ssh: [], env: []}
  tasks:
  - name: worker
    replicas: 3
    template:
      spec:
        restartPolicy: Never
        containers: [{name: main, image: any, resources: {requests: {cpu: "1"}}}]
"""


@pytest.fixture
def deployed(kubernetes, request):
    """Apply a folder of deploy/kubernetes; afterwards nothing of it runs, and its account has no right to write."""
    if request.param == "several-pods":
        follow("several pods", kubernetes, step=0)
    kubernetes.kubectl("apply", "-k", DEPLOY / request.param)
    yield request.param
    for kind in (JOBS, PODS):
        kubernetes.clear(kind)
    kubernetes.kubectl("delete", "deployment,statefulset,pvc,secret", "--all", "-n", NAMESPACE)
    bindings = ("volcano-ui-changes", "volcano-ui-works", "volcano-ui-webhooks")
    kubernetes.kubectl("delete", "clusterrolebinding", *bindings, "--ignore-not-found")
    until(lambda: not pods_of(kubernetes), what="that the pod is gone")


def follow(section, kubernetes, *, step):
    """Type what a section of the README says, by the number of its commands, as an administrator."""
    text = (DEPLOY / "README.md").read_text()
    (found,) = [each for each in re.split(r"(?m)^## ", text) if each.lower().startswith(section)]
    commands = textwrap.dedent(re.findall(r"^ +```sh\n(.*?)^ +```", found, re.DOTALL | re.MULTILINE)[step])
    path = f"{PROGRAMS['kubectl'].parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(kubernetes.config)}
    subprocess.run(["bash", "-euc", commands], cwd=PROJECT, env=environment, check=True)


@pytest.mark.parametrize("deployed", ["base", "beside", "in-place"], indirect=True)
def test_pod_is_admitted_under_the_restricted_level(kubernetes, deployed):
    until(lambda: pods_of(kubernetes), what="the pod of the deployment")
    [container] = pods_of(kubernetes)[0]["spec"]["containers"]
    settings = container["envFrom"][0]["configMapRef"]["name"]
    way = kubernetes.get("configmap", settings, "-n", NAMESPACE)["data"]["VOLCANO_UI_WAY"]
    assert way == {"base": "read-only"}.get(deployed, deployed)
    assert container["securityContext"]["readOnlyRootFilesystem"]


@pytest.mark.parametrize("deployed", ["in-place"], indirect=True)
def test_jobs_of_a_person_and_of_kubectl_complete_with_the_rights_of_the_pod(kubernetes, deployed, tmp_path):
    """The processes run here, as the account of the pod: the cluster's nodes are played, and run nothing."""
    config = kubernetes.account_kubeconfig(NAMESPACE, ACCOUNT)
    before = len(kubernetes.asked_by(USER))
    with world.showing(tmp_path, config, VOLCANO_UI_WAY="in-place") as system, Person(system) as person:
        world.live(system)
        person.create(JOB % "from-the-form")
        kubernetes.apply(yaml.safe_load(JOB % "from-kubectl"))
        for name in ("from-the-form", "from-kubectl"):
            ends(kubernetes, name)
        assert person.post("/jobs/default/from-kubectl/delete/").status_code == 302
        until(lambda: not made_for(kubernetes, "from-kubectl"), what="that nothing of the job is left")
    refused = [each for each in kubernetes.asked_by(USER)[before:] if each["responseStatus"]["code"] == 403]
    assert [(each["verb"], each["requestURI"]) for each in refused] == []


PODS_OF = {"web": 2, "works": 2, "postgres": 1, "valkey": 1}


@pytest.mark.parametrize("deployed", ["several-pods"], indirect=True)
def test_several_pods_are_admitted_and_find_their_secret(kubernetes, deployed):
    until(lambda: counted(kubernetes) == PODS_OF, what="the pods of all parts")
    made = kubernetes.get("secret", "servers", "-n", NAMESPACE)["data"]
    environments = [c.get("env", ()) for pod in pods_of(kubernetes) for c in pod["spec"]["containers"]]
    wanted = [each["valueFrom"]["secretKeyRef"]["key"] for env in environments for each in env if "valueFrom" in each]
    assert sorted(wanted) == ["POSTGRES_PASSWORD", "VALKEY_PASSWORD"]
    assert made.keys() > set(wanted)
    until(lambda: allowed(kubernetes) == {"web": 1, "works": 1}, what="that one pod of each part may go")


def allowed(kubernetes):
    """Return how many pods of each part may be taken away at a time."""
    budgets = kubernetes.get("pdb", "-n", NAMESPACE)["items"]
    return {each["metadata"]["name"]: (each.get("status") or {}).get("disruptionsAllowed") for each in budgets}


def counted(kubernetes):
    """Return how many pods each part has."""
    labels = [pod["metadata"]["labels"] for pod in pods_of(kubernetes)]
    parts = [each.get("app.kubernetes.io/component") or each["app.kubernetes.io/name"] for each in labels]
    return dict(Counter(parts))


@pytest.mark.parametrize("deployed", ["several-pods"], indirect=True)
def test_jobs_complete_while_pods_of_each_part_are_killed(kubernetes, deployed, postgres_url, tmp_path):
    """The processes run here, as the account of the pods."""
    config = kubernetes.account_kubeconfig(NAMESPACE, ACCOUNT)
    before = len(kubernetes.asked_by(USER))
    variables = {"VOLCANO_UI_KUBECONFIG": str(config), "VOLCANO_UI_WAY": "in-place"}
    with parts.installation(tmp_path, postgres_url, **variables) as whole:
        webs = [whole.add("web").start() for _ in range(2)]
        for _ in range(2):
            whole.add("works").start()
        world.live(webs[0])
        with Person(webs[0]) as one, Person(webs[1]) as other:
            one.create(JOB % "first")
            ends(kubernetes, "first")
            leader = whole.leader()
            kubernetes.apply(yaml.safe_load(JOB % "second"))
            parts.kill(leader)
            ends(kubernetes, "second")
            assert whole.leader() is not leader
            parts.kill(webs[0])
            other.create(JOB % "third")
            ends(kubernetes, "third")
            until(lambda: COMPLETED in other.get("/jobs/default/third/").text, what="its page")
    refused = [each for each in kubernetes.asked_by(USER)[before:] if each["responseStatus"]["code"] == 403]
    assert [(each["verb"], each["requestURI"]) for each in refused] == []


def pods_of(kubernetes):
    return kubernetes.get("pods", "-n", NAMESPACE)["items"]


def phase(kubernetes, name):
    return (kubernetes.get(JOBS.id, name).get("status") or {}).get("state", {}).get("phase")


def ends(kubernetes, name):
    """Wait until a job is Completed; where it does not come to that, say what the cluster tells of it."""
    until(lambda: phase(kubernetes, name) == "Completed", what=lambda: f"the end of {name} ({told(kubernetes, name)})")


def told(kubernetes, job):
    """Return what the cluster says of a job, its pod group, its queue and its pods."""
    found = kubernetes.get(f"{JOBS.id},{POD_GROUPS.id},pods,events")["items"]
    found += kubernetes.get(QUEUES.id)["items"]
    said = [(each["kind"], each["metadata"]["name"], each.get("status") or each.get("message")) for each in found]
    return "\n".join(str(each) for each in said if each[0] == "Queue" or each[1].startswith(job))


def made_for(kubernetes, job):
    """Return what plugins and the controller have made for a job."""
    kinds = "pods,podgroups.scheduling.volcano.sh,services,configmaps,secrets,networkpolicies"
    found = kubernetes.get(kinds)["items"]
    return [
        each["metadata"]["name"]
        for each in found
        if any(owner.get("name") == job for owner in each["metadata"].get("ownerReferences") or ())
    ]
