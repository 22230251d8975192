"""The application that the API server's process runs."""

from __future__ import annotations

from cluster import nudge
from cluster.apiserver import authentication, handlers  # noqa: F401  handlers registers who answers what
from cluster.apiserver.app import App
from cluster.connecting import leave_checkpoints_to_workers

nudge.from_a_thread()
leave_checkpoints_to_workers()
application = App(authentication.authenticate)
