from __future__ import annotations

import pytest
import yaml
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from cluster.api import backend
from cluster.store import Create, store
from jobs.editor import editor, job_text, yaml_write
from jobs.editor.samples import SAMPLES
from kube.resources import JOBS, LEASES, NAMESPACES, NODES
from proof.systems.seed import SPARK_JOB, TF_JOB
from tests.campaign import examples
from tests.jobs.pages import world
from tests.tables import cases

TOKEN = "0123456789abcdef"
GOOD = SAMPLES["primes"].yaml


def names():
    return sorted(stored.name for stored in store.find(JOBS))


def test_a_submitted_text_becomes_a_job_and_its_page(client, alice):
    response = client.post("/jobs/new/", {"text": GOOD, "token": TOKEN})
    assert response["Location"] == "/jobs/default/primes/"
    job = store.get(JOBS, "default", "primes").object
    assert job["metadata"]["annotations"]["ui.volcano.sh/created-by"] == "alice"


@pytest.mark.parametrize("text", [TF_JOB, SPARK_JOB], ids=["tf-job", "spark-job"])
def test_the_seeds_examples_are_submitted_as_printed(client, alice, text):
    assert client.post("/jobs/validate/", {"text": text}).json()["accepted"] is True
    assert client.post("/jobs/new/", {"text": text, "token": TOKEN}).status_code == 302


def test_a_double_click_is_one_job(client, alice):
    answers = [client.post("/jobs/new/", {"text": GOOD, "token": TOKEN}) for _ in range(2)]
    assert {answer["Location"] for answer in answers} == {"/jobs/default/primes/"}
    assert names() == ["primes"]


def test_a_double_click_is_one_job_also_with_a_generated_name(client, alice):
    text = GOOD.replace("name: primes\n", "generateName: primes-\n", 1)
    answers = [client.post("/jobs/new/", {"text": text, "token": TOKEN}) for _ in range(2)]
    assert answers[0]["Location"] == answers[1]["Location"]
    assert len(names()) == 1


def test_another_form_with_the_same_name_is_refused_and_keeps_its_text(client, alice):
    client.post("/jobs/new/", {"text": GOOD, "token": TOKEN})
    text = GOOD.replace("minAvailable: 4", "minAvailable: 3  # mine")
    response = client.post("/jobs/new/", {"text": text, "token": "f" * 16})
    assert response.status_code == 422
    assert "minAvailable: 3  # mine" in response.content.decode()
    assert "already exists" in response.content.decode()


@cases("change, field, line", {
    "more than there are": (("minAvailable: 4", "minAvailable: 9"), "spec.minAvailable", 8),
    "negative replicas": (("replicas: 4", "replicas: -1"), "spec.tasks[0].replicas", 14),
    "impossible quantity": (("cpu: 200m", "cpu: lots"), "spec.tasks[0].template.spec.containers[0].resources.requests",
        0),
    "hostile name": (("name: primes\n", "name: '<script>'\n"), "metadata.name", 5),
    "queue that is not there": (("queue: default", "queue: nowhere"), "spec.queue", 9),
    "namespace that is not there": (("namespace: default", "namespace: nowhere"), "metadata.namespace", 6),
    "wrong type": (("replicas: 4", "replicas: four"), "spec.tasks[0].replicas", 14),
})  # fmt: skip
def test_a_problem_is_said_at_its_field_and_line(client, alice, change, field, line):
    text = GOOD.replace(*change, 1)
    report = client.post("/jobs/validate/", {"text": text}).json()
    assert report["accepted"] is False
    causes = [cause for cause in report["causes"] if cause["field"].startswith(field)]
    assert causes, report["causes"]
    assert all(cause["line"] == line or (not line and cause["line"]) for cause in causes)
    assert client.post("/jobs/new/", {"text": text, "token": TOKEN}).status_code == 422
    assert names() == []


def test_an_unknown_field_is_refused_at_its_line_with_the_name_that_is_near(client, alice):
    text = GOOD.replace("replicas: 4", "replica: 4", 1)
    report = client.post("/jobs/validate/", {"text": text}).json()
    (cause,) = (each for each in report["causes"] if each["field"] == "spec.tasks[0].replica")
    assert cause["message"] == "There is no field spec.tasks[0].replica; replicas is the nearest that there is."
    assert text.split("\n")[cause["line"] - 1].strip() == "replica: 4"
    assert report["warnings"] == []
    assert client.post("/jobs/new/", {"text": text, "token": TOKEN}).status_code == 422
    assert names() == []


POLICY = "  policies:\n  - {event: PodFailed, action: RestartJob}\n  - {exitCode: 3, action: AbortJob}\n"


@cases("change, verdict, fields", {
    "nothing to know": (("", ""), "This job would be accepted.", []),
    "one thing": (("  tasks:\n", f"{POLICY}  tasks:\n"), "This job would be accepted, with one thing to know first.",
        ["spec.policies[1].exitCode"]),
    "two things": (("  tasks:\n", f"{POLICY}  ttlSecondsAfterFinished: 0\n  tasks:\n"),
        "This job would be accepted, with 2 things to know first.",
        ["spec.ttlSecondsAfterFinished", "spec.policies[1].exitCode"]),
})  # fmt: skip
def test_the_headline_says_what_stands_below_it(client, alice, change, verdict, fields):
    text = GOOD.replace(*change, 1) if change[0] else GOOD
    report = client.post("/jobs/validate/", {"text": text}).json()
    assert (report["accepted"], report["verdict"]) == (True, verdict)
    assert [warning["field"] for warning in report["warnings"]] == fields
    for warning in report["warnings"]:
        line = text.split("\n")[warning["line"] - 1]
        assert warning["field"].rpartition(".")[2] in line


def test_a_program_that_this_machine_lacks_is_said_before_the_job_is_submitted(client, alice):
    name, room = "here", {"cpu": "4", "memory": "8Gi", "pods": "9"}
    ready = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    node = {"metadata": {"name": name, "annotations": {"ui.volcano.sh/programs": "ssh"}}, "status": ready}
    lease = {"metadata": {"name": name, "namespace": "kube-node-lease"}}
    store.write(Create(NAMESPACES, {"metadata": {"name": "kube-node-lease"}}))
    store.write(Create(NODES, node), Create(LEASES, lease))
    text = GOOD.replace("  plugins:\n", "  plugins:\n    ssh: []\n", 1)
    report = client.post("/jobs/validate/", {"text": text}).json()
    assert report["verdict"] == "This job would be accepted, with one thing to know first."
    (warning,) = report["warnings"]
    assert warning["message"].startswith("Node here has no sshd")
    assert text.split("\n")[warning["line"] - 1].strip() == "ssh: []"


@pytest.mark.parametrize(
    ("name", "said"), [("n", "reads words like"), ("no", "reads words like"), ("42", "put it in quotes")]
)
def test_a_name_that_yaml_takes_for_something_else_is_to_be_quoted(client, alice, name, said):
    text = GOOD.replace("name: primes\n", f"name: {name}\n", 1)
    cause = client.post("/jobs/validate/", {"text": text}).json()["causes"][0]
    assert cause["field"] == "metadata.name"
    assert said in cause["message"]


@pytest.mark.django_db(transaction=True)
def test_a_full_disk_refuses_the_job_in_words_and_keeps_the_text(client, alice, full_disk):
    text = GOOD.replace("name: primes\n", "name: primes\n  annotations: {long: %s}\n" % ("x" * 90_000), 1)
    answer = client.post("/jobs/new/", {"text": text, "token": TOKEN})
    content = answer.content.decode()
    assert answer.status_code == 503
    assert "database or disk is full" in content
    assert "would be accepted" not in content
    assert "x" * 90_000 in content


def test_a_text_is_not_lost_with_the_session_or_an_old_form(client, alice):
    browser = Client(enforce_csrf_checks=True)
    assert browser.post("/jobs/new/", {"text": GOOD}).status_code == 403
    for answer in (
        browser.post("/jobs/new/", {"text": GOOD}, headers={"origin": "http://testserver"}),
        Client().post("/jobs/new/", {"text": GOOD}),
    ):
        assert answer.status_code in (401, 403)
        assert "minAvailable: 4" in answer.content.decode()
    foreign = browser.post("/jobs/new/", {"text": "Call 555"}, headers={"origin": "http://elsewhere.example"})
    assert "Call 555" not in foreign.content.decode()
    assert names() == []


def test_an_accepted_text_says_what_it_asks_for(client, alice):
    report = client.post("/jobs/validate/", {"text": GOOD}).json()
    assert report["accepted"] is True
    assert report["summary"] == "4 pods of 1 task; all start together. 0.8 CPU and 256 MiB memory in all."
    assert names() == []


def test_the_summary_says_which_tasks_only_seem_to_run():
    def tasks(*asking):
        selector = {"nodeSelector": {"ui.volcano.sh/simulated": "true"}}
        pods = {"a": selector if "a" in asking else {}, "b": selector if "b" in asking else {}}
        return [{"name": name, "replicas": 1, "template": {"spec": pod}} for name, pod in pods.items()]

    said = {asking: editor.summary({"spec": {"tasks": tasks(*asking)}}) for asking in ("", "b", "ab")}
    assert "simulated" not in said[""]
    assert said["b"].endswith(" Those of b run on simulated nodes, where nothing is executed.")
    assert said["ab"].endswith(" The pods run on simulated nodes, where nothing is executed.")


def test_a_namespace_where_one_may_not_submit_is_said_before_submitting(client, alice):
    report = client.post("/jobs/validate/", {"text": GOOD.replace("namespace: default", "namespace: other")}).json()
    assert report["accepted"] is False
    assert report["causes"][0]["field"] == "metadata.namespace"


@pytest.mark.parametrize(
    "text", ["", "a: [", "[" * 5000, "x" * (1 << 20), "kind: Job", "- 1", "\x00", "a: &a [*a]", "🌋: {"]
)
def test_strange_texts_are_answered_with_problems(client, alice, text):
    report = client.post("/jobs/validate/", {"text": text}).json()
    assert report["accepted"] is False
    assert report["causes"]
    assert client.post("/jobs/new/", {"text": text, "token": TOKEN}).status_code == 422


def test_a_job_of_another_namespace_is_not_copied(client, alice):
    world.make("secret", "Completed", namespace="other")
    assert client.get("/jobs/new/?from=other/secret").status_code == 403


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_sample_runs_with_one_click_and_never_twice(client, alice, sample):
    answers = [client.post(f"/jobs/samples/{sample}/run/", {"token": TOKEN}) for _ in range(2)]
    assert answers[0]["Location"] == answers[1]["Location"]
    assert [name.startswith(f"{sample}-") for name in names()] == [True]


def test_on_another_cluster_no_sample_runs_with_one_click_and_some_are_opened_in_the_editor(client, alice, monkeypatch):
    monkeypatch.setattr(backend, "is_mirror", True)
    listed, new = (client.get(address).content.decode() for address in ("/jobs/", "/jobs/new/"))
    for sample in SAMPLES:
        answer = client.post(f"/jobs/samples/{sample}/run/", {"token": TOKEN})
        assert answer.status_code == 404
        opens = sample != "too-large"
        assert ("New job opens it in the editor" in answer.content.decode()) == opens
        assert ("?sample=" + sample in listed, "?sample=" + sample in new) == (opens, opens)
    assert "/samples/" not in listed + client.get("/").content.decode()
    assert names() == []


def test_a_sample_that_may_not_run_says_why(cluster, person, client):
    client.force_login(person("victor", "viewer"))
    response = client.post("/jobs/samples/primes/run/", {"next": "https://evil.example/"}, follow=True)
    assert response.redirect_chain[0][0] == "/jobs/"
    assert b"forbidden" in response.content
    assert client.post("/jobs/samples/nope/run/").status_code == 404


def test_a_copy_has_a_free_name_and_nothing_of_the_system(client, alice):
    world.make("train-2", "Completed", labels={"team": "y"})
    world.make("train-3", "Completed")
    text = client.get("/jobs/new/?from=default/train-2").context["form"].initial["text"]
    job = job_text.read(text).object
    assert job["metadata"] == {"name": "train-4", "namespace": "default", "labels": {"team": "y"}}
    assert "status" not in job


@pytest.mark.parametrize(
    ("name", "taken", "expected"),
    [
        ("a", [], "a-2"),
        ("a-2", ["a-3"], "a-4"),
        ("a-b", [], "a-b-2"),
        ("x" * 63, [], "x" * 61 + "-2"),
        ("a-9", [], "a-10"),
    ],
)
def test_the_next_free_name(name, taken, expected):
    assert yaml_write.next_name(name, frozenset(taken)) == expected
    assert len(expected) <= 63


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(max_size=30)
    | st.sampled_from(
        ["y", "on", "010", "1e3", "1:30", "~", "two\nlines\n", " x\ny", "a: b", "# c", "*", "\x85", "trailing \nblank"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=8), inner, max_size=3),
    max_leaves=20,
)


@given(VALUES)
@examples(300)
def test_what_is_dumped_is_read_back_by_kubectls_rules(value):
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "extra": value}
    assert job_text.read(yaml_write.dump(job)).object == job
    assert yaml.safe_load(yaml_write.dump({"kind": "Job"})) == {"kind": "Job"}
