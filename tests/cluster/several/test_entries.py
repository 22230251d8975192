"""What VOLCANO_UI_CLUSTERS says, and what is said when it says nothing useful."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.remote.ways import Way
from cluster.several import entries
from cluster.several.entries import EntriesError, Entry

NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
PATHS = st.from_regex(r"/[A-Za-z0-9._/-]{1,20}", fullmatch=True)
CONTEXTS = st.from_regex(r"([A-Za-z0-9@._/:-]{0,20}x)?", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", (), id="nothing"),
        pytest.param("home=embedded", (Entry("home"),), id="the embedded one"),
        pytest.param("dev=~/.kube/config", (Entry("dev", "~/.kube/config"),), id="the current context"),
        pytest.param("dev=/c#one", (Entry("dev", "/c", "one"),), id="a context"),
        pytest.param("dev=/c#one:in-place", (Entry("dev", "/c", "one", "in-place"),), id="a way"),
        pytest.param("dev=/c:read-only", (Entry("dev", "/c", "", "read-only"),), id="a way, and no context"),
        pytest.param(
            "eu=/c#arn:aws:eks:eu-west-1:1:cluster/eu",
            (Entry("eu", "/c", "arn:aws:eks:eu-west-1:1:cluster/eu"),),
            id="a context with colons",
        ),
        pytest.param("here=in-cluster", (Entry("here", "in-cluster"),), id="the cluster of this pod"),
        pytest.param(
            " home=embedded,\n a=/a ,b=/b\n",
            (Entry("home"), Entry("a", "/a"), Entry("b", "/b")),
            id="several, in lines",
        ),
    ],
)
def test_each_entry_is_a_cluster(text, expected):
    assert entries.parse(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("dev", "'dev' does not say which cluster it is; write NAME=KUBECONFIG", id="no source"),
        pytest.param("dev=", "'dev=' does not say", id="an empty source"),
        pytest.param("Dev=/c", "'Dev' cannot be a cluster's name", id="a capital"),
        pytest.param("a/b=/c", "'a/b' cannot be a cluster's name", id="a slash"),
        pytest.param("=/c", "'' cannot be a cluster's name", id="no name"),
        pytest.param(f"{'a' * 64}=/c", "at most 63", id="a long name"),
        pytest.param("a=/c,a=/d", "a is named twice", id="a name twice"),
        pytest.param("a=/c,b=embedded", "b is embedded and not the first; put it first", id="embedded second"),
        pytest.param("a=embedded,b=embedded", "b is embedded and not the first", id="embedded twice"),
        pytest.param("a=#one", "names a context or a way but no kubeconfig", id="a context of nothing"),
        pytest.param("a=embedded:in-place", "names a context or a way but no kubeconfig", id="a way of ours"),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(text, words):
    with pytest.raises(EntriesError) as refused:
        entries.parse(text)
    assert words in str(refused.value)


def test_ways_are_those_of_a_remote_cluster():
    assert tuple(way.value for way in Way) == entries.WAYS


@given(
    st.lists(
        st.builds(Entry, NAMES, PATHS, CONTEXTS, st.sampled_from(["", *entries.WAYS])),
        unique_by=lambda entry: entry.name,
    )
)
def test_text_of_entries_is_read_as_the_same_entries(found):
    assert entries.parse(entries.text(found)) == tuple(found)
