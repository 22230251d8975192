"""WATCH of the Kubernetes API: the log's follower, and the streams that it feeds.

log_follower reads what is watched once for the process; `follower.listen(kinds, callback, lost)`
window    the recent past in memory
selection what a watch is about, and what a change is to it
channels  watchers of the same selection and form share every byte
stream    one watch, from its initial state to its end
stream_keeper bounds, deadlines, bookmarks, stuck clients; lost rights are `http.rights_keeper`'s
"""

from __future__ import annotations

from apiserver.watch.answer import board, keeper, watch, watch_socket
from apiserver.watch.log_follower import follower

__all__ = ["board", "follower", "keeper", "watch", "watch_socket"]
