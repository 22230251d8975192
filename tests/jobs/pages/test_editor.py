"""The editor of a new job: what it accepts, says where and shows in its form, and the samples; no text is lost."""

from __future__ import annotations

import copy

import pytest
import yaml
from django.test import Client
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from cluster import access, api
from cluster.api import backend
from cluster.rules import node_engines
from cluster.store import Create, store
from jobs.editor import editor, job_text, samples, yaml_write
from jobs.editor.samples import SAMPLES
from jobs.pages.views import EMPTY_JOB
from jobs.parameterized.builtin import BUILTINS
from jobs.parameterized.parameters import fill
from jobs.sweeps.samples import DESCENT
from kube import lenient
from kube.resources import JOBS, LEASES, NAMESPACES, NODES, PRIORITY_CLASSES
from proof.systems.seed import SPARK_JOB, TF_JOB
from tests.builders import namespace, node, of
from tests.campaign import examples
from tests.jobs.builders import job, task
from tests.jobs.pages import world
from tests.tables import cases

TOKEN = "0123456789abcdef"
GOOD = SAMPLES["primes"].yaml


def names():
    return sorted(stored.name for stored in store.find(JOBS))


def check(client, text):
    """What the check before submitting answers."""
    return client.post("/jobs/validate/", {"text": text}).json()


def submit(client, text, token=TOKEN):
    return client.post("/jobs/new/", {"text": text, "token": token})


def line_of(text, found):
    return text.split("\n")[found["line"] - 1].strip()


@cases("written, made", {
    "a name": ("name: primes\n", "primes"), "a generated name": ("generateName: primes-\n", "primes-"),
})  # fmt: skip
def test_a_submitted_text_becomes_one_job_also_when_it_is_sent_twice(client, alice, written, made):
    first, second = (submit(client, GOOD.replace("name: primes\n", written, 1)) for _ in range(2))
    (job,) = store.find(JOBS)
    assert job.name.startswith(made)
    assert first["Location"] == second["Location"] == f"/jobs/default/{job.name}/"
    assert job.object["metadata"]["annotations"]["ui.volcano.sh/created-by"] == "alice"


@pytest.mark.parametrize("text", [TF_JOB, SPARK_JOB], ids=["tf-job", "spark-job"])
def test_the_seeds_examples_are_submitted_as_printed(client, alice, text):
    assert check(client, text)["accepted"] is True
    assert submit(client, text).status_code == 302


def test_another_form_with_the_same_name_is_refused_and_keeps_its_text(client, alice):
    submit(client, GOOD)
    response = submit(client, GOOD.replace("minAvailable: 4", "minAvailable: 3  # mine"), "f" * 16)
    assert response.status_code == 422
    assert all(text in response.content.decode() for text in ("minAvailable: 3  # mine", "already exists"))


IMAGE = "spec.tasks[0].template.spec.containers[0]"
REPLICAS = "spec.tasks[0].replicas"


@cases("change, field, line, said", {
    "more than there are": (("minAvailable: 4", "minAvailable: 9"), "spec.minAvailable", 8, ""),
    "negative replicas": (("replicas: 4", "replicas: -1"), REPLICAS, 14, ""),
    "impossible quantity": (("cpu: 200m", "cpu: lots"), f"{IMAGE}.resources.requests", 0, ""),
    "hostile name": (("name: primes\n", "name: '<script>'\n"), "metadata.name", 5, ""),
    "a name that is no": (("name: primes\n", "name: no\n"), "metadata.name", 5, "reads words like"),
    "a name that is one letter": (("name: primes\n", "name: n\n"), "metadata.name", 5, "reads words like"),
    "a name that is a number": (("name: primes\n", "name: 42\n"), "metadata.name", 5, "put it in quotes"),
    "queue that is not there": (("queue: default", "queue: nowhere"), "spec.queue", 9, ""),
    "namespace that is not there": (("namespace: default", "namespace: nowhere"), "metadata.namespace", 6, ""),
    "namespace of others": (("namespace: default", "namespace: other"), "metadata.namespace", 6, ""),
    "wrong type": (("replicas: 4", "replicas: four"), REPLICAS, 14, ""),
    "unknown field": (("replicas: 4", "replica: 4"), "spec.tasks[0].replica", 14,
        "There is no field spec.tasks[0].replica; replicas is the nearest that there is."),
})  # fmt: skip
def test_a_problem_is_said_at_its_field_and_line(client, alice, change, field, line, said):
    text = GOOD.replace(*change, 1)
    report = check(client, text)
    assert report["accepted"] is False
    causes = [cause for cause in report["causes"] if cause["field"].startswith(field)]
    assert causes, report["causes"]
    assert all(cause["line"] == line or (not line and cause["line"]) for cause in causes)
    assert said in causes[0]["message"]
    assert submit(client, text).status_code == 422
    assert names() == []


POLICY = "  policies:\n  - {event: PodFailed, action: RestartJob}\n  - {exitCode: 3, action: AbortJob}\n"


@cases("added, verdict, fields", {
    "nothing to know": ("", ".", []),
    "one thing": (POLICY, ", with one thing to know first.", ["spec.policies[1].exitCode"]),
    "two things": (f"{POLICY}  ttlSecondsAfterFinished: 0\n", ", with 2 things to know first.",
        ["spec.ttlSecondsAfterFinished", "spec.policies[1].exitCode"]),
})  # fmt: skip
def test_the_headline_says_what_stands_below_it(client, alice, added, verdict, fields):
    text = GOOD.replace("  tasks:\n", f"{added}  tasks:\n", 1)
    report = check(client, text)
    assert (report["accepted"], report["verdict"]) == (True, f"This job would be accepted{verdict}")
    assert report["summary"] == "4 pods of 1 task; all start together. 0.8 CPU and 256 MiB memory in all."
    assert [warning["field"] for warning in report["warnings"]] == fields
    assert all(each["field"].rpartition(".")[2] in line_of(text, each) for each in report["warnings"])
    assert names() == []


def test_a_program_that_this_machine_lacks_is_said_before_the_job_is_submitted(client, alice):
    programs = {"ui.volcano.sh/programs": "ssh"}
    store.write(Create(NAMESPACES, namespace("kube-node-lease")), Create(NODES, node("here", annotations=programs)))
    store.write(Create(LEASES, of(LEASES, "here", namespace="kube-node-lease")))
    text = GOOD.replace("  plugins:\n", "  plugins:\n    ssh: []\n", 1)
    report = check(client, text)
    (warning,) = report["warnings"]
    assert report["verdict"] == "This job would be accepted, with one thing to know first."
    assert warning["message"].startswith("Node here has no sshd")
    assert line_of(text, warning) == "ssh: []"


@pytest.mark.django_db(transaction=True)
def test_a_full_disk_refuses_the_job_in_words_and_keeps_the_text(client, alice, full_disk):
    answer = submit(
        client, GOOD.replace("name: primes\n", f"name: primes\n  annotations: {{long: {'x' * 90_000}}}\n", 1)
    )
    content = answer.content.decode()
    assert answer.status_code == 503
    assert all(text in content for text in ("database or disk is full", "x" * 90_000))
    assert "would be accepted" not in content


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


@cases("asking, said", {
    "none": ("", None), "one": ("b", " Those of b run on simulated nodes, where nothing is executed."),
    "all": ("ab", " The pods run on simulated nodes, where nothing is executed."),
})  # fmt: skip
def test_the_summary_says_which_tasks_only_seem_to_run(asking, said):
    pods = {name: {"nodeSelector": {"ui.volcano.sh/simulated": "true"}} if name in asking else {} for name in "ab"}
    tasks = [{"name": name, "replicas": 1, "template": {"spec": pod}} for name, pod in pods.items()]
    found = editor.summary({"spec": {"tasks": tasks}})
    assert found.endswith(said) if said else "simulated" not in found


@pytest.mark.parametrize(
    "text", ["", "a: [", "[" * 5000, "x" * (1 << 20), "kind: Job", "- 1", "\x00", "a: &a [*a]", "🌋: {"]
)
def test_strange_texts_are_answered_with_problems(client, alice, text):
    report = check(client, text)
    assert report["accepted"] is False
    assert report["causes"]
    assert submit(client, text).status_code == 422


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
        assert (f"?sample={sample}" in listed, f"?sample={sample}" in new) == (opens, opens)
    assert "/samples/" not in listed + client.get("/").content.decode()
    assert names() == []


def test_a_sample_that_may_not_run_says_why(cluster, person, client):
    client.force_login(person("victor", "viewer"))
    response = client.post("/jobs/samples/primes/run/", {"next": "https://evil.example/"}, follow=True)
    assert response.redirect_chain[0][0] == "/jobs/"
    assert b"forbidden" in response.content


@cases("query, status", {
    "a sample that is not there": ("sample=nope", 200), "a job that is not there": ("from=default/never", 404),
    "no job": ("from=x", 200), "no name": ("from=/", 200), "a job of another namespace": ("from=other/secret", 403),
})  # fmt: skip
def test_strange_beginnings(client, alice, query, status):
    world.make("secret", "Completed", namespace="other")
    assert client.get(f"/jobs/new/?{query}").status_code == status


def test_a_copy_has_a_free_name_and_nothing_of_the_system(client, alice):
    world.make("train-2", "Completed", labels={"team": "y"})
    world.make("train-3", "Completed")
    text = client.get("/jobs/new/?from=default/train-2").context["form"].initial["text"]
    job = job_text.read(text).object
    assert job["metadata"] == {"name": "train-4", "namespace": "default", "labels": {"team": "y"}}
    assert "status" not in job


@cases("name, taken, expected", {
    "none": ("a", [], "a-2"), "taken": ("a-2", ["a-3"], "a-4"), "a word": ("a-b", [], "a-b-2"),
    "long": ("x" * 63, [], "x" * 61 + "-2"), "two digits": ("a-9", [], "a-10"),
})  # fmt: skip
def test_the_next_free_name(name, taken, expected):
    assert yaml_write.next_name(name, frozenset(taken)) == expected


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


BEGINNINGS = {
    **{slug: job_text.read(each.yaml).object for slug, each in SAMPLES.items()},
    "empty": job_text.read(EMPTY_JOB).object,
    "sweep": job_text.read(DESCENT.text.replace("{{", "").replace("}}", "")).object,
    **{slug: fill(each.template, each.parameters, each.defaults) for slug, each in BUILTINS.items()},
}
LARGE = ("python:3", "python:latest")


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_every_sample_is_one_valid_document_and_gets_a_name_of_its_own_each_time_it_runs(sample):
    document = job_text.read(sample.yaml)
    assert (document.notes, document.object["metadata"]["name"]) == ((), sample.slug)
    assert sample.object("team-a")["metadata"] == {"generateName": f"{sample.slug}-", "namespace": "team-a"}


@pytest.mark.parametrize("job", BEGINNINGS.values(), ids=BEGINNINGS)
def test_whatever_a_job_begins_with_runs_where_an_engine_is_installed_and_no_registry_answers(job):
    templates = [task["template"] for task in job["spec"]["tasks"]]
    assert all(node_engines.wants_process(lenient.mapping(each, "metadata", "annotations")) for each in templates)
    images = {container["image"] for each in templates for container in each["spec"]["containers"]}
    assert not images.intersection(LARGE)


@pytest.mark.parametrize(
    ("elsewhere", "is_offered"), [(False, True), (True, False)], ids=["embedded", "another cluster"]
)
def test_who_shares_a_cluster_is_not_offered_a_gang_that_takes_it_all(elsewhere, is_offered):
    offered = samples.offered(elsewhere=elsewhere)
    assert ("too-large" in offered) is is_offered
    assert "primes" in offered


OF_JOB = {
    "queue": ["default", "", None],
    "maxRetry": [0, 3, 7, None],
    "minAvailable": [0, 1, None],
    "minSuccess": [1, None],
    "schedulerName": ["", "volcano", None],
    "networkTopology": [{}, {"mode": "soft"}, {"highestTierAllowed": 2}, None],
    "plugins": [{"mpi": []}, {"svc": []}, None],
}
OF_TASK = {
    "name": ["", None],
    "replicas": [2, 4],
    "minAvailable": [0, 1, None],
    "maxRetry": [0, 5, None],
    "partitionPolicy": [{"totalPartitions": 2, "partitionSize": 1}, None],
}


def some(table):
    """Any of the fields of a table, each with one of its values; None is written as well as left out."""
    return st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in table.items()})


@st.composite
def written(draw):
    tasks = []
    for _ in range(draw(st.integers(1, 2))):
        fields = draw(some(OF_TASK))
        if fields.get("partitionPolicy"):
            fields |= {"replicas": 2}
        made = {**task(), "replicas": 2, **fields}
        made.pop("name") if "name" not in fields else None
        tasks.append(made)
    return job(*tasks, **draw(some(OF_JOB)))


def leaves(value, path):
    if isinstance(value, dict):
        return {at: leaf for key, each in value.items() for at, leaf in leaves(each, f"{path}.{key}").items()}
    if isinstance(value, list):
        return {at: leaf for n, each in enumerate(value) for at, leaf in leaves(each, f"{path}[{n}]").items()}
    return {} if value is None else {path: str(value)}


@given(obj=written())
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_the_form_shows_is_what_is_stored(alice, obj):
    actor = access.for_user(alice)
    report = editor.check(actor, yaml_write.dump(obj))
    assume(report.accepted)
    shown = leaves(obj["spec"], "spec") | report.held
    stored = api.create(actor, JOBS, {**copy.deepcopy(obj), "metadata": {"generateName": "a-", "namespace": "default"}})
    assert {path: value for path, value in shown.items() if path != "metadata.namespace"} == leaves(
        store.get(JOBS, "default", stored.name).object["spec"], "spec"
    )


@cases("fields, held", {
    "left out": ({}, {"spec.maxRetry": "3", "spec.minAvailable": "1", "spec.queue": "default"}),
    "counts as another": ({"maxRetry": 0, "minAvailable": 0}, {"spec.maxRetry": "3", "spec.minAvailable": "1"}),
    "written": ({"maxRetry": 5, "queue": "default"}, {"spec.maxRetry": None, "spec.queue": None}),
    "a job that is refused": ({"queue": "nowhere"}, {"spec.maxRetry": "3", "spec.queue": None}),
})  # fmt: skip
def test_the_form_shows_what_the_server_stores_where_a_text_has_nothing(alice, fields, held):
    found = editor.check(access.for_user(alice), yaml_write.dump(job(**fields))).held
    assert {path: found.get(path) for path in held} == held


def test_the_class_of_pods_that_name_none_is_shown(alice):
    kind = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": PRIORITY_CLASSES.kind}
    store.write(Create(PRIORITY_CLASSES, {**kind, "metadata": {"name": "usual"}, "value": 5, "globalDefault": True}))
    actor = access.for_user(alice)
    assert editor.check(actor, yaml_write.dump(job())).held["spec.priorityClassName"] == "usual"
    chosen = editor.check(actor, yaml_write.dump(job(priorityClassName="other"))).held
    assert "spec.priorityClassName" not in chosen
