"""What people change from the pages arrives in a real cluster; the roles of the manual are enough for it, and each right is needed."""

import html
import json

import pytest

from cluster.remote.mirroring.kinds import KINDS
from kube.indexes import CREATOR_ANNOTATION
from kube.resources import COMMANDS, CONFIGMAPS, JOBS, PODS, QUEUES, RESOURCE_QUOTAS
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.kubernetes.cluster import DEPLOY
from proof.systems.parts import stopped
from proof.systems.work import Person, Watcher, job, problems, shell
from tests import builders
from tests.kubernetes.objects import refused, sample, there
from tests.system import changes

pytestmark = pytest.mark.system
ROLES = ("volcano-ui-read-only", "volcano-ui-beside")
STATES = dict.fromkeys(changes.LASTING, "Running") | {"paused": "Aborted", "ended": "Completed"}


@pytest.fixture(scope="module")
def system(kubernetes, tmp_path_factory):
    """A system whose pages show the cluster and change it, with the rights that the manual names."""
    kubernetes.kubectl("apply", "-f", DEPLOY / "base" / "roles.yaml")
    config = world.account(kubernetes, *ROLES)
    before = len(kubernetes.requests_by(world.USER))
    with world.showing(tmp_path_factory.mktemp("system"), config) as running:
        world.live(running)
        running.asked = lambda: kubernetes.requests_by(world.USER)[before:]
        yield running


@pytest.fixture
def person(system):
    with Person(system) as somebody:
        yield somebody


@pytest.fixture
def here(system):
    with system.store() as store:
        yield Watcher(store)


@pytest.fixture
def objects(kubernetes):
    """What the changes are made to, as Volcano's controllers would have brought it there."""
    kubernetes.apply(*(obj for _, obj in changes.objects()))
    for name, phase in STATES.items():
        kubernetes.set_status(JOBS.id, name, {"state": {"phase": phase}, "running": 1})
    kubernetes.set_status(QUEUES.id, "closed", {"state": "Closed"})
    pod = sample(PODS, "long-main-0")
    pod["metadata"]["ownerReferences"] = [builders.owner(kubernetes.get(JOBS.id, "long"))]
    kubernetes.apply(pod)
    yield
    for kind in (JOBS, COMMANDS):
        kubernetes.clear(kind)


def test_each_change_is_made_with_each_right_and_no_other_is_asked_for(kubernetes, objects, system, person, here):
    before = len(system.asked())
    until(lambda: any(pod["status"]["phase"] != "Pending" for pod in here.pods("long").values()), what="a pod that ran")
    log = person.get("/jobs/default/long/log/", pod="long-main-0")
    assert log.status_code == 404, "its node is played and keeps no logs"
    assert changes.sweep(person, "old").status_code == 302
    for change in changes.CHANGES:
        answer = changes.send(person, change)
        assert answer.status_code == 302, (change.name, problems(answer))
        name = change.path.strip("/").split("/")[-2]
        if change.verb == "delete" and change.kind != CONFIGMAPS:
            assert there(kubernetes, change.kind, name) is None, change.name
        elif change.verb[0].isupper():
            made = [(each["action"], each["target"]["name"]) for each in kubernetes.get(COMMANDS.id)["items"]]
            assert (change.verb, name) in made
    assert there(kubernetes, JOBS, "long")["spec"]["tasks"][0]["replicas"] == 2
    assert there(kubernetes, QUEUES, "spare")["spec"]["weight"] == 3
    save_behind_the_mirror(kubernetes, system, person)
    requests = system.asked()
    assert refused(requests[before:]) == []
    used = {right(each) for each in requests if "objectRef" in each}
    granted = set().union(*(rights(kubernetes, role) for role in ROLES))
    assert granted - used == set(), "nobody needs these"
    assert {each for each in used if each[0] == "watch"} == {("watch", kind.group, kind.plural) for kind in KINDS}


def save_behind_the_mirror(kubernetes, system, person):
    """Save a form while the mirror is behind: the object is read."""
    with stopped(system, "mirror"):
        kubernetes.kubectl("annotate", JOBS.id, "long", "note=newer")
        assert person.fill("/jobs/default/long/edit/", labels="team: speech").status_code == 302


def right(entry):
    """What an entry of the audit needed: verb, group, and resource with its part."""
    about = entry["objectRef"]
    part = f"/{about['subresource']}" if about.get("subresource") else ""
    return entry["verb"], about.get("apiGroup", ""), about["resource"] + part


def rights(kubernetes, role):
    """What a cluster role grants, one by one."""
    return {
        (verb, group, resource)
        for rule in kubernetes.get("clusterrole", role)["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_job_arrives_as_our_own_server_would_keep_it_and_what_our_rules_refuse_is_not_sent(kubernetes, person, here):
    """No webhook of Volcano fills in what a job does not say, or judges it, so that is done before it is sent."""
    person.create(job("arrives", shell("true", replicas=2)))
    stored = there(kubernetes, JOBS, "arrives")
    spec = stored["spec"]
    assert (spec["queue"], spec["maxRetry"], spec["minAvailable"]) == ("default", 3, 2)
    assert spec["schedulerName"] == "volcano"
    assert stored["metadata"]["annotations"][CREATOR_ANNOTATION] == "admin"
    assert here.job("arrives") == stored, "who wrote it reads it at once"
    unknown = person.submit(job("lost", shell("true"), queue="nowhere"))
    assert (unknown.status_code, "nowhere" in problems(unknown)) == (422, True)
    assert there(kubernetes, JOBS, "lost") is None


def test_what_only_the_cluster_refuses_is_shown_at_its_line_or_in_its_words(kubernetes, person):
    """The schema of a custom kind has no decimals for amounts, which Kubernetes takes for its own kinds."""
    answer = person.submit(job("half", shell("true", cpu=0.5)))
    assert answer.status_code == 422
    assert "resources.requests.cpu in body must be of type integer,string" in html.unescape(problems(answer))
    kubernetes.apply(builders.of(RESOURCE_QUOTAS, "few", hard={"count/jobs.batch.volcano.sh": "0"}))
    until(lambda: kubernetes.get("resourcequota", "few").get("status", {}).get("hard"), what="a quota that is counted")
    answer = person.submit(job("toomany", shell("true")))
    assert answer.status_code in (403, 422)
    assert "exceeded quota: few" in html.unescape(answer.text)
    assert there(kubernetes, JOBS, "toomany") is None
    kubernetes.kubectl("delete", "resourcequota", "few")
    probe, text = ("create", "--dry-run=server", "-f", "-"), json.dumps(sample(JOBS, "probe"))
    # The cluster's admission has heard of that later than a list has.
    until(lambda: kubernetes.kubectl.run(*probe, stdin=text).returncode == 0, every_s=0.2, what="the end of the quota")
