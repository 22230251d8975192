"""Placeholders: where they are found, what a value becomes, and that it stays inside its scalar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.sweeps import placeholders
from kube.yaml.problem import YamlError
from tests.jobs.sweeps.texts import TRAIN, job


def rendered(line, **values):
    """The value of the field `it` that a line with placeholders sets."""
    return placeholders.read(job(line)).render(values)["spec"]["it"]


@pytest.mark.parametrize(
    ("line", "value", "expected"),
    [
        pytest.param("it: {{x}}", "3", 3, id="a whole scalar is a number"),
        pytest.param("it: {{ x }}", "0.5", 0.5, id="spaces within the braces"),
        pytest.param("it: {{x}}", "true", True, id="a whole scalar is a truth value"),
        pytest.param("it: {{x}}", "text", "text", id="a whole scalar is a text"),
        pytest.param("it: {{x}}", ".nan", ".nan", id="what JSON cannot hold stays text"),
        pytest.param('it: "{{x}}"', "3", "3", id="double quotes make it a text"),
        pytest.param("it: '{{x}}'", "3", "3", id="single quotes make it a text"),
        pytest.param("it: !!str {{x}}", "3", "3", id="a tag makes it a text"),
        pytest.param("it: lr-{{x}}", "3", "lr-3", id="within a longer text"),
        pytest.param("it: '{{x}}{{x}}'", "3", "33", id="twice"),
        pytest.param("it: |\n    run {{x}}\n    end", "3", "run 3\nend\n", id="within a block"),
        pytest.param("it: |-\n    {{x}}", "3", "3", id="a block is a text"),
        pytest.param("it: [a, {{x}}]", "3", ["a", 3], id="in a list"),
        pytest.param("it: {a: {{x}}}", "3", {"a": 3}, id="in a mapping on one line"),
        pytest.param("it: {{x}}", "{a: [1]}", "{a: [1]}", id="a value that looks like a mapping"),
        pytest.param("it: {{x}}", "a\n  b: c", "a\n  b: c", id="a value that looks like more lines"),
        pytest.param('it: "{{x}}"', 'say "no"', 'say "no"', id="a value with quotes"),
        pytest.param("it: '{{x}}'", "# {{x}} &a *a", "# {{x}} &a *a", id="a value with a placeholder in it"),
        pytest.param("it: {{x}} # {{y}}", "3", 3, id="a placeholder in a comment is none"),
        pytest.param("it: '{{x y}} {{1}} {{}} { {x}} {{x}}'", "3", "{{x y}} {{1}} {{}} { {x}} 3", id="others"),
    ],
)
def test_a_value_is_put_in(line, value, expected):
    found = rendered(line, x=value)
    assert (found, type(found)) == (expected, type(expected))


def test_the_names_are_listed_once_in_the_order_of_the_text():
    assert placeholders.read(TRAIN).names == ("lr", "batch")


def test_rendering_leaves_the_template_as_it_was():
    template = placeholders.read(TRAIN)
    first = template.render({"lr": "1", "batch": "2"})
    assert template.render({"lr": "3", "batch": "4"}) != first == template.render({"lr": "1", "batch": "2"})


SCALARS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)


def shape(node):
    """What is left of an object when its scalars are taken away."""
    if isinstance(node, dict):
        return {key: shape(value) for key, value in node.items()}
    return [shape(value) for value in node] if isinstance(node, list) else None


@given(SCALARS, SCALARS)
def test_no_value_changes_the_structure(lr, batch):
    template = placeholders.read(TRAIN)
    job = template.render({"lr": lr, "batch": batch})
    assert shape(job) == shape(template.document.object)
    container = job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
    assert container["command"][2] == f"echo lr {lr}, batch {batch}"
    assert container["env"] == [{"name": "LR", "value": lr}]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        pytest.param(job("{{x}}: 1"), 6, "The key {{x}} holds a placeholder", id="in a key"),
        pytest.param(job("a: {b-{{x}}: 1}"), 6, "The key b-{{x}} holds a placeholder", id="in a key below"),
        pytest.param(job('it: "{{x}}'), 6, "never closed", id="a quote that is not closed"),
        pytest.param(job("it:\t{{x}}", "\tb: 1"), 7, "tab", id="a tab"),
        pytest.param("```yaml\n" + TRAIN + "```\n", 1, "Markdown", id="fences"),
        pytest.param(TRAIN + "---\n" + TRAIN, 23, "holds 2 objects: Job train", id="two documents"),
        pytest.param(job("it: \ue000"), 6, "U+E000", id="a character that is ours"),
        pytest.param("kind: {{x}}\n", 1, "apiVersion is missing", id="no job"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_in_its_own_spelling(text, line, said):
    with pytest.raises(YamlError) as caught:
        placeholders.read(text)
    found = [problem for problem in caught.value.problems if said in problem.message]
    assert [problem.line for problem in found] == [line], caught.value.problems
    assert not any(mark in str(caught.value) for mark in "\ue001\ue002")


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("train", "train"),
        ("train-{{lr}}", "train"),
        ("{{lr}}-train", "train"),
        ("a-{{lr}}-b.{{batch}}", "a-b"),
        ("{{lr}}{{batch}}", ""),
        ("'{{lr}}'", ""),
    ],
)
def test_the_stem_of_a_name_is_what_is_no_placeholder(name, stem):
    assert placeholders.read(job("a: {{lr}}", name=name)).stem() == stem
