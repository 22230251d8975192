"""The tags that draw what every page shares: `{% load ui %}`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django import template
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from cluster import access
from dashboard.parts import phases, svg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest

register = template.Library()

THEMES = ("light", "dark")


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """Draw an icon of the sprite; without a label it is decoration and hidden from readers."""
    address = f"{static('build/icons.svg')}#{name}"
    if label:
        return format_html(
            '<svg class="icon" role="img" aria-label="{}"><title>{}</title><use href="{}"/></svg>',
            label,
            label,
            address,
        )
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}"/></svg>', address)


@register.simple_tag
def phase(word: str, detail: str = "") -> SafeString:
    """Draw a phase or state as icon, word and colour; detail becomes the hint."""
    shown = word or "Pending"
    look = phases.look(shown)
    return format_html(
        '<span class="phase" data-hue="{}" data-phase="{}" title="{}">{}{}</span>',
        look.hue,
        shown,
        detail or look.meaning,
        icon(look.icon),
        shown,
    )


@register.simple_tag
def phase_icon(word: str) -> SafeString:
    """Draw the icon of a phase alone, beside its word."""
    return icon(phases.look(word).icon)


@register.filter
def hue(word: str) -> str:
    """Return the hue of a phase, for what is drawn otherwise than `phase` does."""
    return phases.look(word).hue


@register.simple_tag
def moment(when: int | float | str | datetime | None, empty: str = "–", mode: str = "ago") -> SafeString:
    """Show a time: UTC on the server, relative and in the reader's zone in the browser.

    when is epoch milliseconds, an RFC 3339 text or a datetime. mode is `ago`
    (3 min ago), `since` (a running duration: 3 min), `until` (in 2 min 5 s) or `clock` (12:03:04). The text made here never depends on
    the present time, so that an unchanged row stays the same row.
    """
    parsed = _datetime(when)
    if parsed is None:
        return format_html('<span class="none">{}</span>', empty)
    iso = parsed.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return format_html(
        '<time datetime="{}" data-mode="{}">{}</time>', iso, mode, parsed.strftime("%Y-%m-%d %H:%M:%S UTC")
    )


def _datetime(when: int | float | str | datetime | None) -> datetime | None:
    if when is None or when == "":
        return None
    if isinstance(when, datetime):
        return when.astimezone(UTC)
    if isinstance(when, (int, float)):
        return datetime.fromtimestamp(when / 1000, UTC)
    try:
        return datetime.fromisoformat(when.replace("Z", "+00:00")).astimezone(UTC)
    except ValueError:
        return None


@register.filter
def part(parts: Mapping[str, str], name: str) -> SafeString:
    """One part of a topic, by its id."""
    return SafeString(parts[name])


@register.filter
def duration(milliseconds: int | float | None) -> str:
    """Say a length of time in its two largest units: 2 d 3 h, 4 min 5 s, 6 s."""
    if milliseconds is None:
        return "–"
    seconds = max(0, int(milliseconds // 1000))
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, seconds = divmod(rest, 60)
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    first = next((index for index, (count, _) in enumerate(units) if count), 3)
    said = [f"{count} {unit}" for count, unit in units[first : first + 2] if count]
    return " ".join(said) or "0 s"


@register.simple_tag
def bar(used: float, capacity: float, label: str) -> SafeString:
    """Draw used of capacity; the label is its text alternative."""
    return svg.bar(used, capacity, label)


@register.simple_tag
def swap() -> SafeString:
    """Attributes of a link that shows another view of the page's table without loading the page."""
    return SafeString('hx-boost="true" hx-target="#table" hx-select="#table" hx-swap="outerMorph"')


@register.simple_tag
def way(name: str, *arguments: str) -> str:
    """The address of a page, or nothing where there is no such page."""
    try:
        return reverse(name, args=arguments)
    except NoReverseMatch:
        return ""


@register.simple_tag(takes_context=True)
def theme(context: dict[str, Any]) -> str:
    """The theme that the reader chose, or nothing, which means the system's."""
    request: HttpRequest | None = context.get("request")
    chosen = request.COOKIES.get("theme", "") if request else ""
    return chosen if chosen in THEMES else ""


@register.simple_tag(takes_context=True)
def role(context: dict[str, Any]) -> str:
    """The strongest role that the reader holds anywhere; pages that it does not open are not offered."""
    request: HttpRequest | None = context.get("request")
    if request is None or not request.user.is_authenticated or request.user.pk is None:
        return ""
    return access.grants(access.of(request)).highest() or ""


@register.simple_tag(takes_context=True)
def nav(context: dict[str, Any], name: str, title: str, symbol: str, *more: str) -> SafeString:
    """One entry of the navigation, which stands for the pages below `name` and `more`."""
    try:
        addresses = [reverse(each) for each in (name, *more)]
    except NoReverseMatch:
        return SafeString("")
    path = _path(context)
    current = path == addresses[0] or any(each != "/" and path.startswith(each) for each in addresses)
    return format_html(
        '<a href="{}{}" class="nav-link"{}>{}<span>{}</span></a>',
        addresses[0],
        _namespace_query(context),
        SafeString(' aria-current="page"') if current else "",
        icon(symbol),
        title,
    )


@register.simple_tag(takes_context=True)
def tab(context: dict[str, Any], name: str, title: str) -> SafeString:
    """A list beside this one, among the tabs above both."""
    address = reverse(name)
    current = SafeString(' aria-current="page"') if _path(context) == address else ""
    return format_html('<a href="{}{}"{}>{}</a>', address, _namespace_query(context), current, title)


def _path(context: dict[str, Any]) -> str:
    request: HttpRequest | None = context.get("request")
    return "" if request is None else request.path


def _namespace_query(context: dict[str, Any]) -> SafeString:
    """Return the query by which another page is filtered by the namespace that this one is filtered by."""
    request: HttpRequest | None = context.get("request")
    chosen = "" if request is None else request.GET.get("namespace", "")
    return format_html("?{}", urlencode({"namespace": chosen})) if chosen else SafeString("")
