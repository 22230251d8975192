"""A queue's part of the cluster, resource by resource: what is kept for it, deserved, used, borrowed and waited for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django.utils.safestring import SafeString

from dashboard.parts import svg, usage_bar
from kube import amounts
from queues.rules.shares import FairShare

WORDS = ("guaranteed", "deserved", "used", "borrowed", "waited for")


class Row(NamedTuple):
    """One resource, in words and as a bar; "" stands for no guarantee, and for no limit of its own.

    What was reckoned is written as exactly as it matters, everything else as it is.
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
    """Return a row for each resource of which a queue has or wants something, the usual ones first.

    pending is what the minima of those ask for that wait in the queue and below it, limits the most that it may use.
    """
    wanted = {**share.deserved, **pending}
    return [_row(share, each.resource, pending, limits) for each in usage_bar.table(share.used, wanted)]


def said(share: FairShare, pending: Mapping[str, int], waiting: int) -> str:
    """Return in a sentence how the queue stands with the resource of which it uses most of what it deserves.

    waiting is how many wait in the queue and below it, whatever their minima ask for.
    """
    name = share.resource
    if not name:
        return "It deserves nothing: what it uses is borrowed."
    used, due = share.used.get(name, 0), share.deserved.get(name, 0)
    told = f"It uses {amounts.show(name, used)} of the {amounts.about(name, due)} that it deserves"
    if borrowed := share.borrowed(name):
        told = f"It uses {amounts.show(name, used)}, {amounts.about(name, borrowed)} more than it deserves"
    if asked := pending.get(name, 0):
        return f"{told}; jobs that wait ask for {amounts.show(name, asked)}."
    if waiting:
        groups = "1 pod group waits" if waiting == 1 else f"{waiting} pod groups wait"
        return f"{told}; {groups}, with a minimum that names no {usage_bar.TITLES.get(name, name)}."
    return f"{told}; nobody waits for more."


def _row(share: FairShare, name: str, pending: Mapping[str, int], limits: Mapping[str, int]) -> Row:
    used, due, borrowed = share.used.get(name, 0), share.deserved.get(name, 0), share.borrowed(name)
    kept, asked = share.guaranteed.get(name, 0), pending.get(name, 0)
    plain = usage_bar.plain
    told = (
        plain(name, kept) if kept else "",
        _about(name, due),
        plain(name, used),
        _about(name, borrowed),
        plain(name, asked),
    )
    each_of = zip((kept, due, used, borrowed, asked), told, WORDS, strict=True)
    label = ", ".join(f"{text} {word}" for amount, text, word in each_of if amount)
    title = usage_bar.TITLES.get(name, name)
    pieces = [
        svg.Share(used - borrowed, "blue", "within what it deserves"),
        svg.Share(borrowed, "amber", "borrowed"),
        svg.Share(asked, "grey", "waited for"),
    ]
    marks = [each for each in (kept, due) if each]
    drawn = svg.stack(pieces, max(limits.get(name, 0), due), f"{title}: {label or 'nothing'}", marks=marks)
    return Row(title, drawn, *told, most=plain(name, limits[name]) if name in limits else "")


def _about(name: str, amount: int) -> str:
    """An amount that was reckoned, without the resource's name."""
    return amounts.about(name, amount).rpartition(" ")[0]
