"""What tests of logs share: the people of the pages' tests, and pods with logs on disk."""

from __future__ import annotations

from tests.jobs.pages.conftest import alice, cluster, life, parse, person

__all__ = ["alice", "cluster", "life", "parse", "person"]
