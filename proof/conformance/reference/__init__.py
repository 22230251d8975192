"""The pages, each made of the items of a part of the reference."""

from __future__ import annotations

from proof.conformance.reference import jobs, scheduling

PAGES = (jobs.PAGE, scheduling.PAGE)
