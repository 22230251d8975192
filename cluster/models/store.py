"""The store's tables: objects as they are, the log of how they came to be, and who has read how far.

An object's JSON is kept once, in the log row that wrote it; `Object` only points there and carries the columns by which
pages and controllers search. Everything but the definitions goes through `cluster.store` and
`cluster.consumers.consumer`.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q, Value


class Log(models.Model):
    """One row: the newest revision and the newest revision that retention removed."""

    head = models.BigIntegerField(default=0)
    compacted = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"revision {self.head}"


class Change(models.Model):
    """One write to one object. `previous` is the revision that it replaced, 0 for a creation."""

    revision = models.BigIntegerField(primary_key=True)
    resource = models.CharField(max_length=128)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=36)
    verb = models.CharField(max_length=8)
    previous = models.BigIntegerField()
    at = models.BigIntegerField()
    body = models.BinaryField()

    class Meta:
        indexes = [
            models.Index(fields=["at"], name="change_at"),
            models.Index(fields=["name", "namespace", "resource"], name="change_name"),
            models.Index(fields=["resource", "revision"], name="change_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.revision} {self.verb} {self.resource} {self.namespace}/{self.name}"


class Object(models.Model):
    """A living object: its key, its newest revision and the columns of `kube.resources.Index`.

    Two things are in migrations alone. Keys compare bytewise on every database: on PostgreSQL the column has that
    collation. And jobs have an index `object_listed` with all by which lists filter, count and sort, so that
    they read no object's row for it; `terms`, of any length, is in it on SQLite only, where an entry may be as long.
    Two more, `object_by_queue` and `object_by_creator`, have jobs in these orders.
    """

    key = models.CharField(primary_key=True, max_length=446)
    resource = models.CharField(max_length=128)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=36)
    revision = models.BigIntegerField(unique=True)
    created = models.BigIntegerField()
    phase = models.CharField(max_length=32)
    queue = models.CharField(max_length=253)
    node = models.CharField(max_length=253)
    owner = models.CharField(max_length=36)
    creator = models.CharField(max_length=350)
    trouble = models.CharField(max_length=64, default="", db_default="")
    terms = models.TextField(default="", db_default="")

    class Meta:
        indexes = [
            models.Index(fields=["trouble", "resource"], name="object_trouble", condition=~Q(trouble="")),
            models.Index(fields=["uid"], name="object_uid"),
            models.Index(fields=["resource", "namespace", "name"], name="object_name"),
            models.Index(fields=["resource", "created"], name="object_created"),
            models.Index(fields=["resource", "phase", "created"], name="object_phase"),
            models.Index(fields=["resource", "queue", "phase"], name="object_queue"),
            models.Index(fields=["node", "resource"], name="object_node", condition=~Q(node="")),
            models.Index(fields=["owner", "resource"], name="object_owner", condition=~Q(owner="")),
        ]

    def __str__(self) -> str:
        return self.key


class Ownership(models.Model):
    """Owner references beyond the controller's, which has a column of `Object`; each owner once."""

    key = models.CharField(max_length=446)
    owner = models.CharField(max_length=36, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "owner"], name="ownership_once")]

    def __str__(self) -> str:
        return f"{self.key} owned by {self.owner}"


class Cursor(models.Model):
    """How far one shard of one consumer has read.

    `generation` grows with every commit of the consumer and makes two processes that work on one shard exclude each
    other; `holder` is the worker process that leads until `held_until` (epoch ms). `handled` is what an earlier number
    of shards delivered beyond the position (`cluster.runtime.division`).
    """

    name = models.CharField(primary_key=True, max_length=80)
    position = models.BigIntegerField()
    generation = models.BigIntegerField(default=0)
    holder = models.CharField(max_length=200, default="")
    held_until = models.BigIntegerField(default=0)
    handled = models.JSONField(db_default=Value([], models.JSONField()))

    def __str__(self) -> str:
        return f"{self.name} at {self.position}"


class Timer(models.Model):
    """A key that a consumer wants to look at again at `due` (epoch ms), for the reason `kind`."""

    cursor = models.CharField(max_length=80)
    kind = models.CharField(max_length=40)
    key = models.CharField(max_length=600)
    due = models.BigIntegerField()
    payload = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cursor", "kind", "key"], name="timer_key")]
        indexes = [models.Index(fields=["cursor", "due"], name="timer_due")]

    def __str__(self) -> str:
        return f"{self.cursor} {self.kind} {self.key} at {self.due}"


class Refusal(models.Model):
    """What a consumer wants to write about `key` and cannot, while that goes on (`cluster.runtime.retries`).

    It was tried `tries` times since `since`, `error` says what stood against it the last time, and it is looked
    at again at `due`; times are in epoch ms.
    """

    consumer = models.CharField(max_length=40)
    key = models.CharField(max_length=600)
    since = models.BigIntegerField()
    tries = models.IntegerField()
    error = models.TextField()
    due = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["consumer", "key"], name="refusal_key")]

    def __str__(self) -> str:
        return f"{self.consumer} {self.key}: {self.error}"


class IdleRoomCheck(models.Model):
    """The last check of jobs that wait for room that nobody uses, as JSON (`cluster.runtime.idle_room`): one row."""

    found = models.TextField()

    def __str__(self) -> str:
        return self.found


class Record(models.Model):
    """What is kept of an object beyond its life: its last JSON and its history, which its own package folds.

    `revision` is the place in the log up to which the history tells everything; `deleted` (epoch ms) is 0
    while the object lives.
    """

    uid = models.CharField(primary_key=True, max_length=36)
    resource = models.CharField(max_length=128)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    phase = models.CharField(max_length=32)
    queue = models.CharField(max_length=253)
    creator = models.CharField(max_length=350)
    trouble = models.CharField(max_length=64, default="", db_default="")
    terms = models.TextField(default="", db_default="")
    created = models.BigIntegerField()
    deleted = models.BigIntegerField()
    revision = models.BigIntegerField()
    object = models.BinaryField()
    history = models.BinaryField()

    class Meta:
        indexes = [
            models.Index(fields=["resource", "namespace", "name"], name="record_name"),
            models.Index(fields=["resource", "created"], name="record_created", condition=Q(deleted__gt=0)),
            models.Index(fields=["deleted"], name="record_deleted", condition=Q(deleted__gt=0)),
        ]

    def __str__(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}"


class Decision(models.Model):
    """What the scheduler decided about a pod group; the fields are those of `cluster.writes.Decision`.

    nodes has a line for each node: its name and how many pods.
    """

    at = models.BigIntegerField()
    kind = models.CharField(max_length=16)
    reason = models.CharField(max_length=64)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    queue = models.CharField(max_length=253)
    pods = models.IntegerField()
    message = models.TextField()
    other = models.CharField(max_length=317)
    nodes = models.TextField()

    class Meta:
        indexes = [
            models.Index(fields=["namespace", "name", "id"], name="decision_group"),
            models.Index(fields=["queue", "id"], name="decision_queue"),
            models.Index(fields=["kind", "id"], name="decision_kind"),
            models.Index(fields=["at"], name="decision_at"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}: {self.reason}"
