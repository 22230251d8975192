"""How the front end is built: by the Node of a wheel, in the environment of whoever builds it."""

from __future__ import annotations

import pytest

from volcano_ui import assets

SAYS = "process.exit(process.env.NODE_USE_SYSTEM_CA === process.argv[1] ? 0 : 1)"


@pytest.mark.parametrize(("chosen", "has"), [(None, "1"), ("0", "0")], ids=["by itself", "as somebody chose"])
def test_node_trusts_the_authorities_of_the_system(monkeypatch, chosen, has):
    monkeypatch.delenv("NODE_USE_SYSTEM_CA", raising=False)
    if chosen is not None:
        monkeypatch.setenv("NODE_USE_SYSTEM_CA", chosen)
    assets._node("-e", SAYS, has)
