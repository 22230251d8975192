from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import meta, names
from tests.tables import cases, parts

moments = st.integers(0, 253_402_300_799_999)


@given(moments, moments)
def test_a_time_survives_writing_and_reading_and_sorts_as_its_text(now, other):
    assert meta.parse_time(meta.now_text(now)) == now
    assert meta.parse_time(meta.timestamp(now)) == now - now % 1000
    assert (now < other) == (meta.now_text(now) < meta.now_text(other))
    assert meta.parse_duration(meta.duration_text(now - other)) == now - other


@parts("kube/times", "times", "durations", "durations as Go writes them")
def test_times_and_durations_are_read_and_written(part):
    read = {"times": meta.parse_time, "durations": meta.parse_duration}.get(part.title)
    part.check(lambda text: read(text) if read else meta.duration_text(int(text)))
    assert meta.now_text(1_767_225_600_123) == "2026-01-01T00:00:00.123000Z"
    assert meta.timestamp(1_767_225_600_123) == "2026-01-01T00:00:00Z"


@given(st.datetimes(timezones=st.just(UTC)))
def test_reading_agrees_with_the_standard_library(moment):
    whole = moment.replace(microsecond=0)
    assert meta.parse_time(whole.isoformat()) == (whole - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000


def test_what_is_no_time_or_duration_is_refused():
    for text in (
        "", "now", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "2026-01-01T00:00:60Z", "0000-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z\n", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00+99:99", "20260101T000000Z", "2" * 10_000,
    ):  # fmt: skip
        with pytest.raises(ValueError, match="is not a time"):
            meta.parse_time(text)
    for text in ("", "5", "s", "1d", "1h 30m", "1h30", "--1s", "1s\n", "1e3s", "٣s", "9" * 10_000 + "s"):
        with pytest.raises(ValueError, match="is not a duration"):
            meta.parse_duration(text)


@parts("kube/times", "durations for people")
def test_durations_are_said_to_people_in_their_two_largest_units(part):
    part.check(lambda text: meta.duration_words(float(text)))


def test_the_controller_is_the_owner_that_controls():
    owners = [{"uid": "1", "kind": "A"}, {"uid": "2", "kind": "B", "name": "b", "apiVersion": "v1", "controller": True}]
    controller = meta.controller_of({"metadata": {"ownerReferences": owners}})
    assert (controller.uid, controller.kind, controller.name, controller.api_version) == ("2", "B", "b", "v1")
    for metadata in (None, {}, {"ownerReferences": None}, {"ownerReferences": [{"uid": "1"}]}):
        assert meta.controller_of({"metadata": metadata}) is None
    assert meta.key_of({"metadata": {"namespace": "a", "name": "b"}}) == "a/b"
    assert meta.key_of({"metadata": {"name": "b"}}) == "/b"


@cases("rule, good, bad", {
    "label": (names.dns_label, ["a", "a-b", "0a", "a" * 63], ["", "A", "-a", "a-", "a.b", "a_b", "a" * 64, "a\n", "é"]),
    "subdomain": (names.dns_subdomain, ["a", "a.b", "a-b.c-d", "a" * 253], ["", ".", "a.", ".a", "a..b", "A.b", "a" * 254, "a\n"]),
    "qualified name": (names.qualified_name, ["a", "A_b.c-d", "example.com/Name", "x/" + "a" * 63],
        ["", "/a", "a/", "a/b/c", "EX.com/a", "-a", "a" * 64, "a b"]),
    "label value": (names.label_value, ["", "a", "A_b.c-1", "a" * 63], ["-a", "a-", "a/b", "a" * 64, "a b", "a\n"]),
    "environment variable": (names.env_name, ["A", "_a", "a.b-c", ".a", "-x"], ["", "1A", "a b", "A=", ".", "..", "..a", "A\n"]),
})  # fmt: skip
def test_names(rule, good, bad):
    assert [rule(text) for text in good] == [None] * len(good)
    assert [text for text in bad if not rule(text)] == []


@given(st.integers())
def test_a_suffix_is_five_characters_of_the_alphabet_and_follows_the_seed(seed):
    text = names.suffix(random.Random(seed))
    assert (len(text), text) == (5, names.suffix(random.Random(seed)))
    assert set(text) <= set(names.SUFFIX_ALPHABET)
    assert names.dns_label("a-" + text) is None
