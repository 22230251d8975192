from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from kube import names
from tests.tables import cases


@cases("rule, good, bad", {
    "label": (names.dns_label, ["a", "a-b", "0a", "a" * 63], ["", "A", "-a", "a-", "a.b", "a_b", "a" * 64, "a\n", "é"]),
    "subdomain": (names.dns_subdomain, ["a", "a.b", "a-b.c-d", "a" * 253],
        ["", ".", "a.", ".a", "a..b", "A.b", "a" * 254, "a\n"]),
    "qualified name": (names.qualified_name, ["a", "A_b.c-d", "example.com/Name", "x/" + "a" * 63],
        ["", "/a", "a/", "a/b/c", "EX.com/a", "-a", "a" * 64, "a b"]),
    "label value": (names.label_value, ["", "a", "A_b.c-1", "a" * 63], ["-a", "a-", "a/b", "a" * 64, "a b", "a\n"]),
    "environment variable": (names.env_name, ["A", "_a", "a.b-c", ".a", "-x"],
        ["", "1A", "a b", "A=", ".", "..", "..a", "A\n"]),
})  # fmt: skip
def test_names(rule, good, bad):
    assert [rule(text) for text in good] == [None] * len(good)
    assert all(rule(text) for text in bad), [text for text in bad if not rule(text)]


@given(st.integers())
def test_a_suffix_is_five_characters_of_the_alphabet_and_follows_the_seed(seed):
    text = names.suffix(random.Random(seed))
    assert len(text) == 5
    assert set(text) <= set(names.SUFFIX_ALPHABET)
    assert text == names.suffix(random.Random(seed))
    assert names.dns_label("a-" + text) is None
