"""What `/metrics` has of queues and pod groups, read by the rules of Prometheus' text format (version 0.0.4)."""

from __future__ import annotations

import re

import pytest

from cluster.exposition import sample
from cluster.store import Create, store
from dashboard import cluster_usage
from kube import resources
from kube.meta import parse_time
from scheduler import waiting_lines
from tests.builders import container, node, pod, pod_group, queue

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


def group(name, phase, condition=None, *, at="default"):
    conditions = [{"type": condition, "status": "True", "lastTransitionTime": LATER}] if condition else []
    status = {"phase": phase, "running": 1, "conditions": conditions}
    needed = {"cpu": "2", "x.y/gpu": "1"}
    return resources.POD_GROUPS, pod_group(name, 3, namespace=at, queue="small", minResources=needed, status=status)


@pytest.fixture
def filled(api):
    """A node, a queue with one above it, a group that runs and two that wait."""
    cluster_usage.forget()
    waiting_lines.forget()
    has = {"cpu": "8", "memory": "16Gi", "pods": "10", "x.y/gpu": "4"}
    bound = {"parent": "above", "weight": 3, "capability": {"cpu": "4", "x.y/gpu": "2"}}
    status = {"state": "Open", "pending": 1, "inqueue": 1, "running": 1}
    of_group = {"scheduling.k8s.io/group-name": "runs"}
    main = container(requests={"cpu": "1500m", "memory": "1Gi"})
    placed = {"nodeName": "n", "schedulerName": "volcano", "status": {"phase": "Running"}}
    made = [
        (resources.NODES, node("n", allocatable=has)),
        (resources.QUEUES, queue("root", "")),
        (resources.QUEUES, queue("above", "", weight=1)),
        (resources.QUEUES, queue("small", "", **bound, status=status)),
        group("runs", "Running", "Scheduled"),
        group("waits", "Inqueue", "Unschedulable"),
        group('odd"one', "Pending", at="other"),
        (resources.PODS, pod("p", main, annotations=of_group, **placed)),
    ]
    store.write(*(Create(*each) for each in made))
    yield api
    cluster_usage.forget()
    waiting_lines.forget()


@pytest.mark.shows("scheduler 4.3/volcano_queue_…", "queues 2.6/metrics")
def test_figures_of_queues_are_under_volcanos_names_and_in_its_units(filled):
    series = scraped(filled.get("/metrics").text)
    for name, value in {
        "allocated_milli_cpu": 1500, "allocated_memory_bytes": 2**30, "request_milli_cpu": 1500 + 2 * 2000, "weight": 3,
        "capacity_milli_cpu": 4000, "real_capacity_memory_bytes": 16 * 2**30, "overused": 0, "pod_group_pending_count": 1,
        "pod_group_inqueue_count": 1, "pod_group_running_count": 1, "pod_group_unknown_count": 0, "pod_group_completed_count": 0,
    }.items():  # fmt: skip
        assert of(series, f"queue_{name}", queue_name="small") == value, name
    assert of(series, "queue_allocated_milli_cpu", queue_name="above") == 1500
    assert of(series, "queue_allocated_scalar_resources", queue_name="small", resource="pods") == 1
    assert of(series, "queue_request_scalar_resources", queue_name="above", resource="x.y/gpu") == 2000
    assert 1500 < of(series, "queue_deserved_milli_cpu", queue_name="small") <= 4000
    assert 0 < of(series, "queue_share", queue_name="small") < 1
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
    refused = bob.get("/metrics").json()
    said = 'forbidden: User "bob" cannot get path "/metrics". It takes the role viewer'
    assert (refused["code"], refused["message"][: len(said)]) == (403, said)
    asked = {"spec": {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}}
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert [who.post(review, asked).json()["status"]["allowed"] for who in (filled, bob)] == [True, False]


def test_names_of_all_kinds_are_written_so_that_they_are_read_back():
    for text in ('a"b', "a\\b", "a\nb", "ä, b"):
        (found,) = scraped(f"# TYPE x gauge\n{sample('x', {'name': text, 'other': 'c'}, 1)}\n")
        written = dict(found[1])["name"]
        assert written.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\") == text
