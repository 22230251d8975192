"""What people change from the pages arrives in a real cluster, with the rights that the manual names."""

from __future__ import annotations

import html
import json

import pytest

from kube.indexes import CREATOR_ANNOTATION
from kube.resources import COMMANDS, CONFIGMAPS, CRON_JOBS, JOB_FLOWS, JOBS, QUEUES
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.kubernetes.cluster import DEPLOY
from proof.systems.work import Person, Watcher, job, problems, shell
from tests.kubernetes.samples import sample

pytestmark = pytest.mark.system
ROLES = ("volcano-ui-read-only", "volcano-ui-beside")


@pytest.fixture(scope="module")
def system(kubernetes, tmp_path_factory):
    """A system whose pages show the cluster and change it, with the rights that the manual names."""
    kubernetes.kubectl("apply", "-f", DEPLOY / "base" / "roles.yaml")
    config = world.account(kubernetes, *ROLES)
    with world.showing(tmp_path_factory.mktemp("system"), config) as running:
        world.live(running)
        yield running


@pytest.fixture
def person(system):
    with Person(system) as somebody:
        yield somebody


@pytest.fixture
def here(system):
    with system.store() as store:
        yield store


def there(kubernetes, kind, name):
    """An object as the cluster has it, None when it has none."""
    found = kubernetes.kubectl("get", kind.id, name, "--ignore-not-found", "--show-managed-fields", "-o", "json")
    return json.loads(found) if found else None


def seen(store, kind, name):
    return any(stored.name == name for stored in store.find(kind, text=name))


def bring(kubernetes, store, obj, kind):
    """Make an object in the cluster and wait until the pages know it."""
    kubernetes.apply(obj)
    name = obj["metadata"]["name"]
    until(lambda: seen(store, kind, name), what=f"{name} here")


def arrives(answer, to):
    assert answer.status_code == 302, problems(answer)
    assert answer.headers["location"].startswith(to), answer.headers["location"]


def test_job_arrives_as_our_own_server_would_keep_it(kubernetes, person, here):
    """No webhook of Volcano fills in what a job does not say, so that is done before it is sent."""
    person.create(job("arrives", shell("true", replicas=2)))
    kept = there(kubernetes, JOBS, "arrives")
    spec = kept["spec"]
    assert (spec["queue"], spec["maxRetry"], spec["minAvailable"]) == ("default", 3, 2)
    assert spec["schedulerName"] == "volcano"
    assert kept["metadata"]["annotations"][CREATOR_ANNOTATION] == "admin"
    assert Watcher(here).job("arrives") == kept, "who wrote it reads it at once"


def test_what_our_rules_refuse_is_not_sent(kubernetes, person):
    """No webhook of Volcano judges a job, so our rules do, over what the cluster has."""
    unknown = person.submit(job("lost", shell("true"), queue="nowhere"))
    assert unknown.status_code == 422
    assert "nowhere" in problems(unknown)
    assert there(kubernetes, JOBS, "lost") is None


def test_what_only_the_cluster_refuses_is_shown_at_its_line(kubernetes, person):
    """The schema of a custom kind has no decimals for amounts, which Kubernetes takes for its own kinds."""
    refused = person.submit(job("half", shell("true", cpu=0.5)))
    assert refused.status_code == 422
    assert "resources.requests.cpu in body must be of type integer,string" in html.unescape(problems(refused))
    person.create(job("half", shell("true", cpu="0.5")))


def test_job_is_scaled_commanded_and_deleted(kubernetes, person, here):
    person.create(job("worked", shell("true", replicas=2), minimum=1))
    kubernetes.set_status(JOBS.id, "worked", {"state": {"phase": "Running"}, "running": 2})
    until(lambda: Watcher(here).phase("worked") == "Running", what="its phase here")
    arrives(person.fill("/jobs/default/worked/scale/", **{"tasks.0.replicas": "4"}), "/jobs/default/worked/")
    assert there(kubernetes, JOBS, "worked")["spec"]["tasks"][0]["replicas"] == 4
    arrives(person.post("/jobs/default/worked/suspend/"), "/jobs/default/worked/")
    uid = there(kubernetes, JOBS, "worked")["metadata"]["uid"]
    (command,) = kubernetes.get(COMMANDS.id)["items"]
    assert (command["action"], command["target"]["uid"]) == ("AbortJob", uid)
    arrives(person.post("/jobs/default/worked/delete/"), "/jobs/")
    assert there(kubernetes, JOBS, "worked") is None
    until(lambda: not seen(here, JOBS, "worked"), what="its end here")
    until(lambda: not kubernetes.get(COMMANDS.id)["items"], what="the end of what it owned")


def test_many_jobs_are_deleted_at_once(kubernetes, person):
    for number in range(8):
        person.create(job(f"bulk-{number}", shell("true")))
    page = person.post("/jobs/-/operations/", action="delete", which="all", q="bulk-").headers["location"]
    arrives(person.post(f"{page}confirm/"), page)
    until(lambda: "8 of 8 jobs have a result" in person.get(page).text, what="the operation's end")
    assert not [each for each in kubernetes.get(JOBS.id)["items"] if each["metadata"]["name"].startswith("bulk-")]


def test_queue_is_made_changed_closed_and_deleted(kubernetes, person, here):
    arrives(person.post("/queues/-/new/", name="mine", weight="2"), "/queues/mine/")
    arrives(person.post("/queues/mine/edit/", weight="5"), "/queues/mine/")
    assert there(kubernetes, QUEUES, "mine")["spec"]["weight"] == 5
    arrives(person.post("/queues/mine/close/"), "/queues/mine/")
    (command,) = kubernetes.get(COMMANDS.id)["items"]
    assert (command["action"], command["target"]["name"]) == ("CloseQueue", "mine")
    kubernetes.set_status(QUEUES.id, "mine", {"state": "Closed"})
    until(lambda: here.get(QUEUES, "", "mine").object.get("status"), what="its state here")
    arrives(person.post("/queues/mine/delete/"), "/queues/")
    assert there(kubernetes, QUEUES, "mine") is None
    until(lambda: not kubernetes.get(COMMANDS.id)["items"], what="the end of what it owned")


def test_namespace_is_made(kubernetes, person):
    arrives(person.post("/access/namespaces/", name="team-b"), "/access/")
    assert kubernetes.get("namespace", "team-b")["status"]["phase"] == "Active"


def test_sweep_is_made_whole_and_goes_with_its_jobs(kubernetes, person, here):
    text = json.dumps(job("swept", shell("echo {{number}}")))
    made = person.post("/sweeps/-/new/", text=text, do="submit", **{"grid-number": "1, 2, 3"})
    arrives(made, "/sweeps/default/")
    jobs = [each for each in kubernetes.get(JOBS.id)["items"] if each["metadata"]["name"].startswith("swept")]
    assert len(jobs) == 3
    (holder,) = {each["metadata"]["ownerReferences"][0]["name"] for each in jobs}
    arrives(person.post(f"{made.headers['location']}delete/"), "/sweeps/")
    assert there(kubernetes, CONFIGMAPS, holder) is None
    until(lambda: not here.find(JOBS, text="swept"), what="the end of its jobs, here and there")


def test_sweep_of_which_a_job_is_refused_leaves_nothing(kubernetes, person):
    text = json.dumps(job("torn", shell("echo {{number}}")))
    first = person.post("/sweeps/-/new/", text=text, do="submit", **{"grid-number": "1, 2, 3"})
    arrives(first, "/sweeps/default/")

    def found():
        names = {each["metadata"]["name"] for each in kubernetes.get(JOBS.id)["items"]}
        return sorted(name for name in names if name.startswith("torn"))

    torn = found()
    person.post(f"{first.headers['location']}delete/")
    until(lambda: not found(), what="the end of the first sweep")
    bring_back = sample(JOBS, torn[1])
    kubernetes.apply(bring_back)
    refused = person.post("/sweeps/-/new/", text=text, do="submit", **{"grid-number": "1, 2, 3"})
    assert refused.status_code == 409
    assert "already exists" in refused.text
    until(lambda: torn_left(kubernetes) == {torn[1]}, what="only what was there before")


def torn_left(kubernetes):
    names = {each["metadata"]["name"] for each in kubernetes.get(JOBS.id)["items"]}
    return {name for name in names if name.startswith("torn")}


def test_cron_job_is_suspended_run_and_deleted(kubernetes, person, here):
    bring(kubernetes, here, sample(CRON_JOBS, "nightly"), CRON_JOBS)
    arrives(person.post("/cronjobs/default/nightly/suspend/"), "/cronjobs/")
    assert there(kubernetes, CRON_JOBS, "nightly")["spec"]["suspend"] is True
    made = person.post("/cronjobs/default/nightly/run/")
    arrives(made, "/jobs/default/nightly-")
    name = made.headers["location"].split("/")[3]
    assert there(kubernetes, JOBS, name)["metadata"]["ownerReferences"][0]["name"] == "nightly"
    arrives(person.post("/cronjobs/default/nightly/delete/"), "/cronjobs/")
    until(lambda: there(kubernetes, JOBS, name) is None, what="the end of its job")


def test_flow_is_deleted(kubernetes, person, here):
    bring(kubernetes, here, sample(JOB_FLOWS, "stream"), JOB_FLOWS)
    arrives(person.post("/flows/default/stream/delete/"), "/flows/")
    assert there(kubernetes, JOB_FLOWS, "stream") is None


def test_refusal_of_the_cluster_is_shown_in_its_words(kubernetes, person, here):
    kubernetes.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "few", "namespace": "default"},
            "spec": {"hard": {"count/jobs.batch.volcano.sh": "0"}},
        }
    )
    quota = lambda: kubernetes.get("resourcequota", "few").get("status", {}).get("hard")  # noqa: E731
    until(quota, what="a quota that is counted")
    answer = person.submit(job("toomany", shell("true")))
    assert answer.status_code in (403, 422)
    assert "exceeded quota: few" in html.unescape(answer.text)
    assert there(kubernetes, JOBS, "toomany") is None
    kubernetes.kubectl("delete", "resourcequota", "few")
    probe = ("create", "--dry-run=server", "-f", "-")
    until(
        # Its admission has heard of that later than a list has.
        lambda: kubernetes.kubectl.run(*probe, stdin=json.dumps(sample(JOBS, "probe"))).returncode == 0,
        every_s=0.2,
        what="the end of the quota",
    )
