"""The list of nodes: here they are real or simulated, in a cluster with an API of its own neither is said."""

from __future__ import annotations

import json

import html5lib
import pytest

from cluster import clock
from cluster.rules import node_devices
from cluster.rules.node_devices import NodeDevice
from dashboard.pages import nodes
from tests.dashboard.pages.conftest import node, page, pod, put


@pytest.mark.parametrize("is_mirror", [False, True], ids=["embedded", "another cluster"])
def test_kind_of_nodes_is_offered_where_there_are_kinds(is_mirror):
    spec = nodes.spec(is_mirror=is_mirror)
    assert ("kind" in [each.name for each in spec.filters]) is not is_mirror
    assert ("Kind" in [each.title for each in spec.columns]) is not is_mirror
    row = nodes.row_html("n", "Ready", False, "2026-01-01T00:00:00Z", ((0, 1),) * 3, is_mirror=is_mirror)
    read = html5lib.parse(f"<table>{row}</table>", namespaceHTMLElements=False)
    cells = [each for each in read.iter() if each.tag in ("th", "td")]
    assert len(cells) == len(spec.columns)


LICENCE = "example.org/licence"


@pytest.fixture
def equipped(cluster, settings, tmp_path):
    """A node with devices: one of a pod in team-a, one of a pod in team-b, one of a pod that has ended, one gone."""
    settings.DATA = tmp_path
    listed = [NodeDevice(LICENCE, each, "", each == "gone") for each in ("blue", "red", "green", "gone")]
    resource, made = node("gpu-1")
    made["metadata"]["annotations"][node_devices.ANNOTATION] = node_devices.written(listed)
    put(
        (resource, made),
        holding("mine-0", "blue"),
        holding("theirs-0", "red", namespace="team-b"),
        holding("was-0", "green", phase="Succeeded"),
    )
    return tmp_path


def holding(name, device, **options):
    resource, made = pod(name, node="gpu-1", **options)
    has = node_devices.status({LICENCE: [device]}, gone=[])
    made["status"]["containerStatuses"] = [{"name": "c", node_devices.STATUS_FIELD: has}]
    return resource, made


def devices(browser, name="gpu-1"):
    """Return the cells of the table of devices, by device."""
    shown = page(browser, f"/nodes/{name}/")
    table = next((each for each in shown.all(tag="table") if "Devices" in "".join(each.itertext())), None)
    rows = [row for row in table.iter("tr") if row.find("td") is not None] if table is not None else []
    texts = [[" ".join(" ".join(cell.itertext()).split()) for cell in row if cell.tag in ("td", "th")] for row in rows]
    return {cells[0].split()[0]: cells[1:] for cells in texts}


def test_devices_are_shown_with_who_has_them_as_far_as_the_reader_may_see(equipped, admin, alice):
    assert devices(admin) == {
        "blue": ["team-a / mine-0"], "red": ["team-b / theirs-0"], "green": ["free"], "gone": ["free"],
    }  # fmt: skip
    assert page(admin, "/nodes/gpu-1/").text(id="node-use").count("gone") == 2  # its id, and that it is so
    assert (devices(alice)["blue"], devices(alice)["red"]) == (["team-a / mine-0"], ["a pod that you may not see"])
    assert "theirs" not in page(alice, "/nodes/gpu-1/").answer.content.decode()
    assert devices(admin, "one") == {}


def test_figures_are_shown_as_far_as_they_are_measured(equipped, admin):
    figures = {"blue": {"use": 0.37, "memory": 3 << 30, "memoryTotal": 40 << 30, "temperature": 41.4}}
    said = {"node": "gpu-1", "at": clock.milliseconds(), "containers": [], "devices": {LICENCE: figures}}
    (equipped / "node").mkdir()
    (equipped / "node" / "usage.json").write_text(json.dumps(said))
    (shown,) = devices(admin)["blue"][1:]
    assert shown == "37% busy, 41 °C blue: 37% busy 3 GiB of 40 GiB blue: memory 3 GiB of 40 GiB"
    assert devices(admin)["red"][1:] == ["–"]
