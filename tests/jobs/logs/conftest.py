"""What tests of logs share: the people of the pages' tests, and pods with logs on disk."""

from __future__ import annotations

from tests.jobs.pages.conftest import alice, cluster, golden, life, parse, person, reads

__all__ = ["alice", "cluster", "golden", "life", "parse", "person", "reads"]
