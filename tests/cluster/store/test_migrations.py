"""What was stored before a migration means the same after it."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection, connections

from cluster.models import Timer
from cluster.store import Create, records, store
from cluster.writes import Record
from kube.resources import JOBS, PODS
from kube.selector import parse_labels
from tests.cluster.store.conftest import database_opened
from volcano_ui import env

timer_kind = import_module("cluster.migrations.0007_timer_kind")
terms = import_module("cluster.migrations.0011_terms")
causes = import_module("cluster.migrations.0021_pod_causes")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("cursor", "key", "expected"),
    [
        pytest.param("jobs/0", "ttl:default/demo", ("ttl", "default/demo"), id="end of a finished job"),
        pytest.param("jobs/0", "more", ("more", ""), id="more jobs to plan"),
        pytest.param("jobs/0", "default/demo", ("retry", "default/demo"), id="job whose writes failed"),
        pytest.param("garbage/0", "owner:1-2-3", ("owner", "1-2-3"), id="owner that waits"),
        pytest.param("garbage/0", "gone:1-2-3", ("retry", "1-2-3"), id="owner that is gone"),
        pytest.param("namespaces/0", "namespace:a", ("look", "a"), id="namespace that is emptied"),
        pytest.param("namespaces/0", "gone:a", ("gone", "a"), id="namespace that is gone"),
        pytest.param("quotas/0", "default", ("count", "default"), id="namespace to count"),
        pytest.param("definitions/0", "jobs.example.com", ("ending", "jobs.example.com"), id="definition"),
        pytest.param("queues/0", "flush", ("flush", ""), id="queues' counters"),
        pytest.param("queues/0", "team", ("retry", "team"), id="queue whose write failed"),
        pytest.param("scheduler/0", "cycle", ("cycle", ""), id="next cycle"),
        pytest.param("nodes/0", "look", ("look", ""), id="nodes"),
    ],
)
def test_keys_of_timers_are_parted_into_kind_and_key(cursor, key, expected):
    timer = Timer.objects.create(cursor=cursor, key=key, due=1, payload={"a": 1})
    timer_kind.part(apps, connection.schema_editor())
    timer.refresh_from_db()
    assert (timer.kind, timer.key, timer.due, timer.payload) == (*expected, 1, {"a": 1})


@pytest.mark.django_db
def test_jobs_and_records_from_before_are_found_by_label_and_cause():
    state = {"phase": "Failed", "reason": "TooFewSucceeded"}
    metadata = {"name": "old", "namespace": "default", "labels": {"team": "vision", "a": "b"}}
    (job,) = store.write(Create(JOBS, {"metadata": metadata, "status": {"state": state}}))
    kept = Record(JOBS, "default", "gone", "u-1", "Failed", "", "", created=1, deleted=2, revision=1, object=job.body)
    records.put([kept])
    for table in ("object", "record"):
        connection.cursor().execute(f"UPDATE cluster_{table} SET trouble = '', terms = ''")
    terms.fill(apps, connection.schema_editor())
    asked = {"trouble": "TooFewSucceeded", "labels": parse_labels("team=vision,a").requirements}
    assert [each.name for each in store.find(JOBS, **asked)] == ["old"]
    assert [each.name for each in records.find(JOBS, limit=9, **asked)] == ["gone"]
    assert [each.terms for each in records.find(JOBS, limit=9)] == [JOBS.index(job.object).terms]


def waits(reason):
    return [{"name": "main", "state": {"waiting": {"reason": reason}}}]


@pytest.mark.django_db
def test_pods_from_before_are_found_by_the_cause_that_their_page_shows(monkeypatch):
    monkeypatch.setattr(causes, "BATCH", 2)
    ended = [{"name": "main", "state": {"terminated": {"exitCode": 1}}}]
    statuses = {
        "starts": {"phase": "Pending", "containerStatuses": waits("ContainerCreating")},
        "pulls": {"phase": "Pending", "containerStatuses": waits("ErrImagePull")},
        "loops": {"phase": "Running", "containerStatuses": waits("CrashLoopBackOff")},
        "dead": {"phase": "Running", "containerStatuses": ended},
        "failed": {"phase": "Failed", "containerStatuses": waits("CrashLoopBackOff")},
        "done": {"phase": "Succeeded"},
    }
    pods = [
        Create(PODS, {"metadata": {"name": name, "namespace": "default"}, "status": status})
        for name, status in statuses.items()
    ]
    store.write(*pods)
    expected = troubles()
    connection.cursor().execute("UPDATE cluster_object SET trouble = ''")
    raw = {"pulls": "ErrImagePull", "loops": "CrashLoopBackOff", "failed": "CrashLoopBackOff"}
    for name, reason in raw.items():
        connection.cursor().execute(
            "UPDATE cluster_object SET trouble = %s WHERE key = %s", [reason, f"pods/default/{name}"]
        )
    for _ in range(2):  # once more changes nothing
        causes.index(apps, connection.schema_editor())
        assert troubles() == expected
    assert expected["dead"] == "ContainersEnded"
    assert [each.name for each in store.find(PODS, trouble="ImageMissing")] == ["pulls"]


def troubles():
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, trouble FROM cluster_object WHERE resource = %s", [PODS.id])
        return dict(cursor.fetchall())


def test_a_database_is_migrated_by_itself_whatever_the_default_one_holds(tmp_path, monkeypatch, django_db_blocker):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    connections.databases["empty"] = env.database(tmp_path / "empty.sqlite3")
    connections.configure_settings(connections.databases)
    empty, usual = connections["empty"], connections["default"]
    connections["default"] = empty
    try:
        with django_db_blocker.unblock(), database_opened("another", env.database(tmp_path / "db.sqlite3")):
            assert "cluster_timer" in connections["another"].introspection.table_names()
            assert empty.introspection.table_names() == []
    finally:
        connections["default"] = usual
        empty.close()
        del connections["empty"], connections.databases["empty"]
