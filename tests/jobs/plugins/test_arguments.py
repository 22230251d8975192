"""Arguments of plugins, as Go's package flag reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.plugins.arguments import parse

FLAGS = {"name": "none", "port": 22, "fast": False, "kind": "a"}


@pytest.mark.shows("5.1/arguments")
@pytest.mark.parametrize(
    ("words", "changed"),
    [
        pytest.param([], {}, id="none"),
        pytest.param(["--name=x"], {"name": "x"}, id="two dashes"),
        pytest.param(["-name=x"], {"name": "x"}, id="one dash"),
        pytest.param(["--name", "x"], {"name": "x"}, id="a value of its own"),
        pytest.param(["--name", "--port=1"], {"name": "--port=1"}, id="a value like a flag"),
        pytest.param(["--name="], {"name": ""}, id="an empty value"),
        pytest.param(["--name=a=b="], {"name": "a=b="}, id="the first sign separates"),
        pytest.param(["--name=x", "--name=y"], {"name": "y"}, id="the later one holds"),
        pytest.param(["--fast"], {"fast": True}, id="yes"),
        pytest.param(["--fast=F"], {"fast": False}, id="no"),
        pytest.param(["--fast", "--name=x"], {"fast": True, "name": "x"}, id="yes takes no value"),
        pytest.param(["--port=0x10"], {"port": 16}, id="hexadecimal"),
        pytest.param(["--port=010"], {"port": 8}, id="octal"),
        pytest.param(["--port=1_000"], {"port": 1000}, id="underscores"),
        pytest.param(["--port", "-5"], {"port": -5}, id="negative"),
        pytest.param(["--port=0"], {"port": 0}, id="zero"),
    ],
)
def test_flags_are_read(words, changed):
    assert parse(words, FLAGS) == ({**FLAGS, **changed}, "")


@pytest.mark.shows("5.1/wrong arguments")
@pytest.mark.parametrize(
    ("word", "problem"),
    [
        pytest.param("--no-root", "--no-root is not known (flags: --name, --port, --fast, --kind)", id="unknown"),
        pytest.param("--port=many", '--port must be a whole number, and is "many"', id="no number"),
        pytest.param("--port=", '--port must be a whole number, and is ""', id="an empty number"),
        pytest.param("--port= 1", '--port must be a whole number, and is " 1"', id="a blank"),
        pytest.param("--port=08", '--port must be a whole number, and is "08"', id="no octal digit"),
        pytest.param("--port=9223372036854775808", "--port must be a whole number of 64 bits", id="too large"),
        pytest.param("--fast=yes", '--fast must be true or false, and is "yes"', id="no truth"),
        pytest.param("x", '"x" is no flag', id="a bare word"),
        pytest.param("-", '"-" is no flag', id="a dash"),
        pytest.param("---name=x", '"---name=x" is no flag', id="three dashes"),
        pytest.param("--=x", '"--=x" is no flag', id="no name"),
        pytest.param("", '"" is no flag', id="nothing"),
    ],
)  # fmt: skip
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
