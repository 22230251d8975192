from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobs.editor import job_text
from jobs.editor.job_text import YamlError
from kube.yaml import scalar
from proof.systems.seed import SPARK_JOB, TF_JOB
from tests.campaign import examples
from tests.tables import cases

HEAD = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"


def problems(text):
    with pytest.raises(YamlError) as caught:
        job_text.read(text)
    return caught.value.problems


@pytest.mark.shows("9.1/examples")
@cases("text, policies, kept, lines", {
    "tf-job": (TF_JOB, [[{"event": "*", "action": "RestartJob"}], None, None], "worker-img", [8, 25]),
    "spark-job": (SPARK_JOB, [None, [{"event": "*", "action": "RestartJob"}], None], "OnFailure", [10]),
})  # fmt: skip
def test_the_seeds_examples_are_accepted_as_printed(text, policies, kept, lines):
    document = job_text.read(text)
    spec = document.object["spec"]
    assert [each.get("policies") for each in (spec, *spec["tasks"])] == policies
    assert kept in str(spec["tasks"][1]["template"])
    assert [note.line for note in document.notes] == lines


def test_what_was_understood_differs_from_what_was_written_only_where_a_note_says_so():
    document = job_text.read(TF_JOB)
    before, after = TF_JOB.split("\n"), document.text.split("\n")
    changed = [number for number, pair in enumerate(zip(before, after, strict=True), 1) if pair[0] != pair[1]]
    assert changed == [note.line for note in document.notes]


def test_stars_and_dots_in_strings_and_comments_stay():
    text = f"{HEAD}a: \"*\"\nb: |\n  event: *\n  ...\nc: x # event: *\nd: '...'\ne: *\n"
    document = job_text.read(text)
    assert document.text == text.removesuffix("e: *\n") + 'e: "*"\n'
    assert document.object["b"] == "event: *\n...\n"


SPEC = {"containers": [{"name": "a", "image": "b"}], "priorityClassName": "master-pri"}
CONTAINER = "{containers: {name: a, image: b}, priorityClass: master-pri}"


@cases("spec, read, lines", {
    "task specs become tasks": ("taskSpecs:\n  - name: a\n    replicas: -1", {"tasks": [{"name": "a", "replicas": -1}]},
        [4]),
    "a container without a dash, and a class without Name": (
        f"tasks:\n  - template:\n      spec: {CONTAINER}",
        {"tasks": [{"template": {"spec": SPEC}}]}, [6, 6]),
    "a claim of a volume": ("volumes:\n  - mountPath: /data\n    claim:\n      spec: {storageClassName: s}",
        {"volumes": [{"mountPath": "/data", "volumeClaim": {"storageClassName": "s"}}]}, [6]),
})  # fmt: skip
def test_older_spellings_of_the_seed_are_read_with_notes(spec, read, lines):
    document = job_text.read(f"{HEAD}spec:\n  {spec}\n")
    assert document.object["spec"] == read
    assert [note.line for note in document.notes] == lines


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("spec.tasks[0].template.spec.containers[0].resources.requests[cpu]", 10),
        ("spec.tasks[0].template.spec.containers[0].resources.requests.memory", 9),
        ("spec.tasks[0].replicas", 5),
        ("metadata.name", 0),
        ("spec.tasks[7].name", 4),
    ],
)
def test_a_field_that_is_not_written_has_the_line_of_what_is_around_it(path, line):
    text = (
        f"{HEAD}spec:\n  tasks:\n  - template:\n      spec:\n        containers:\n"
        "        - resources:\n            requests:\n              cpu: x\n"
    )
    assert job_text.read(text).line_of(path) == line


@cases("text, line, words", {
    "empty": ("", 1, "empty"),
    "blank": ("  \n\t\n", 1, "empty"),
    "only comments": ("# only a comment\n", 1, "only comments"),
    "open list": ("a: [1\nb: 2", 2, "comma or a closing ]"),
    "open mapping": ("a: {b: 1\n", 2, "comma or a closing }"),
    "open quote": ('a: "x\nb: 2\n', 1, "never closed"),
    "tab": ("a:\n\t- b\n", 2, "tab"),
    "tab behind spaces": ("a:\n  b: 1\n  \tc: 2\n", 3, "tab; YAML allows only spaces"),
    "fences": (f"```yaml\n{HEAD}```\n", 1, "Markdown and is no YAML; remove"),
    "fence at the end": (f"{HEAD}```\n", 3, "Markdown and is no YAML; remove"),
    "second colon": ("a: b: c\n", 1, "second colon"),
    "indented too far": ("a: 1\n  b: 2\n", 2, "indented too far"),
    "between levels": ("a:\n  b: 1\n c: 2\n", 3, "indentation"),
    "key among items": ("- a\nb: 1\n", 2, "list item"),
    "no colon": ("a: 1\nb\n", 2, "no colon"),
    "at sign": ("a: @b\n", 1, "cannot begin with @"),
    "back-tick": ("a: `b`\n", 1, "cannot begin with `"),
    "escape": ('a: "\\q"\n', 1, "escape"),
    "alias without anchor": ("a: *nowhere\n", 1, "not set before"),
    "alias of itself": ("a: &a [*a]\n", 1, "refers to itself"),
    "mapping as key": ("{a: 1}: b\n", 1, "key has to be text"),
    "Python tag": ("a: !!python/object/apply:os.system [ls]\n", 1, "tag"),
    "unknown tag": ("a: !secret x\n", 1, "tag"),
    "not a number": ("a: .nan\n", 1, "JSON"),
    "duplicate key": ("a: 1\nb: 2\na: 3\n", 3, "line 1"),
    "key that is a boolean": ("on: 1\n", 1, "means true"),
    "key that is a number": ("1: 1\n", 1, "means a number"),
    "key that is null": ("null: 1\n", 1, "means nothing"),
    "control character": ("a: \x01\n", 1, "control character"),
    "NUL": ("a: 1\nb: \x00\n", 2, "control character"),
    "lone surrogate": ("a: \ud800\n", 1, "surrogate"),
    "list": ("- 1\n- 2\n", 1, "a list"),
    "scalar": ("hello\n", 1, "a single value"),
    "merge of a number": ("<<: 5\nkind: Job\n", 1, "takes a mapping"),
    "deep brackets": ("[" * 50_000, 1, "levels deep"),
    "deep dashes": ("- " * 5_000, 1, "levels deep"),
    "deep braces": ("{a: " * 5_000, 1, "levels deep"),
})  # fmt: skip
def test_a_text_that_is_not_a_job_says_what_and_where(text, line, words):
    found = problems(text)
    assert any(words in problem.message and problem.line == line for problem in found), found


@cases("text, words, field", {
    "no apiVersion": ("kind: Job\n", "apiVersion is missing", "apiVersion"),
    "no kind": ("apiVersion: batch.volcano.sh/v1alpha1\n", "kind is missing", "kind"),
    "batch/v1": ("apiVersion: batch/v1\nkind: Job\n", "Job of Kubernetes itself", "apiVersion"),
    "a queue": ("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\n", "on the page Queues", "apiVersion"),
    "a pod": ("apiVersion: v1\nkind: Pod\n", "This is Pod of v1", "apiVersion"),
    "another kind": ("apiVersion: batch.volcano.sh/v1alpha1\nkind: JobFlow\n", "JobFlow", "kind"),
    "kinds of wrong types": ("apiVersion: [1]\nkind: {a: 1}\n", "takes a Job", "apiVersion"),
})  # fmt: skip
def test_another_kind_is_refused_by_name(text, words, field):
    (problem,) = problems(text)
    assert words in problem.message
    assert problem.field == field


@cases("text", {
    "documents": f"{HEAD}metadata: {{name: a}}\n---\n{HEAD}metadata: {{name: b}}\n",
    "List": "kind: List\nitems:\n- kind: Job\n  metadata: {name: a}\n- kind: Job\n  metadata: {name: b}\n",
})  # fmt: skip
def test_several_objects_are_named_with_their_lines(text):
    (problem,) = problems(text)
    assert "2 objects: Job a (line " in problem.message
    assert "Job b (line " in problem.message
    assert problem.message.endswith("The editor takes one; remove the others.")


def test_one_job_among_empty_documents_or_alone_in_a_list_is_taken():
    assert job_text.read(f"---\n---\n{HEAD}a: 1\n---\n# end\n").object["a"] == 1
    listed = job_text.read(f"kind: List\nitems:\n- {HEAD.strip().replace(chr(10), chr(10) + '  ')}\n  a: 1\n")
    assert (listed.object["a"], listed.line_of("a")) == (1, 5)
    assert job_text.read(("\ufeff" + HEAD + "a: 1\n").replace("\n", "\r\n")).object["a"] == 1, "of Windows"


def test_a_text_that_is_or_stands_for_too_much_is_refused():
    pairs = zip("abcde", "bcdef", strict=True)
    bomb = "".join(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in pairs)
    for text, most in (
        (HEAD + "x: " + "y" * (1 << 20), "1,048,576"),
        (f"{HEAD}a: &a [{', '.join('1' * 10)}]\n{bomb}", "50,000"),
    ):
        (problem,) = problems(text)
        assert most in problem.message


def test_a_few_aliases_and_merges_are_read_as_kubectl_reads_them():
    document = job_text.read(f"{HEAD}base: &base {{cpu: 1, memory: 2}}\none: *base\ntwo:\n  <<: *base\n  cpu: 3\n")
    assert document.object["one"] == {"cpu": 1, "memory": 2}
    assert document.object["two"] == {"cpu": 3, "memory": 2}
    document.object["one"]["cpu"] = 9
    assert document.object["base"]["cpu"] == 1


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("on", True), ("No", False), ("y", True), ("yep", "yep"), ("~", None), ("", None), ("null", None),
        ("010", 8), ("08", 8), ("0o17", 15), ("0x1F", 31), ("0b11", 3), ("1_000", 1000), ("+5", 5), ("-3", -3), ("00", 0),
        ("1e3", 1000), ("1.5", 1.5), (".5", 0.5), ("5.", 5), ("1e-1", 0.1), ("18446744073709551616", 2**64),
        ("1:30", "1:30"), ("2001-01-01", "2001-01-01"), ("500m", "500m"), ("1Gi", "1Gi"), ("1.2.3", "1.2.3"),
        ("-", "-"), ("+", "+"), (".", "."), ("_1", "_1"), ("0xZZ", "0xZZ"), ("=", "="), ("YES", True), ("yEs", "yEs"),
    ],
)  # fmt: skip
def test_plain_scalars_mean_what_they_mean_to_kubectl(written, value):
    found = scalar.resolve(written)
    assert found == value
    assert isinstance(found, bool) == isinstance(value, bool)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcxyz./-", min_size=1), inner, max_size=4),
    max_leaves=30,
)


@given(JSON, st.sampled_from(["'", '"']))
@examples(200)
def test_what_is_written_as_yaml_is_read_back_unchanged(value, style):
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "extra": value}
    text = yaml.safe_dump(job, default_style=style, allow_unicode=True, sort_keys=False)
    assert job_text.read(text).object == job


@given(st.text(st.sampled_from("ab:- \n\t{}[]\"'*&!|>#%@`~,?.<1"), max_size=60))
@examples(500)
def test_no_text_does_anything_but_become_a_job_or_a_problem_with_a_line_in_it(text):
    lines = text.count("\n") + HEAD.count("\n") + 1
    found = ()
    try:
        job_text.read(HEAD + text)
    except YamlError as error:
        found = error.problems
    assert all(0 <= each.line <= lines + 1 and each.message.endswith((".", "]")) for each in found)
