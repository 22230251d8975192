"""The tables of docs/escapes.md are what is true on this machine."""

from __future__ import annotations

import os

import pytest

from proof.escapes.breakouts import KERNEL_DECIDES
from proof.escapes.security_table import ENGINES, IMAGES, USERS, documented, measured, measured_of_images

# Root tries as everybody.
HERE = [name for name in (*USERS, *ENGINES) if os.geteuid() == 0 or "ordinary user" in name]


@pytest.fixture(scope="module", params=HERE)
def tables(request):
    """What the page says and what is true, by wall and attack, for who starts the cluster, or with an engine."""
    if request.param in USERS:
        return documented(request.param), measured(request.param)
    kind = ENGINES[request.param]
    found = measured_of_images(request.getfixturevalue(kind) if kind else None)
    if isinstance(found, str):
        pytest.skip(f"podman of an ordinary user: {found}")
    return documented(IMAGES), {request.param: found}


def test_nothing_gets_through_that_the_page_does_not_tell(tables):
    page, found = tables
    through = {(wall, words) for wall, table in found.items() for words, got in table.items() if got}
    told = {(wall, words) for wall, table in page.items() for words, got in table.items() if got}
    assert through - told == set()


def test_what_the_page_says_gets_through_does(tables):
    """So an attempt that fails for another reason than the wall, such as a slip in it, is found."""
    page, found = tables
    missed = {
        (wall, words)
        for wall, table in found.items()
        for words in table.keys() - KERNEL_DECIDES
        if page[wall][words] and not table[words]
    }
    assert missed == set()


def test_every_attempt_is_in_the_tables(tables):
    page, found = tables
    assert {frozenset(table) for table in page.values()} == {frozenset(table) for table in found.values()}
