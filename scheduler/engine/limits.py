"""Causes in which a queue's ceiling, or what is guaranteed to others, stands in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.engine.cause import Cause, Reason

if TYPE_CHECKING:
    from scheduler.engine.accounts import Account


def most_of(own: Account, account: Account, column: int) -> int:
    """Return how much of a column the ceiling of `account` would let pods of `own` use if nobody else used any."""
    return next(most for each, most in own.limits(column) if each is account)


def limit_cause(
    own: Account, account: Account, column: int, resource: str, requested: int, left: int
) -> Cause:
    """Return the cause when pods of `own` want more of a resource than is left under the ceiling of `account`.

    Guarantees of others are to blame where the pods would fit without them.
    """
    keepers = own.keepers(column, account)
    kept = sum(amount for _, amount in keepers)
    by_guarantees = kept > 0 and left + kept >= requested
    return Cause(
        Reason.QUEUE_GUARANTEES if by_guarantees else Reason.QUEUE_LIMIT,
        queue=account.name,
        resource=resource,
        requested=requested,
        free=left,
        whole=account.ceiling[column],
        keepers=tuple((each.name, amount) for each, amount in keepers) if by_guarantees else (),
    )


def never_cause(account: Account, column: int, resource: str, requested: int, most: int) -> Cause:
    """Return the cause when pods want more of a resource than the ceiling of an account can ever let them have."""
    by_guarantees = requested <= account.ceiling[column]
    return Cause(
        Reason.QUEUE_GUARANTEES if by_guarantees else Reason.QUEUE_TOO_SMALL,
        never=True,
        queue=account.name,
        resource=resource,
        requested=requested,
        free=max(most, 0),
        whole=account.ceiling[column],
    )
