"""How far the mirror of another cluster is: empty where the cluster is embedded."""

from __future__ import annotations

from django.db import models


class MirroredCluster(models.Model):
    """The one cluster that this store mirrors.

    `uid` is that of its namespace kube-system, by which a cluster is told from another one at the same address; ""
    until it was read. Times are in epoch ms: it was last `heard`, and is `away` since, 0 while it answers.

    `way` is in-place where our controllers work on it, otherwise "". There one installation of these pages works at a time (`cluster.remote.leader_election.lease`):
    `identity` is this one's name, `leader` who leads, `term` this one's leadership ("" while it has none), which lasts until
    `leads_until`, and `hindrance` says why it does not lead. `webhooks` says what keeps our webhooks from being asked there.
    """

    server = models.CharField(max_length=400)
    uid = models.CharField(max_length=36, default="")
    heard = models.BigIntegerField(default=0)
    away = models.BigIntegerField(default=0)
    reason = models.TextField(default="")
    way = models.CharField(max_length=16, default="")
    identity = models.CharField(max_length=100, default="")
    leader = models.CharField(max_length=253, default="")
    term = models.CharField(max_length=100, default="")
    leads_until = models.BigIntegerField(default=0)
    hindrance = models.TextField(default="")
    webhooks = models.TextField(default="")

    def __str__(self) -> str:
        return self.server


class ProgramsLease(models.Model):
    """Which of several `up`s on this database runs what there may be one of (`cluster.remote.leader_election.standby`).

    `holder` is its name, "" when nobody does; `term` grows with each holder, `renewals` with each renewal.
    """

    holder = models.CharField(max_length=200, default="")
    term = models.BigIntegerField(default=0)
    renewals = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.holder} in term {self.term}"


class Outgoing(models.Model):
    """A group of writes that a consumer's shard has planned, by its cursor, and of which the cluster has not answered all.

    `term` tells under which leadership it was planned (`cluster.remote.leader_election.lease`), `body` is what
    `cluster.remote.http.encoding` makes of a group. Those of a cursor are one plan, in the order of their ids.
    `commands_seen` says that the Commands which the group deletes were in the cluster after it was planned; before that nothing is sent.
    """

    cursor = models.CharField(max_length=64, db_index=True)
    term = models.CharField(max_length=100)
    body = models.BinaryField()
    commands_seen = models.BooleanField(default=True, db_default=True)

    def __str__(self) -> str:
        return f"{self.cursor} {self.pk}"


class MirroredKind(models.Model):
    """How far the mirror of one kind is.

    A watch goes on after `version`, the newest resourceVersion whose changes are all in the store; "" asks for a
    list. `anew` says that the cluster's versions cannot be compared with those stored. `phase` is one of
    `cluster.remote.mirroring.reflection.Phase`, `since` (epoch ms), for the `reason`; `objects` counts while it loads.
    """

    resource = models.CharField(primary_key=True, max_length=128)
    version = models.CharField(max_length=64, default="")
    anew = models.BooleanField(default=False)
    phase = models.CharField(max_length=16)
    since = models.BigIntegerField()
    reason = models.TextField(default="")
    objects_read = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.resource} {self.phase}"
