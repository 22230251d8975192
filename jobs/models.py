"""Operations: an action that somebody requested on jobs, and its result for each job.

Like the audit, they are stored beside the log: the log records what happened to the jobs, an operation what one person
requested and the result of each job. `jobs.operations` writes them.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from jobs.rules.actions import Result


class Operation(models.Model):
    """One action on one or many jobs. Times are epoch ms; 0 means that it has not happened.

    A bulk operation is a draft until it is confirmed. Its jobs are fixed when
    the draft is made. It is over when each of its jobs has a result.
    """

    action = models.CharField(max_length=16)  # a name of `jobs.rules.actions`
    actor = models.CharField(max_length=350)
    # The account whose rights are checked for each batch; a deleted account has none.
    # Only the first of several clusters stores the accounts, so the database cannot enforce the foreign key.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", db_constraint=False
    )
    is_bulk = models.BooleanField()
    chosen_by = models.TextField(blank=True)  # how the jobs were chosen, in words
    total = models.IntegerField()
    drafted = models.BigIntegerField()
    confirmed = models.BigIntegerField(default=0)
    stopped = models.BigIntegerField(default=0)
    stopped_by = models.CharField(max_length=350, blank=True)
    over = models.BigIntegerField(default=0)

    class Meta:
        indexes = [
            models.Index(fields=["id"], name="operation_open", condition=Q(over=0) & ~Q(confirmed=0)),
            models.Index(fields=["actor", "drafted"], name="operation_actor"),
            models.Index(fields=["drafted"], name="operation_drafted"),
        ]

    def __str__(self) -> str:
        return f"{self.action} of {self.total} jobs by {self.actor}"

    @property
    def is_draft(self) -> bool:
        return not self.confirmed

    @property
    def is_running(self) -> bool:
        """Whether it is confirmed and not over yet."""
        return bool(self.confirmed) and not self.over


class OperationItem(models.Model):
    """One job of an operation. uid identifies the chosen job, even if another takes its name later."""

    operation = models.ForeignKey(Operation, on_delete=models.CASCADE, related_name="items", db_index=False)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=36)
    result = models.CharField(max_length=12, default=Result.WAITING.value)  # one of `Result`
    why = models.TextField(blank=True)
    marked = models.IntegerField(default=0)  # the result of `actions.mark`
    asked = models.BigIntegerField(default=0)
    settled = models.BigIntegerField(default=0)

    class Meta:
        indexes = [
            models.Index(fields=["operation", "result", "id"], name="item_result"),
            models.Index(fields=["uid", "asked"], name="item_uid"),
        ]
        constraints = [models.UniqueConstraint(fields=["operation", "uid"], name="item_once")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}: {self.result}"

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
