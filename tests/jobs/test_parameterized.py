"""Templates with parameters, of the product and of people: declared, refused, filled in, offered, and gone."""

import json

import pytest

from cluster import access, api
from cluster.store import Create, Delete, store
from jobs.pages.editor import choices, editor
from jobs.parameterized import declaration, template_drafts
from jobs.parameterized.builtin import BUILTINS
from jobs.parameterized.declaration import ANNOTATION, DeclarationError
from jobs.parameterized.parameters import CHOICE, WHOLE, Parameter, fill
from jobs.rules import job_text
from jobs.sweeps import placeholders
from jobs.sweeps.values import ValuesError
from kube.errors import Invalid
from kube.resources import JOB_TEMPLATES, JOBS, NAMESPACES
from tests.builders import namespace, of
from tests.dashboard.pages.conftest import Page, page, reader
from tests.tables import cases

NEW, FORM, PAGE = ("/jobs/-/templates/", "/jobs/-/templates/default/hello/", "/flows/-/templates/default/hello/")
BUILTIN = "/jobs/-/templates/driver-and-executors/"
TEXT = template_drafts.BEGINNING.replace("name: my-job", "name: hello")
WRITTEN = {
    "text": TEXT, "name": "hello", "meaning-replicas": "How many pods", "kind-replicas": "whole",
    "default-replicas": "2", "meaning-words": "What they say", "kind-words": "choice", "choices-words": "good day, good night",
    "default-words": "good day",
}  # fmt: skip
PARAMETERS = (Parameter("replicas", "How many", "2", "whole"), Parameter("words", "What", "hello"))
NO_PLACEHOLDERS = TEXT.replace("{{words}}", "x").replace("{{replicas}}", "1")
WRONG_POLICY = TEXT.replace("restartPolicy: Never", "restartPolicy: {{words}}")
DECLARED = [{"name": name, "meaning": "m", "default": default} for name, default in (("replicas", "1"), ("words", "w"))]


def post(sam, **fields):
    return Page(sam.post(NEW, fields))


@pytest.fixture
def saved_draft(sam):
    answer = sam.post(NEW, {**WRITTEN, "do": "save"})
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    return store.get(JOB_TEMPLATES, "default", "hello")


def keep(name, template, namespace="default", age=1):
    """Store another template with the spec of one, so many seconds later."""
    made = of(JOB_TEMPLATES, name, {"spec": template.object["spec"]}, namespace=namespace)
    store.write(Create(JOB_TEMPLATES, made), now=template.created + 1000 * age)


# ---- values and the templates of the product
@cases("kind, value, words", {
    "a number": (WHOLE, "2", ""), "a number with blanks": (WHOLE, " 2 ", ""), "a fraction": (WHOLE, "1.5", "whole number"),
    "zero": (WHOLE, "0", "at least 1"), "negative": (WHOLE, "-1", "at least 1"), "no number": (WHOLE, "", "missing"),
    "a word for a number": (WHOLE, "two", "whole number"), "a truth": (WHOLE, "true", "whole number"),
    "a choice": (CHOICE, "b", ""), "no such choice": (CHOICE, "c", "one of a, b"),
    "a text": ("text", "any thing: {a}", ""), "a blank": ("text", " ", "missing"),
    "too long a text": ("text", "x" * 5000, "4,096 are allowed"),
})  # fmt: skip
def test_a_value_is_judged_by_its_kind(kind, value, words):
    problem = Parameter("n", "A value", kind=kind, choices=("a", "b")).problem(value)
    assert (words in problem, bool(problem)) == (True, bool(words))


def test_every_wrong_parameter_is_named():
    template = BUILTINS["mpi"]
    with pytest.raises(ValuesError) as caught:
        fill(template.template, template.parameters, {"workers": "x", "program": "hostname"})
    assert [problem.column for problem in caught.value.problems] == ["workers", "port", "queue"]


@pytest.mark.parametrize("slug", BUILTINS)
def test_a_template_of_the_product_declares_its_placeholders_and_its_defaults_make_a_job_without_a_warning(sam, slug):
    template = BUILTINS[slug]
    assert set(template.defaults) == set(placeholders.read(template.yaml).names)
    job = fill(template.template, template.parameters, template.defaults)
    found = api.review(access.for_user(sam.user), JOBS, job)
    assert (found.causes, found.warnings, editor.misspelled(job)) == ((), (), [])
    assert "1 job would be made." in page(sam, f"/sweeps/-/new/?template={slug}").text(id="sweep-preview")


def test_the_form_shows_the_defaults_and_leads_to_the_editor_and_a_wrong_value_is_told_at_its_field(sam):
    assert page(sam, BUILTIN).one(name="value-executors").get("value") == "3"
    document = page(sam, f"{BUILTIN}?value-executors=5&value-parts=7&value-port=7077&value-queue=a:%20%7Bb%7D")
    for words in ("replicas: 5", "for part in range(7):", "queue: 'a: {b}'"):
        assert words in document.one(name="text").text
    assert "From the template Driver and executors." in document.text(tag="main")
    document = page(sam, f"{BUILTIN}?value-executors=none&value-parts=7&value-port=7077&value-queue=q")
    assert (document.status, "whole number, at least 1" in document.text(id="value-executors-hint")) == (422, True)
    assert document.one(name="value-executors").get("aria-invalid") == "true"
    assert document.one(name="value-queue").get("value") == "q"


def test_the_templates_are_offered_where_jobs_are_written(sam):
    links = {link.get("href") for link in page(sam, "/jobs/new/").all(tag="a")}
    assert {f"/jobs/-/templates/{slug}/" for slug in BUILTINS} | {"/sweeps/-/new/"} <= links
    assert reader("vera", "viewer", "default").get(BUILTIN).status_code == 403
    assert sam.get("/jobs/-/templates/none/").status_code == 404


# ---- templates that people keep
def test_a_template_is_kept_with_its_placeholders_filled_in_and_opens_the_editor_or_becomes_a_sweep(sam, saved_draft):
    assert saved_draft.object["spec"]["tasks"][0]["replicas"] == 2
    found = declaration.read(saved_draft.object)
    assert found.yaml.replace("\r\n", "\n") == TEXT
    assert [(each.name, each.kind, each.default, each.choices) for each in found.parameters] == [
        ("replicas", "whole", "2", ()),
        ("words", "choice", "good day", ("good day", "good night")),
    ]
    assert FORM in {link.get("href") for link in page(sam, PAGE).all(tag="a")}
    document = page(sam, FORM)
    assert document.one(name="value-replicas").get("value") == "2"
    assert [option.text for option in document.all(tag="option")] == ["good day", "good night"]
    text = page(sam, f"{FORM}?value-replicas=7&value-words=good+night").one(name="text").text
    assert all(words in text for words in ("replicas: 7", "echo good night"))
    wrong = page(sam, f"{FORM}?value-replicas=7&value-words=good+evening")
    assert (wrong.status, "one of good day, good night" in wrong.text(id="value-words-hint")) == (422, True)
    sweep = page(sam, "/sweeps/-/new/?kept=default/hello")
    assert sweep.one(name="grid-words").get("value") == "good day"
    assert "1 job would be made." in sweep.text(id="sweep-preview")
    store.write(Delete(JOB_TEMPLATES, "default", "hello"))
    for address in (FORM, f"{FORM}?value-replicas=1&value-words=x", "/sweeps/-/new/?kept=default/hello"):
        document = page(sam, address)
        assert (document.status, "hello" in document.text(tag="main")) == (404, True)


@cases("change, words", {
    "no meaning": ({"meaning-words": ""}, "words: say what it means."),
    "a wrong default": ({"default-replicas": "many"}, "replicas, its default: This has to be a whole number"),
    "no such kind": ({"kind-words": "colour"}, "words: there is no kind colour"),
    "no choices": ({"choices-words": ""}, "words: a choice needs choices"),
    "no placeholder": ({"text": NO_PLACEHOLDERS}, "The YAML has no placeholder"),
    "no YAML": ({"text": TEXT + "\t"}, "Line 21. The line is indented with a tab"),
    "no name": ({"name": "Hello"}, "metadata.name"),
    "a job that is refused": ({"default-words": "good day", "text": WRONG_POLICY}, "restartPolicy"),
})  # fmt: skip
def test_what_is_wrong_is_told_and_what_was_written_stays(sam, change, words):
    written = {**WRITTEN, **change}
    document = post(sam, **written, do="save")
    assert (document.status, words in document.text(role="alert")) == (422, True)
    if "{{words}}" in written["text"]:
        assert document.one(name="default-words").get("value") == "good day"
    # The line feed after the tag, which every form writes, is not part of the text.
    assert document.one(id="template-text").text.removeprefix("\n").rstrip() == written["text"].rstrip()
    assert store.find(JOB_TEMPLATES) == []


def test_a_sweep_that_is_to_be_kept_brings_its_first_values_as_defaults(sam):
    document = post(sam, text=TEXT, do="begin", **{"grid-replicas": "3, 4", "grid-words": '"a, b", c'})
    found = [document.one(name=name).get("value") for name in ("default-replicas", "default-words", "name")]
    assert found == ["3", "a, b", "hello"]


@cases("parameters, words", {
    "one is not declared": (PARAMETERS[:1], "The placeholder words is not declared"),
    "one too many": ((*PARAMETERS, Parameter("more", "x", "1")), "more is declared, and the YAML has no such placeholder"),
    "one twice": ((*PARAMETERS, PARAMETERS[0]), "replicas is declared twice"),
})  # fmt: skip
def test_placeholders_and_declarations_are_the_same(parameters, words):
    with pytest.raises(DeclarationError, match=words):
        declaration.declare(TEXT, parameters)


@cases("annotation, words", {
    "no JSON": ("{", "not JSON"),
    "no text": ("[]", "The text is empty"),
    "no parameters": (json.dumps({"yaml": TEXT, "parameters": [1]}), "replicas is not declared"),
    "no job": (json.dumps({"yaml": TEXT.replace("tasks:", "tusks:"), "parameters": DECLARED}), "spec.tasks"),
})  # fmt: skip
def test_kubectl_is_refused_at_the_annotation(sam, saved_draft, annotation, words):
    template = {"metadata": {"name": "x", "annotations": {ANNOTATION: annotation}}, "spec": saved_draft.object["spec"]}
    with pytest.raises(Invalid) as caught:
        api.create(access.for_user(sam.user), JOB_TEMPLATES, template)
    assert {cause.field for cause in caught.value.causes} == {f"metadata.annotations[{ANNOTATION}]"}
    assert words in str(caught.value.causes)


def test_the_page_of_a_new_job_names_the_newest_templates_that_the_reader_may_run(sam, saved_draft):
    (template,) = sam.get("/jobs/new/").context["kept_templates"]
    assert template.url == FORM, "which asks for the parameters"
    for number in range(6):
        keep(f"t{number}", saved_draft, age=number + 1)
    store.write(Create(NAMESPACES, namespace("other")))
    keep("foreign", saved_draft, "other", 99)
    response = sam.get("/jobs/new/")
    assert [each.name for each in response.context["kept_templates"]] == ["t5", "t4", "t3", "t2", "t1"]
    assert "All kept templates" in response.content.decode()
    watching = reader("vera", "viewer", "other")
    assert choices.saved_templates(access.for_user(watching.user)) == []
    assert reader("olaf", "submitter", "elsewhere").post(NEW, {**WRITTEN, "name": "x", "do": "save"}).status_code == 403


def test_a_kept_template_without_parameters_has_no_form_and_begins_a_job_under_a_free_name(sam, saved_draft):
    keep("plain", saved_draft)
    assert page(sam, "/jobs/-/templates/default/plain/").status == 404
    links = {link.get("href") for link in page(sam, "/flows/-/templates/default/plain/").all(tag="a")}
    assert "/jobs/-/templates/default/plain/" not in links
    url = next(each.url for each in sam.get("/jobs/new/").context["kept_templates"] if each.name == "plain")
    assert url == "/jobs/new/?kept=default/plain"
    for name in ("plain", "plain-2"):
        text = sam.get(url).context["form"].initial["text"]
        job = job_text.read(text).object
        assert (job["metadata"], job["spec"]) == ({"name": name, "namespace": "default"}, saved_draft.object["spec"])
        assert sam.post("/jobs/new/", {"text": text, "token": ""}).status_code == 302
