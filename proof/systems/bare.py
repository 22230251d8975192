"""Settings of a cluster without Volcano: our embedded one with no more controllers than Kubernetes has of its own.

It serves Volcano's kinds and runs pods; who makes and places the pods of jobs comes from elsewhere.
"""

from __future__ import annotations

from volcano_ui.settings import *  # noqa: F403

BACKEND = "proof.systems.bare_backend.Bare"
