"""Our controllers and scheduler on a kube-apiserver: what it refuses, what others place there, and what is not there yet."""

from __future__ import annotations

import html
import json
import re

import pytest

from kube.resources import JOBS
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.systems.work import Person, job, shell

pytestmark = pytest.mark.system
REFUSED = "an administrator keeps this pod off its node"


@pytest.fixture(scope="module")
def ours(kubernetes, tmp_path_factory):
    """The system that works on the cluster."""
    folder = tmp_path_factory.mktemp("in-place")
    works = {"VOLCANO_UI_WAY": "in-place", "VOLCANO_UI_LEASE_NAMESPACE": "kube-system"}
    with world.showing(folder, kubernetes.config, **works) as system:
        world.live(system)
        yield system
        kubernetes.clear(JOBS)
        until(lambda: not pods(kubernetes, "volcano.sh/job-name"), what="the end of all pods of jobs")


@pytest.fixture
def person(ours):
    with Person(ours) as somebody:
        yield somebody


def owned(kubernetes, name, namespace="default"):
    """The pods of a job by name."""
    return pods(kubernetes, f"volcano.sh/job-name={name}", namespace)


def pods(kubernetes, selector, namespace="default"):
    """The pods that a label selector chooses, by name."""
    found = kubernetes.get("pods", "-n", namespace, "-l", selector)["items"]
    return {each["metadata"]["name"]: each for each in found}


def state(kubernetes, name, namespace="default"):
    return kubernetes.get(JOBS.id, name, "-n", namespace).get("status", {}).get("state", {})


def phase(kubernetes, name, namespace="default"):
    return state(kubernetes, name, namespace).get("phase")


def reaches(kubernetes, name, *phases, namespace="default"):
    try:
        until(lambda: phase(kubernetes, name, namespace) in phases, every_s=0.3)
    except AssertionError:
        told = [(each["reason"], each["message"]) for each in kubernetes.get("events", "-n", namespace)["items"]]
        status = kubernetes.get(JOBS.id, name, "-n", namespace).get("status")
        raise AssertionError(f"{name} is {status}; {told[-12:]}") from None


def refusals(person, name, namespace="default"):
    """What the page of a job says is refused."""
    text = person.get(f"/jobs/{namespace}/{name}/").text
    found = re.search(r'<div id="refusals".*?<(?:nav|section)', text, re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found[0])))


def submit(person, wanted):
    """Submit a job into a namespace of which the mirror may hear just now."""
    until(lambda: person.submit(wanted).status_code == 302, every_s=0.3, what="the namespace")


@pytest.fixture
def policy(kubernetes):
    """An admission policy that refuses the binding of each pod whose name ends so; until it works, nothing is tried."""
    name = "off-the-node"
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/binding"], "operations": ["CREATE"]}
    kubernetes.apply(
        {
            **kind,
            "kind": "ValidatingAdmissionPolicy",
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "validations": [{"expression": "!object.metadata.name.endsWith('-refused-0')", "message": REFUSED}],
            },
        },
        {
            **kind,
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    )
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "probe-refused-0"},
        "target": {"kind": "Node", "name": "node-0"},
    }
    path = "/api/v1/namespaces/default/pods/probe-refused-0/binding?dryRun=All"

    def works():
        return REFUSED in kubernetes.kubectl.run("create", "--raw", path, "-f", "-", stdin=json.dumps(binding)).stderr

    until(works, every_s=0.2, what="the policy")

    def lift():
        kubernetes.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)

    yield lift
    kubernetes.kubectl.run("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)


def test_gang_is_taken_back_while_one_is_refused_and_bound_when_it_is_not(kubernetes, person, policy):
    """The gang's one pod of a task is refused: those of the other task, though as many as minAvailable, may not stay."""
    stays = {"stays": "true"}
    many = shell("true", name="many", replicas=3, minAvailable=2, annotations=stays)
    one = shell("true", name="refused", minAvailable=1, annotations=stays)
    person.create(job("whole", many, one, minimum=3))
    first = until(lambda: len(found := owned(kubernetes, "whole")) == 4 and uids(found), every_s=0.1, what="the pods")
    until(
        lambda: (
            len(found := owned(kubernetes, "whole")) == 4
            and not uids(found) & (first - uids_of(found, "whole-refused-0"))
        ),
        every_s=0.1,
        what="other pods in their place",
    )
    until(lambda: REFUSED in refusals(person, "whole"), every_s=0.5, what="the word on the page of the job")
    assert "What the scheduler decided about this Job is refused" in refusals(person, "whole")
    until(lambda: phase(kubernetes, "whole") == "Pending", every_s=0.1, what="that it waits again")
    policy()
    until(
        lambda: (
            len(found := owned(kubernetes, "whole")) == 4
            and all(each["spec"].get("nodeName") for each in found.values())
        ),
        every_s=0.2,
        what="a node for each",
    )
    reaches(kubernetes, "whole", "Running", "Completed")
    until(lambda: REFUSED not in refusals(person, "whole"), every_s=0.5, what="that it is over")


def uids(found):
    return {each["metadata"]["uid"] for each in found.values()}


def uids_of(found, name):
    return {found[name]["metadata"]["uid"]} if name in found else set()


def test_job_whose_service_exceeds_a_quota_waits_and_says_so(kubernetes, person):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "addresses", "namespace": "tight"}}
    tight = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tight"}}
    kubernetes.apply(tight, {**quota, "spec": {"hard": {"services": "0"}}})
    probe = ("create", "service", "clusterip", "probe", "--clusterip=None", "-n", "tight", "--dry-run=server")
    until(
        lambda: "exceeded quota: addresses" in kubernetes.kubectl.run(*probe).stderr,
        every_s=0.3,
        what="the quota's count",
    )
    submit(person, job("held", shell("true"), namespace="tight", plugins={"svc": []}))
    until(
        lambda: "exceeded quota: addresses" in refusals(person, "held", "tight"),
        every_s=0.5,
        what="the word on the page of the job",
    )
    assert not owned(kubernetes, "held", "tight")
    kubernetes.apply({**quota, "spec": {"hard": {"services": "5"}}})
    reaches(kubernetes, "held", "Running", "Completed", namespace="tight")


def test_job_waits_while_the_pods_of_its_minimum_exceed_a_quota(kubernetes, person):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods", "namespace": "small"}}
    kubernetes.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "small"}},
        {**quota, "spec": {"hard": {"pods": "2"}}},
    )
    submit(person, job("three", shell("true", replicas=3), namespace="small"))
    until(lambda: "quota" in state(kubernetes, "three", "small").get("message", ""), every_s=0.3, what="why it waits")
    assert not owned(kubernetes, "three", "small"), "part of a gang would use up the quota"
    kubernetes.apply({**quota, "spec": {"hard": {"pods": "3"}}})
    reaches(kubernetes, "three", "Running", "Completed", namespace="small")


def test_pods_of_kubernetes_own_scheduler_are_left_to_it(kubernetes, ours):
    kubernetes.kubectl("create", "deployment", "theirs", "--image=any", "--replicas=3")

    def placed():
        found = pods(kubernetes, "app=theirs").values()
        return len(found) == 3 and all(each["spec"].get("nodeName") for each in found) and found

    theirs = until(placed, every_s=0.2, what="their nodes")
    assert not any(each["metadata"].get("annotations") for each in theirs)

    def schedulers():
        """Who is said to have scheduled them; a binding is there before its event."""
        told = [each for each in kubernetes.get("events")["items"] if each["reason"] == "Scheduled"]
        return {each.get("reportingComponent") for each in told if each["involvedObject"]["name"].startswith("theirs-")}

    assert until(schedulers, every_s=0.2, what="their events") == {"default-scheduler"}
    kubernetes.kubectl("delete", "deployment", "theirs")


def test_job_waits_for_its_claim_and_says_for_which(kubernetes, person):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "later",
        },
    }
    kubernetes.apply(claim)
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    person.create(job("reader", shell("true", volumes=volumes)))
    until(
        lambda: "The claim data has no volume yet" in html.unescape(person.get("/jobs/default/reader/").text),
        every_s=0.5,
        what="why it waits",
    )
    assert not any(each["spec"].get("nodeName") for each in owned(kubernetes, "reader").values())
    kubernetes.set_status("persistentvolumeclaim", "data", {"phase": "Bound"})
    reaches(kubernetes, "reader", "Running", "Completed")
