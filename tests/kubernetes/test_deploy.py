"""What deploy/kubernetes puts into a cluster: it is accepted, and the rights that it gives are those that the work takes."""

import os
import re
import subprocess
import textwrap
from collections import Counter

import pytest

from kube.resources import JOBS, PODS
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.kubernetes.cluster import ACCOUNT, DEPLOY, NAMESPACE, PROGRAMS
from proof.systems.system import PROJECT
from proof.systems.work import Person, job, shell
from tests.kubernetes.objects import comes_to, refused

pytestmark = pytest.mark.system
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"


def three(name):
    """A job of three pods."""
    task = shell("true", name="worker", replicas=3, cpu="1")
    return job(name, task, schedulerName="volcano", queue="default", plugins={"svc": [], "ssh": [], "env": []})


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
    before = len(kubernetes.requests_by(USER))
    kinds = "pods,podgroups.scheduling.volcano.sh,services,configmaps,secrets,networkpolicies"

    def made():
        """What plugins and the controller have made for a job."""
        owners = [each["metadata"].get("ownerReferences") or () for each in kubernetes.get(kinds)["items"]]
        return [owner for each in owners for owner in each if owner.get("name") == "from-kubectl"]

    with world.showing(tmp_path, config, VOLCANO_UI_WAY="in-place") as system, Person(system) as person:
        world.live(system)
        person.create(three("from-the-form"))
        kubernetes.apply(three("from-kubectl"))
        for name in ("from-the-form", "from-kubectl"):
            comes_to(kubernetes, name, "Completed")
        assert made()
        assert person.post("/jobs/default/from-kubectl/delete/").status_code == 302
        until(lambda: not made(), what="that nothing of the job is left")
    assert refused(kubernetes.requests_by(USER)[before:]) == []


@pytest.mark.parametrize("deployed", ["several-pods"], indirect=True)
def test_several_pods_are_admitted_and_find_their_secret(kubernetes, deployed):
    def counted():
        """How many pods each part has."""
        labels = [pod["metadata"]["labels"] for pod in pods_of(kubernetes)]
        return Counter(each.get("app.kubernetes.io/component") or each["app.kubernetes.io/name"] for each in labels)

    def allowed():
        """How many pods of each part may be taken away at a time."""
        budgets = kubernetes.get("pdb", "-n", NAMESPACE)["items"]
        return {each["metadata"]["name"]: (each.get("status") or {}).get("disruptionsAllowed") for each in budgets}

    until(lambda: counted() == {"web": 2, "works": 2, "postgres": 1, "valkey": 1}, what="the pods of all parts")
    made = kubernetes.get("secret", "servers", "-n", NAMESPACE)["data"]
    environments = [c.get("env", ()) for pod in pods_of(kubernetes) for c in pod["spec"]["containers"]]
    wanted = [each["valueFrom"]["secretKeyRef"]["key"] for env in environments for each in env if "valueFrom" in each]
    assert sorted(wanted) == ["POSTGRES_PASSWORD", "VALKEY_PASSWORD"]
    assert made.keys() > set(wanted)
    until(lambda: allowed() == {"web": 1, "works": 1}, what="that one pod of each part may go")


def pods_of(kubernetes):
    return kubernetes.get("pods", "-n", NAMESPACE)["items"]
