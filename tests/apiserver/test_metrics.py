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


def until_measured(node, *names):
    """Measure until the containers of all the pods named have figures."""

    def figures():
        node.daemon.sampler.sample()
        return usage.read(node.agent.layout, time.time_ns() // 1_000_000)["containers"]

    for name in names:
        node.until(lambda name=name: "running" in node.state(name))
    node.until(lambda: len(figures()) >= len(names))


def cpu(metrics):
    return int(metrics["usage"]["cpu"].removesuffix("n"))


def memory(metrics):
    return int(metrics["usage"]["memory"].removesuffix("Ki")) * 1024


def start(node, **scripts):
    for name, script in scripts.items():
        node.shell(script, name, labels={"app": name})
    until_running(node, *scripts)


def until_running(node, *names):
    node.until(
        lambda: all(
            "running" in (node.status(name).get("containerStatuses") or [{}])[0].get("state", ()) for name in names
        )
    )


def test_a_pod_that_works_and_one_that_sleeps_are_told_apart(measured, api):
    start(measured, busy=BURN, idle="sleep 1000")
    until_measured(measured, "busy", "idle")
    found = {one["metadata"]["name"]: one for one in api.get(f"{METRICS}/namespaces/d/pods").json()["items"]}
    assert set(found) == {"busy", "idle"}
    busy, idle = found["busy"]["containers"][0], found["idle"]["containers"][0]
    assert busy["name"] == "main"
    assert cpu(busy) > 10 * cpu(idle)
    assert 100_000 < memory(idle) < 100_000_000
    assert found["busy"]["metadata"]["labels"] == {"app": "busy"}
    assert found["busy"]["window"].endswith("s")
    assert found["busy"]["timestamp"].endswith("Z")


def test_what_has_ended_processes_used_is_counted(measured, api):
    start(measured, p="while :; do (i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done); done")
    until_measured(measured, "p")
    pod = api.get(f"{METRICS}/namespaces/d/pods/p").json()
    assert pod["kind"] == "PodMetrics"
    assert cpu(pod["containers"][0]) > 0


def test_the_machine_is_a_node_with_metrics(measured, api):
    measured.daemon.sampler.sample()
    assert api.get(f"{METRICS}/nodes").json()["items"] == []  # one look is none
    time.sleep(1.1)
    measured.daemon.sampler.sample()
    items = api.get(f"{METRICS}/nodes").json()["items"]
    assert [one["metadata"]["name"] for one in items] == ["here"]
    assert memory(items[0]) > 10_000_000
    assert float(api.get(f"{METRICS}/nodes/here").json()["window"].removesuffix("s")) >= usage.LEAST_S
    assert api.get(f"{METRICS}/nodes/other").status_code == 404


def test_selectors_narrow_the_list(measured, api):
    start(measured, a=BURN, b=BURN)
    until_measured(measured, "a", "b")

    def names(query):
        return [one["metadata"]["name"] for one in api.get(f"{METRICS}/pods?{query}").json()["items"]]

    assert names("labelSelector=app=a") == ["a"]
    assert names("fieldSelector=metadata.name=b") == ["b"]
    assert names("labelSelector=app=c") == []


def test_figures_of_an_agent_that_is_gone_are_not_shown(measured, api, monkeypatch):
    start(measured, p=BURN)
    until_measured(measured, "p")
    assert api.get(f"{METRICS}/namespaces/d/pods/p").status_code == 200
    monkeypatch.setattr(usage, "STALE_S", 0.0)
    answer = api.get(f"{METRICS}/namespaces/d/pods/p")
    assert answer.status_code == 404
    assert answer.json()["message"] == 'podmetrics.metrics.k8s.io "d/p" not found'


def test_a_pod_that_nobody_measured_is_left_out(measured, api):
    measured.daemon.sampler.sample()
    assert api.get(f"{METRICS}/pods").json()["items"] == []
    assert api.get(f"{METRICS}/pods").json()["kind"] == "PodMetricsList"


def test_metrics_are_a_table_where_that_is_asked_for(measured, api):
    start(measured, p=BURN)
    until_measured(measured, "p")
    accept = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    table = api.get(f"{METRICS}/pods", headers=accept).json()
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "CPU", "Memory", "Window"]
    assert table["rows"][0]["cells"][0] == "p"


def test_metrics_can_only_be_read(api):
    assert api.post(f"{METRICS}/namespaces/d/pods", {}).status_code == 405
    assert api.delete(f"{METRICS}/nodes/here").status_code == 405


def test_who_may_not_see_pods_may_not_see_their_metrics(api):
    nobody = api.as_(access.Actor("nobody", ("system:authenticated",)))
    assert nobody.get(f"{METRICS}/namespaces/d/pods").status_code == 403
    assert nobody.get(f"{METRICS}/nodes").status_code == 403


def test_measuring_hundreds_of_containers_is_cheap(tmp_path):
    """Each of this machine's processes stands for a container's shim, several times. Some 300 are usual."""
    processes = usage.all_processes()
    containers = [Container(str(pid), "main", pid) for pid in processes]
    sampler = usage.Sampler(Layout(tmp_path), "here", lambda: containers * 5)
    began = time.thread_time()
    sampler.sample()
    assert (time.thread_time() - began) / usage.EVERY_S < 0.02 * max(1, len(processes) / 300)
    assert (tmp_path / "node" / usage.NAME).stat().st_size > 0


def test_a_pod_of_another_life_has_no_metrics(measured, api):
    start(measured, p=BURN)
    until_measured(measured, "p")
    measured.delete("p", grace=0)
    measured.until(lambda: measured.pod("p") is None)
    assert api.get(f"{METRICS}/namespaces/d/pods").json()["items"] == []
