"""Arguments of plugins, as Go's package flag reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.plugins.arguments import parse
from tests.tables import cases

FLAGS = {"name": "none", "port": 22, "fast": False, "kind": "a"}


@pytest.mark.shows("5.1/arguments")
@cases("words, changed", {
    "none": ([], {}),
    "two dashes": (["--name=x"], {"name": "x"}),
    "one dash": (["-name=x"], {"name": "x"}),
    "a value of its own": (["--name", "x"], {"name": "x"}),
    "a value like a flag": (["--name", "--port=1"], {"name": "--port=1"}),
    "an empty value": (["--name="], {"name": ""}),
    "the first sign separates": (["--name=a=b="], {"name": "a=b="}),
    "the later one holds": (["--name=x", "--name=y"], {"name": "y"}),
    "yes": (["--fast"], {"fast": True}),
    "no": (["--fast=F"], {"fast": False}),
    "yes takes no value": (["--fast", "--name=x"], {"fast": True, "name": "x"}),
    "hexadecimal": (["--port=0x10"], {"port": 16}),
    "octal": (["--port=010"], {"port": 8}),
    "underscores": (["--port=1_000"], {"port": 1000}),
    "negative": (["--port", "-5"], {"port": -5}),
    "zero": (["--port=0"], {"port": 0}),
})  # fmt: skip
def test_flags_are_read(words, changed):
    assert parse(words, FLAGS) == ({**FLAGS, **changed}, "")


@pytest.mark.shows("5.1/wrong arguments")
@cases("word, problem", {
    "unknown": ("--no-root", "--no-root is not known (flags: --name, --port, --fast, --kind)"),
    "no number": ("--port=many", '--port must be a whole number, and is "many"'),
    "an empty number": ("--port=", '--port must be a whole number, and is ""'),
    "a blank": ("--port= 1", '--port must be a whole number, and is " 1"'),
    "no octal digit": ("--port=08", '--port must be a whole number, and is "08"'),
    "too large": ("--port=9223372036854775808", "--port must be a whole number of 64 bits"),
    "no truth": ("--fast=yes", '--fast must be true or false, and is "yes"'),
    "a bare word": ("x", '"x" is no flag'),
    "a dash": ("-", '"-" is no flag'),
    "three dashes": ("---name=x", '"---name=x" is no flag'),
    "no name": ("--=x", '"--=x" is no flag'),
    "nothing": ("", '"" is no flag'),
})  # fmt: skip
def test_reading_stops_at_what_is_wrong_and_says_what_it_is(word, problem):
    parsed = parse(["--name=before", word, "--kind=after"], FLAGS)
    assert parsed.values == {**FLAGS, "name": "before"}
    assert parsed.problem.startswith(problem)
    assert parsed.problem.endswith("; it and what follows it are ignored.")


def test_a_flag_at_the_end_without_its_value_is_wrong():
    assert parse(["--fast", "--port"], FLAGS) == ({**FLAGS, "fast": True}, "--port needs a value; it is ignored.")


def test_two_dashes_end_the_flags():
    assert parse(["--"], FLAGS) == (FLAGS, "")
    assert parse(["--", "--name=x"], FLAGS).problem == '"--" ends the flags; it and what follows it are ignored.'


@given(st.lists(st.text(alphabet="-=abport0fn", max_size=8) | st.text(max_size=5), max_size=5))
def test_whatever_is_written_every_flag_has_a_value_of_its_type(words):
    values = parse(words, FLAGS).values
    assert {name: type(value) for name, value in values.items()} == {name: type(value) for name, value in FLAGS.items()}


@given(st.lists(st.sampled_from(["--name=x", "--fast", "--port=7", "--kind=b"]), max_size=4), st.text(max_size=3))
def test_what_stands_before_a_wrong_word_holds(words, rest):
    assert parse([*words, "--wrong", rest], FLAGS).values == parse(words, FLAGS).values
