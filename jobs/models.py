"""Operations: what somebody asked to be done to jobs, and what became of it for each job.

They live beside the log, as the audit does: the log tells what happened to the jobs, an operation what one person asked
and which answer each job gave. What is written here is written by `jobs.operations`.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from jobs.rules.actions import Result


class Operation(models.Model):
    """One action on one or many jobs. Times are epoch ms, 0 for what has not happened.

    A bulk operation is a draft until it is confirmed. Which jobs it is about is
    settled when the draft is made. It is over when each of its jobs has a result.
    """

    action = models.CharField(max_length=16)  # a name of `jobs.rules.actions`
    actor = models.CharField(max_length=350)
    # Whose rights are looked up anew for each batch; none are left when the account is deleted.
    # Of several clusters the first keeps the accounts, so a database cannot promise that there is one.
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
        """Whether there is something left to ask or to wait for."""
        return bool(self.confirmed) and not self.over


class OperationItem(models.Model):
    """One job of an operation: the uid is that of the job that was chosen, whoever has its name later."""

    operation = models.ForeignKey(Operation, on_delete=models.CASCADE, related_name="items", db_index=False)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=36)
    result = models.CharField(max_length=12, default=Result.WAITING.value)  # one of `Result`
    why = models.TextField(blank=True)
    marked = models.IntegerField(default=0)  # what `actions.mark` noted
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
