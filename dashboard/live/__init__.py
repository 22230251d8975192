"""Live pages: `from dashboard import live`, then `@live.topic("jobs:list")`.

A topic renders a piece of a page in named parts. The page shows these parts, and
the hub renders them again when a change that they watch is committed, and
sends the parts that differ to every socket that subscribed. A stream is text that
flows, such as a log, and belongs to one subscription.
"""

from __future__ import annotations

from dashboard.live.streams import StreamRequest, stream
from dashboard.live.topics import Parts, TopicRequest, Watch, topic

__all__ = ["Parts", "StreamRequest", "TopicRequest", "Watch", "stream", "topic"]
