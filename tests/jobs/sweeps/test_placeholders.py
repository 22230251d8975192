"""Placeholders: where they are found, what a value becomes, and that it stays inside its scalar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.sweeps import placeholders
from kube.yaml.problem import YamlError
from tests.jobs.sweeps.texts import TRAIN, job
from tests.tables import cases


def rendered(line, **values):
    """The value of the field `it` that a line with placeholders sets."""
    return placeholders.read(job(line)).render(values)["spec"]["it"]


@cases("line, value, expected", {
    "a whole scalar is a number": ("it: {{x}}", "3", 3),
    "spaces within the braces": ("it: {{ x }}", "0.5", 0.5),
    "a whole scalar is a truth value": ("it: {{x}}", "true", True),
    "a whole scalar is a text": ("it: {{x}}", "text", "text"),
    "what JSON cannot hold stays text": ("it: {{x}}", ".nan", ".nan"),
    "double quotes make it a text": ('it: "{{x}}"', "3", "3"),
    "single quotes make it a text": ("it: '{{x}}'", "3", "3"),
    "a tag makes it a text": ("it: !!str {{x}}", "3", "3"),
    "within a longer text": ("it: lr-{{x}}", "3", "lr-3"),
    "twice": ("it: '{{x}}{{x}}'", "3", "33"),
    "within a block": ("it: |\n    run {{x}}\n    end", "3", "run 3\nend\n"),
    "a block is a text": ("it: |-\n    {{x}}", "3", "3"),
    "in a list": ("it: [a, {{x}}]", "3", ["a", 3]),
    "in a mapping on one line": ("it: {a: {{x}}}", "3", {"a": 3}),
    "a value that looks like a mapping": ("it: {{x}}", "{a: [1]}", "{a: [1]}"),
    "a value that looks like more lines": ("it: {{x}}", "a\n  b: c", "a\n  b: c"),
    "a value with quotes": ('it: "{{x}}"', 'say "no"', 'say "no"'),
    "a value with a placeholder in it": ("it: '{{x}}'", "# {{x}} &a *a", "# {{x}} &a *a"),
    "a placeholder in a comment is none": ("it: {{x}} # {{y}}", "3", 3),
    "others": ("it: '{{x y}} {{1}} {{}} { {x}} {{x}}'", "3", "{{x y}} {{1}} {{}} { {x}} 3"),
})  # fmt: skip
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


@cases("text, line, said", {
    "in a key": (job("{{x}}: 1"), 6, "The key {{x}} holds a placeholder"),
    "in a key below": (job("a: {b-{{x}}: 1}"), 6, "The key b-{{x}} holds a placeholder"),
    "a quote that is not closed": (job('it: "{{x}}'), 6, "never closed"),
    "a tab": (job("it:\t{{x}}", "\tb: 1"), 7, "tab"),
    "fences": ("```yaml\n" + TRAIN + "```\n", 1, "Markdown"),
    "two documents": (TRAIN + "---\n" + TRAIN, 23, "holds 2 objects: Job train"),
    "a character that is ours": (job("it: \ue000"), 6, "U+E000"),
    "no job": ("kind: {{x}}\n", 1, "apiVersion is missing"),
})  # fmt: skip
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
