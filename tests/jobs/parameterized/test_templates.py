"""Templates with parameters: what is a value, what comes of it, and the page that asks for it."""

from __future__ import annotations

import pytest
from django.test import Client

from cluster import access, api
from cluster.bootstrap import bootstrap
from jobs.editor import editor
from jobs.parameterized.builtin import BUILTINS
from jobs.parameterized.parameters import CHOICE, WHOLE, Parameter, fill
from jobs.sweeps import placeholders
from jobs.sweeps.values import ValuesError
from kube.resources import JOBS
from tests.dashboard.pages.conftest import page, reader

FORM = "/jobs/-/templates/driver-and-executors/"


@pytest.fixture
def sam(db):
    bootstrap()
    return reader("sam", "submitter", "default")


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        (WHOLE, "2", ""),
        (WHOLE, " 2 ", ""),
        (WHOLE, "0", "at least 1"),
        (WHOLE, "-1", "at least 1"),
        (WHOLE, "1.5", "whole number"),
        (WHOLE, "two", "whole number"),
        (WHOLE, "true", "whole number"),
        (WHOLE, "", "missing"),
        (CHOICE, "b", ""),
        (CHOICE, "c", "one of a, b"),
        ("text", "any thing: {a}", ""),
        ("text", " ", "missing"),
        ("text", "x" * 5000, "4,096 are allowed"),
    ],
)
def test_a_value_is_judged_by_its_kind(kind, value, words):
    problem = Parameter("n", "A value", kind=kind, choices=("a", "b")).problem(value)
    assert words in problem
    assert bool(words) == bool(problem)


def test_every_wrong_parameter_is_named():
    template = BUILTINS["mpi"]
    with pytest.raises(ValuesError) as caught:
        fill(template.template, template.parameters, {"workers": "x", "program": "hostname"})
    assert [problem.column for problem in caught.value.problems] == ["workers", "port", "queue"]


@pytest.mark.parametrize("slug", BUILTINS)
def test_a_template_declares_each_of_its_placeholders_and_nothing_else(slug):
    template = BUILTINS[slug]
    assert set(template.defaults) == set(placeholders.read(template.yaml).names)
    assert not [each.name for each in template.parameters if each.problem(each.default)]


@pytest.mark.parametrize("slug", BUILTINS)
def test_the_defaults_make_a_job_that_is_accepted_without_a_warning(sam, slug):
    template = BUILTINS[slug]
    job = fill(template.template, template.parameters, template.defaults)
    found = api.review(access.for_user(sam.user), JOBS, job)
    assert (found.causes, found.warnings) == ((), ())
    assert editor.misspelled(job) == []


@pytest.mark.parametrize("slug", BUILTINS)
def test_a_template_is_a_sweep_of_one_job_to_begin_with(sam, slug):
    shown = page(sam, f"/sweeps/-/new/?template={slug}")
    assert "1 job would be made." in shown.text(id="sweep-preview")


def test_the_form_shows_the_defaults_and_leads_to_the_editor(sam):
    shown = page(sam, FORM)
    assert shown.one(name="value-executors").get("value") == "3"
    shown = page(sam, f"{FORM}?value-executors=5&value-parts=7&value-port=7077&value-queue=default")
    text = shown.one(name="text").text
    assert "replicas: 5" in text
    assert "for part in range(7):" in text
    assert "From the template Driver and executors." in shown.text(tag="main")


def test_a_wrong_value_is_told_at_its_field_and_the_others_stay(sam):
    shown = page(sam, f"{FORM}?value-executors=none&value-parts=7&value-port=7077&value-queue=q")
    assert shown.status == 422
    assert "whole number, at least 1" in shown.text(id="value-executors-hint")
    assert shown.one(name="value-executors").get("aria-invalid") == "true"
    assert shown.one(name="value-queue").get("value") == "q"


def test_a_value_stays_a_text_in_the_yaml(sam):
    shown = page(sam, f"{FORM}?value-executors=1&value-parts=1&value-port=1&value-queue=a:%20%7Bb%7D")
    assert "queue: 'a: {b}'" in shown.one(name="text").text


def test_the_templates_are_offered_where_jobs_are_written(sam):
    links = {link.get("href") for link in page(sam, "/jobs/new/").all(tag="a")}
    assert {f"/jobs/-/templates/{slug}/" for slug in BUILTINS} | {"/sweeps/-/new/"} <= links


def test_who_may_not_submit_is_not_asked(sam):
    assert reader("vera", "viewer", "default").get(FORM).status_code == 403
    assert Client().get(FORM).status_code == 302
    assert sam.post(FORM).status_code == 405
    assert sam.get("/jobs/-/templates/none/").status_code == 404
