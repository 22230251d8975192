"""The menu in the header with links to the other clusters, and the state of each."""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve
from django.utils.safestring import SafeString

from cluster import clock
from cluster.several import addresses, reports
from dashboard import live
from dashboard.live import Parts, TopicRequest
from dashboard.parts.cluster_strip import LOOK_AGAIN_MS, LOOKS

TOPIC = "clusters"
NOT_EVERYWHERE = frozenset({"dashboard:connect"})  # pages of the embedded cluster alone
WAYS = {
    "embedded": "on this machine",
    "read-only": "read-only",
    "beside": "beside Volcano",
    "in-place": "in Volcano's place",
}


class Choice(NamedTuple):
    """A cluster in the menu: the address of the reader's page there, whether it is this cluster, and its state as HTML."""

    name: str
    address: str
    is_here: bool
    state: SafeString


def choices(request: HttpRequest) -> list[Choice]:
    """Return the clusters in the order of the setting; none if there is one only."""
    path = request.path
    if request.method not in ("GET", "HEAD"):
        # A form is about this cluster, and its address may not be a page.
        path = f"{path.rstrip('/').rpartition('/')[0]}/"
    return [
        Choice(each.name, _address(request, path, each.name), each == settings.CLUSTER, _state(each.name))
        for each in settings.CLUSTERS
    ]


def _address(request: HttpRequest, path: str, name: str) -> str:
    there = addresses.counterpart(path, settings.PREFIX, addresses.prefix(name), _is_page)
    is_same_page = there.removeprefix(f"/{addresses.prefix(name)}") == path.removeprefix(f"/{settings.PREFIX}")
    query = request.META.get("QUERY_STRING", "") if is_same_page else ""
    return f"{there}?{query}" if query else there


def _is_page(path: str) -> bool:
    """Return whether a path is that of a page without an object, which each cluster has."""
    try:
        match = resolve(path)
    except Resolver404:
        return False
    return not match.kwargs and match.view_name not in NOT_EVERYWHERE


def _state(name: str) -> SafeString:
    report = reports.judge(reports.read(reports.folder(settings.STATE), name), clock.milliseconds())
    context = {"name": name, "report": report, "appearance": LOOKS[report.word], "way": WAYS.get(report.way, "")}
    return render_to_string("partials/_cluster_state.html", context)


@live.topic(TOPIC)
def switch_topic(request: TopicRequest) -> Parts:
    """The state of each cluster, for everybody who is logged in."""
    parts = {f"state-of-cluster-{each.name}": _state(each.name) for each in settings.CLUSTERS}
    return Parts(parts, again=clock.milliseconds() + LOOK_AGAIN_MS)
