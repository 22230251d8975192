"""Causes in which a queue's ceiling, or the guarantees of other queues, are in the way."""

from __future__ import annotations

from scheduler.engine.accounts import Account
from scheduler.engine.cause import Cause, Reason, listed


def most_of(own: Account, account: Account, column: int) -> int:
    """Return how much of a column the ceiling of `account` would let pods of `own` use if nobody else used any."""
    return next(most for each, most in own.limits(column) if each is account)


def limit_cause(own: Account, account: Account, column: int, resource: str, requested: int, left: int) -> Cause:
    """Return the cause when pods of `own` want more of a resource than is left under the ceiling of `account`.

    Guarantees of others are to blame where the pods would fit without them.
    """
    keepers = own.keepers(column, account)
    guaranteed = sum(amount for _, amount in keepers)
    by_guarantees = guaranteed > 0 and left + guaranteed >= requested
    by_ceiling = Reason.QUEUE_LIMIT if account is own else Reason.PARENT_LIMIT
    return Cause(
        Reason.QUEUE_GUARANTEES if by_guarantees else by_ceiling,
        queue=account.name,
        resource=resource,
        requested=requested,
        free=left,
        whole=account.ceiling[column],
        keepers=listed((each.name, amount) for each, amount in keepers) if by_guarantees else (),
    )


def never_cause(own: Account, account: Account, column: int, resource: str, requested: int, most: int) -> Cause:
    """Return the cause when pods of `own` want more of a resource than the ceiling of `account` can ever let them have."""
    by_guarantees = requested <= account.ceiling[column]
    by_ceiling = Reason.QUEUE_TOO_SMALL if account is own else Reason.PARENT_TOO_SMALL
    return Cause(
        Reason.QUEUE_GUARANTEES if by_guarantees else by_ceiling,
        never=True,
        queue=account.name,
        resource=resource,
        requested=requested,
        free=max(most, 0),
        whole=account.ceiling[column],
    )


def beyond_deserved(own: Account, column: int, requested: int) -> Account | None:
    """Return the nearest queue, from `own` upwards, that with `requested` more would use more of a column than it deserves.

    None where no queue beside it deserves any, as then the cluster is full, and where a ceiling is in the way as well. A queue that
    deserves it takes it back from others (`scheduler.victims.reclaim`); one that does not waits for what they leave.
    """
    for account in own.line:
        if account.parent is None:
            return None
        due, after = account.deserved[column], account.used[column] + requested
        if after > account.ceiling[column]:
            return None
        if due < account.parent.deserved[column] and after > due:
            return account
    return None
