"""Small charts as SVG text, rendered on the server: a bar, a stacked bar, a sparkline.

Sizes are SVG attributes and colours are CSS classes, because the content
security policy forbids style attributes. Every chart has a text alternative.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe


class Share(NamedTuple):
    """One piece of a stacked bar: its size, its hue and its label."""

    size: float
    hue: str
    label: str


def _percent(part: float, whole: float) -> float:
    return round(100 * min(max(part, 0), whole) / whole, 2) if whole > 0 else 0.0


def _svg(css: str, label: str, body: str, box: str = "") -> SafeString:
    view = f' viewBox="{box}" preserveAspectRatio="none"' if box else ""
    # The label is escaped, and the body has only numbers and our own class names.
    return mark_safe(  # noqa: S308
        f'<svg class="{css}" role="img" aria-label="{escape(label)}"{view}><title>{escape(label)}</title>{body}</svg>'
    )


def bar(used: float, capacity: float, label: str, *, reserved: float = 0) -> SafeString:
    """Draw `used` of `capacity`: amber from 85 % on, red above 100 %, and pale beside it what is reserved for others.

    A capacity of 0 or less means that there is no limit: the bar is empty, and only the label has the amount.
    """
    share = _percent(used, capacity)
    level = "over" if used > capacity > 0 else "high" if share >= 85 else "normal"
    body = f'<rect class="bar-track" width="100%" height="100%" rx="3"/><rect class="bar-fill" data-level="{level}" width="{share:g}%" height="100%" rx="3"/>'
    if beside := _percent(min(reserved, capacity - used), capacity):
        body += f'<rect class="bar-kept" x="{share:g}%" width="{beside:g}%" height="100%"/>'
    return _svg("bar", label, body)


def stack(shares: Iterable[Share], whole: float = 0, label: str = "", *, marks: Iterable[float] = ()) -> SafeString:
    """Draw shares side by side; `whole` is the full width, by default their sum, `label` replaces the list of the numbers.

    `marks` are sizes at which a line crosses the bar.
    """
    pieces = [share for share in shares if share.size > 0]
    width = max(whole, sum(share.size for share in pieces))
    label = label or ", ".join(f"{share.size:g} {share.label}" for share in pieces) or "nothing"
    body = ['<rect class="bar-track" width="100%" height="100%"/>']
    start = 0.0
    for share in pieces:
        length = _percent(share.size, width)
        body.append(
            f'<rect class="bar-share" data-hue="{escape(share.hue)}" x="{start:g}%" width="{length:g}%" height="100%"/>'
        )
        start = round(start + length, 2)
    for mark in marks:
        at = _percent(mark, width)
        body.append(f'<line class="bar-mark" x1="{at:g}%" x2="{at:g}%" y1="0" y2="100%"/>')
    return _svg("bar", label, "".join(body))


def plain_stack(shares: Sequence[Share], whole: float) -> str:
    """Draw shares side by side, without a label, for a row that has them as text; the rest of the whole is the track."""
    width = max(whole, sum(share.size for share in shares))
    body, start = [], 0.0
    for share in shares:
        length = _percent(share.size, width)
        if length:
            at = f' x="{start:g}%"' if start else ""
            body.append(f'<rect data-hue={share.hue}{at} width="{length:g}%"/>')
        start = round(start + length, 2)
    return f"<svg class=bar>{''.join(body)}</svg>"


def sparkline(values: Sequence[float], label: str) -> SafeString:
    """Draw values from left to right on a scale that begins at 0."""
    top = max(values, default=0) or 1
    step = 100 / max(len(values) - 1, 1)
    points = " ".join(f"{index * step:.2f},{29 - 28 * max(value, 0) / top:.2f}" for index, value in enumerate(values))
    if not points:
        return _svg("spark", label, "", "0 0 100 30")
    body = (
        f'<polygon class="spark-area" points="0,30 {points} 100,30"/><polyline class="spark-line" points="{points}"/>'
    )
    return _svg("spark", label, body, "0 0 100 30")
