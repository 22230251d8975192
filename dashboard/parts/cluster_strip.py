"""The strip below the navigation: which cluster with an API of its own the pages show, and how fresh that is."""

from __future__ import annotations

from typing import NamedTuple

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from cluster import clock
from cluster.remote import freshness
from cluster.remote.door import server
from cluster.remote.freshness import State
from cluster.remote.mirroring.ways import Way
from dashboard import live
from dashboard.live import Parts, TopicRequest

TOPIC = "cluster"
LOOK_AGAIN_MS = 2000


class Appearance(NamedTuple):
    """The icon's name in the sprite and the hue of tokens.css."""

    icon: str
    hue: str


LOOKS = {
    State.LIVE: Appearance("radio", "green"),
    State.PARTLY: Appearance("triangle-alert", "amber"),
    State.LOADING: Appearance("loader-circle", "blue"),
    State.AWAY: Appearance("unplug", "red"),
    State.REFUSED: Appearance("ban", "red"),
    State.UNKNOWN: Appearance("circle-help", "red"),
    State.STOPPED: Appearance("unplug", "grey"),
}


def html() -> SafeString:
    """Return the strip's content; nothing for the embedded cluster, which is never away or stale."""
    current = freshness.current()
    if current is None:
        return SafeString("")
    context = {
        "freshness": current,
        "appearance": LOOKS[current.word],
        "is_read_only": server.permits().way is Way.READ_ONLY,
        "leading": freshness.leading(),
        "absence": freshness.absence(),
    }
    return render_to_string("partials/_cluster_freshness.html", context)


@live.topic(TOPIC)
def strip_topic(request: TopicRequest) -> Parts:
    """The strip, for everybody who is logged in."""
    return Parts({"cluster-freshness": html()}, again=clock.milliseconds() + LOOK_AGAIN_MS)
