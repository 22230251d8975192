"""What `up` prints about running pods when it is stopped."""

from __future__ import annotations

from collections.abc import Sequence

from node.leftovers import AtStop
from volcano_ui import env

MAX_PODS_NAMED = 3


def begin_message(running: AtStop, pods: Sequence[str]) -> str:
    """Return the line for the beginning of a stop; `pods` are those that run."""
    if not pods:
        return "Stopping."
    match running:
        case AtStop.LEAVE:
            return f"Stopping; {_named(pods)} {_plural(pods, 'goes', 'go')} on."
        case AtStop.WAIT:
            return (
                f"Stopping once {_named(pods)} {_plural(pods, 'has', 'have')} ended; nothing new begins meanwhile."
                " Ctrl-C once more stops now and leaves what runs."
            )
        case AtStop.END:
            return f"Stopping, and ending {_named(pods)}; their jobs run them again at the next start."


def end_message(running: AtStop, pods: Sequence[str], took: str, holder: int = 0) -> str:
    """Return the line for the end of a stop.

    `pods` are those that still run, `took` is the time in parentheses, `holder` is the pid of the process that holds
    the ports meanwhile, 0 if there is none.
    """
    if not pods:
        return f"✓ everything is stopped {took}"
    if running is AtStop.END:
        return f"✗ stopped {took}, but {_named(pods)} could not be ended; the next start sees to that."
    goes_on = f"{_named(pods)} {_plural(pods, 'goes', 'go')} on"
    port_holder = (
        f" Process {holder} holds the ports until then, or until no pod runs, so that none can answer there."
        if holder
        else ""
    )
    return f"✓ stopped {took}; {goes_on} until the next start takes over.{port_holder} Where pods are to end: {env.up_command(RUNNING='end')}"


def _named(pods: Sequence[str]) -> str:
    names = ", ".join(pods[:MAX_PODS_NAMED])
    more = f" and {len(pods) - MAX_PODS_NAMED} more" if len(pods) > MAX_PODS_NAMED else ""
    return f"{len(pods)} running {_plural(pods, 'pod', 'pods')} ({names}{more})"


def _plural(pods: Sequence[str], one: str, several: str) -> str:
    return one if len(pods) == 1 else several
