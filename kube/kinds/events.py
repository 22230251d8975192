"""The Event of `events.k8s.io`: another form of the core group's, and the one that newer clients write."""

from __future__ import annotations

from typing import Annotated

from kube.kinds.core import EventSeries, EventType, ObjectReference
from kube.kinds.fields import Count, Time, View, keywords, one_of
from kube.meta import ObjectMeta


class Event(View):
    """Something that happened to an object, told to people; `series` counts how often."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    event_time: Time = ""
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: Annotated[str, keywords(maxLength=128)] = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: Annotated[str, one_of(EventType)] = ""
    deprecated_source: dict[str, str] = {}
    deprecated_first_timestamp: Time = ""
    deprecated_last_timestamp: Time = ""
    deprecated_count: Count = 0
