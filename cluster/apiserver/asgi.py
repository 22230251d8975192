"""The application that the API server's process runs."""

from __future__ import annotations

from cluster import nudge
from cluster.apiserver import authentication, handlers  # noqa: F401  handlers registers who answers what
from cluster.apiserver.app import App

nudge.from_a_thread()
application = App(authentication.authenticate)
