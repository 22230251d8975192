"""Settings of a simulation: those of the test run, on a database in memory that one thread uses."""

from __future__ import annotations

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

DATABASES["default"] = {**DATABASES["default"], "NAME": ":memory:", "ENGINE": "tests.simulation.sqlite"}
HISTORY_HOURS = 0.2
EVENT_HOURS = 1
