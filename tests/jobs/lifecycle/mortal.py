"""The job controller in a process that may die, before any statement or with the last of its transaction."""

from __future__ import annotations

from cluster.runtime import registry
from cluster.runtime.consumer import Runner
from jobs.controller.job_controller import JobConsumer

STATEMENTS = ("SELECT", "INSERT", "UPDATE", "DELETE")


class Killed(BaseException):
    """The process is dead: nothing that it would have done is done."""


class Mortal(Runner):
    dies_uncommitted = False
    interrupted_by = None  # what somebody does between the plan and its commit

    def __init__(self):
        super().__init__(registry.get("jobs"), 0, JobConsumer())

    def _commit(self, cursor, plan, timers, now):
        interrupted_by, self.interrupted_by = self.interrupted_by, None
        if interrupted_by is not None:
            interrupted_by()
        super()._commit(cursor, plan, timers, now)

    def _conclude(self, groups, outcomes, now):
        """The last that is written in the transaction."""
        following = super()._conclude(groups, outcomes, now)
        if self.dies_uncommitted:
            raise Killed
        return following


class Doom:
    """Has a process die before a statement: the one of that number that it executes."""

    def __init__(self, at):
        self.left = at

    def __call__(self, execute, sql, params, many, context):
        if sql.startswith(STATEMENTS):
            self.left -= 1
            if self.left < 0:
                raise Killed
        return execute(sql, params, many, context)
