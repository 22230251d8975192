"""Settings of a simulation: those of the test run, on a database in memory that one thread uses."""

from __future__ import annotations

from proof.settings import *  # noqa: F403
from proof.settings import DATABASES

DATABASES["default"] = {**DATABASES["default"], "NAME": ":memory:", "ENGINE": "proof.simulation.sqlite"}
HISTORY_HOURS = 0.2  # type: ignore[assignment]  # whole hours are what operators choose from
EVENT_HOURS = 1
