"""What `/metrics` has of queues and pod groups, read by the rules of Prometheus' text format (version 0.0.4)."""

from __future__ import annotations

import re

import pytest

from cluster.store import Create, store
from dashboard import cluster_usage
from kube import resources
from kube.meta import parse_time
from scheduler import waiting_lines

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
KINDS = ("counter", "gauge", "histogram", "summary", "untyped")
LATER = "2100-01-01T00:00:02.500000Z"
PARTS = ("_bucket", "_sum", "_count")


def scraped(text):
    """Return the series, (name, labels) → value; fail where Prometheus would not take the text."""
    assert text.endswith("\n")
    kinds, helped, series, family = {}, set(), {}, ""
    for line in text.splitlines():
        if found := re.fullmatch(rf"# HELP ({NAME}) (.*)", line):
            assert found[1] not in helped, "a second HELP"
            helped.add(found[1])
        elif found := re.fullmatch(rf"# TYPE ({NAME}) (\w+)", line):
            assert found[1] not in kinds, "a second TYPE, or series of one family apart"
            family, kinds[found[1]] = found[1], found[2]
            assert found[2] in KINDS
        else:
            found = SAMPLE.fullmatch(line)
            assert found, line
            name, labels, value = found.groups()
            ends = PARTS if kinds[family] == "histogram" else ()
            assert name in (family, *(family + end for end in ends)), f"{line}: not below its TYPE"
            read = LABEL.findall(labels or "")
            assert LABEL.sub("", labels or "") == "", labels
            key = name, frozenset(read)
            assert key not in series, f"{line}: twice"
            assert len({label for label, _ in read}) == len(read)
            series[key] = float(value)
    return series


def of(series, name, **labels):
    return series[f"volcano_{name}", frozenset(labels.items())]


def names(series):
    return {name.removeprefix("volcano_") for name, _ in series if name.startswith("volcano_")}


def group(name, phase, *, at="default", queue="small", conditions=(), minimum=3):
    return resources.POD_GROUPS, {
        "metadata": {"name": name, "namespace": at},
        "spec": {"minMember": minimum, "queue": queue, "minResources": {"cpu": "2", "x.y/gpu": "1"}},
        "status": {
            "phase": phase,
            "running": 1,
            "conditions": [
                {"type": kind, "status": status, "lastTransitionTime": when} for kind, status, when in conditions
            ],
        },
    }


def pod(name, of, cpu):
    requests = {"cpu": cpu, "memory": "1Gi"}
    return resources.PODS, {
        "metadata": {"name": name, "namespace": "default", "annotations": {"scheduling.k8s.io/group-name": of}},
        "spec": {
            "nodeName": "n",
            "schedulerName": "volcano",
            "containers": [{"name": "c", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running"},
    }


@pytest.fixture
def filled(api):
    """A node, a queue with one above it, a group that runs and two that wait."""
    _forget()
    ready = [{"type": "Ready", "status": "True"}]
    has = {"cpu": "8", "memory": "16Gi", "pods": "10", "x.y/gpu": "4"}
    small = {
        "metadata": {"name": "small"},
        "spec": {"parent": "above", "weight": 3, "capability": {"cpu": "4", "x.y/gpu": "2"}},
        "status": {"state": "Open", "pending": 1, "inqueue": 1, "running": 1},
    }
    made = [
        (resources.NODES, {"metadata": {"name": "n"}, "status": {"allocatable": has, "conditions": ready}}),
        (resources.QUEUES, {"metadata": {"name": "root"}, "spec": {}}),
        (resources.QUEUES, {"metadata": {"name": "above"}, "spec": {"weight": 1}}),
        (resources.QUEUES, small),
        group("runs", "Running", conditions=[("Scheduled", "True", LATER)]),
        group("waits", "Inqueue", conditions=[("Unschedulable", "True", LATER)]),
        group('odd"one', "Pending", at="other"),
        pod("p", "runs", "1500m"),
    ]
    store.write(*(Create(*each) for each in made))
    yield api
    _forget()


def _forget():
    cluster_usage.forget()
    waiting_lines.forget()


@pytest.mark.shows("scheduler 4.3/volcano_queue_…", "queues 2.6/metrics")
def test_figures_of_queues_are_under_volcanos_names_and_in_its_units(filled):
    series = scraped(filled.get("/metrics").text)
    assert of(series, "queue_allocated_milli_cpu", queue_name="small") == 1500
    assert of(series, "queue_allocated_milli_cpu", queue_name="above") == 1500
    assert of(series, "queue_allocated_memory_bytes", queue_name="small") == 2**30
    assert of(series, "queue_allocated_scalar_resources", queue_name="small", resource="pods") == 1
    assert of(series, "queue_request_milli_cpu", queue_name="small") == 1500 + 2 * 2000
    assert of(series, "queue_request_scalar_resources", queue_name="above", resource="x.y/gpu") == 2000
    assert of(series, "queue_capacity_milli_cpu", queue_name="small") == 4000
    assert of(series, "queue_real_capacity_memory_bytes", queue_name="small") == 16 * 2**30
    assert of(series, "queue_weight", queue_name="small") == 3
    deserved = of(series, "queue_deserved_milli_cpu", queue_name="small")
    assert 1500 < deserved <= 4000
    share = of(series, "queue_share", queue_name="small")
    assert 0 < share < 1
    assert of(series, "queue_overused", queue_name="small") == 0
    counts = {
        phase: of(series, f"queue_pod_group_{phase}_count", queue_name="small")
        for phase in ("pending", "inqueue", "running", "unknown", "completed")
    }
    assert counts == {"pending": 1, "inqueue": 1, "running": 1, "unknown": 0, "completed": 0}
    assert "queue_capacity_milli_cpu" in names(series)
    assert ("volcano_queue_capacity_milli_cpu", frozenset({("queue_name", "above")})) not in series


@pytest.mark.shows("scheduler 4.3/unschedule_…, e2e_job_scheduling_duration")
def test_figures_of_pod_groups(filled):
    series = scraped(filled.get("/metrics").text)
    assert of(series, "unschedule_job_count") == 2
    assert of(series, "unschedule_task_count", job_id="default/waits") == 2
    took = of(series, "e2e_job_scheduling_duration", job_name="runs", queue="small", job_namespace="default")
    created = store.get(resources.POD_GROUPS, "default", "runs").object["metadata"]["creationTimestamp"]
    assert took == parse_time(LATER) - parse_time(created)


def test_who_scrapes_sees_what_he_may_see(filled, person):
    """Queues are everybody's to read; pod groups only of the namespaces in which somebody is something."""
    series = scraped(filled.as_(person("alice", other="operator")).get("/metrics").text)
    assert of(series, "unschedule_job_count") == 1
    assert not any("default/" in text for _, labels in series for _, text in labels)
    bob = filled.as_(person("bob"))
    refused = bob.get("/metrics")
    assert refused.status_code == 403
    assert refused.json()["message"].startswith(
        'forbidden: User "bob" cannot get path "/metrics". It takes the role viewer'
    )
    asked = {"spec": {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}}
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert [who.post(review, asked).json()["status"]["allowed"] for who in (filled, bob)] == [True, False]


def test_names_of_all_kinds_are_written_so_that_they_are_read_back(api):
    from cluster.exposition import sample

    for text in ('a"b', "a\\b", "a\nb", "ä, b"):
        line = sample("x", {"name": text, "other": "c"}, 1)
        (found,) = scraped(f"# TYPE x gauge\n{line}\n")
        written = dict(found[1])["name"]
        assert written.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\") == text
