from __future__ import annotations

import pytest

from kube.resources import EVENTS
from tests.dashboard.pages.conftest import page, put
from tests.tables import cases

pytestmark = pytest.mark.usefixtures("cluster")
SERIES = {"count": 7, "lastObservedTime": "2026-01-01T00:09:00.000001Z"}


def event(name, **fields):
    about = {"kind": "Pod", "name": name, "namespace": "team-a"}
    return EVENTS, {"metadata": {"name": name, "namespace": "team-a"}, "involvedObject": about, **fields}


@cases("fields, times, seen", {
    "older": ({"count": 4, "lastTimestamp": "2026-01-01T00:05:00Z"}, "4", "2026-01-01T00:05:00Z"),
    "newer": ({"eventTime": "2026-01-01T00:00:00.000001Z", "series": SERIES}, "7", "2026-01-01T00:09:00.000001Z"),
})  # fmt: skip
def test_an_event_shows_how_often_it_happened_and_when_last(admin, fields, times, seen):
    (stored,) = put(event("web-0", **fields))
    shown = page(admin, "/events/")
    cells = {cell.get("data-label"): cell for cell in shown.one(id=f"event-{stored.uid}").iter("td")}
    assert "".join(cells["Times"].itertext()).strip() == times
    assert cells["Last seen"].find(".//time").get("datetime").startswith(seen[:19])
