"""The tags and filters of every page: `{% load ui %}`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django import template
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from cluster import access
from cluster.version import VERSION
from dashboard.parts import cluster_strip as strip
from dashboard.parts import cluster_switch as switch
from dashboard.parts import drafts, phases, svg
from dashboard.parts import refusals as refusal_list
from kube import resources
from kube.errors import ServiceUnavailable
from kube.meta import duration_words, short_duration_words

register = template.Library()

THEMES = ("light", "dark")


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """Draw an icon of the sprite; without a label it is decoration, and hidden from screen readers."""
    address = f"{_sprite()}#{name}"
    if label:
        return format_html(
            '<svg class="icon" role="img" aria-label="{}"><title>{}</title><use href="{}"/></svg>',
            label,
            label,
            address,
        )
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}"/></svg>', address)


@cache
def _sprite() -> str:
    return static("build/icons.svg")


@register.simple_tag
def command(name: str) -> str:
    """Return a command as people type it on the server: `make loginlink` or, installed from a wheel, `volcano-ui loginlink`."""
    return {"up": settings.UP_COMMAND, "loginlink": settings.LOGIN_COMMAND}.get(
        name, f"{settings.MANAGE_COMMAND} {name}"
    )


@register.simple_tag
def version() -> str:
    """Return the version of this program."""
    return VERSION


@register.simple_tag
def logins() -> dict[str, Any]:
    """Return the ways to log in: `passwords`, and `provider`, the name of the OpenID Connect provider or ""."""
    return {"passwords": settings.PASSWORD_LOGIN, "provider": settings.OIDC_NAME}


@register.simple_tag(takes_context=True)
def draft(context: Mapping[str, Any], of: str, which: str = "") -> SafeString:
    """Make a form's text a draft that the browser stores; `of` and `which` say what it is a draft of."""
    name = f"{of} {which}".strip()
    return format_html('data-draft="{}" data-draft-id="{}"', name, drafts.sent(context["request"]))


@register.simple_tag
def phase(word: str, detail: str = "") -> SafeString:
    """Draw a phase or state as icon, word and colour; `detail` becomes the tooltip."""
    text = word or "Pending"
    appearance = phases.appearance(text)
    return format_html(
        '<span class="phase" data-hue="{}" data-phase="{}" title="{}">{}{}</span>',
        appearance.hue,
        text,
        detail or appearance.meaning,
        icon(appearance.icon),
        text,
    )


@register.simple_tag
def phase_icon(word: str) -> SafeString:
    """Draw the icon of a phase alone, beside its word."""
    return icon(phases.appearance(word).icon)


@register.filter
def hue(word: str) -> str:
    """Return the hue of a phase, for elements other than those of `phase`."""
    return phases.appearance(word).hue


@register.simple_tag
def moment(when: int | float | str | datetime | None, empty: str = "–", mode: str = "ago") -> SafeString:
    """Show a time: UTC on the server, relative and in the reader's zone in the browser.

    `when` is epoch ms, an RFC 3339 text or a datetime. `mode` is `ago` (3 min ago), `since` (a running duration: 3 min),
    `until` (in 2 min 5 s) or `clock` (12:03:04). The text does not depend on the present time, so that an unchanged row
    stays the same row.
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
    """Return a duration in words: 2 d 3 h, 4 min 5 s, 6 s."""
    return "–" if milliseconds is None else duration_words(milliseconds)


@register.filter
def short_duration(milliseconds: float | None) -> str:
    """Return a duration that is often below a second in words: 40 ms, 1.2 s, 12 s, 3 min 4 s."""
    return "–" if milliseconds is None else short_duration_words(milliseconds)


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
    """The address of a page, "" if there is no such page."""
    try:
        return reverse(name, args=arguments)
    except NoReverseMatch:
        return ""


@register.simple_tag(takes_context=True)
def theme(context: dict[str, Any]) -> str:
    """The theme that the reader chose, "" for the system's."""
    request: HttpRequest | None = context.get("request")
    chosen = request.COOKIES.get("theme", "") if request else ""
    return chosen if chosen in THEMES else ""


@register.simple_tag(takes_context=True)
def lists(context: dict[str, Any], resource: str) -> bool:
    """Whether the reader may list a resource (by its id) in some namespace; other pages are not linked."""
    request: HttpRequest | None = context.get("request")
    if request is None or not request.user.is_authenticated or request.user.pk is None:
        return False
    try:
        return access.somewhere(access.of(request), "list", resource)
    except ServiceUnavailable:  # the rights in another cluster cannot be read now; the page itself says so
        return False


@register.simple_tag(takes_context=True)
def own_origin(context: dict[str, Any]) -> str:
    """The origin of the page's request, by which `dashboard.live.origins` judges sockets; "" if its host is not ours."""
    request: HttpRequest | None = context.get("request")
    try:
        return f"{request.scheme}://{request.get_host()}" if request is not None else ""
    except DisallowedHost:
        return ""


@register.simple_tag
def cluster_state() -> str:
    """The name of the cluster's state directory, "" for the embedded one: browsers store drafts for each cluster apart."""
    return settings.DATA.name if settings.TARGET else ""


@register.simple_tag
def cluster_strip() -> SafeString:
    """The strip with the name and freshness of a cluster with an API of its own; nothing for the embedded one."""
    return strip.html()


@register.inclusion_tag("partials/_cluster_switch.html", takes_context=True)
def cluster_switch(context: dict[str, Any]) -> dict[str, Any]:
    """The menu with links to the same page of other clusters; empty if there is one cluster only."""
    request: HttpRequest | None = context.get("request")
    choices = [] if request is None else switch.choices(request)
    return {"choices": choices, "here": settings.CLUSTER_NAME}


@register.simple_tag
def refusals(kind: str, namespace: str, name: str, revision: int) -> SafeString:
    """The refused writes about an object of a kind (a resource's id); an empty container if there are none."""
    return refusal_list.html(resources.by_id(kind), namespace, name, revision)


@register.simple_tag(takes_context=True)
def nav(context: dict[str, Any], name: str, title: str, symbol: str, *more: str) -> SafeString:
    """One entry of the navigation, for the pages below the addresses of `name` and `more`."""
    try:
        addresses = [_address(each) for each in (name, *more)]
    except NoReverseMatch:
        return SafeString("")
    path, top = _path(context), _address("dashboard:overview")
    current = path == addresses[0] or any(each != top and path.startswith(each) for each in addresses)
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
    """One tab, a link to a list beside this one."""
    address = _address(name)
    current = SafeString(' aria-current="page"') if _path(context) == address else ""
    return format_html('<a href="{}{}"{}>{}</a>', address, _namespace_query(context), current, title)


@cache
def _address(name: str) -> str:
    """Return the address of a page without parameters."""
    return reverse(name)


def _path(context: dict[str, Any]) -> str:
    request: HttpRequest | None = context.get("request")
    return "" if request is None else request.path


def _namespace_query(context: dict[str, Any]) -> SafeString:
    """Return the query that filters another page by this page's namespace."""
    request: HttpRequest | None = context.get("request")
    chosen = "" if request is None else request.GET.get("namespace", "")
    return format_html("?{}", urlencode({"namespace": chosen})) if chosen else SafeString("")
