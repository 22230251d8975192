from __future__ import annotations

import time

import pytest

from cluster import access
from node import usage
from node.paths import Layout
from node.usage import Container

METRICS = "/apis/metrics.k8s.io/v1beta1"
BURN = "while :; do :; done"


@pytest.fixture
def measured(node, server, settings):
    """A node whose use is measured when the test says so."""
    settings.DATA = node.data
    node.begin()
    return node


def amount(metrics, name):
    """What is used, in nanoseconds a second and kibibytes."""
    return int(metrics["usage"][name].removesuffix("n").removesuffix("Ki"))


def start(node, **scripts):
    """Have pods that run, and measure until the containers of all have figures."""
    for name, script in scripts.items():
        node.shell(script, name, labels={"app": name})

    def runs(name):
        return "running" in (node.status(name).get("containerStatuses") or [{}])[0].get("state", ())

    def figures():
        node.daemon.sampler.sample()
        return usage.read(node.agent.layout, time.time_ns() // 1_000_000)["containers"]

    node.until(lambda: all(runs(name) for name in scripts))
    node.until(lambda: len(figures()) >= len(scripts))


def test_a_pod_that_works_and_one_that_sleeps_are_told_apart(measured, api):
    measured.daemon.sampler.sample()
    empty = api.get(f"{METRICS}/pods").json()
    assert (empty["kind"], empty["items"]) == ("PodMetricsList", []), "nobody was measured"
    short = "while :; do (i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done); done"  # processes that end count
    start(measured, busy=BURN, idle="sleep 1000", short=short)
    found = {one["metadata"]["name"]: one for one in api.get(f"{METRICS}/namespaces/d/pods").json()["items"]}
    assert set(found) == {"busy", "idle", "short"}
    busy, idle, short = (found[name]["containers"][0] for name in ("busy", "idle", "short"))
    assert busy["name"] == "main"
    assert amount(busy, "cpu") > 10 * amount(idle, "cpu")
    assert amount(short, "cpu") > 0
    assert 100 < amount(idle, "memory") < 100_000
    assert found["busy"]["metadata"]["labels"] == {"app": "busy"}
    assert (found["busy"]["window"][-1], found["busy"]["timestamp"][-1]) == ("s", "Z")
    assert api.get(f"{METRICS}/namespaces/d/pods/busy").json()["kind"] == "PodMetrics"
    for query, names in {
        "labelSelector=app=idle": ["idle"],
        "fieldSelector=metadata.name=busy": ["busy"],
        "labelSelector=app=c": [],
    }.items():
        assert [one["metadata"]["name"] for one in api.get(f"{METRICS}/pods?{query}").json()["items"]] == names
    accept = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    table = api.get(f"{METRICS}/pods", headers=accept).json()
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "CPU", "Memory", "Window"]
    assert {row["cells"][0] for row in table["rows"]} == set(found)


def test_the_machine_is_a_node_with_metrics(measured, api):
    measured.daemon.sampler.sample()
    assert api.get(f"{METRICS}/nodes").json()["items"] == []  # one look is none
    time.sleep(1.1)
    measured.daemon.sampler.sample()
    (found,) = api.get(f"{METRICS}/nodes").json()["items"]
    assert (found["metadata"]["name"], amount(found, "memory") > 10_000) == ("here", True)
    assert float(api.get(f"{METRICS}/nodes/here").json()["window"].removesuffix("s")) >= usage.LEAST_S
    assert api.get(f"{METRICS}/nodes/other").status_code == 404
    assert api.post(f"{METRICS}/namespaces/d/pods", {}).status_code == 405
    assert api.delete(f"{METRICS}/nodes/here").status_code == 405
    nobody = api.as_(access.Actor("nobody", ("system:authenticated",)))
    assert nobody.get(f"{METRICS}/namespaces/d/pods").status_code == 403
    assert nobody.get(f"{METRICS}/nodes").status_code == 403


def test_figures_of_an_agent_that_is_gone_or_of_another_life_are_not_shown(measured, api, monkeypatch):
    start(measured, p=BURN)
    assert api.get(f"{METRICS}/namespaces/d/pods/p").status_code == 200
    with monkeypatch.context() as late:
        late.setattr(usage, "STALE_S", 0.0)
        answer = api.get(f"{METRICS}/namespaces/d/pods/p").json()
    assert (answer["code"], answer["message"]) == (404, 'podmetrics.metrics.k8s.io "d/p" not found')
    measured.delete("p", grace=0)
    measured.until(lambda: measured.pod("p") is None)
    assert api.get(f"{METRICS}/namespaces/d/pods").json()["items"] == []


def test_measuring_hundreds_of_containers_is_cheap(tmp_path):
    """Each of this machine's processes stands for a container's shim, several times. Some 300 are usual."""
    processes = usage.all_processes()
    containers = [Container(str(pid), "main", pid) for pid in processes]
    sampler = usage.Sampler(Layout(tmp_path), "here", lambda: containers * 5)
    began = time.thread_time()
    sampler.sample()
    assert (time.thread_time() - began) / usage.EVERY_S < 0.02 * max(1, len(processes) / 300)
    assert (tmp_path / "node" / usage.NAME).stat().st_size > 0
