"""What pods and nodes use; what `/metrics` has of queues and pod groups, by the rules of Prometheus' text format."""

import re
import time

import pytest

from apiserver import health
from apiserver.telemetry import MAX_SERIES, Telemetry
from cluster import access
from cluster.exposition import sample
from cluster.store import store
from dashboard import cluster_usage
from kube import resources
from kube.meta import parse_time
from node import usage
from node.paths import Layout
from node.usage import Container
from scheduler import waiting_lines
from tests.tables import parts

METRICS = "/apis/metrics.k8s.io/v1beta1"
BURN = "while :; do :; done"


@pytest.fixture
def measured(node, server, settings):
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


NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
KINDS = ("counter", "gauge", "histogram", "summary", "untyped")
PARTS = ("_bucket", "_sum", "_count")


def scraped(text):
    """Return the series, (name, labels) → value; fail where Prometheus would not take the text."""
    assert text.endswith("\n")
    metadata, series, family, ends = set(), {}, "", ()
    for line in text.splitlines():
        if found := re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.*)", line):
            assert found.groups()[:2] not in metadata, "a second HELP, or series of one family apart"
            metadata.add(found.groups()[:2])
            if found[1] == "TYPE":
                family, ends = found[2], PARTS if found[3] == "histogram" else ()
                assert found[3] in KINDS
            continue
        name, labels, value = SAMPLE.fullmatch(line).groups("")
        assert name in (family, *(family + end for end in ends)), f"{line}: not below its TYPE"
        key = name, frozenset(LABEL.findall(labels))
        assert (LABEL.sub("", labels), key in series) == ("", False), line
        assert len({label for label, _ in key[1]}) == len(LABEL.findall(labels))
        series[key] = float(value)
    return series


@pytest.fixture
def nothing_counted():
    cluster_usage.forget()
    waiting_lines.forget()
    yield
    cluster_usage.forget()
    waiting_lines.forget()


@parts("apiserver/metrics")
def test_figures_of_queues_and_pod_groups(nothing_counted, story, part):
    story.goes(part)
    series = scraped(story.api.get("/metrics").text)
    small = {name: value for (name, labels), value in series.items() if ("queue_name", "small") in labels}
    assert 1500 < small["volcano_queue_deserved_milli_cpu"] <= 4000
    assert 0 < small["volcano_queue_share"] < 1
    assert ("volcano_queue_capacity_milli_cpu", frozenset({("queue_name", "above")})) not in series
    (took,) = (value for (name, _), value in series.items() if name == "volcano_e2e_job_scheduling_duration")
    created = store.get(resources.POD_GROUPS, "default", "runs").object["metadata"]["creationTimestamp"]
    assert took == parse_time("2100-01-01T00:00:02.500000Z") - parse_time(created)
    hers = scraped(story.api.as_(story.actors["alice"]).get("/metrics").text)
    assert not any("default/" in text for _, labels in hers for _, text in labels)


def test_names_of_all_kinds_are_written_so_that_they_are_read_back():
    for text in ('a"b', "a\\b", "a\nb", "ä, b"):
        (found,) = scraped(f"# TYPE x gauge\n{sample('x', {'name': text, 'other': 'c'}, 1)}\n")
        written = dict(found[1])["name"]
        assert written.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\") == text


@pytest.fixture
def redis_down(monkeypatch):
    def refuse():
        raise ConnectionRefusedError

    monkeypatch.setitem(health.CHECKS, "redis", refuse)
    monkeypatch.setattr(health, "_outages", {})


@parts("apiserver/health", "everybody may ask whether it works, and who is known for figures")
def test_everybody_may_ask_whether_it_works(api, story, part):
    story.goes(part)
    version = api.get("/version").json()
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")
    assert version.keys() >= {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"}
    assert int(version["minor"]) >= 30
    assert api.get("/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")


@parts("apiserver/health", "a failing check is named and its reason withheld")
def test_a_failing_check_is_logged_once(story, redis_down, caplog, part):
    story.goes(part)
    lines = [record.getMessage() for record in caplog.records if record.name == health.__name__]
    assert lines == ["what check redis stands for is put off: ConnectionRefusedError"]


def test_requests_are_counted_by_verb_resource_and_code():
    telemetry = Telemetry()
    telemetry.observe("get", "pods/log", 200, 0.03)
    telemetry.observe("create", "jobs.batch.volcano.sh", 201, 0.3)
    lines = telemetry.text().splitlines()
    assert 'apiserver_request_total{code="200",verb="GET",group="",resource="pods",subresource="log"} 1' in lines
    labels = 'verb="CREATE",group="batch.volcano.sh",resource="jobs",subresource="",le="0.4"'
    assert f"apiserver_request_duration_seconds_bucket{{{labels}}} 1" in lines
    for series in ("apiserver_request_total{", "apiserver_request_duration_seconds_count{"):
        assert [re.search('verb="([A-Z]+)', line)[1] for line in lines if line.startswith(series)] == ["CREATE", "GET"]
    with telemetry.inflight("create"), telemetry.watching("pods"):
        text = telemetry.text()
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 1' in text
    assert 'apiserver_longrunning_requests{verb="WATCH",group="",resource="pods",subresource=""} 1' in text
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 0' in telemetry.text()
    for number in range(MAX_SERIES + 100):
        telemetry.observe("get", f"things{number}.example.com", 200, 0.1)
    assert telemetry.text().count("apiserver_request_total{") <= MAX_SERIES + 1
