"""Our controllers and scheduler on a kube-apiserver: what it refuses, what others place there, and what is not there yet."""

import html
import re

import pytest

from kube.resources import CLAIMS, JOBS, PODS, RESOURCE_QUOTAS
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.systems.work import Person, job, shell
from tests.builders import namespace, of
from tests.kubernetes.gate import probe
from tests.kubernetes.objects import comes_to, pods, state, uids

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
        until(lambda: not kubernetes.get(PODS.id, "-l", "volcano.sh/job-name")["items"], what="the end of their pods")


@pytest.fixture
def person(ours):
    with Person(ours) as somebody:
        yield somebody


def refusals(person, name, namespace="default"):
    """What the page of a job says is refused."""
    text = person.get(f"/jobs/{namespace}/{name}/").text
    found = re.search(r'<div id="refusals".*?<(?:nav|section)', text, re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found[0])))


@pytest.fixture
def policy(kubernetes):
    """An admission policy that refuses the binding of each pod whose name ends so; until it works, nothing is tried."""
    name, kinds = "off-the-node", "validatingadmissionpolicybinding,validatingadmissionpolicy"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/binding"], "operations": ["CREATE"]}
    validation = {"expression": "!object.metadata.name.endsWith('-refused-0')", "message": REFUSED}
    refuses = {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation], "failurePolicy": "Fail"}
    binding = {"policyName": name, "validationActions": ["Deny"]}
    for kind, spec in (("ValidatingAdmissionPolicy", refuses), ("ValidatingAdmissionPolicyBinding", binding)):
        metadata = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
        kubernetes.apply({**metadata, "kind": kind, "spec": spec})
    until(lambda: REFUSED in probe(kubernetes, "probe-refused-0"), every_s=0.2, what="the policy")
    yield lambda: kubernetes.kubectl("delete", kinds, name)
    kubernetes.kubectl.run("delete", kinds, name)


def test_gang_is_taken_back_while_one_is_refused_and_bound_when_it_is_not(kubernetes, person, policy):
    """The gang's one pod of a task is refused: those of the other task, though as many as minAvailable, may not stay."""
    stays = {"stays": "true"}
    many = shell("true", name="many", replicas=3, minAvailable=2, annotations=stays)
    one = shell("true", name="refused", minAvailable=1, annotations=stays)
    person.create(job("whole", many, one, minimum=3))

    def four():
        found = uids(kubernetes, "whole")
        return found if len(found) == 4 else {}

    first = until(four, every_s=0.1, what="the pods").items()
    taken = {each for each in first if each[0] != "whole-refused-0"}
    until(lambda: (now := four()) and not taken & now.items(), every_s=0.1, what="other pods in their place")
    until(lambda: REFUSED in refusals(person, "whole"), every_s=0.5, what="the word on the page of the job")
    assert "What the scheduler decided about this Job is refused" in refusals(person, "whole")
    comes_to(kubernetes, "whole", "Pending")
    policy()
    comes_to(kubernetes, "whole", "Running", "Completed")
    whole = ("-l", "volcano.sh/job-name=whole")
    until(lambda: all(found := bound(kubernetes, *whole)) and len(found) == 4, every_s=0.2, what="a node for each")
    until(lambda: REFUSED not in refusals(person, "whole"), every_s=0.5, what="that it is over")


def bound(kubernetes, *options):
    return [each["spec"].get("nodeName", "") for each in kubernetes.get("pods", *options)["items"]]


def test_job_waits_while_its_service_or_the_pods_of_its_minimum_exceed_a_quota_and_says_so(kubernetes, person):
    def quota(name, hard):
        kubernetes.apply(namespace(name), of(RESOURCE_QUOTAS, "bound", namespace=name, hard=hard))

    quota("tight", {"services": "0"})
    quota("small", {"pods": "2"})
    service = ("create", "service", "clusterip", "probe", "--clusterip=None", "-n", "tight", "--dry-run=server")
    exceeded = "exceeded quota: bound"
    until(lambda: exceeded in kubernetes.kubectl.run(*service).stderr, every_s=0.3, what="the quota's count")
    held = job("held", shell("true"), namespace="tight", plugins={"svc": []})
    for each in (held, job("three", shell("true", replicas=3), namespace="small")):
        # The mirror may hear of the namespace just now.
        until(lambda each=each: person.submit(each).status_code == 302, every_s=0.3, what="the namespace")
    until(lambda: exceeded in refusals(person, "held", "tight"), every_s=0.5, what="the word on the page of the job")
    until(lambda: "quota" in state(kubernetes, "three", "small").get("message", ""), every_s=0.3, what="why it waits")
    assert not pods(kubernetes, "held", "tight")
    assert not pods(kubernetes, "three", "small"), "part of a gang would use up the quota"
    quota("tight", {"services": "5"})
    quota("small", {"pods": "3"})
    comes_to(kubernetes, "held", "Running", "Completed", namespace="tight")
    comes_to(kubernetes, "three", "Running", "Completed", namespace="small")


def test_pods_of_kubernetes_own_scheduler_are_left_to_it(kubernetes, ours):
    kubernetes.kubectl("create", "deployment", "theirs", "--image=any", "--replicas=3")
    until(lambda: all(found := bound(kubernetes, "-l", "app=theirs")) and len(found) == 3, every_s=0.2, what="nodes")
    theirs = kubernetes.get("pods", "-l", "app=theirs")["items"]
    assert not any(each["metadata"].get("annotations") for each in theirs)

    def schedulers():
        """Who is said to have scheduled them; a binding is there before its event."""
        events = [each for each in kubernetes.get("events")["items"] if each["reason"] == "Scheduled"]
        return {
            each.get("reportingComponent") for each in events if each["involvedObject"]["name"].startswith("theirs-")
        }

    assert until(schedulers, every_s=0.2, what="their events") == {"default-scheduler"}
    kubernetes.kubectl("delete", "deployment", "theirs")


def test_job_waits_for_its_claim_and_says_for_which(kubernetes, person):
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    kubernetes.apply(of(CLAIMS, "data", storageClassName="later", **wanted))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    person.create(job("reader", shell("true", volumes=volumes)))
    message = "The claim data has no volume yet"
    page = lambda: html.unescape(person.get("/jobs/default/reader/").text)  # noqa: E731
    until(lambda: message in page(), every_s=0.5, what="why it waits")
    assert not any(bound(kubernetes, "-l", "volcano.sh/job-name=reader"))
    kubernetes.set_status("persistentvolumeclaim", "data", {"phase": "Bound"})
    comes_to(kubernetes, "reader", "Running", "Completed")
