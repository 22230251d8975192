"""A queue's part of the cluster, resource by resource: guaranteed, deserved, used, borrowed and waited for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django.utils.safestring import SafeString

from dashboard.parts import svg, usage_bar
from kube import amounts
from queues.rules.shares import FairShare

WORDS = ("guaranteed", "deserved", "used", "borrowed", "waited for")


class Row(NamedTuple):
    """One resource, in words and as a bar; "" stands for no guarantee, and for no limit.

    Computed amounts (deserved, borrowed) are rounded, all others are exact.
    """

    title: str
    bar: SafeString
    guarantee: str
    deserved: str
    used: str
    borrowed: str
    pending: str
    most: str


def rows(share: FairShare, pending: Mapping[str, int], limits: Mapping[str, int]) -> list[Row]:
    """Return a row for each resource that a queue uses, deserves or waits for, the usual ones first.

    `pending` is the sum of the minima that wait in the queue and below it, `limits` the most that it may use.
    """
    named = {**share.deserved, **pending}
    return [_row(share, each.resource, pending, limits) for each in usage_bar.table(share.used, named)]


def summary(share: FairShare, pending: Mapping[str, int], waiting: int) -> str:
    """Return a sentence about the resource of which the queue uses the largest part of what it deserves.

    `waiting` is how many pod groups wait in the queue and below it, whatever their minima ask for.
    """
    name = share.resource
    if not name:
        return "It deserves nothing: what it uses is borrowed."
    used, due = share.used.get(name, 0), share.deserved.get(name, 0)
    use = f"It uses {amounts.show(name, used)} of the {amounts.about(name, due)} that it deserves"
    if borrowed := share.borrowed(name):
        use = f"It uses {amounts.show(name, used)}, {amounts.about(name, borrowed)} more than it deserves"
    if demand := pending.get(name, 0):
        return f"{use}; jobs that wait ask for {amounts.show(name, demand)}."
    if waiting:
        groups = "1 pod group waits" if waiting == 1 else f"{waiting} pod groups wait"
        return f"{use}; {groups}, with a minimum that names no {usage_bar.TITLES.get(name, name)}."
    return f"{use}; nobody waits for more."


def _row(share: FairShare, name: str, pending: Mapping[str, int], limits: Mapping[str, int]) -> Row:
    used, due, borrowed = share.used.get(name, 0), share.deserved.get(name, 0), share.borrowed(name)
    guaranteed, waiting = share.guaranteed.get(name, 0), pending.get(name, 0)
    plain = usage_bar.plain
    texts = (
        plain(name, guaranteed) if guaranteed else "",
        _about(name, due),
        plain(name, used),
        _about(name, borrowed),
        plain(name, waiting),
    )
    each_of = zip((guaranteed, due, used, borrowed, waiting), texts, WORDS, strict=True)
    label = ", ".join(f"{text} {word}" for amount, text, word in each_of if amount)
    title = usage_bar.TITLES.get(name, name)
    pieces = [
        svg.Share(used - borrowed, "blue", "within what it deserves"),
        svg.Share(borrowed, "amber", "borrowed"),
        svg.Share(waiting, "grey", "waited for"),
    ]
    marks = [each for each in (guaranteed, due) if each]
    drawn = svg.stack(pieces, max(limits.get(name, 0), due), f"{title}: {label or 'nothing'}", marks=marks)
    return Row(title, drawn, *texts, most=plain(name, limits[name]) if name in limits else "")


def _about(name: str, amount: int) -> str:
    """Return a computed amount, rounded and without the resource's name."""
    return amounts.about(name, amount).rpartition(" ")[0]
