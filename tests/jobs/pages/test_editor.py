"""The editor of a new job: what it accepts, says where and shows in its form, and the samples; no text is lost."""

import copy
from ast import literal_eval

import pytest
import yaml
from django.test import Client
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from cluster import access, api
from cluster.api import backend
from cluster.rules import intake
from cluster.rules.node import node_engines
from cluster.store import Create, Delete, Patch, store
from jobs.pages.editor import choices, editor, start_preview
from jobs.pages.editor.samples import SAMPLES
from jobs.pages.editor.views import EMPTY_JOB
from jobs.pages.sweeps.samples import DESCENT
from jobs.parameterized.builtin import BUILTINS
from jobs.parameterized.parameters import fill
from jobs.rules import job_text, yaml_write
from kube import lenient
from kube.resources import HYPER_NODES, JOBS, LIMIT_RANGES, NAMESPACES, NODES, PRIORITY_CLASSES, QUEUES
from proof.systems.seed import SPARK_JOB, TF_JOB
from tests.blocks import blocks
from tests.builders import of
from tests.campaign import examples
from tests.dashboard.pages.conftest import _picture, put, queue
from tests.dashboard.pages.conftest import node as ready_node
from tests.jobs.builders import container, defaulted, job, nested, task
from tests.jobs.pages import world
from tests.scheduler import world as scheduling
from tests.tables import cases

TOKEN = "0123456789abcdef"
GOOD = SAMPLES["primes"].yaml
HARD = ["y", "on", "010", "1e3", "1:30", "~", "two\nlines\n", " x\ny", "a: b", "# c", "*", "\x85", "trailing \nblank"]
NUMBERS = st.integers(-(2**53), 2**53)
TEXTS = st.text(max_size=30) | st.sampled_from(HARD)
VALUES = nested(st.none() | st.booleans() | NUMBERS | TEXTS, st.text(min_size=1, max_size=8), 20)
BEGINNINGS = {
    **{slug: job_text.read(each.yaml).object for slug, each in SAMPLES.items()},
    "empty": job_text.read(EMPTY_JOB).object,
    "sweep": job_text.read(DESCENT.text.replace("{{", "").replace("}}", "")).object,
    **{slug: fill(each.template, each.parameters, each.defaults) for slug, each in BUILTINS.items()},
}
LARGE = ("python:3", "python:latest")


def names():
    return sorted(stored.name for stored in store.find(JOBS))


def check(client, text):
    return client.post("/jobs/validate/", {"text": text}).json()


def submit(client, text, token=TOKEN):
    return client.post("/jobs/new/", {"text": text, "token": token})


@cases("written, made", {
    "a name": ("name: primes\n", "primes"), "a generated name": ("generateName: primes-\n", "primes-"),
})  # fmt: skip
def test_a_submitted_text_becomes_one_job_also_when_it_is_sent_twice(client, alice, written, made):
    first, second = (submit(client, GOOD.replace("name: primes\n", written, 1)) for _ in range(2))
    (job,) = store.find(JOBS)
    assert job.name.startswith(made)
    assert first["Location"] == second["Location"] == f"/jobs/default/{job.name}/"
    assert job.object["metadata"]["annotations"]["ui.volcano.sh/created-by"] == "alice"
    for text in (TF_JOB, SPARK_JOB):  # the seed's examples, as they are printed
        assert (check(client, text)["accepted"], submit(client, text).status_code) == (True, 302)


def test_another_form_with_the_same_name_is_refused_and_keeps_its_text(client, alice):
    submit(client, GOOD)
    response = submit(client, GOOD.replace("minAvailable: 4", "minAvailable: 3  # mine"), "f" * 16)
    assert response.status_code == 422
    assert all(text in response.content.decode() for text in ("minAvailable: 3  # mine", "already exists"))


@blocks("editor", folder="pages")
def test_what_the_check_says_stands_at_its_field_and_line(client, alice, block, golden):
    def said(line):
        text = GOOD.replace(*literal_eval(line), 1)
        report = check(client, text)
        assert report["accepted"] or submit(client, text).status_code == 422
        found = (*report["causes"], *report["warnings"])
        messages = [f"line {each['line']}, {each['field']}: {each['message']}" for each in found]
        return [report["verdict"], report["summary"], *messages]

    golden(block, said, by_line=True)
    assert names() == []


@pytest.mark.django_db(transaction=True)
def test_a_full_disk_refuses_the_job_in_words_and_keeps_the_text(client, alice, full_disk):
    long = f"name: primes\n  annotations: {{long: {'x' * 90_000}}}\n"
    answer = submit(client, GOOD.replace("name: primes\n", long, 1))
    matches = [
        text in answer.content.decode() for text in ("database or disk is full", "x" * 90_000, "would be accepted")
    ]
    assert (answer.status_code, matches) == (503, [True, True, False])


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


@cases("asking, ending", {
    "none": ("", ""), "one": ("b", " Those of b run on simulated nodes, where nothing is executed."),
    "all": ("ab", " The pods run on simulated nodes, where nothing is executed."),
})  # fmt: skip
def test_the_summary_says_which_tasks_only_seem_to_run(asking, ending):
    pods = {name: {"nodeSelector": {"ui.volcano.sh/simulated": "true"}} if name in asking else {} for name in "ab"}
    tasks = [{"name": name, "replicas": 1, "template": {"spec": pod}} for name, pod in pods.items()]
    found = editor.summary({"spec": {"tasks": tasks}})
    assert (found.endswith(ending), "simulated" in found) == (True, bool(ending))


@pytest.mark.parametrize("text", ["", "[" * 5000, "x" * (1 << 20), "kind: Job", "\x00", "a: &a [*a]", "🌋: {"])
def test_strange_texts_are_answered_with_problems(client, alice, text):
    report = check(client, text)
    assert (report["accepted"], bool(report["causes"]), submit(client, text).status_code) == (False, True, 422)


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_sample_is_one_valid_document_and_runs_with_one_click_and_never_twice(client, alice, sample):
    document = job_text.read(SAMPLES[sample].yaml)
    assert (document.notes, document.object["metadata"]["name"]) == ((), sample)
    responses = [client.post(f"/jobs/samples/{sample}/run/", {"token": TOKEN}) for _ in range(2)]
    assert responses[0]["Location"] == responses[1]["Location"]
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
    "a template that is not there": ("kept=default/never", 404), "one of another namespace": ("kept=other/x", 403),
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


@given(VALUES)
@examples(300)
def test_what_is_dumped_is_read_back_by_kubectls_rules(value):
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "extra": value}
    assert job_text.read(yaml_write.dump(job)).object == job
    assert yaml.safe_load(yaml_write.dump({"kind": "Job"})) == {"kind": "Job"}


@pytest.mark.parametrize("job", BEGINNINGS.values(), ids=BEGINNINGS)
def test_whatever_a_job_begins_with_runs_where_an_engine_is_installed_and_no_registry_answers(job):
    templates = [task["template"] for task in job["spec"]["tasks"]]
    assert all(node_engines.wants_process(lenient.mapping(each, "metadata", "annotations")) for each in templates)
    images = {container["image"] for each in templates for container in each["spec"]["containers"]}
    assert not images.intersection(LARGE)


OF_JOB = {
    "queue": ["default", "", None], "maxRetry": [0, 3, 7, None], "minAvailable": [0, 1, None], "minSuccess": [1, None],
    "schedulerName": ["", "volcano", None], "plugins": [{"mpi": []}, {"svc": []}, None],
    "networkTopology": [{}, {"mode": "soft"}, {"highestTierAllowed": 2}, None],
}  # fmt: skip
OF_TASK = {
    "name": ["", None], "replicas": [2, 4], "minAvailable": [0, 1, None], "maxRetry": [0, 5, None],
    "partitionPolicy": [{"totalPartitions": 2, "partitionSize": 1}, None],
}  # fmt: skip


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
    fields = leaves(obj["spec"], "spec") | report.held
    made = api.create(actor, JOBS, {**copy.deepcopy(obj), "metadata": {"generateName": "a-", "namespace": "default"}})
    stored = leaves(store.get(JOBS, "default", made.name).object["spec"], "spec")
    assert {path: value for path, value in fields.items() if path != "metadata.namespace"} == stored


def test_of_a_job_that_is_refused_is_shown_what_would_hold_and_the_class_of_pods_that_name_none(alice):
    kind = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": PRIORITY_CLASSES.kind}
    store.write(Create(PRIORITY_CLASSES, {**kind, "metadata": {"name": "usual"}, "value": 5, "globalDefault": True}))
    actor = access.for_user(alice)
    held = editor.check(actor, yaml_write.dump(job(queue="nowhere"))).held
    assert [held.get(f"spec.{field}") for field in ("maxRetry", "queue", "priorityClassName")] == ["3", None, "usual"]
    chosen = editor.check(actor, yaml_write.dump(job(priorityClassName="other"))).held
    assert "spec.priorityClassName" not in chosen


__all__ = ["_picture"]  # a fixture


def offered(user, path):
    return {each["value"]: each for each in choices.of(access.for_user(user))[path]}


@cases("role, namespace, names", {
    "submitter": ("submitter", "default", ["default"]), "everywhere": ("submitter", "*", ["default", "other"]),
    "viewer": ("viewer", "*", []), "no role": ("", "", []),
})  # fmt: skip
def test_namespaces_are_those_where_the_reader_may_submit(cluster, person, role, namespace, names):
    user = person("dave", role, namespace)
    assert list(offered(user, "metadata.namespace")) == names
    if not role:
        assert set(map(tuple, choices.of(access.for_user(user)).values())) == {()}


def test_a_namespace_that_goes_is_not_to_be_chosen(cluster, person):
    store.write(Patch(NAMESPACES, "", "default", {"status": {"phase": "Terminating"}}, "status"))
    found = offered(person("dave", namespace="*"), "metadata.namespace")
    assert [(name, each["refusal"]) for name, each in found.items()] == [("other", ""), ("default", "being deleted")]


def test_queues_are_offered_with_their_room_and_the_others_with_the_reason_for_which_they_are_refused(client, alice):
    put(ready_node("one"), queue("root", parent=""), queue("a-old", state="Closed"))
    put(queue("team"), queue("sub", parent="team"))
    world.make("waits", queue="sub")
    world.make("hidden", queue="sub", namespace="other")
    found = offered(alice, "spec.queue")
    assert [(name, each["refusal"]) for name, each in found.items()] == [
        ("default", ""), ("sub", ""), ("a-old", "closed"), ("team", "has queues below it"),
    ]  # fmt: skip
    assert found["sub"]["description"] == "8 of 8 CPU free · 1 job waits"
    for name, each in found.items():
        report = client.post("/jobs/validate/", {"text": GOOD.replace("queue: default", f"queue: {name}")}).json()
        assert [cause["field"] for cause in report["causes"]] == ([intake.FIELD] if each["refusal"] else [])


def test_priority_classes_are_offered_with_what_they_mean(client, alice):
    for name, value, description in (("low", -5, "</script><b>"), ("urgent", 1_000_000, "Before all others.")):
        obj = {"metadata": {"name": name}, "value": value, "description": description}
        store.write(Create(PRIORITY_CLASSES, obj))
    found = offered(alice, "spec.priorityClassName")
    assert [(name, each["description"]) for name, each in found.items()] == [
        ("urgent", "priority 1,000,000 · Before all others."), ("low", "priority -5 · </script><b>"),
    ]  # fmt: skip
    assert "</script><b>" not in client.get("/jobs/new/").content.decode()


def test_the_page_brings_the_choices_and_the_check_brings_them_again_when_asked(client, alice):
    assert client.get("/jobs/new/").context["choices"] == choices.of(access.for_user(alice))
    put(queue("later"))
    assert "choices" not in client.post("/jobs/validate/", {"text": GOOD}).json()
    again = client.post("/jobs/validate/", {"text": GOOD, "choices": "1"}).json()["choices"]
    assert "later" in [each["value"] for each in again["spec.queue"]]


@cases("role, directories, is_offered", {
    "a submitter": ("submitter", [], False),
    "a submitter where some directories are open": ("submitter", ["/srv"], True),
    "an administrator of everything": ("administrator", [], True),
})  # fmt: skip
@pytest.mark.usefixtures("cluster")
def test_directories_are_offered_to_who_may_mount_one(person, client, settings, role, directories, is_offered):
    settings.HOST_PATHS = directories
    client.force_login(person("somebody", role, "*"))
    assert ('value="hostPath"' in client.get("/jobs/new/").content.decode()) is is_offered


# ---- what could not start on the cluster as it is
@pytest.fixture
def nodes(alice):
    store.write(of_cpu("large", 8), of_cpu("small", 4, gpu="t4"), a_queue("narrow", {"cpu": "2"}))
    return alice


def of_cpu(name, cpu, **labels):
    return Create(NODES, of(NODES, name) | scheduling.node(name, cpu=str(cpu), labels=labels)[1])


def a_queue(name, *about, **fields):
    return Create(QUEUES, of(QUEUES, name) | scheduling.queue(name, *about, **fields)[1])


def asking(cpu, replicas=1, pod=None, **spec):
    requests = {"resources": {"requests": {"cpu": str(cpu)}}}
    return job(task(replicas=replicas, pod={"containers": [container(**requests)], **(pod or {})}), **spec)


def report(user, obj):
    return editor.check(access.for_user(user), yaml_write.dump(obj))


def starts(user, obj):
    return report(user, obj).verdict != editor.COULD_NOT_START


@blocks("foreseen", folder="pages")
def test_what_cannot_start_is_told_with_the_number_and_the_remedy(nodes, block, golden):
    def said(line):
        found = report(nodes, asking(**yaml.safe_load(line)))
        assert found.accepted
        return [found.verdict, *(f"line {each.line}, {each.field}: {each.message}" for each in found.warnings)]

    golden(block, said, by_line=True)


def test_what_guarantees_of_others_leave_counts(nodes):
    store.write(a_queue("kept", **scheduling.keeping(5)))
    assert [starts(nodes, asking(cpu)) for cpu in (8, 7)] == [False, True]


def test_hyper_nodes_count(nodes):
    for name in ("large", "small"):
        member = {"type": "Node", "selector": {"exactMatch": {"name": name}}}
        store.write(Create(HYPER_NODES, of(HYPER_NODES, f"of-{name}", tier=1, members=[member])))
    for tier, can_start in ((1, False), (2, True)):
        gang = asking(3, 3, networkTopology={"mode": "hard", "highestTierAllowed": tier})
        assert starts(nodes, gang) is can_start


def test_a_limit_range_counts_as_it_will_for_the_pods(nodes):
    limits = [{"type": "Container", "defaultRequest": {"cpu": "9"}, "default": {"cpu": "9"}}]
    store.write(Create(LIMIT_RANGES, of(LIMIT_RANGES, "a", limits=limits)))
    assert not starts(nodes, job(task()))


def test_the_world_is_as_before_and_follows_what_changes(nodes):
    large = defaulted(asking(9))
    assert start_preview.warnings(large) == start_preview.warnings(large) != []
    assert start_preview.warnings(defaulted(asking(8))) == []
    store.write(of_cpu("larger", 16))
    assert start_preview.warnings(large) == []
    store.write(*(Delete(NODES, "", name) for name in ("larger", "large", "small")))
    assert start_preview.warnings(large) == []  # that there is no node yet is no matter of the job


def test_the_status_of_a_job_that_is_copied_counts_for_nothing(nodes):
    done = {"state": {"phase": "Completed"}, "version": 3, "retryCount": 2}
    assert not starts(nodes, {**asking(9), "status": done})
    assert start_preview.warnings({**defaulted(asking(9)), "status": {"state": 3}}) != []
