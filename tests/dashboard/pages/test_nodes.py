"""The list of nodes: here they are real or simulated, in a cluster with an API of its own neither is said."""

from __future__ import annotations

import html5lib
import pytest

from dashboard.pages import nodes


@pytest.mark.parametrize("is_mirror", [False, True], ids=["embedded", "another cluster"])
def test_kind_of_nodes_is_offered_where_there_are_kinds(is_mirror):
    spec = nodes.spec(is_mirror=is_mirror)
    assert ("kind" in [each.name for each in spec.filters]) is not is_mirror
    assert ("Kind" in [each.title for each in spec.columns]) is not is_mirror
    row = nodes.row_html("n", "Ready", False, "2026-01-01T00:00:00Z", ((0, 1),) * 3, is_mirror=is_mirror)
    read = html5lib.parse(f"<table>{row}</table>", namespaceHTMLElements=False)
    cells = [each for each in read.iter() if each.tag in ("th", "td")]
    assert len(cells) == len(spec.columns)
