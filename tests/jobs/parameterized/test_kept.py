"""Templates with parameters that people keep: declared, refused, filled in, and gone."""

from __future__ import annotations

import json

import pytest

from cluster import access, api
from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, store
from jobs.editor import choices, job_text
from jobs.parameterized import declaration, keeping
from jobs.parameterized.declaration import ANNOTATION, DeclarationError
from jobs.parameterized.parameters import Parameter
from kube.errors import Invalid
from kube.resources import JOB_TEMPLATES, NAMESPACES
from tests.dashboard.pages.conftest import page, reader

NEW, FORM, PAGE = ("/jobs/-/templates/", "/jobs/-/templates/default/hello/", "/flows/-/templates/default/hello/")
TEXT = keeping.BEGINNING.replace("name: my-job", "name: hello")
SAID = {
    "text": TEXT,
    "name": "hello",
    "meaning-replicas": "How many pods",
    "kind-replicas": "whole",
    "default-replicas": "2",
    "meaning-words": "What they say",
    "kind-words": "choice",
    "choices-words": "good day, good night",
    "default-words": "good day",
}
PARAMETERS = (Parameter("replicas", "How many", "2", "whole"), Parameter("words", "What", "hello"))


@pytest.fixture
def sam(db):
    bootstrap()
    return reader("sam", "submitter", "default")


@pytest.fixture
def kept(sam):
    answer = sam.post(NEW, {**SAID, "do": "save"})
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    return store.get(JOB_TEMPLATES, "default", "hello")


def test_a_template_is_kept_with_what_its_placeholders_mean_and_the_job_of_its_defaults(kept):
    assert kept.object["spec"]["tasks"][0]["replicas"] == 2
    found = declaration.read(kept.object)
    assert found.yaml.replace("\r\n", "\n") == TEXT
    assert [(each.name, each.kind, each.default, each.choices) for each in found.parameters] == [
        ("replicas", "whole", "2", ()),
        ("words", "choice", "good day", ("good day", "good night")),
    ]


def test_a_kept_template_is_filled_in_and_opens_the_editor(sam, kept):
    assert FORM in {link.get("href") for link in page(sam, PAGE).all(tag="a")}
    shown = page(sam, FORM)
    assert shown.one(name="value-replicas").get("value") == "2"
    assert [option.text for option in shown.all(tag="option")] == ["good day", "good night"]
    text = page(sam, f"{FORM}?value-replicas=7&value-words=good+night").one(name="text").text
    assert "replicas: 7" in text
    assert "echo good night" in text
    wrong = page(sam, f"{FORM}?value-replicas=7&value-words=good+evening")
    assert (wrong.status, "one of good day, good night" in wrong.text(id="value-words-hint")) == (422, True)


def test_a_kept_template_becomes_a_sweep(sam, kept):
    shown = page(sam, "/sweeps/-/new/?kept=default/hello")
    assert shown.one(name="grid-words").get("value") == "good day"
    assert "1 job would be made." in shown.text(id="sweep-preview")


def test_a_template_that_its_author_deleted_is_told_to_be_gone(sam, kept):
    store.write(Delete(JOB_TEMPLATES, "default", "hello"))
    for address in (FORM, f"{FORM}?value-replicas=1&value-words=x", "/sweeps/-/new/?kept=default/hello"):
        shown = page(sam, address)
        assert shown.status == 404
        assert "hello" in shown.text(tag="main")


def test_a_template_without_parameters_has_no_form(sam, kept):
    api.create(access.for_user(sam.user), JOB_TEMPLATES, {"metadata": {"name": "plain"}, "spec": kept.object["spec"]})
    assert page(sam, "/jobs/-/templates/default/plain/").status == 404
    links = {link.get("href") for link in page(sam, "/flows/-/templates/default/plain/").all(tag="a")}
    assert "/jobs/-/templates/default/plain/" not in links


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"meaning-words": ""}, "words: say what it means."),
        ({"default-replicas": "many"}, "replicas, its default: This has to be a whole number"),
        ({"kind-words": "colour"}, "words: there is no kind colour"),
        ({"choices-words": ""}, "words: a choice needs choices"),
        ({"text": TEXT.replace("{{words}}", "x").replace("{{replicas}}", "1")}, "The YAML has no placeholder"),
        ({"text": TEXT + "\t"}, "Line 21. The line is indented with a tab"),
        ({"name": "Hello"}, "metadata.name"),
        (
            {"default-words": "good day", "text": TEXT.replace("restartPolicy: Never", "restartPolicy: {{words}}")},
            "restartPolicy",
        ),
    ],
)
def test_what_is_wrong_is_told_and_what_was_written_stays(sam, change, words):
    shown = page_of(sam.post(NEW, {**SAID, **change, "do": "save"}))
    assert shown.status == 422
    assert words in shown.text(role="alert")
    if "{{words}}" in {**SAID, **change}["text"]:
        assert shown.one(name="default-words").get("value") == "good day"
    # The line feed after the tag, which every form writes, is not part of the text.
    assert shown.one(id="template-text").text.removeprefix("\n").rstrip() == {**SAID, **change}["text"].rstrip()
    assert store.find(JOB_TEMPLATES) == []


def page_of(answer):
    from tests.dashboard.pages.conftest import Page

    return Page(answer)


def test_a_sweep_that_is_to_be_kept_brings_its_first_values_as_defaults(sam):
    fields = {"text": TEXT, "do": "begin", "grid-replicas": "3, 4", "grid-words": '"a, b", c'}
    shown = page_of(sam.post(NEW, fields))
    assert shown.one(name="default-replicas").get("value") == "3"
    assert shown.one(name="default-words").get("value") == "a, b"
    assert shown.one(name="name").get("value") == "hello"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (PARAMETERS[:1], "The placeholder words is not declared"),
        ((*PARAMETERS, Parameter("more", "x", "1")), "more is declared, and the YAML has no such placeholder"),
        ((*PARAMETERS, PARAMETERS[0]), "replicas is declared twice"),
    ],
)
def test_placeholders_and_declarations_are_the_same(parameters, words):
    with pytest.raises(DeclarationError, match=words):
        declaration.declare(TEXT, parameters)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ("{", "not JSON"),
        ("[]", "The text is empty"),
        (json.dumps({"yaml": TEXT, "parameters": [1]}), "replicas is not declared"),
        (
            json.dumps({"yaml": TEXT.replace("tasks:", "tusks:"), "parameters": [
                {"name": "replicas", "meaning": "m", "default": "1"}, {"name": "words", "meaning": "m", "default": "w"},
            ]}),
            "spec.tasks",
        ),
    ],
)  # fmt: skip
def test_kubectl_is_refused_at_the_annotation(sam, kept, annotation, words):
    template = {"metadata": {"name": "x", "annotations": {ANNOTATION: annotation}}, "spec": kept.object["spec"]}
    with pytest.raises(Invalid) as caught:
        api.create(access.for_user(sam.user), JOB_TEMPLATES, template)
    assert {cause.field for cause in caught.value.causes} == {f"metadata.annotations[{ANNOTATION}]"}
    assert words in str(caught.value.causes)


def test_who_may_not_submit_keeps_nothing(sam, kept):
    viewer = reader("vera", "viewer", "default")
    assert viewer.get(NEW).status_code == 403
    assert viewer.post(NEW, {**SAID, "name": "other", "do": "save"}).status_code == 403
    assert viewer.get(FORM).status_code == 403
    elsewhere = reader("olaf", "submitter", "elsewhere")
    assert elsewhere.get(FORM).status_code == 403
    assert elsewhere.post(NEW, {**SAID, "name": "other", "do": "save"}).status_code == 403
    assert len(store.find(JOB_TEMPLATES)) == 1


def test_the_page_of_a_new_job_names_the_newest_templates_that_the_reader_may_run(sam, kept):
    for number in range(6):
        made = {"metadata": {"name": f"t{number}", "namespace": "default"}, "spec": kept.object["spec"]}
        store.write(Create(JOB_TEMPLATES, made), now=kept.created + 1000 * (number + 1))
    store.write(Create(NAMESPACES, {"metadata": {"name": "other"}}))
    foreign = {"metadata": {"name": "foreign", "namespace": "other"}, "spec": kept.object["spec"]}
    store.write(Create(JOB_TEMPLATES, foreign), now=kept.created + 99_000)
    shown = sam.get("/jobs/new/")
    named = [each.name for each in shown.context["kept_templates"]]
    assert named == ["t5", "t4", "t3", "t2", "t1"]
    assert "All kept templates" in shown.content.decode()
    watching = reader("vera", "viewer", "other")
    assert choices.kept_templates(access.for_user(watching.user)) == []


def test_a_kept_template_with_parameters_asks_for_them_from_the_page_of_a_new_job(sam, kept):
    (template,) = sam.get("/jobs/new/").context["kept_templates"]
    assert template.url == FORM


def test_a_kept_template_without_parameters_begins_a_job_under_a_free_name(sam, kept):
    made = {"metadata": {"name": "plain", "namespace": "default"}, "spec": kept.object["spec"]}
    store.write(Create(JOB_TEMPLATES, made))
    url = next(each.url for each in sam.get("/jobs/new/").context["kept_templates"] if each.name == "plain")
    assert url == "/jobs/new/?kept=default/plain"
    for name in ("plain", "plain-2"):
        text = sam.get(url).context["form"].initial["text"]
        job = job_text.read(text).object
        assert (job["metadata"], job["spec"]) == ({"name": name, "namespace": "default"}, kept.object["spec"])
        assert sam.post("/jobs/new/", {"text": text, "token": ""}).status_code == 302


@pytest.mark.parametrize(("kept_name", "status"), [("default/never", 404), ("kube-system/x", 403), ("x", 200)])
def test_a_strange_template_begins_no_job(sam, kept_name, status):
    assert sam.get(f"/jobs/new/?kept={kept_name}").status_code == status
