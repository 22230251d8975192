from ast import literal_eval

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from jobs.rules import job_text
from jobs.rules.job_text import YamlError
from kube.yaml import scalar
from proof.systems.seed import SPARK_JOB, TF_JOB
from tests.blocks import blocks
from tests.campaign import examples
from tests.tables import cases

HEAD = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"
SPEC = {"containers": [{"name": "a", "image": "b"}], "priorityClassName": "master-pri"}
CONTAINER = "{containers: {name: a, image: b}, priorityClass: master-pri}"
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]))


def problems(text):
    with pytest.raises(YamlError) as caught:
        job_text.read(text)
    return caught.value.problems


@pytest.mark.shows("9.1/examples")
@cases("text, policies, fragment, lines", {
    "tf-job": (TF_JOB, [[{"event": "*", "action": "RestartJob"}], None, None], "worker-img", [8, 25]),
    "spark-job": (SPARK_JOB, [None, [{"event": "*", "action": "RestartJob"}], None], "OnFailure", [10]),
})  # fmt: skip
def test_the_seeds_examples_are_accepted_as_printed(text, policies, fragment, lines):
    document = job_text.read(text)
    spec = document.object["spec"]
    assert [each.get("policies") for each in (spec, *spec["tasks"])] == policies
    assert fragment in str(spec["tasks"][1]["template"])
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


def test_a_field_that_is_not_written_has_the_line_of_what_is_around_it():
    containers = "        containers:\n        - resources:\n            requests:\n              cpu: x\n"
    document = job_text.read(f"{HEAD}spec:\n  tasks:\n  - template:\n      spec:\n{containers}")
    requests = "spec.tasks[0].template.spec.containers[0].resources.requests"
    lines = {f"{requests}[cpu]": 10, f"{requests}.memory": 9, "spec.tasks[0].replicas": 5}
    lines |= {"metadata.name": 0, "spec.tasks[7].name": 4}
    assert {path: document.line_of(path) for path in lines} == lines


@blocks("yaml", folder="pages")
def test_a_text_that_is_not_one_job_says_what_and_where(block, golden):
    def said(line):
        found = problems(literal_eval(line))
        return [f"line {each.line}{f', {each.field}' * bool(each.field)}: {each.message}" for each in found]

    golden(block, said, by_line=True)


@pytest.mark.parametrize("text", ["[" * 50_000, "- " * 5_000, "{a: " * 5_000], ids=["brackets", "dashes", "braces"])
def test_a_text_that_is_too_deep_is_refused(text):
    assert "levels deep" in problems(text)[0].message


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


@given(st.dictionaries(TEXT, TEXT | st.lists(TEXT, max_size=4), max_size=4), st.sampled_from(["'", '"']))
@examples(200)
def test_what_is_written_in_quotes_is_read_back_unchanged(value, style):
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
