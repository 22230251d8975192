from __future__ import annotations

from tests.jobs.pages.conftest import alice, cluster, parse, person  # noqa: F401
