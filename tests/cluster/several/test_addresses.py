"""Where the pages of several clusters are, and which page of another one stands for one of this."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.several import addresses
from cluster.several.addresses import Route, counterpart, route

PAGES = {"/c/a/", "/c/a/jobs/", "/c/a/jobs/new/", "/c/a/queues/"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/c/a/", "/c/b/", id="the first page"),
        pytest.param("/c/a/jobs/", "/c/b/jobs/", id="a list"),
        pytest.param("/c/a/jobs/new/", "/c/b/jobs/new/", id="a form"),
        pytest.param("/c/a/jobs/default/one/", "/c/b/jobs/", id="an object goes to its list"),
        pytest.param("/c/a/jobs/default/one/log/", "/c/b/jobs/", id="a page of an object"),
        pytest.param("/c/a/nowhere/x", "/c/b/", id="no page at all"),
        pytest.param("/c/ab/jobs/", "/c/b/", id="another cluster whose name begins alike"),
        pytest.param("//evil.example/", "/c/b/", id="another site"),
    ],
)
def test_counterpart_is_the_page_or_the_nearest_list(path, expected):
    assert counterpart(path, "c/a/", "c/b/", PAGES.__contains__) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/c/a/jobs/", Route("a"), id="a cluster's page"),
        pytest.param("/c/b/", Route("b"), id="another one's"),
        pytest.param("/c/a", Route(moved="/c/a/"), id="without the slash"),
        pytest.param("/", Route(moved="/c/a/"), id="the first page"),
        pytest.param("/jobs/?", Route(moved="/c/a/jobs/?"), id="an address of one cluster"),
        pytest.param("//evil.example", Route(moved="/c/a//evil.example"), id="another site"),
        pytest.param("/c/none/", Route(), id="no such cluster"),
        pytest.param("/c/", Route(), id="no name"),
        pytest.param("/c/%61/", Route(), id="a name written otherwise"),
    ],
)
def test_route(path, expected):
    assert route(path, {"a": 1, "b": 2}, "a") == expected


@given(st.text())
def test_nobody_is_sent_to_another_site(path):
    moved = route(f"/{path}", ["a"], "a").moved
    assert not moved or moved.startswith(f"/{addresses.prefix('a')}")
    assert counterpart(f"/{path}", "c/a/", "c/b/", lambda _: True).startswith("/c/b/")
